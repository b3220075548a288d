/* SPDX-License-Identifier: MIT */
/* The free index: exact best fit in O(log n).
 *
 * Slices are binned by size, 64 bins per doubling, so that up to 128 units each size has
 * a bin of its own. A bitmap of 42 words finds the next bin that is not empty. Inside a
 * bin a treap (Seidel and Aragon, "Randomized Search Trees", 1996) orders by extent, and
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

#define WR_INDEX_SUB_SHIFT 6u /* 64 bins per doubling */
#define WR_INDEX_BINS (42u << WR_INDEX_SUB_SHIFT)
#define WR_INDEX_WORDS (WR_INDEX_BINS / 64u)

/* A bin's number is what the extent's double gives, so that nothing needs to be taken off
 * before it is stored; the arrays begin at WR_INDEX_FIRST, a multiple of 64. The last bin
 * is marked, and empty: who looks for a bin that is not empty always finds one. */
#define WR_INDEX_FIRST (UINT64_C(1030) << WR_INDEX_SUB_SHIFT)
#define WR_INDEX_LAST (WR_INDEX_FIRST + WR_INDEX_BINS - 1)

typedef struct wr_index {
    uint64_t map[WR_INDEX_WORDS]; /* which bins are not empty */
    wr_slice_id root[WR_INDEX_BINS];
} wr_index;

/* An index that is empty and stays so. */
extern wr_index wr_index_none;

/* Of zeroed memory. */
static inline void wr_index_init(wr_index *index)
{
    index->map[WR_INDEX_WORDS - 1] = UINT64_C(1) << 63;
}

/* So many on the heap; NULL: no host memory. Freed by wr_host_free. */
wr_index *wr_index_create(uint32_t count);

/* A double's exponent and the first bits of its fraction are the bin. Extents are whole
 * units below 2^48, so that the conversion is exact. */
static inline uint64_t wr_index_bin(uint64_t extent_bytes)
{
    union {
        double number;
        uint64_t bits;
    } extent = {.number = (double)(int64_t)extent_bytes};
    return extent.bits >> (52u - WR_INDEX_SUB_SHIFT);
}

/* What a slice of the index notes of its bin: the lower half, as all have one upper. */
#define WR_INDEX_UPPER (WR_INDEX_FIRST & ~UINT64_C(0xffff))
_Static_assert(WR_INDEX_LAST - WR_INDEX_UPPER <= UINT16_MAX, "16 bits tell a bin");
static inline uint64_t wr_index_bin_of(const wr_slice *slice)
{
    return WR_INDEX_UPPER + slice->bin;
}

static inline wr_slice_id *wr_index_root(const wr_index *index, uint64_t bin)
{
    return (wr_slice_id *)&index->root[bin - WR_INDEX_FIRST];
}

