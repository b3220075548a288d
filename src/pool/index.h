/* SPDX-License-Identifier: MIT */
/* The free index: exact best fit in O(log n).
 *
 * Slices are binned by size, 32 bins per doubling, so that up to 64 units each size has a
 * bin of its own. A bitmap of 20 words finds the next bin that is not empty. Inside a bin
 * a treap (Seidel and Aragon, "Randomized Search Trees", 1996) orders by extent, and
 * large slices by address too; priorities are a hash of both, so that a tree's shape
 * depends on nothing else. Small slices of equal extent are twins: the first is the
 * tree's node, the others hang on it in a list, and the youngest leaves first. So equal
 * sizes, which are what programs mostly ask for, come and go without a look at the tree.
 *
 *      bin  ->  node 5 KiB  ->  twin  ->  twin        (youngest behind the node)
 *
 *      bin  ->  node 5 MiB at 80
 *               /            \
 *        5 MiB at 20     5.1 MiB at 10
 *
 * Links live in the slices. Most bins have one node or none: what is done then stands
 * here, for the hot path; trees are in index.c. Guard: the owning pool's lock. */
#ifndef WR_POOL_INDEX_H
#define WR_POOL_INDEX_H

#include "base/hot.h"
#include "page/slice.h"

#include <stddef.h>

#define WR_INDEX_SUB_SHIFT 5u /* 32 bins per doubling */
#define WR_INDEX_BINS (40u << WR_INDEX_SUB_SHIFT)
#define WR_INDEX_WORDS (WR_INDEX_BINS / 64u)

typedef struct wr_index {
    uint64_t map[WR_INDEX_WORDS]; /* which bins are not empty */
    wr_slice_id root[WR_INDEX_BINS];
} wr_index;

/* An index that is empty and stays so. */
extern wr_index wr_index_none;

/* A double's exponent and the first bits of its fraction are the bin. Extents are below
 * 2^53, so that the conversion is exact. */
static inline unsigned wr_index_bin(uint64_t extent_bytes)
{
    union {
        double number;
        uint64_t bits;
    } extent = {.number = (double)(int64_t)extent_bytes};
    return (unsigned)(extent.bits >> (52u - WR_INDEX_SUB_SHIFT)) -
           ((1023u + WR_UNIT_SHIFT) << WR_INDEX_SUB_SHIFT);
}

/* Slices below have twins; large ones are told apart by address, so that low addresses
 * fill and whole granules become free at high ones. */
#define WR_INDEX_TWINS_BELOW (UINT64_C(64) << 10)

static inline bool wr_index_are_twins(const wr_slice *one, const wr_slice *other)
{
    return one->extent_bytes == other->extent_bytes &&
           one->extent_bytes < WR_INDEX_TWINS_BELOW;
}

/* The same as the functions below, for trees of several nodes. */
void wr_index_tree_insert(wr_index *index, wr_slice *slice);
void wr_index_tree_remove(wr_index *index, wr_slice *slice);
/* `bin` is the first from the extent's on that is not empty. */
wr_slice *wr_index_tree_take(wr_index *index, uint64_t extent_bytes, unsigned bin);

/* Hangs a slice on its twin that is the node. */
static inline void wr_index_hang(wr_slice *node, wr_slice *slice)
{
    wr_slice_id id = wr_slice_id_of(slice), next = node->free.next_twin;
    slice->free.next_twin = next;
    slice->free.previous_twin = wr_slice_id_of(node);
    node->free.next_twin = id;
    if (next != 0) {
        wr_slice_get(next)->free.previous_twin = id;
    }
}

/* Takes a twin that is not the node out of its list. */
static inline void wr_index_unhang(wr_slice *slice)
{
    wr_slice_id next = slice->free.next_twin, previous = slice->free.previous_twin;
    wr_slice_get(previous)->free.next_twin = next;
    if (next != 0) {
        wr_slice_get(next)->free.previous_twin = previous;
    }
}

