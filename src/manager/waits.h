/* SPDX-License-Identifier: MIT */
/* What released memory waits for.
 *
 * Own stream: releases belong to the current epoch. Nothing is recorded at the driver
 * until bytes are to leave the stream; then the stream is tested for idle, or the epoch
 * is closed with one fence. When it has passed, so have all older ones.
 *
 * Other streams (weir_buffer_use): a slice lists them in held.uses: 0 none; (slot + 1) <<
 * 1 of one stream; or WR_USES_SET | a record with more. Released ones collect in a batch;
 * closing it records one fence per used stream and sorts the slices into groups by what
 * they wait for.
 *
 * All functions: under the manager's lock. Records of sets, groups and waits are slab
 * records whose `word` stays in place, so stale handles that point at them are still
 * recognized. */
#ifndef WR_MANAGER_WAITS_H
#define WR_MANAGER_WAITS_H

#include "manager.h"

#include "base/hot.h"

#define WR_USES_SET UINT32_C(1)
#define WR_BATCH_MAX 64u

/* Slots from here on are graphs' numbers (graph.h), not streams. */
#define WR_SLOT_GRAPH (UINT32_C(1) << 30)

/* What held.uses is for one use. */
static inline uint32_t wr_waits_use_of(uint32_t slot)
{
    return (slot + 1) << 1;
}

/* Notes that stream `slot` used the slice. OUT_OF_HOST_MEMORY leaves it as it was. */
weir_result wr_waits_add_use(wr_manager *manager, wr_slice *slice, uint32_t slot);

bool wr_waits_has_use(const wr_slice *slice, uint32_t slot);
/* Takes a use back; nothing if there is none. */
void wr_waits_remove_use(wr_manager *manager, wr_slice *slice, uint32_t slot);

/* The slot of a graph that holds the slice, 0 if none does. */
uint32_t wr_waits_graph_of(const wr_slice *slice);

/* Makes `stream` wait, on the device, for what this manager's stream has queued.
 * NOT_READY, nothing done: `stream` is capturing. */
weir_result wr_waits_order(wr_manager *manager, wr_manager *stream);

/* A released slice with uses: into the batch. */
WR_COLD void wr_waits_defer(wr_manager *manager, wr_slice *slice);

/* A limbo slice that no graph holds any more: free, or into the batch. */
void wr_waits_let_go(wr_manager *manager, wr_slice *slice);

/* Closes the open batch: what could be fenced is in groups afterwards. */
WR_COLD void wr_waits_close_batch(wr_manager *manager);

/* Tests groups' fences and frees slices whose streams have passed. True if any was freed.
 */
WR_COLD bool wr_waits_poll(wr_manager *manager);

/* Finds out, without waiting, how far the own stream has come. `fence`: if there are
 * releases that have not passed, close their epoch with a fence, so that they will. */
void wr_waits_settle(wr_manager *manager, bool fence);

/* The oldest fence that something here waits for (`*fence` stays as it is if there is
 * none; the result is 0 for one that needs no dropping); `groups`: of groups only, else
 * of epochs too, closing one if need be. The reference is the caller's, until
 * wr_waits_drop. */
wr_slice_id wr_waits_oldest(wr_manager *manager, bool groups, weir_driver_fence *fence);
/* Gives the reference back; `passed`: the fence has been waited for. */
void wr_waits_drop(wr_manager *manager, wr_slice_id wait, bool passed);

/* Nothing is waited for any more: the driver is gone, or the stream was synchronized. */
void wr_waits_forget(wr_manager *manager);

/* Deferred bytes by the stream they wait for, for reports: adds to `bytes[slot]`. */
void wr_waits_count(wr_manager *manager, uint64_t *bytes, uint32_t slots);

/* True if nothing here waits for anything. */
bool wr_waits_is_quiet(const wr_manager *manager);

#endif
