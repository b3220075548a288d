/* SPDX-License-Identifier: MIT */
/* Invariant: used <= sizeof buffer, and nothing reaches `write` after a failure. */
#include "sink.h"

#include "base/check.h"
#include "base/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void wr_sink_init(wr_sink *sink, weir_write_fn write, void *context)
{
    sink->write = write;
    sink->context = context;
    sink->result = WEIR_OK;
    sink->used = 0;
}

static void hand_on(wr_sink *sink)
{
    if (sink->result == WEIR_OK && sink->used > 0) {
        sink->result = sink->write(sink->context, sink->buffer, sink->used);
    }
    sink->used = 0;
}

void wr_sink_put(wr_sink *sink, const char *text, size_t text_bytes)
{
    while (text_bytes > 0 && sink->result == WEIR_OK) {
        size_t room = sizeof sink->buffer - sink->used;
        size_t part = text_bytes < room ? text_bytes : room;
        memcpy(sink->buffer + sink->used, text, part);
        sink->used += part;
        text += part;
        text_bytes -= part;
        if (sink->used == sizeof sink->buffer) {
            hand_on(sink);
        }
    }
}

void wr_sink_print(wr_sink *sink, const char *format, ...)
{
    char text[sizeof sink->buffer];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (sink->result == WEIR_OK && (length < 0 || (size_t)length >= sizeof text)) {
        sink->result =
            wr_error(WEIR_INVALID, "report: a line of %d bytes, at most %zu fit", length,
                     sizeof text - 1);
        return;
    }
    wr_sink_put(sink, text, (size_t)length);
}

void wr_sink_row(wr_sink *sink, const char *name, const char *value, const char *meaning)
{
    wr_sink_print(sink, "  %-15s %12s  %s\n", name, value, meaning);
}

weir_result wr_sink_finish(wr_sink *sink)
{
    hand_on(sink);
    WR_ASSERT(sink->used == 0);
    return sink->result;
}
