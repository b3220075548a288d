/* SPDX-License-Identifier: MIT */
/* Ranges: device-wide addresses in granules, backed where needed. */
#ifndef WR_MANAGER_RANGE_H
#define WR_MANAGER_RANGE_H

#include "manager.h"

/* Backs addresses so that the pool has a free run of `run_bytes`, with as few new
 * granules as can be found: beside free runs of the pool, in bare stretches, or at the
 * top. Unheld granules are moved there first, longest unheld first; only what they cannot
 * cover is asked of the driver. With no lock held. */
weir_result wr_range_grow(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                          bool *full);

/* The same with new granules only. */
bool wr_range_grow_new(wr_manager *manager, wr_pool *pool, uint64_t run_bytes);

/* For a large request of a pool that is tight: makes the free run for it where it takes
 * the fewest whole granules, moving unheld ones there if need be, but never new ones. The
 * pool's best fit then finds it. If nothing comes of it, nothing is lost. With no lock
 * held. */
void wr_range_make_tight(wr_manager *manager, wr_pool *pool, uint64_t run_bytes);

#endif
