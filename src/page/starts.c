/* SPDX-License-Identifier: MIT */
#include "starts.h"

#include "base/hot.h"
#include "base/memory.h"

#include <stddef.h>

#define GRANULE_SHIFT 21
#define GRANULE_BYTES (UINT64_C(1) << GRANULE_SHIFT)
#define BLOCK_BYTES (UINT64_C(1) << 16)

/* ---- making parts ---- */

/* What is at `place`, or a new part in its place; NULL: no host memory. A macro, as
 * atomic pointers of different types have no common one. */
#define GET(place, count)                                                                \
    do {                                                                                 \
        there = WR_STARTS_LOAD(place);                                                   \
        void *fresh = there != NULL ? NULL : wr_host_alloc((count) * sizeof *there);     \
        if (fresh != NULL && atomic_compare_exchange_strong(&(place), &there, fresh)) {  \
            there = fresh;                                                               \
        } else {                                                                         \
            wr_host_free(fresh);                                                         \
        }                                                                                \
    } while (0)

static WR_COLD wr_starts_node *make_node(wr_starts *starts, uint64_t address)
{
    wr_starts_node *there;
    GET(starts->nodes[wr_starts_index(address, 45)], 1);
    return there;
}

static WR_COLD wr_starts_leaf *make_leaf(wr_starts *starts, uint64_t address)
{
    wr_starts_leaf *there = NULL;
    wr_starts_node *node =
        address >> WR_STARTS_ADDRESS_BITS != 0 ? NULL : make_node(starts, address);
    if (node != NULL) {
        GET(node->leaves[wr_starts_index(address, 33)], 1);
    }
    return there;
}

static inline wr_starts_leaf *get_leaf(wr_starts *starts, uint64_t address)
{
    wr_starts_leaf *leaf = wr_starts_find_leaf(starts, address);
    return WR_LIKELY(leaf != NULL) ? leaf : make_leaf(starts, address);
}

static WR_COLD wr_starts_block *make_block(wr_starts *starts, uint64_t address)
{
    wr_starts_block *there = NULL;
    wr_starts_leaf *leaf = get_leaf(starts, address);
    if (leaf != NULL) {
        GET(leaf->blocks[wr_starts_index(address, GRANULE_SHIFT)], WR_STARTS_BLOCKS);
    }
    return there == NULL ? NULL : &there[address / BLOCK_BYTES % WR_STARTS_BLOCKS];
}

static WR_COLD wr_starts_small *make_small(wr_starts_block *block)
{
    wr_starts_small *there;
    GET(block->small, 1);
    return there;
}

wr_starts_block *wr_starts_get(wr_starts *starts, uint64_t address)
{
    wr_starts_block *block = wr_starts_find(starts, address);
    return WR_LIKELY(block != NULL) ? block : make_block(starts, address);
}

/* ---- entering ---- */

/* Granules whose first byte lies inside the buffer, but is not its first. */
static bool cover(wr_starts *starts, uint64_t address, uint64_t end)
{
    wr_starts_leaf *leaf = NULL;
    uint64_t at = (address / GRANULE_BYTES + 1) * GRANULE_BYTES;
    for (; at < end; at += GRANULE_BYTES) {
        uint32_t granule = wr_starts_index(at, GRANULE_SHIFT);
        if (leaf == NULL || granule == 0) {
            leaf = get_leaf(starts, at);
        }
        if (leaf == NULL) {
            return false;
        }
        atomic_store_explicit(&leaf->cover[granule], address, memory_order_release);
    }
    return true;
}

static bool enter_small(wr_starts_block *block, uint64_t address, uint64_t bytes,
                        uint64_t value)
{
    wr_starts_small *small = WR_STARTS_LOAD(block->small);
    if (WR_UNLIKELY(small == NULL) && (small = make_small(block)) == NULL) {
        return false;
    }
    uint32_t unit = (uint32_t)(address >> WR_UNIT_SHIFT) % WR_STARTS_UNITS;
    atomic_store_explicit(&small->units[unit], (uint8_t)(bytes >> WR_UNIT_SHIFT),
                          memory_order_release);
    atomic_store_explicit(&small->value[unit], value, memory_order_release);
    return true;
}

