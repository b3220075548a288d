/* SPDX-License-Identifier: MIT */
/* What released memory waits for on other streams. A slice with uses (uses.h) collects in
 * a batch when it is released; closing the batch records one fence per used stream and
 * sorts the slices into groups by what they wait for. What waits for its own stream only
 * is in the epochs' hands (epochs.h). All functions: under the manager's lock. */
#ifndef WR_MANAGER_WAITS_H
#define WR_MANAGER_WAITS_H

#include "manager.h"

#include "base/hot.h"

#define WR_BATCH_MAX 64u

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

/* Finds out, without waiting, how far the other streams and its own have come; `fence`
 * as in epochs.h. */
WR_COLD void wr_waits_catch_up(wr_manager *manager, bool fence);

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
