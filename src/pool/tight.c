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

static uint64_t count_whole(const wr_page *page, uint64_t address, uint64_t bytes)
{
    uint32_t first, end;
    wr_page_whole(page, address, bytes, &first, &end);
    return end - first;
}

static cut consider(const wr_page *page, wr_slice *run, uint64_t extent_bytes)
{
    uint64_t rest = run->extent_bytes - extent_bytes;
    uint64_t whole = count_whole(page, run->address, run->extent_bytes);
    uint64_t low = count_whole(page, run->address + extent_bytes, rest);
    uint64_t high = count_whole(page, run->address, rest);
    return (cut){.run = run,
                 .lost_granules = whole - (high > low ? high : low),
                 .at_end = high > low};
}

/* Of a run that is out of the index. */
static wr_slice *carve(wr_pool *pool, const cut *best, uint64_t extent_bytes)
{
    wr_slice *held = best->run;
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
    wr_slice *next = wr_index_find(pool->index, extent_bytes);
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
