/* SPDX-License-Identifier: MIT */
#include "index.h"

#include "base/hot.h"

#include <stddef.h>

wr_index wr_index_none;

static inline uint32_t priority(wr_slice_id id)
{
    return id * UINT32_C(2654435769);
}

static inline unsigned bin_of(uint64_t extent_bytes)
{
    uint64_t units = extent_bytes >> WR_UNIT_SHIFT;
    if (units < WR_INDEX_EXACT_BINS) {
        return (unsigned)units;
    }
    unsigned log = 63u - (unsigned)__builtin_clzll(units);
    unsigned sub = (unsigned)(units >> (log - WR_INDEX_SUB_SHIFT)) & 31u;
    return WR_INDEX_EXACT_BINS + ((log - 6u) << WR_INDEX_SUB_SHIFT) + sub;
}

static inline bool is_before(const wr_slice *slice, uint64_t extent_bytes,
                             uint64_t address)
{
    return slice->extent_bytes != extent_bytes ? slice->extent_bytes < extent_bytes
                                               : slice->address < address;
}

static inline void mark_bin(wr_index *index, unsigned bin)
{
    index->map[bin / 64] |= UINT64_C(1) << (bin % 64);
    index->word_map |= UINT64_C(1) << (bin / 64);
}

static inline void clear_bin(wr_index *index, unsigned bin)
{
    uint64_t word = index->map[bin / 64] & ~(UINT64_C(1) << (bin % 64));
    index->map[bin / 64] = word;
    if (word == 0) {
        index->word_map &= ~(UINT64_C(1) << (bin / 64));
    }
}

/* The first bin from `bin` on that is not empty, WR_INDEX_BINS if there is none. */
static inline unsigned next_bin(const wr_index *index, unsigned bin)
{
    if (bin >= WR_INDEX_BINS) {
        return WR_INDEX_BINS;
    }
    unsigned word = bin / 64;
    uint64_t bits = index->map[word] >> (bin % 64);
    if (bits != 0) {
        return bin + (unsigned)__builtin_ctzll(bits);
    }
    uint64_t words = index->word_map & (~UINT64_C(1) << word);
    if (words == 0) {
        return WR_INDEX_BINS;
    }
    word = (unsigned)__builtin_ctzll(words);
    return word * 64 + (unsigned)__builtin_ctzll(index->map[word]);
}

void wr_index_insert(wr_index *index, wr_slice *slice)
{
    unsigned bin = bin_of(slice->extent_bytes);
    uint64_t extent_bytes = slice->extent_bytes, address = slice->address;
    wr_slice_id id = wr_slice_id_of(slice);
    wr_slice_id *link = &index->root[bin];
    wr_slice_id tree = *link;
    slice->bin = (uint16_t)bin;
    if (WR_LIKELY(tree == 0)) {
        mark_bin(index, bin);
        slice->free.left = slice->free.right = 0;
        *link = id;
        return;
    }
    uint32_t own = priority(id);
    while (tree != 0 && priority(tree) > own) {
        wr_slice *node = wr_slice_get(tree);
        link =
            is_before(node, extent_bytes, address) ? &node->free.right : &node->free.left;
        tree = *link;
    }
    *link = id;
    wr_slice_id *left = &slice->free.left, *right = &slice->free.right;
    while (tree != 0) {
        wr_slice *node = wr_slice_get(tree);
        if (is_before(node, extent_bytes, address)) {
            *left = tree;
            left = &node->free.right;
            tree = *left;
        } else {
            *right = tree;
            right = &node->free.left;
            tree = *right;
        }
    }
    *left = *right = 0;
}

/* Replaces the node at `*link` by its merged subtrees. */
static inline void unhook(wr_index *index, unsigned bin, wr_slice_id *link)
{
    wr_slice *slice = wr_slice_get(*link);
    wr_slice_id left = slice->free.left, right = slice->free.right;
    while (left != 0 && right != 0) {
        if (priority(left) > priority(right)) {
            *link = left;
            link = &wr_slice_get(left)->free.right;
            left = *link;
        } else {
            *link = right;
            link = &wr_slice_get(right)->free.left;
            right = *link;
        }
    }
    *link = left | right;
    if (index->root[bin] == 0) {
        clear_bin(index, bin);
    }
}

void wr_index_remove(wr_index *index, wr_slice *slice)
{
    unsigned bin = slice->bin;
    uint64_t extent_bytes = slice->extent_bytes, address = slice->address;
    wr_slice_id id = wr_slice_id_of(slice);
    wr_slice_id *link = &index->root[bin];
    while (*link != id) {
        WR_ASSERT(*link != 0);
        wr_slice *node = wr_slice_get(*link);
        link =
            is_before(node, extent_bytes, address) ? &node->free.right : &node->free.left;
    }
    unhook(index, bin, link);
}

/* The link to the first slice not before (extent_bytes, address), NULL if there is none.
 */
static inline wr_slice_id *seek(const wr_index *index, uint64_t extent_bytes,
                                uint64_t address, unsigned *bin_out)
{
    unsigned bin = bin_of(extent_bytes);
    const wr_slice_id *best = NULL;
    const wr_slice_id *link = &index->root[bin];
    while (*link != 0) {
        const wr_slice *node = wr_slice_get(*link);
        if (is_before(node, extent_bytes, address)) {
            link = &node->free.right;
        } else {
            best = link;
            link = &node->free.left;
        }
    }
    if (best == NULL) {
        bin = next_bin(index, bin + 1);
        if (bin == WR_INDEX_BINS) {
            return NULL;
        }
        best = &index->root[bin];
        while (wr_slice_get(*best)->free.left != 0) {
            best = &wr_slice_get(*best)->free.left;
        }
    }
    *bin_out = bin;
    return (wr_slice_id *)best;
}

