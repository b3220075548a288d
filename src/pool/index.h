/* SPDX-License-Identifier: MIT */
/* The free index: exact best fit in O(log n).
 *
 * Slices are binned by size: one bin per size up to 64 units, then 32 bins per doubling.
 * Two levels of bitmaps find the next bin that is not empty. Inside a bin a treap (Seidel
 * and Aragon, "Randomized Search Trees", 1996) orders by (extent, address); priorities
 * are a hash of the slice's number, so the same calls build the same trees. Links live in
 * the slices. Guard: the owning pool's lock. */
#ifndef WR_POOL_INDEX_H
#define WR_POOL_INDEX_H

#include "page/slice.h"

#define WR_INDEX_EXACT_BINS 64u /* sizes below, in units, have a bin each */
#define WR_INDEX_SUB_SHIFT 5u   /* 32 bins per doubling above */
#define WR_INDEX_BINS (64u + (40u - 6u) * 32u)
#define WR_INDEX_WORDS ((WR_INDEX_BINS + 63u) / 64u)

typedef struct wr_index {
    uint64_t word_map; /* which words of `map` are not 0 */
    uint64_t map[WR_INDEX_WORDS];
    wr_slice_id root[WR_INDEX_BINS];
} wr_index;

/* An index that is empty and stays so. */
extern wr_index wr_index_none;

void wr_index_insert(wr_index *index, wr_slice *slice);
/* The slice must be in the index, with the extent and address it was inserted with. */
void wr_index_remove(wr_index *index, wr_slice *slice);

/* Takes out the smallest slice of at least `extent_bytes`, the lowest of equals; NULL if
 * none is as large. */
wr_slice *wr_index_take(wr_index *index, uint64_t extent_bytes);
/* Takes out the lowest slice of exactly `extent_bytes`, or NULL. */
wr_slice *wr_index_take_equal(wr_index *index, uint64_t extent_bytes);

/* The same without taking. */
wr_slice *wr_index_find(const wr_index *index, uint64_t extent_bytes);
/* The first slice behind (extent_bytes, address) in the order of size, then address. */
wr_slice *wr_index_find_after(const wr_index *index, uint64_t extent_bytes,
                              uint64_t address);
/* The last slice before (extent_bytes, address) in that order, or NULL. */
wr_slice *wr_index_find_before(const wr_index *index, uint64_t extent_bytes,
                               uint64_t address);
/* The extent of the largest slice, 0 if empty. */
uint64_t wr_index_largest(const wr_index *index);

static inline bool wr_index_is_empty(const wr_index *index)
{
    return index->word_map == 0;
}

/* For walkers: checks order, priorities, bins and bitmaps, and that each slice has
 * `state`; adds up count and bytes. NULL, or what is wrong. */
const char *wr_index_walk(const wr_index *index, wr_slice_state state, uint64_t *count,
                          uint64_t *bytes);

#endif
