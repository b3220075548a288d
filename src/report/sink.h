/* SPDX-License-Identifier: MIT */
/* Gathers small pieces of text for a weir_write_fn, so that the sink of a report is
 * called a few times and not once a token. The first failure sticks: later pieces are
 * dropped, and finish() returns it. Owned by one thread, no lock. */
#ifndef WR_REPORT_SINK_H
#define WR_REPORT_SINK_H

#include <weir/base.h>

typedef struct wr_sink {
    weir_write_fn write;
    void *context;
    weir_result result; /* the first failure, or OK */
    size_t used;        /* bytes gathered in `buffer` */
    char buffer[1024];
} wr_sink;

void wr_sink_init(wr_sink *sink, weir_write_fn write, void *context);
void wr_sink_put(wr_sink *sink, const char *text, size_t text_bytes);
/* At most sizeof buffer - 1 bytes a call; more is INVALID. */
void wr_sink_print(wr_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A line "  name   value  meaning" that lines up with others of its kind. */
void wr_sink_row(wr_sink *sink, const char *name, const char *value, const char *meaning);
/* Hands on what is gathered and returns the first failure. */
weir_result wr_sink_finish(wr_sink *sink);

#endif
