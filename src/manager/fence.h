/* SPDX-License-Identifier: MIT */
/* Fences of the driver that several here wait for: groups of released slices, an epoch,
 * threads. All functions: under the manager's lock. */
#ifndef WR_MANAGER_FENCE_H
#define WR_MANAGER_FENCE_H

#include "record.h"

/* A slab record. */
typedef struct wr_fence {
    _Atomic uint64_t word;
    weir_driver_fence fence; /* the driver's */
    uint32_t slot;           /* the stream it was recorded on */
    uint32_t references; /* groups, the epoch, waiters; the fence goes with the last */
    uint32_t tested;     /* number of the poll that tested it last */
    bool passed;
} wr_fence;

_Static_assert(sizeof(wr_fence) <= sizeof(wr_slice), "it lives in a slab record");

static inline wr_fence *wr_fence_get(wr_slice_id id)
{
    return (wr_fence *)(void *)wr_slice_get(id);
}

/* Takes over a fence that stream `slot` has recorded, with one reference. The cache has a
 * spare. */
wr_slice_id wr_fence_create(wr_manager *manager, weir_driver_fence fence, uint32_t slot);
/* Gives a reference back. */
void wr_fence_release(wr_manager *manager, wr_slice_id id);

/* Tests it, in one poll only once; 0: in none. Never waits. */
bool wr_fence_has_passed(wr_manager *manager, wr_slice_id id, uint32_t poll);

#endif
