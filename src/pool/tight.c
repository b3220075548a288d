/* SPDX-License-Identifier: MIT */
/* Cutting with care. The choice is between the tightest run and the next ones, and
 * between the two ends of each; what counts is how many granules stop being whole: of a
 * chunk that is cut through, all. */
#include "pool.h"

#include <stddef.h>

/* The tightest runs that a careful pool looks at, and how much larger than the tightest
 * one they may be. */
#define CAREFUL_RUNS 3
#define CAREFUL_SLACK_BYTES (UINT64_C(20) << 20)

typedef struct cut {
    wr_slice *run;
    uint64_t lost_granules;
    bool at_end;
} cut;

/* The first chunk that begins at `offset` of the page or behind, as a granule. */
static inline uint32_t round_up(const wr_page *page, uint64_t offset)
{
    return wr_page_chunk_from(page, (uint32_t)((offset + page->granule_bytes - 1) >>
                                               page->granule_shift));
}

/* The granule behind the last chunk that ends at `offset` or before. */
static inline uint32_t round_down(const wr_page *page, uint64_t offset)
{
    return wr_page_chunk_begin(page, (uint32_t)(offset >> page->granule_shift));
}

/* The run's whole granules are [first, end). */
static inline cut consider(const wr_page *page, wr_slice *run, uint64_t extent_bytes)
{
    uint64_t run_begin = run->address - page->address;
    uint64_t run_end = run_begin + run->extent_bytes;
    uint32_t first = round_up(page, run_begin), end = round_down(page, run_end);
    if (first >= end) {
        return (cut){.run = run};
    }
    uint32_t first_left = round_up(page, run_begin + extent_bytes);
    uint32_t end_left = round_down(page, run_end - extent_bytes);
    uint32_t low = (first_left < end ? first_left : end) - first;
    uint32_t high = end - (end_left > first ? end_left : first);
    return (
        cut){.run = run, .lost_granules = low < high ? low : high, .at_end = high < low};
}

/* Of a run that is out of the index. */
static inline wr_slice *carve(wr_pool *pool, const cut *best, uint64_t extent_bytes)
{
    wr_slice *run = best->run, *held = run;
    pool->tight_skips -= extent_bytes >= WR_TIGHT_BYTES && pool->tight_skips > 0;
    if (run->extent_bytes > extent_bytes) {
        held = wr_slab_pop(pool->cache);
        if (best->at_end) {
            wr_page_split(pool->range, run, wr_slice_end(run) - extent_bytes, held);
        } else {
            wr_page_cut(run, wr_slice_id_of(run), extent_bytes, wr_slice_id_of(held));
        }
        wr_index_insert(pool->index, run);
    }
    held->state = WR_SLICE_STATE_HELD;
    WR_SUB(pool->books.free, extent_bytes);
    return held;
}

/* What comes behind a run in the index, if it has at most so many bytes. */
static inline wr_slice *next_up_to(const wr_index *index, const wr_slice *run,
                                   uint64_t most_bytes)
{
    if (wr_index_is_alone(index, run) &&
        wr_index_find_bin(index, wr_index_bin_of(run) + UINT64_C(1)) >
            wr_index_bin(most_bytes)) {
        return NULL;
    }
    wr_slice *next = wr_index_next(index, run);
    return next != NULL && next->extent_bytes <= most_bytes ? next : NULL;
}

/* Goes on from the tightest run, which loses something. */
static inline cut look_further(const wr_pool *pool, cut best, uint64_t extent_bytes)
{
    wr_slice *run = best.run;
    uint64_t most_bytes = run->extent_bytes + CAREFUL_SLACK_BYTES;
    for (int i = 1; i < CAREFUL_RUNS && best.lost_granules > 0; i++) {
        run = next_up_to(pool->index, run, most_bytes);
        if (run == NULL) {
            break;
        }
        cut other = consider(pool->range, run, extent_bytes);
        best = other.lost_granules < best.lost_granules ? other : best;
    }
    return best;
}

wr_slice *wr_pool_try_reserve_careful(wr_pool *pool, uint64_t extent_bytes)
{
    uint64_t bin = wr_index_find_bin(pool->index, wr_index_bin(extent_bytes));
    wr_slice *run = wr_slice_get(*wr_index_root(pool->index, bin));
    if (run->free.subtrees != 0 || run->extent_bytes < extent_bytes) {
        run = wr_index_find(pool->index, extent_bytes);
        if (run == NULL) {
            return NULL;
        }
    }
    cut best = consider(pool->range, run, extent_bytes);
    if (best.lost_granules > 0) {
        best = look_further(pool, best, extent_bytes);
    }
    wr_index_remove(pool->index, best.run);
    return carve(pool, &best, extent_bytes);
}

wr_slice *wr_pool_carve_tight(wr_pool *pool, wr_slice *slice, uint64_t extent_bytes)
{
    cut best = consider(pool->range, slice, extent_bytes);
    wr_slice *next =
        best.lost_granules == 0 ? NULL : wr_index_find(pool->index, extent_bytes);
    if (next != NULL) {
        cut other = consider(pool->range, next, extent_bytes);
        if (other.lost_granules < best.lost_granules) {
            wr_index_insert(pool->index, slice);
            wr_index_remove(pool->index, next);
            best = other;
        }
    }
    return carve(pool, &best, extent_bytes);
}
