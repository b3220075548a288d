/* SPDX-License-Identifier: MIT */
/* The ids of a trace: an open-addressing hash table that also remembers what was freed,
 * so that a double free is told from an unknown id. */
#ifndef WEIR_CLI_REPLAY_IDS_H
#define WEIR_CLI_REPLAY_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wr_trace_id {
    uint64_t id;
    uint64_t line; /* of its last record, from 1; 0: the entry is empty */
    uint64_t bytes;
    uint32_t slot;
    uint16_t stream;
    bool is_live;
} wr_trace_id;

/* Zeroed is empty. */
typedef struct wr_trace_ids {
    wr_trace_id *entries;
    size_t capacity; /* 0 or a power of two, at least 4/3 of count */
    size_t count;
} wr_trace_ids;

/* The entry of an id, or NULL. Valid until the next get. */
wr_trace_id *wr_trace_ids_find(const wr_trace_ids *ids, uint64_t id);

/* The entry of an id, made (with line 0, to be filled at once) if there is none; NULL
 * when the host has no memory. */
wr_trace_id *wr_trace_ids_get(wr_trace_ids *ids, uint64_t id);

void wr_trace_ids_finish(wr_trace_ids *ids);

#endif
