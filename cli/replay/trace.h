/* SPDX-License-Identifier: MIT */
/* Allocation traces: text, plain or gzip, one record a line.
 *
 *     a ID BYTES STREAM    allocates; BYTES 0 is an operation that takes nothing
 *     f ID STREAM          frees
 *     m LABEL              marks the end of a step
 *     # ...                a comment; empty lines are skipped too
 *
 * Read into an array of fixed-size operations, so that a replay loop parses nothing. */
#ifndef WEIR_CLI_REPLAY_TRACE_H
#define WEIR_CLI_REPLAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wr_trace_kind {
    WR_TRACE_KIND_NOTHING = 0, /* an allocation of 0 bytes, or its free */
    WR_TRACE_KIND_ALLOC = 1,
    WR_TRACE_KIND_FREE = 2,
    WR_TRACE_KIND_MARK = 3,
} wr_trace_kind;

typedef struct wr_trace_op {
    uint64_t bytes;  /* of ALLOC and FREE */
    uint32_t slot;   /* the buffer's place in a table of slot_count places */
    uint16_t stream; /* 0 is the trace's stream 0, others in order of first mention */
    uint16_t kind;   /* wr_trace_kind */
} wr_trace_op;

/* Owns its array. Zeroed is empty. */
typedef struct wr_trace {
    wr_trace_op *ops; /* op_count of them, then tail_count frees of what is still live */
    size_t op_count;  /* marks included */
    size_t tail_count;
    size_t operation_count; /* a and f records */
    size_t mark_count;
    uint32_t slot_count;   /* buffers live at once, at most */
    uint32_t stream_count; /* at least 1 */
    uint64_t peak_bytes;   /* requested bytes live at once, at most */
    size_t peak_op;        /* index of the operation that first reached it */
} wr_trace;

/* Where and why a trace is not one. */
typedef struct wr_trace_error {
    uint64_t line; /* from 1; 0: the file as a whole */
    char reason[200];
} wr_trace_error;

/* Parses text in memory; no I/O. False with `*error` filled and `*trace` untouched if it
 * is not a trace or the host has no memory for it. */
bool wr_trace_parse(const char *text, size_t text_bytes, wr_trace *trace,
                    wr_trace_error *error);

/* The same for a file, plain or gzip. `progress` (may be NULL) hears the share read so
 * far, 0 to 1, now and then. */
bool wr_trace_read(const char *path, void (*progress)(double share), wr_trace *trace,
                   wr_trace_error *error);

/* Frees the array and zeroes the struct. */
void wr_trace_finish(wr_trace *trace);

#endif
