/* SPDX-License-Identifier: MIT */
/* What the hot path shares with what runs when a request is not hot: the books of a slice
 * that comes to be held, or is held no longer. Under the manager's lock, and inside a
 * step of its sequence. */
#ifndef WR_MANAGER_HOT_H
#define WR_MANAGER_HOT_H

#include "manager.h"
#include "tags.h"

#include "base/hot.h"

/* Now and then, as the lock is taken: all there is. Tests only. */
static inline void wr_manager_check(wr_manager *manager)
{
#if WEIR_CHECK >= 3
    if (++manager->walk_step % WR_WALK_STEP == 0) {
        WR_ASSERT(wr_manager_walk(manager) == NULL);
    }
#else
    (void)manager;
#endif
}

/* Enters a slice that has just become held. Its record may make way for a fresh one: the
 * slice to use from here on is returned. */
wr_slice *wr_hot_enter(wr_manager *manager, wr_pool *pool, wr_slice *slice,
                       uint64_t bytes, uint64_t tag, uint64_t charged_bytes);

#endif