bool wr_starts_enter(wr_starts *starts, wr_starts_block *block, uint64_t address,
                     uint64_t bytes, uint64_t value)
{
    WR_ASSERT(address % WR_UNIT_BYTES == 0 && (value & WR_START_FREED) == 0);
    if ((address ^ (address + bytes - 1)) >> GRANULE_SHIFT != 0 &&
        !cover(starts, address, address + bytes)) {
        return false;
    }
    if (bytes < WR_STARTS_LARGE_BYTES) {
        return enter_small(block, address, bytes, value);
    }
    atomic_store_explicit(&block->begin, address, memory_order_release);
    atomic_store_explicit(&block->bytes, bytes, memory_order_release);
    atomic_store_explicit(&block->value, value, memory_order_release);
    return true;
}

/* ---- searching ---- */

/* Small buffers that begin in the block, at `last` at most. */
static bool search_small(const wr_starts_block *block, uint64_t last,
                         wr_starts_accept accept, void *context)
{
    uint64_t first = last / BLOCK_BYTES * BLOCK_BYTES;
    wr_start start;
    for (uint64_t at = last / WR_UNIT_BYTES * WR_UNIT_BYTES + WR_UNIT_BYTES; at > first;
         at -= WR_UNIT_BYTES) {
        if (wr_start_read_small(block, at - WR_UNIT_BYTES, &start) &&
            accept(context, &start)) {
            return true;
        }
    }
    return false;
}

/* In the granule of `last`, buffers that begin there at most. */
static bool search_blocks(wr_starts_block *blocks, uint64_t last, wr_starts_accept accept,
                          void *context)
{
    uint64_t at = last;
    wr_start start;
    for (uint32_t i = (uint32_t)(last / BLOCK_BYTES) % WR_STARTS_BLOCKS + 1; i-- > 0;) {
        /* A small one ends in the next block at most. */
        bool near = last / BLOCK_BYTES - at / BLOCK_BYTES <= 1;
        if ((near && search_small(&blocks[i], at, accept, context)) ||
            (wr_start_read_large(&blocks[i], &start) && accept(context, &start))) {
            return true;
        }
        at = at / BLOCK_BYTES * BLOCK_BYTES - 1;
    }
    return false;
}

/* The buffer that reaches into a granule from before it. */
static bool search_cover(const wr_starts *starts, uint64_t begin, wr_starts_accept accept,
                         void *context)
{
    wr_starts_block *block = begin == 0 ? NULL : wr_starts_find(starts, begin);
    wr_start start;
    return block != NULL &&
           ((wr_start_read_small(block, begin, &start) && accept(context, &start)) ||
            (wr_start_read_large(block, &start) && accept(context, &start)));
}

bool wr_starts_search(const wr_starts *starts, uint64_t address, wr_starts_accept accept,
                      void *context)
{
    const wr_starts_leaf *leaf = wr_starts_find_leaf(starts, address);
    if (leaf == NULL) {
        return false;
    }
    uint32_t granule = wr_starts_index(address, GRANULE_SHIFT);
    wr_starts_block *blocks = WR_STARTS_LOAD(leaf->blocks[granule]);
    if (blocks != NULL && search_blocks(blocks, address, accept, context)) {
        return true;
    }
    return search_cover(starts, WR_STARTS_LOAD(leaf->cover[granule]), accept, context);
}

/* ---- the end ---- */

static void free_leaf(wr_starts_leaf *leaf)
{
    for (uint32_t g = 0; leaf != NULL && g < WR_STARTS_FANOUT; g++) {
        wr_starts_block *blocks = leaf->blocks[g];
        for (uint32_t i = 0; blocks != NULL && i < WR_STARTS_BLOCKS; i++) {
            wr_host_free(blocks[i].small);
        }
        wr_host_free(blocks);
    }
    wr_host_free(leaf);
}

void wr_starts_finish(wr_starts *starts)
{
    for (uint32_t i = 0; i < WR_STARTS_FANOUT; i++) {
        wr_starts_node *node = starts->nodes[i];
        for (uint32_t k = 0; node != NULL && k < WR_STARTS_FANOUT; k++) {
            free_leaf(node->leaves[k]);
        }
        wr_host_free(node);
        starts->nodes[i] = NULL;
    }
}
