/* SPDX-License-Identifier: MIT */
/* Cutting with care. The choice is between the tightest run and the next one, and between
 * the two ends of each; what counts is how many granules stop being whole. */
#include "pool.h"

#include <stddef.h>

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

wr_slice *wr_pool_carve_tight(wr_pool *pool, wr_slice *slice, uint64_t extent_bytes)
{
    wr_page *page = pool->range;
    cut best = consider(page, slice, extent_bytes);
    wr_slice *next = wr_index_find(pool->index, extent_bytes);
    if (next != NULL) {
        cut other = consider(page, next, extent_bytes);
        if (other.lost_granules < best.lost_granules) {
            wr_index_insert(pool->index, slice);
            wr_index_remove(pool->index, next);
            best = other;
        }
    }
    wr_slice *held = best.run;
    if (best.run->extent_bytes > extent_bytes) {
        wr_slice *rest = wr_slab_pop(pool->cache);
        uint64_t cut_bytes =
            best.at_end ? best.run->extent_bytes - extent_bytes : extent_bytes;
        wr_page_split(page, best.run, best.run->address + cut_bytes, rest);
        held = best.at_end ? rest : best.run;
        wr_index_insert(pool->index, best.at_end ? best.run : rest);
    }
    held->state = WR_SLICE_STATE_HELD;
    WR_SUB(pool->books.free, held->extent_bytes);
    return held;
}
