/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include "base/memory.h"

#include <stddef.h>

bool wr_pool_open(wr_pool *pool)
{
    if (pool->index == NULL) {
        pool->index = wr_host_alloc(sizeof *pool->index);
    }
    if (pool->layout->exact && pool->layout->granular && pool->kept == NULL) {
        pool->kept = wr_host_alloc(sizeof *pool->kept);
        return pool->index != NULL && pool->kept != NULL;
    }
    return pool->index != NULL;
}

void wr_pool_close(wr_pool *pool)
{
    wr_host_free(pool->index);
    wr_host_free(pool->kept);
    pool->index = pool->kept = NULL;
}

/* ---- reserve ---- */

/* Makes the first `extent_bytes` of a free slice that is out of the index a held one. */
static wr_slice *carve(wr_pool *pool, wr_slice *slice, uint64_t extent_bytes)
{
    wr_page *page = wr_page_get(slice->page);
    if (slice->extent_bytes > extent_bytes && !pool->layout->whole) {
        wr_slice *rest = wr_slab_pop(pool->cache);
        wr_page_split(page, slice, slice->address + extent_bytes, rest);
        wr_index_insert(pool->index, rest);
    }
    slice->state = WR_SLICE_STATE_HELD;
    page->passed_over = false;
    wr_page_take(page, &pool->books, pool->moment, slice->address, slice->extent_bytes);
    return slice;
}

/* A released slice of exactly this size, as it lies. */
static wr_slice *reuse_equal(wr_pool *pool, uint64_t extent_bytes)
{
    wr_index *index = pool->layout->granular ? pool->kept : pool->index;
    wr_slice *slice = wr_index_take_equal(index, extent_bytes);
    return slice == NULL ? NULL : carve(pool, slice, extent_bytes);
}

wr_slice *wr_pool_try_reserve(wr_pool *pool, uint64_t extent_bytes)
{
    if (pool->layout->exact) {
        wr_slice *equal = reuse_equal(pool, extent_bytes);
        if (equal != NULL || !pool->layout->granular) {
            return equal;
        }
    }
    wr_slice *slice = wr_index_take(pool->index, extent_bytes);
    if (slice == NULL) {
        return NULL;
    }
    uint32_t shift = pool->layout->slack_shift;
    if (shift != 0 && slice->extent_bytes > extent_bytes + (extent_bytes >> shift)) {
        wr_index_insert(pool->index, slice);
        return NULL;
    }
    return carve(pool, slice, extent_bytes);
}

wr_slice *wr_pool_try_reserve_aligned(wr_pool *pool, uint64_t extent_bytes,
                                      uint64_t alignment_bytes)
{
    uint64_t mask = alignment_bytes - 1;
    if (pool->layout->whole || pool->layout->exact) {
        /* Whole pages begin aligned enough or not at all; kept ones are looked at as they are. */
        wr_slice *slice = wr_pool_try_reserve(pool, extent_bytes);
        if (slice != NULL && (slice->address & mask) != 0) {
            slice->state = WR_SLICE_STATE_LIMBO;
            wr_pool_release(pool, slice);
            return NULL;
        }
        return slice;
    }
    wr_slice *slice = wr_index_take(pool->index, extent_bytes + mask + 1 - WR_UNIT_BYTES);
    if (slice == NULL) {
        return NULL;
    }
    uint64_t address = (slice->address + mask) & ~mask;
    if (address != slice->address) {
        wr_slice *front = slice;
        slice = wr_slab_pop(pool->cache);
        wr_page_split(wr_page_get(front->page), front, address, slice);
        wr_index_insert(pool->index, front);
    }
    return carve(pool, slice, extent_bytes);
}

/* ---- release ---- */

wr_slice *wr_pool_merge(wr_index *index, wr_slab_cache *cache, wr_page *page, wr_slice *slice)
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

void wr_pool_release(wr_pool *pool, wr_slice *slice)
{
    wr_page *page = wr_page_get(slice->page);
    wr_page_give(page, &pool->books, pool->moment, slice->address, slice->extent_bytes);
    if (__builtin_expect(pool->kept != NULL, 0)) {
        slice->state = WR_SLICE_STATE_KEPT;
        wr_index_insert(pool->kept, slice);
        return;
    }
    wr_pool_settle(pool, page, slice);
}

void wr_pool_flush_kept(wr_pool *pool, uint64_t now_tick, uint64_t min_age)
{
    if (pool->kept == NULL) {
        return;
    }
    wr_slice *slice = wr_index_find_after(pool->kept, 0, 0);
    while (slice != NULL) {
        wr_slice *next =
            wr_index_find_after(pool->kept, slice->extent_bytes, slice->address + 1);
        wr_page *page = wr_page_get(slice->page);
        uint64_t tick = page->marks[wr_page_granule(page, slice->address)] & WR_TICK_MASK;
        if (((now_tick - tick) & WR_TICK_MASK) >= min_age) {
            wr_index_remove(pool->kept, slice);
            wr_pool_settle(pool, page, slice);
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

wr_slice *wr_pool_cut(wr_pool *pool, wr_slice *slice, uint64_t begin, uint64_t end)
{
    wr_page *page = wr_page_get(slice->page);
    WR_ASSERT(slice->state == WR_SLICE_STATE_FREE);
    if (!page->outdated) {
        wr_index_remove(pool->index, slice);
    }
    if (end < wr_slice_end(slice)) {
        wr_slice *right = wr_slab_pop(pool->cache);
        wr_page_split(page, slice, end, right);
        wr_index_insert(pool->index, right);
    }
    if (begin > slice->address) {
        wr_slice *left = slice;
        slice = wr_slab_pop(pool->cache);
        wr_page_split(page, left, begin, slice);
        wr_index_insert(pool->index, left);
    }
    wr_page_take(page, &pool->books, pool->moment, begin, end - begin);
    wr_page_unlink(page, slice);
    slice->state = WR_SLICE_STATE_TRANSIT;
    slice->pool = NULL;
    return slice;
}

void wr_pool_adopt(wr_pool *pool, wr_slice *slice)
{
    wr_page *page = wr_page_get(slice->page);
    uint32_t first = wr_page_granule(page, slice->address);
    uint32_t last = wr_page_granule(page, wr_slice_end(slice) - 1);
    for (uint32_t g = first; g <= last; g++) {
        page->marks[g] &= WR_TICK_MASK;
        page->granules[g].free_bytes = page->granule_bytes;
    }
    WR_ADD(pool->books.age[0].whole, slice->extent_bytes);
    wr_page_link(page, slice, pool);
    wr_pool_settle(pool, page, slice);
}

const char *wr_pool_walk(const wr_pool *pool)
{
    uint64_t count = 0, bytes = 0;
    const char *wrong = NULL;
    if (pool->index != NULL) {
        wrong = wr_index_walk(pool->index, WR_SLICE_STATE_FREE, &count, &bytes);
    }
    if (wrong == NULL && pool->kept != NULL) {
        wrong = wr_index_walk(pool->kept, WR_SLICE_STATE_KEPT, &count, &bytes);
    }
    return wrong;
}
