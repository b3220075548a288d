/* SPDX-License-Identifier: MIT */
/* Slab records that serve as something else than slices. Their `word` stays in place, so
 * that stale handles that point at them are still recognized. */
#ifndef WR_MANAGER_RECORD_H
#define WR_MANAGER_RECORD_H

#include "manager.h"

#include <string.h>

/* A record for other use, zeroed but for its word. The cache has one. */
static inline wr_slice_id wr_record_take(wr_manager *manager)
{
    wr_slice *slice = wr_slab_pop(&manager->cache);
    memset((char *)slice + sizeof slice->word, 0, sizeof *slice - sizeof slice->word);
    return wr_slice_id_of(slice);
}

static inline void wr_record_leave(wr_manager *manager, wr_slice_id id)
{
    wr_slab_push(&manager->cache, wr_slice_get(id));
}

#endif
