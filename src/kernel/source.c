/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

weir_result wr_source_write(const weir_kernel *kernel, weir_language language,
                            weir_write_fn write, void *context)
{
    switch (language) {
    case WEIR_LANGUAGE_CUDA:
        return wr_source_write_cuda(kernel, write, context);
    case WEIR_LANGUAGE_WGSL:
        return kernel->kind == WEIR_KERNEL_EXPRESSION
                   ? wr_source_write_wgsl(kernel, write, context)
                   : wr_source_write_wgsl_named(kernel, write, context);
    default:
        return weir_driver_error(WEIR_UNSUPPORTED,
                                 "kernel \"%s\": expressions are not written in language "
                                 "%d",
                                 kernel->name, (int)language);
    }
}

void wr_writer_put(wr_writer *writer, const char *text)
{
    if (writer->result == WEIR_OK) {
        writer->result = writer->write(writer->context, text, strlen(text));
    }
}

void wr_writer_print(wr_writer *writer, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text) {
        writer->result = WEIR_INVALID;
    }
    wr_writer_put(writer, text);
}
