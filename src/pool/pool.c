/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include "base/hot.h"
#include "base/memory.h"

#include <stddef.h>

bool wr_pool_open(wr_pool *pool)
{
    if (pool->index == &wr_index_none) {
        wr_index *index = wr_index_create(1);
        if (index == NULL) {
            return false;
        }
        pool->index = index;
    }
    if (pool->layout->exact && pool->layout->granular && pool->kept == NULL) {
        pool->kept = wr_index_create(1);
        return pool->kept != NULL;
    }
    return true;
}

void wr_pool_close(wr_pool *pool)
{
    if (pool->index != &wr_index_none) {
        wr_host_free(pool->index);
    }
    wr_host_free(pool->kept);
    pool->index = &wr_index_none;
    pool->kept = NULL;
}

/* ---- reserve ---- */

/* Makes the first `extent_bytes` of a free slice that is out of the index a held one, or
 * all of it (`whole`). */
static inline wr_slice *carve(wr_pool *pool, wr_slice *slice, uint64_t extent_bytes,
                              bool whole)
{
    if (pool->range == NULL) {
        wr_page_get(slice->page)->passed_over = false;
    }
    if (slice->extent_bytes > extent_bytes && !whole) {
        wr_slice *run = slice;
        slice = wr_slab_pop(pool->cache);
        wr_page_cut(run, wr_slice_id_of(run), extent_bytes, wr_slice_id_of(slice));
        wr_index_insert(pool->index, run);
    }
    slice->state = WR_SLICE_STATE_HELD;
    WR_SUB(pool->books.free, slice->extent_bytes);
    return slice;
}

wr_slice *wr_pool_try_reserve_plain(wr_pool *pool, uint64_t extent_bytes, uint64_t bin)
{
    wr_slice *slice = wr_index_take_from(pool->index, extent_bytes, bin);
    if (WR_UNLIKELY(slice == NULL)) {
        return NULL;
    }
    if (WR_UNLIKELY(slice->extent_bytes - extent_bytes >= pool->granule_bytes) &&
        wr_pool_is_tight(pool)) {
        return wr_pool_carve_tight(pool, slice, extent_bytes);
    }
    return carve(pool, slice, extent_bytes, false);
}

/* A released slice of exactly this size, as it lies. */
static wr_slice *reuse_equal(wr_pool *pool, uint64_t extent_bytes)
{
    wr_index *index = pool->layout->granular ? pool->kept : pool->index;
    wr_slice *slice = index == NULL ? NULL : wr_index_take_equal(index, extent_bytes);
    return slice == NULL ? NULL : carve(pool, slice, extent_bytes, true);
}

/* A page that is larger than the request by at most 1 / 2^shift (0: by any), or NULL. */
static wr_slice *reuse_page(wr_pool *pool, uint64_t extent_bytes, uint32_t shift)
{
    wr_slice *slice = wr_index_find(pool->index, extent_bytes);
    if (slice == NULL ||
        (shift != 0 && slice->extent_bytes > extent_bytes + (extent_bytes >> shift))) {
        return NULL;
    }
    wr_index_remove(pool->index, slice);
    wr_page *page = wr_page_get(slice->page);
    page->wear = (uint8_t)(page->wear - (page->wear > 0));
    return carve(pool, slice, extent_bytes, true);
}

wr_slice *wr_pool_try_reserve(wr_pool *pool, uint64_t extent_bytes)
{
    if (pool->layout->exact) {
        wr_slice *equal = reuse_equal(pool, extent_bytes);
        if (equal != NULL || !pool->layout->granular) {
            return equal;
        }
    } else if (pool->layout->whole) {
        return reuse_page(pool, extent_bytes, pool->layout->slack_shift);
    }
    if (wr_pool_wants_care(pool, extent_bytes)) {
        return wr_pool_try_reserve_careful(pool, extent_bytes);
    }
    uint64_t bin = wr_index_find_bin(pool->index, wr_index_bin(extent_bytes));
    return wr_pool_try_reserve_plain(pool, extent_bytes, bin);
}

wr_slice *wr_pool_try_reserve_loose(wr_pool *pool, uint64_t extent_bytes)
{
    return pool->layout->whole && !pool->layout->exact ? reuse_page(pool, extent_bytes, 0)
                                                       : NULL;
}

wr_slice *wr_pool_take(wr_pool *pool, wr_slice *slice)
{
    wr_index_remove(pool->index, slice);
    return carve(pool, slice, slice->extent_bytes, true);
}