WR_INLINE void wr_index_insert(wr_index *index, wr_slice *slice)
{
    unsigned bin = wr_index_bin(slice->extent_bytes);
    wr_slice_id root = index->root[bin];
    slice->bin = (uint16_t)bin;
    if (root != 0) {
        wr_slice *node = wr_slice_get(root);
        if (wr_index_are_twins(node, slice)) {
            wr_index_hang(node, slice);
        } else {
            wr_index_tree_insert(index, slice);
        }
        return;
    }
    slice->free.subtrees = slice->free.twins = 0;
    index->root[bin] = wr_slice_id_of(slice);
    index->map[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static inline void wr_index_clear(wr_index *index, unsigned bin)
{
    index->root[bin] = 0;
    index->map[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
}

/* The slice must be in the index, with the extent and address it was inserted with. */
WR_INLINE void wr_index_remove(wr_index *index, wr_slice *slice)
{
    if (slice->free.previous_twin != 0) {
        wr_index_unhang(slice);
    } else if ((slice->free.subtrees | slice->free.twins) == 0 &&
               index->root[slice->bin] == wr_slice_id_of(slice)) {
        wr_index_clear(index, slice->bin);
    } else {
        wr_index_tree_remove(index, slice);
    }
}

/* The first bin behind `bin` that is not empty, 0 if there is none. */
static inline unsigned wr_index_next_bin(const wr_index *index, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t bits = index->map[word] & (~UINT64_C(1) << (bin % 64));
    while (bits == 0) {
        if (++word == WR_INDEX_WORDS) {
            return 0;
        }
        bits = index->map[word];
    }
    return word * 64 + (unsigned)__builtin_ctzll(bits);
}

/* Takes out a slice of the smallest extent of at least `extent_bytes`, of equals the
 * youngest twin or the lowest; NULL if none is as large. */
WR_INLINE wr_slice *wr_index_take(wr_index *index, uint64_t extent_bytes)
{
    unsigned bin = wr_index_bin(extent_bytes);
    if (index->root[bin] == 0) {
        bin = wr_index_next_bin(index, bin);
        if (bin == 0) {
            return NULL;
        }
    }
    wr_slice *node = wr_slice_get(index->root[bin]);
    if (node->free.subtrees != 0 || node->extent_bytes < extent_bytes) {
        return wr_index_tree_take(index, extent_bytes, bin);
    }
    if (node->free.next_twin != 0) {
        wr_slice *twin = wr_slice_get(node->free.next_twin);
        wr_index_unhang(twin);
        return twin;
    }
    wr_index_clear(index, bin);
    return node;
}

/* The same of exactly `extent_bytes`. */
wr_slice *wr_index_take_equal(wr_index *index, uint64_t extent_bytes);

/* ---- looking: twins follow their node, in both directions ---- */

/* The first slice of at least `extent_bytes`, NULL if there is none. */
wr_slice *wr_index_find(const wr_index *index, uint64_t extent_bytes);
/* The next one behind a slice of the index. */
wr_slice *wr_index_next(const wr_index *index, const wr_slice *slice);
/* The last slice below `extent_bytes` (the node, of twins), and the next one behind a
 * slice on the way down. */
wr_slice *wr_index_find_below(const wr_index *index, uint64_t extent_bytes);
wr_slice *wr_index_next_below(const wr_index *index, const wr_slice *slice);
/* The extent of the largest slice, 0 if empty. */
uint64_t wr_index_largest(const wr_index *index);

static inline bool wr_index_is_empty(const wr_index *index)
{
    return wr_index_find(index, 0) == NULL;
}

/* For walkers: checks order, priorities, bins and bitmaps, and that each slice has
 * `state`; adds up count and bytes. NULL, or what is wrong. */
const char *wr_index_walk(const wr_index *index, wr_slice_state state, uint64_t *count,
                          uint64_t *bytes);

#endif
