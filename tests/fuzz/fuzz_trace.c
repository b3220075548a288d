/* SPDX-License-Identifier: MIT */
/* Any bytes as a trace: refused with a line and a reason, or parsed into operations that
 * free only what is live and add up to the counts. Fed whole and in pieces, the answer is
 * the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

/* Plays the operations and the tail on a table of slots. */
static void check_trace(const wr_trace *trace)
{
    uint64_t *slots = calloc((size_t)trace->slot_count + 1, sizeof *slots);
    require(slots != NULL, "no memory for the check");
    uint64_t live = 0, peak = 0;
    size_t operations = 0, marks = 0;
    for (size_t i = 0; i < trace->op_count + trace->tail_count; i++) {
        const wr_trace_op *op = &trace->ops[i];
        bool is_tail = i >= trace->op_count;
        require(op->stream < trace->stream_count, "a stream beyond the count");
        require(!is_tail || op->kind == WR_TRACE_KIND_FREE, "a tail of more than frees");
        operations += !is_tail && op->kind != WR_TRACE_KIND_MARK;
        marks += op->kind == WR_TRACE_KIND_MARK;
        if (op->kind == WR_TRACE_KIND_ALLOC) {
            require(op->slot < trace->slot_count, "a slot beyond the count");
            require(slots[op->slot] == 0 && op->bytes > 0, "a slot taken twice");
            slots[op->slot] = op->bytes;
            live += op->bytes;
            peak = live > peak ? live : peak;
        } else if (op->kind == WR_TRACE_KIND_FREE) {
            require(op->slot < trace->slot_count, "a slot beyond the count");
            require(slots[op->slot] == op->bytes && op->bytes > 0, "a free of nothing");
            slots[op->slot] = 0;
            live -= op->bytes;
        }
    }
    free(slots);
    require(live == 0, "something is live behind the tail");
    require(peak == trace->peak_bytes, "the peak is wrong");
    require(operations == trace->operation_count && marks == trace->mark_count,
            "the counts are wrong");
}

static bool parse_in_pieces(const char *text, size_t bytes, size_t piece, wr_trace *trace)
{
    wr_trace_error error = {0};
    wr_trace_parser parser;
    bool ok = wr_trace_parser_init(&parser, &error);
    size_t used = 0, end = 0;
    while (ok && end < bytes) {
        end = bytes - end > piece ? end + piece : bytes;
        size_t taken =
            wr_trace_parser_feed(&parser, text + used, end - used, end == bytes);
        ok = taken != SIZE_MAX;
        used += ok ? taken : 0;
    }
    ok = ok && wr_trace_parser_end(&parser, trace);
    wr_trace_parser_finish(&parser);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size > 0 ? size : 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    wr_trace trace = {0}, again = {0};
    wr_trace_error error = {0};
    bool ok = wr_trace_parse(text, size, &trace, &error);
    if (ok) {
        check_trace(&trace);
    } else {
        require(error.reason[0] != '\0', "refused without a reason");
        require(memchr(error.reason, '\0', sizeof error.reason) != NULL,
                "an endless reason");
    }
    bool ok_again = parse_in_pieces(text, size, 1 + size % 13, &again);
    require(ok == ok_again, "whole and in pieces differ");
    require(trace.op_count == again.op_count && trace.tail_count == again.tail_count,
            "whole and in pieces differ in length");
    require(trace.op_count + trace.tail_count == 0 ||
                memcmp(trace.ops, again.ops,
                       (trace.op_count + trace.tail_count) * sizeof *trace.ops) == 0,
            "whole and in pieces differ in operations");
    wr_trace_finish(&trace);
    wr_trace_finish(&again);
    free(text);
    return 0;
}