wr_slice *wr_pool_try_reserve_aligned(wr_pool *pool, uint64_t extent_bytes,
                                      uint64_t alignment_bytes)
{
    uint64_t mask = alignment_bytes - 1;
    if (pool->layout->whole || pool->layout->exact) {
        /* Taken as they lie, with room for the aligned address inside. */
        return wr_pool_try_reserve(pool, extent_bytes + mask + 1 - WR_UNIT_BYTES);
    }
    wr_slice *run = wr_index_find(pool->index, extent_bytes + mask + 1 - WR_UNIT_BYTES);
    if (run == NULL) {
        return NULL;
    }
    uint64_t address = (run->address + mask) & ~mask;
    if (address == run->address) {
        wr_index_remove(pool->index, run);
        return carve(pool, run, extent_bytes, false);
    }
    /* The front stays free as a run of its own. */
    wr_pool_detach(pool, run);
    wr_slice *slice = wr_slab_pop(pool->cache);
    wr_page_split(wr_page_get(run->page), run, address, slice);
    wr_pool_attach(pool, run);
    slice->state = WR_SLICE_STATE_FREE;
    WR_ADD(pool->books.reserved, slice->extent_bytes);
    WR_ADD(pool->books.free, slice->extent_bytes);
    return carve(pool, slice, extent_bytes, false);
}

/* ---- release ---- */

wr_slice *wr_pool_merge(wr_index *index, wr_slab_cache *cache, wr_page *page,
                        wr_slice *slice)
{
    uint8_t state = slice->state;
    if (slice->next != 0 && wr_slice_get(slice->next)->state == state) {
        if (index != NULL) {
            wr_index_remove(index, wr_slice_get(slice->next));
        }
        wr_slab_push(cache, wr_page_join(page, slice));
    }
    if (slice->prev != 0 && wr_slice_get(slice->prev)->state == state) {
        slice = wr_slice_get(slice->prev);
        if (index != NULL) {
            wr_index_remove(index, slice);
        }
        wr_slab_push(cache, wr_page_join(page, slice));
    }
    if (index != NULL) {
        wr_index_insert(index, slice);
    }
    return slice;
}

/* Record 0 is no slice and has no slice's state, so a missing neighbour is one that does
 * not fit. */
void wr_pool_merge_free(wr_pool *pool, wr_page *page, wr_slice *slice)
{
    wr_slice *next = wr_slice_get(slice->next);
    if (next->state == WR_SLICE_STATE_FREE) {
        wr_index_remove(pool->index, next);
        wr_slab_push(pool->cache, wr_page_join(page, slice));
    }
    wr_slice *previous = wr_slice_get(slice->prev);
    if (previous->state == WR_SLICE_STATE_FREE) {
        wr_index_remove(pool->index, previous);
        wr_slab_push(pool->cache, wr_page_join(page, previous));
        slice = previous;
    }
    wr_index_insert(pool->index, slice);
}

static void release_otherwise(wr_pool *pool, wr_slice *slice, uint64_t mark)
{
    if (pool->range == NULL) {
        wr_page *page = wr_page_get(slice->page);
        page->marks[0] = mark;
        wr_pool_merge(page->outdated ? NULL : pool->index, pool->cache, page, slice);
    } else {
        wr_page_mark(pool->range, slice, mark);
        slice->state = WR_SLICE_STATE_KEPT;
        wr_index_insert(pool->kept, slice);
    }
}

void wr_pool_release(wr_pool *pool, wr_slice *slice, uint64_t mark)
{
    wr_page *page = pool->range;
    WR_ADD(pool->books.free, slice->extent_bytes);
    slice->state = WR_SLICE_STATE_FREE;
    if (WR_UNLIKELY(page == NULL || pool->kept != NULL)) {
        release_otherwise(pool, slice, mark);
        return;
    }
    wr_page_mark(page, slice, mark);
    wr_pool_merge_free(pool, page, slice);
}

void wr_pool_flush_kept(wr_pool *pool, uint64_t now_tick, uint64_t min_age)
{
    if (pool->kept == NULL) {
        return;
    }
    wr_slice *slice = wr_index_find(pool->kept, 0);
    while (slice != NULL) {
        wr_slice *next = wr_index_next(pool->kept, slice);
        wr_page *page = wr_page_get(slice->page);
        uint32_t granule = wr_page_granule(page, slice->address);
        uint64_t tick = page->marks[wr_page_chunk_begin(page, granule)] & WR_TICK_MASK;
        if (((now_tick - tick) & WR_TICK_MASK) >= min_age) {
            wr_index_remove(pool->kept, slice);
            slice->state = WR_SLICE_STATE_FREE;
            wr_pool_merge(pool->index, pool->cache, page, slice);
            pool->unheld_tick = 0;
        }
        slice = next;
    }
}

