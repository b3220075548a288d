/* SPDX-License-Identifier: MIT */
/* Linear probing from a multiplicative hash (Knuth, TAOCP 3, 6.4); entries are never
 * removed. */
#include "ids.h"

#include <stdlib.h>

/* The id's entry, or the empty one where it belongs; the table has at least one empty
 * entry. */
static wr_trace_id *probe(wr_trace_id *entries, size_t capacity, uint64_t id)
{
    uint64_t hash = id * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash ^ hash >> 32) & (capacity - 1);
    while (entries[at].line != 0 && entries[at].id != id) {
        at = (at + 1) & (capacity - 1);
    }
    return &entries[at];
}

static bool grow(wr_trace_ids *ids)
{
    size_t capacity = ids->capacity == 0 ? 256 : ids->capacity * 2;
    wr_trace_id *entries = calloc(capacity, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < ids->capacity; i++) {
        if (ids->entries[i].line != 0) {
            *probe(entries, capacity, ids->entries[i].id) = ids->entries[i];
        }
    }
    free(ids->entries);
    ids->entries = entries;
    ids->capacity = capacity;
    return true;
}

wr_trace_id *wr_trace_ids_find(const wr_trace_ids *ids, uint64_t id)
{
    if (ids->capacity == 0) {
        return NULL;
    }
    wr_trace_id *entry = probe(ids->entries, ids->capacity, id);
    return entry->line == 0 ? NULL : entry;
}

wr_trace_id *wr_trace_ids_get(wr_trace_ids *ids, uint64_t id)
{
    if (ids->count >= ids->capacity - ids->capacity / 4 && !grow(ids)) {
        return NULL;
    }
    wr_trace_id *entry = probe(ids->entries, ids->capacity, id);
    if (entry->line == 0) {
        entry->id = id;
        ids->count++;
    }
    return entry;
}

void wr_trace_ids_finish(wr_trace_ids *ids)
{
    free(ids->entries);
    *ids = (wr_trace_ids){0};
}