wr_slice *wr_index_take(wr_index *index, uint64_t extent_bytes)
{
    unsigned bin;
    wr_slice_id *link = seek(index, extent_bytes, 0, &bin);
    if (link == NULL) {
        return NULL;
    }
    wr_slice *slice = wr_slice_get(*link);
    unhook(index, bin, link);
    return slice;
}

wr_slice *wr_index_take_equal(wr_index *index, uint64_t extent_bytes)
{
    unsigned bin;
    wr_slice_id *link = seek(index, extent_bytes, 0, &bin);
    if (link == NULL || wr_slice_get(*link)->extent_bytes != extent_bytes) {
        return NULL;
    }
    wr_slice *slice = wr_slice_get(*link);
    unhook(index, bin, link);
    return slice;
}

wr_slice *wr_index_find(const wr_index *index, uint64_t extent_bytes)
{
    return wr_index_find_after(index, extent_bytes, 0);
}

wr_slice *wr_index_find_after(const wr_index *index, uint64_t extent_bytes,
                              uint64_t address)
{
    unsigned bin;
    wr_slice_id *link = seek(index, extent_bytes, address, &bin);
    return link == NULL ? NULL : wr_slice_get(*link);
}

/* The last bin up to `bin` that is not empty, WR_INDEX_BINS if there is none. */
static unsigned previous_bin(const wr_index *index, unsigned bin)
{
    unsigned word = bin / 64;
    uint64_t bits = index->map[word] << (63 - bin % 64);
    if (bits != 0) {
        return bin - (unsigned)__builtin_clzll(bits);
    }
    uint64_t words = index->word_map & ((UINT64_C(1) << word) - 1);
    if (words == 0) {
        return WR_INDEX_BINS;
    }
    word = 63u - (unsigned)__builtin_clzll(words);
    return word * 64 + 63u - (unsigned)__builtin_clzll(index->map[word]);
}

static wr_slice *last_of(const wr_index *index, unsigned bin)
{
    wr_slice *slice = wr_slice_get(index->root[bin]);
    while (slice->free.right != 0) {
        slice = wr_slice_get(slice->free.right);
    }
    return slice;
}

wr_slice *wr_index_find_before(const wr_index *index, uint64_t extent_bytes,
                               uint64_t address)
{
    unsigned bin = bin_of(extent_bytes);
    wr_slice *best = NULL;
    for (wr_slice_id id = index->root[bin]; id != 0;) {
        wr_slice *node = wr_slice_get(id);
        bool before = is_before(node, extent_bytes, address);
        best = before ? node : best;
        id = before ? node->free.right : node->free.left;
    }
    if (best == NULL && bin > 0) {
        bin = previous_bin(index, bin - 1);
        best = bin == WR_INDEX_BINS ? NULL : last_of(index, bin);
    }
    return best;
}

uint64_t wr_index_largest(const wr_index *index)
{
    unsigned bin = previous_bin(index, WR_INDEX_BINS - 1);
    return bin == WR_INDEX_BINS ? 0 : last_of(index, bin)->extent_bytes;
}

/* ---- walker ---- */

typedef struct tree_walk {
    wr_slice_state state;
    unsigned bin;
    uint64_t count, bytes;
    const wr_slice *before; /* the slice last visited */
    const char *wrong;
} tree_walk;

/* In order; treaps are shallow, so recursion is bounded in practice by a few dozen
 * levels. */
static void walk_tree(tree_walk *walk, wr_slice_id id, uint32_t bound)
{
    if (id == 0 || walk->wrong != NULL) {
        return;
    }
    const wr_slice *slice = wr_slice_get(id);
    walk_tree(walk, slice->free.left, priority(id));
    if (priority(id) > bound) {
        walk->wrong = "a free index node is above one of higher priority";
    } else if (slice->state != (uint8_t)walk->state) {
        walk->wrong = "a slice in a free index is not free";
    } else if (bin_of(slice->extent_bytes) != walk->bin) {
        walk->wrong = "a slice is in the wrong bin of a free index";
    } else if (walk->before != NULL &&
               !is_before(walk->before, slice->extent_bytes, slice->address)) {
        walk->wrong = "a free index is out of order";
    }
    walk->before = slice;
    walk->count++;
    walk->bytes += slice->extent_bytes;
    walk_tree(walk, slice->free.right, priority(id));
}

const char *wr_index_walk(const wr_index *index, wr_slice_state state, uint64_t *count,
                          uint64_t *bytes)
{
    tree_walk walk = {.state = state};
    for (walk.bin = 0; walk.bin < WR_INDEX_BINS; walk.bin++) {
        bool marked = (index->map[walk.bin / 64] >> (walk.bin % 64) & 1) != 0;
        if (marked != (index->root[walk.bin] != 0) ||
            (marked && (index->word_map >> (walk.bin / 64) & 1) == 0)) {
            return "a free index's bitmaps do not fit its bins";
        }
        walk.before = NULL;
        walk_tree(&walk, index->root[walk.bin], UINT32_MAX);
    }
    *count += walk.count;
    *bytes += walk.bytes;
    return walk.wrong;
}
