/* SPDX-License-Identifier: MIT */
/* What turns lines into operations; fed line by line, so that a file need not fit in
 * memory. */
#ifndef WEIR_CLI_REPLAY_PARSER_H
#define WEIR_CLI_REPLAY_PARSER_H

#include "ids.h"
#include "trace.h"

/* Longer lines are an error: nothing but a label or comment comes near. */
#define WR_TRACE_MAX_LINE_BYTES 4096

typedef struct wr_trace_parser {
    wr_trace trace;
    size_t op_capacity;
    wr_trace_ids ids;
    uint32_t *free_slots; /* a stack of slots whose buffer was freed */
    size_t free_slot_count, free_slot_capacity;
    wr_trace_ids streams; /* by the trace's number; only `stream` is used */
    uint64_t live_bytes;
    wr_trace_error *error; /* the caller's; its line is the one being parsed */
} wr_trace_parser;

/* Begins with an empty trace; false when the host has no memory. To be finished either
 * way. */
bool wr_trace_parser_init(wr_trace_parser *parser, wr_trace_error *error);

/* Parses all whole lines of the text, and what is behind the last newline if `is_end`.
 * Returns the bytes used, or SIZE_MAX with the error filled. */
size_t wr_trace_parser_feed(wr_trace_parser *parser, const char *text, size_t text_bytes,
                            bool is_end);

/* Adds the tail and hands the trace over. */
bool wr_trace_parser_end(wr_trace_parser *parser, wr_trace *trace);

void wr_trace_parser_finish(wr_trace_parser *parser);

#endif
