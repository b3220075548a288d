/* SPDX-License-Identifier: MIT */
/* Which other streams, and which graphs, use a slice (weir_buffer_use). held.uses of it
 * is 0: none; (slot + 1) << 1 of one; or WR_USES_SET | a record with more, which may lead
 * to another. All functions: under the manager's lock. */
#ifndef WR_MANAGER_USES_H
#define WR_MANAGER_USES_H

#include "record.h"

#define WR_USES_SET UINT32_C(1)
#define WR_USES_MAX 10u /* of one record */

/* Slots from here on are graphs' numbers (graph.h), not streams. */
#define WR_SLOT_GRAPH (UINT32_C(1) << 30)

/* Uses in a slab record. */
typedef struct wr_use_set {
    _Atomic uint64_t word;
    wr_slice_id more; /* another set, 0 none */
    uint32_t count;
    uint32_t slots[WR_USES_MAX];
} wr_use_set;

_Static_assert(sizeof(wr_use_set) <= sizeof(wr_slice), "it lives in a slab record");

static inline wr_use_set *wr_use_set_get(wr_slice_id id)
{
    return (wr_use_set *)(void *)wr_slice_get(id);
}

/* What held.uses is for one use, and the reverse. */
static inline uint32_t wr_uses_of(uint32_t slot)
{
    return (slot + 1) << 1;
}

static inline uint32_t wr_uses_slot(uint32_t use)
{
    return (use >> 1) - 1;
}

/* Notes that stream `slot` used the slice. OUT_OF_HOST_MEMORY leaves it as it was. */
weir_result wr_uses_add(wr_manager *manager, wr_slice *slice, uint32_t slot);

bool wr_uses_has(const wr_slice *slice, uint32_t slot);
/* Takes a use back; nothing if there is none. */
void wr_uses_remove(wr_manager *manager, wr_slice *slice, uint32_t slot);

/* The slot of a graph that holds the slice, 0 if none does. */
uint32_t wr_uses_graph(const wr_slice *slice);

#endif