static inline uint64_t *wr_index_word(const wr_index *index, uint64_t bin)
{
    return (uint64_t *)&index->map[bin / 64 - WR_INDEX_FIRST / 64];
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
wr_slice *wr_index_tree_take(wr_index *index, uint64_t extent_bytes, uint64_t bin);

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

/* Puts a slice whose links are 0 into a bin, its own, that is empty. */
WR_INLINE void wr_index_fill(wr_index *index, wr_slice *slice, uint64_t bin)
{
    WR_ASSERT(bin < WR_INDEX_LAST && (slice->free.subtrees | slice->free.twins) == 0);
    slice->bin = (uint16_t)bin;
    *wr_index_root(index, bin) = wr_slice_id_of(slice);
    *wr_index_word(index, bin) |= UINT64_C(1) << (bin % 64);
}

/* Puts a slice whose links are 0 into its bin; false, and nothing is done: that needs a
 * look at a tree. */
WR_INLINE bool wr_index_try_insert(wr_index *index, wr_slice *slice, uint64_t bin)
{
    wr_slice_id root = *wr_index_root(index, bin);
    if (WR_LIKELY(root == 0)) {
        wr_index_fill(index, slice, bin);
        return true;
    }
    wr_slice *node = wr_slice_get(root);
    if (!wr_index_are_twins(node, slice)) {
        return false;
    }
    slice->bin = (uint16_t)bin;
    wr_index_hang(node, slice);
    return true;
}

WR_INLINE void wr_index_insert(wr_index *index, wr_slice *slice)
{
    uint64_t bin = wr_index_bin(slice->extent_bytes);
    wr_slice_id root = *wr_index_root(index, bin);
    if (root == 0) {
        slice->free.subtrees = slice->free.twins = 0;
        wr_index_fill(index, slice, bin);
        return;
    }
    wr_slice *node = wr_slice_get(root);
    slice->bin = (uint16_t)bin;
    if (wr_index_are_twins(node, slice)) {
        wr_index_hang(node, slice);
    } else {
        wr_index_tree_insert(index, slice);
    }
}

/* Takes the only slice out of a bin. */
WR_INLINE void wr_index_clear(wr_index *index, uint64_t bin)
{
    *wr_index_root(index, bin) = 0;
    *wr_index_word(index, bin) &= ~(UINT64_C(1) << (bin % 64));
}

/* Whether a slice of the index has its bin to itself. */
WR_INLINE bool wr_index_is_alone(const wr_index *index, const wr_slice *slice)
{
    return (slice->free.subtrees | slice->free.twins) == 0 &&
           *wr_index_root(index, wr_index_bin_of(slice)) == wr_slice_id_of(slice);
}

/* The slice must be in the index, with the extent and address it was inserted with. */
WR_INLINE void wr_index_remove(wr_index *index, wr_slice *slice)
{
    if (slice->free.previous_twin != 0) {
        wr_index_unhang(slice);
    } else if (wr_index_is_alone(index, slice)) {
        wr_index_clear(index, wr_index_bin_of(slice));
    } else {
        wr_index_tree_remove(index, slice);
    }
}

/* Takes a slice out, and leaves its links 0; false, and nothing is done: that needs a
 * look at a tree. A root is replaced by its next twin, or else by its only subtree. */
WR_INLINE bool wr_index_try_remove(wr_index *index, wr_slice *slice)
{
    uint64_t bin = wr_index_bin_of(slice);
    if (WR_LIKELY(wr_index_is_alone(index, slice))) {
        wr_index_clear(index, bin);
        return true;
    }
    wr_slice_id *root = wr_index_root(index, bin);
    if (slice->free.previous_twin != 0) {
        wr_index_unhang(slice);
    } else if (*root != wr_slice_id_of(slice)) {
        return false;
    } else if (slice->free.next_twin != 0) {
        wr_slice *twin = wr_slice_get(slice->free.next_twin);
        twin->free.previous_twin = 0;
        twin->free.subtrees = slice->free.subtrees;
        *root = slice->free.next_twin;
    } else if (slice->free.left == 0 || slice->free.right == 0) {
        *root = slice->free.left | slice->free.right;
    } else {
        return false;
    }
    slice->free.subtrees = slice->free.twins = 0;
    return true;
}

/* The first bin from `bin` on that is not empty, or the last of all. */
WR_INLINE uint64_t wr_index_find_bin(const wr_index *index, uint64_t bin)
{
    uint64_t word = bin / 64;
    uint64_t bits = index->map[word - WR_INDEX_FIRST / 64] >> (bin % 64);
    if (bits != 0) {
        return (uint32_t)bin + (uint32_t)__builtin_ctzll(bits);
    }
    do {
        word++;
        bits = index->map[word - WR_INDEX_FIRST / 64];
    } while (bits == 0);
    return (uint32_t)word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* Takes out a slice of the smallest extent of at least `extent_bytes`, of equals the
 * youngest twin or the lowest; NULL if none is as large. `bin` is the first that is not
 * empty from the extent's on; that of the last one, which has none, is record 0, so there
 * must be records. */
WR_INLINE wr_slice *wr_index_take_from(wr_index *index, uint64_t extent_bytes,
                                       uint64_t bin)
{
    wr_slice *node = wr_slice_get(*wr_index_root(index, bin));
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

/* Takes the same out, and leaves its links 0, if it is larger and nothing has to be
 * merged in its place; else NULL, and nothing is done. */
WR_INLINE wr_slice *wr_index_try_take_larger(wr_index *index, uint64_t extent_bytes,
                                             uint64_t bin)
{
    wr_slice_id *link = wr_index_root(index, bin), *best = NULL;
    while (*link != 0) {
        wr_slice *node = wr_slice_get(*link);
        bool fits = node->extent_bytes >= extent_bytes;
        best = fits ? link : best;
        link = fits ? &node->free.left : &node->free.right;
    }
    if (best == NULL && bin != WR_INDEX_LAST) {
        bin = wr_index_find_bin(index, bin + 1);
        for (link = wr_index_root(index, bin); *link != 0;
             link = &wr_slice_get(*link)->free.left) {
            best = link;
        }
    }
    wr_slice *slice = best == NULL ? NULL : wr_slice_get(*best);
    if (slice == NULL || slice->extent_bytes == extent_bytes) {
        return NULL;
    }
    if (slice->free.next_twin != 0) {
        slice = wr_slice_get(slice->free.next_twin);
        wr_index_unhang(slice);
    } else if (slice->free.left == 0 || slice->free.right == 0) {
        *best = slice->free.left | slice->free.right;
        if (*wr_index_root(index, bin) == 0) {
            wr_index_clear(index, bin);
        }
    } else {
        return NULL;
    }
    slice->free.subtrees = slice->free.twins = 0;
    return slice;
}

wr_slice *wr_index_take(wr_index *index, uint64_t extent_bytes);

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
