/* SPDX-License-Identifier: MIT */
/* Names, sentences and the per-thread last error. No lock: all state is thread-local. */
#include "result.h"

#include <weir/driver.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[WR_ERROR_BYTES];

const char *weir_result_name(weir_result result)
{
    switch (result) {
#define CASE(name, number, sentence)                                                     \
    case WEIR_##name:                                                                    \
        return #name;
        WEIR_RESULT_LIST(CASE)
#undef CASE
    }
    return "UNKNOWN";
}

const char *weir_result_text(weir_result result)
{
    switch (result) {
#define CASE(name, number, sentence)                                                     \
    case WEIR_##name:                                                                    \
        return sentence;
        WEIR_RESULT_LIST(CASE)
#undef CASE
    }
    return "an unknown result";
}

const char *weir_last_error(void)
{
    return last_error;
}

#define DOTTED_TEXT(major, minor, patch) #major "." #minor "." #patch
#define DOTTED(major, minor, patch) DOTTED_TEXT(major, minor, patch)

const char *weir_version(void)
{
    return DOTTED(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
}

weir_result wr_error(weir_result result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return result;
}

void wr_error_append(const char *format, ...)
{
    size_t used = strlen(last_error);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error + used, sizeof last_error - used, format, arguments);
    va_end(arguments);
}

void wr_error_save(char text[WR_ERROR_BYTES])
{
    memcpy(text, last_error, WR_ERROR_BYTES);
}

void wr_error_restore(const char text[WR_ERROR_BYTES])
{
    memcpy(last_error, text, WR_ERROR_BYTES);
}

weir_result weir_driver_error(weir_result result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return result;
}

weir_result weir_write_file(void *file, const char *text, size_t text_bytes)
{
    if (file == NULL || (text == NULL && text_bytes > 0)) {
        return wr_error(WEIR_INVALID, "weir_write_file: the file or the text is NULL");
    }
    if (fwrite(text, 1, text_bytes, file) != text_bytes) {
        return wr_error(WEIR_IO, "weir_write_file: %zu bytes could not be written",
                        text_bytes);
    }
    return WEIR_OK;
}