/* ---- outdated pages ---- */

void wr_pool_outdate(wr_pool *pool, wr_page *page)
{
    for (wr_slice_id id = page->granules[0].first; id != 0; id = wr_slice_get(id)->next) {
        if (wr_slice_get(id)->state == WR_SLICE_STATE_FREE) {
            wr_index_remove(pool->index, wr_slice_get(id));
        }
    }
    page->outdated = true;
    page->next_outdated = pool->outdated;
    pool->outdated = page;
}

void wr_pool_forget_outdated(wr_pool *pool, wr_page *page)
{
    wr_page **link = &pool->outdated;
    while (*link != page) {
        link = &(*link)->next_outdated;
    }
    *link = page->next_outdated;
}

/* ---- coming and going of whole granules ---- */

void wr_pool_detach(wr_pool *pool, wr_slice *slice)
{
    wr_page *page = wr_page_get(slice->page);
    WR_ASSERT(slice->state == WR_SLICE_STATE_FREE);
    if (!page->outdated) {
        wr_index_remove(pool->index, slice);
    }
    WR_SUB(pool->books.reserved, slice->extent_bytes);
    WR_SUB(pool->books.free, slice->extent_bytes);
    slice->state = WR_SLICE_STATE_TRANSIT;
}

void wr_pool_attach(wr_pool *pool, wr_slice *slice)
{
    wr_page *page = wr_page_get(slice->page);
    WR_ADD(pool->books.reserved, slice->extent_bytes);
    WR_ADD(pool->books.free, slice->extent_bytes);
    slice->state = WR_SLICE_STATE_FREE;
    wr_pool_merge(page->outdated ? NULL : pool->index, pool->cache, page, slice);
}

void wr_pool_put_back(wr_pool *pool, wr_slice *slice)
{
    WR_SUB(pool->books.reserved, slice->extent_bytes);
    wr_pool_attach(pool, slice);
}

wr_slice *wr_pool_cut(wr_pool *pool, wr_slice *slice, uint64_t begin, uint64_t end)
{
    wr_page *page = wr_page_get(slice->page);
    wr_pool_detach(pool, slice);
    if (end < wr_slice_end(slice)) {
        wr_slice *right = wr_slab_pop(pool->cache);
        wr_page_split(page, slice, end, right);
        wr_pool_attach(pool, right);
    }
    if (begin > slice->address) {
        wr_slice *left = slice;
        slice = wr_slab_pop(pool->cache);
        wr_page_split(page, left, begin, slice);
        wr_pool_attach(pool, left);
    }
    wr_page_unlink(page, slice);
    slice->pool = NULL;
    return slice;
}

void wr_pool_enter(wr_pool *pool, wr_slice *slice)
{
    wr_page *page = wr_page_get(slice->page);
    uint32_t first = wr_page_granule(page, slice->address);
    uint32_t last = wr_page_granule(page, wr_slice_end(slice) - 1);
    uint64_t entry = pool->manager == NULL ? pool->moment->mark & ~WR_TICK_MASK : 0;
    uint64_t unheld_tick = pool->unheld_tick;
    for (uint32_t g = first; g <= last; g = wr_page_chunk_end(page, g)) {
        uint64_t tick = page->marks[g] & WR_TICK_MASK;
        page->marks[g] = tick | entry;
        unheld_tick = tick < unheld_tick ? tick : unheld_tick;
    }
    pool->unheld_tick = unheld_tick;
    wr_page_link(page, slice, pool);
    slice->state = WR_SLICE_STATE_TRANSIT;
}

void wr_pool_adopt(wr_pool *pool, wr_slice *slice)
{
    wr_pool_enter(pool, slice);
    wr_pool_attach(pool, slice);
}

const char *wr_pool_walk(const wr_pool *pool)
{
    uint64_t count = 0, bytes = 0;
    const char *wrong = NULL;
    if (pool->index != &wr_index_none) {
        wrong = wr_index_walk(pool->index, WR_SLICE_STATE_FREE, &count, &bytes);
    }
    if (wrong == NULL && pool->kept != NULL) {
        wrong = wr_index_walk(pool->kept, WR_SLICE_STATE_KEPT, &count, &bytes);
    }
    return wrong;
}
