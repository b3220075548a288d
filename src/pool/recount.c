/* SPDX-License-Identifier: MIT */
/* Counting which free bytes lie in whole granules, and which of those have passed. */
#include "pool.h"

#include <stddef.h>

/* In an exact pool with granules, free slices lie unmerged side by side, and a granule
 * that several of them share is whole all the same. */
static inline bool shares_granules(const wr_pool *pool)
{
    return __builtin_expect(pool->kept != NULL, 0);
}

static bool is_free(const wr_slice *slice)
{
    return slice->state == WR_SLICE_STATE_FREE || slice->state == WR_SLICE_STATE_KEPT;
}

/* Whether all slices on one side that reach into the bytes up to `bound` are free. */
static bool is_free_beside(wr_slice_id id, uint64_t bound, bool before)
{
    while (id != 0) {
        const wr_slice *slice = wr_slice_get(id);
        if (before ? wr_slice_end(slice) <= bound : slice->address >= bound) {
            return true;
        }
        if (!is_free(slice)) {
            return false;
        }
        id = before ? slice->prev : slice->next;
    }
    return true;
}

/* The granules of the chunks that are whole if, and only if, this slice is free:
 * [*first, *end). */
static void whole_with(const wr_page *page, const wr_slice *slice, uint32_t *first,
                       uint32_t *end)
{
    uint32_t begin = wr_page_chunk_begin(page, wr_page_granule(page, slice->address));
    uint32_t last =
        wr_page_chunk_begin(page, wr_page_granule(page, wr_slice_end(slice) - 1));
    uint32_t last_end = wr_page_chunk_end(page, last);
    bool begins = is_free_beside(slice->prev, wr_page_granule_address(page, begin), true);
    bool ends =
        is_free_beside(slice->next, wr_page_granule_address(page, last_end), false);
    if (begin == last) {
        begins = ends = begins && ends;
    }
    *first = begins ? begin : wr_page_chunk_end(page, begin);
    *end = ends ? last_end : last;
    *end = *end < *first ? *first : *end;
}

typedef struct count {
    const wr_pool *pool;
    uint64_t whole, settled;
} count;

/* Adds the whole granules of one free slice; a shared one counts with the slice it begins
 * in. */
static void add_slice(count *c, const wr_slice *slice)
{
    const wr_page *page = wr_page_get(slice->page);
    uint32_t first, end;
    if (shares_granules(c->pool)) {
        whole_with(page, slice, &first, &end);
        if (first < end && wr_page_granule_address(page, first) < slice->address) {
            first = wr_page_chunk_end(page, first);
        }
    } else {
        wr_page_whole(page, slice->address, slice->extent_bytes, &first, &end);
    }
    if (first < end) {
        c->whole += (end - first) * page->granule_bytes;
        c->settled += wr_page_is_abroad(page)
                          ? 0
                          : wr_page_settled_bytes(page, c->pool->moment, first, end);
    }
}

static void add_index(count *c, const wr_index *index, uint64_t least)
{
    const wr_slice *slice = index == NULL ? NULL : wr_index_find(index, least);
    while (slice != NULL) {
        add_slice(c, slice);
        slice = wr_index_next(index, slice);
    }
}

void wr_pool_recount(wr_pool *pool)
{
    count c = {.pool = pool};
    for (wr_page *page = pool->outdated; page != NULL; page = page->next_outdated) {
        const wr_slice *slice = wr_slice_get(page->granules[0].first);
        if (slice->state == WR_SLICE_STATE_FREE) {
            add_slice(&c, slice);
        }
    }
    bool small = !pool->layout->granular || shares_granules(pool);
    uint64_t least = small ? WR_UNIT_BYTES : pool->granule_bytes;
    add_index(&c, pool->index, least);
    add_index(&c, pool->kept, least);
    WR_PUT(pool->books.whole, c.whole);
    WR_PUT(pool->books.settled, c.settled);
}

static uint64_t abroad_bytes(const wr_slice *slice)
{
    return is_free(slice) && wr_page_is_abroad(wr_page_get(slice->page))
               ? slice->extent_bytes
               : 0;
}

uint64_t wr_pool_count_abroad(const wr_pool *pool)
{
    uint64_t bytes = 0;
    if (!pool->layout->shared) {
        return 0;
    }
    for (wr_page *page = pool->outdated; page != NULL; page = page->next_outdated) {
        bytes += abroad_bytes(wr_slice_get(page->granules[0].first));
    }
    const wr_slice *slice = wr_index_find(pool->index, 0);
    while (slice != NULL) {
        bytes += abroad_bytes(slice);
        slice = wr_index_next(pool->index, slice);
    }
    return bytes;
}
