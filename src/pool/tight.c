/* SPDX-License-Identifier: MIT */
/* Cutting with care. The choice is between the tightest run and the next ones, and
 * between the two ends of each; what counts is how many granules stop being whole: of a
 * chunk that is cut through, all. */
#include "pool.h"

#include <stddef.h>

/* The tightest runs that a careful pool looks at, and how much larger than the tightest
 * one they may be. */
#define CAREFUL_RUNS 3
#define CAREFUL_SLACK_BYTES (UINT64_C(24) << 20)

typedef struct cut {
    wr_slice *run;
    uint64_t lost_granules;
    bool at_end;
} cut;

/* The first chunk that begins at `offset` of the page or behind, as a granule. */
static uint64_t round_up(const wr_page *page, uint64_t offset)
{
    uint64_t granule = (offset + page->granule_bytes - 1) >> page->granule_shift;
    while (wr_page_is_joined(page, (uint32_t)granule)) {
        granule++;
    }
    return granule;
}

/* The granule behind the last chunk that ends at `offset` or before. */
static uint64_t round_down(const wr_page *page, uint64_t offset)
{
    uint64_t granule = offset >> page->granule_shift;
    while (wr_page_is_joined(page, (uint32_t)granule)) {
        granule--;
    }
    return granule;
}

/* The run's whole granules are [first, end). */
static cut consider(const wr_page *page, wr_slice *run, uint64_t extent_bytes)
{
    uint64_t run_begin = run->address - page->address;
    uint64_t run_end = run_begin + run->extent_bytes;
    uint64_t first = round_up(page, run_begin), end = round_down(page, run_end);
    if (first >= end) {
        return (cut){.run = run};
    }
    uint64_t first_left = round_up(page, run_begin + extent_bytes);
    uint64_t end_left = round_down(page, run_end - extent_bytes);
    uint64_t low = (first_left < end ? first_left : end) - first;
    uint64_t high = end - (end_left > first ? end_left : first);
    return (
        cut){.run = run, .lost_granules = low < high ? low : high, .at_end = high < low};
}

/* Of a run that is out of the index. */
static wr_slice *carve(wr_pool *pool, const cut *best, uint64_t extent_bytes)
{
    wr_slice *held = best->run;
    pool->tight_skips -= extent_bytes >= WR_TIGHT_BYTES && pool->tight_skips > 0;
    if (held->extent_bytes > extent_bytes) {
        wr_slice *rest = wr_slab_pop(pool->cache);
        uint64_t cut_bytes =
            best->at_end ? held->extent_bytes - extent_bytes : extent_bytes;
        wr_page_split(pool->range, held, held->address + cut_bytes, rest);
        held = best->at_end ? rest : best->run;
        wr_index_insert(pool->index, best->at_end ? best->run : rest);
    }
    held->state = WR_SLICE_STATE_HELD;
    WR_SUB(pool->books.free, held->extent_bytes);
    return held;
}

wr_slice *wr_pool_try_reserve_careful(wr_pool *pool, uint64_t extent_bytes)
{
    wr_slice *run = wr_index_find(pool->index, extent_bytes);
    if (run == NULL) {
        return NULL;
    }
    uint64_t most = run->extent_bytes + CAREFUL_SLACK_BYTES;
    cut best = consider(pool->range, run, extent_bytes);
    for (int i = 1; i < CAREFUL_RUNS && best.lost_granules > 0; i++) {
        run = wr_index_next(pool->index, run);
        if (run == NULL || run->extent_bytes > most) {
            break;
        }
        cut other = consider(pool->range, run, extent_bytes);
        if (other.lost_granules < best.lost_granules) {
            best = other;
        }
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
