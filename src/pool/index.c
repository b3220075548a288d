/* SPDX-License-Identifier: MIT */
#include "index.h"

#include "base/memory.h"

wr_index wr_index_none = {.map[WR_INDEX_WORDS - 1] = UINT64_C(1) << 63};

wr_index *wr_index_create(uint32_t count)
{
    wr_index *indexes = wr_host_alloc_apart(count * sizeof *indexes);
    for (uint32_t i = 0; i < count && indexes != NULL; i++) {
        wr_index_init(&indexes[i]);
    }
    return indexes;
}

/* What tells slices of equal extent apart; twins have the same. */
static inline uint64_t rank(const wr_slice *slice)
{
    return slice->extent_bytes < WR_INDEX_TWINS_BELOW ? 0 : slice->address;
}

static inline uint64_t priority(const wr_slice *node)
{
    return (node->extent_bytes ^ rank(node)) * UINT64_C(0x9E3779B97F4A7C15);
}

static inline bool is_before(const wr_slice *node, uint64_t extent_bytes,
                             uint64_t extent_rank)
{
    return node->extent_bytes != extent_bytes ? node->extent_bytes < extent_bytes
                                              : rank(node) < extent_rank;
}

/* The same of two nodes: small ones of equal extent would be twins. */
static inline bool is_node_before(const wr_slice *node, uint64_t extent_bytes,
                                  uint64_t address)
{
    return node->extent_bytes != extent_bytes ? node->extent_bytes < extent_bytes
                                              : node->address < address;
}

void wr_index_tree_insert(wr_index *index, wr_slice *slice)
{
    uint64_t extent_bytes = slice->extent_bytes, address = slice->address;
    uint64_t own_priority = priority(slice);
    bool may_have_twin = extent_bytes < WR_INDEX_TWINS_BELOW;
    wr_slice_id *link = wr_index_root(index, wr_index_bin_of(slice)), *place = NULL;
    while (*link != 0) {
        wr_slice *node = wr_slice_get(*link);
        if (place == NULL && priority(node) < own_priority) {
            place = link;
            if (!may_have_twin) {
                break;
            }
        }
        if (may_have_twin && node->extent_bytes == extent_bytes) {
            wr_index_hang(node, slice);
            return;
        }
        link = is_node_before(node, extent_bytes, address) ? &node->free.right
                                                           : &node->free.left;
    }
    place = place == NULL ? link : place;
    wr_slice_id tree = *place;
    *place = wr_slice_id_of(slice);
    slice->free.next_twin = slice->free.previous_twin = 0;
    wr_slice_id *left = &slice->free.left, *right = &slice->free.right;
    while (tree != 0) {
        wr_slice *node = wr_slice_get(tree);
        if (is_node_before(node, extent_bytes, address)) {
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

/* Replaces the node at `*link` by its next twin, or else by its merged subtrees. */
static inline void unhook(wr_index *index, uint64_t bin, wr_slice_id *link)
{
    wr_slice *node = wr_slice_get(*link);
    wr_slice_id left = node->free.left, right = node->free.right;
    if (node->free.next_twin != 0) {
        wr_slice *twin = wr_slice_get(node->free.next_twin);
        twin->free.previous_twin = 0;
        twin->free.left = left;
        twin->free.right = right;
        *link = node->free.next_twin;
        return;
    }
    while (left != 0 && right != 0) {
        if (priority(wr_slice_get(left)) > priority(wr_slice_get(right))) {
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
    if (*wr_index_root(index, bin) == 0) {
        wr_index_clear(index, bin);
    }
}

void wr_index_tree_remove(wr_index *index, wr_slice *slice)
{
    uint64_t extent_bytes = slice->extent_bytes, address = slice->address;
    wr_slice_id id = wr_slice_id_of(slice);
    wr_slice_id *link = wr_index_root(index, wr_index_bin_of(slice));
    while (*link != id) {
        WR_ASSERT(*link != 0);
        wr_slice *node = wr_slice_get(*link);
        link = is_node_before(node, extent_bytes, address) ? &node->free.right
                                                           : &node->free.left;
    }
    unhook(index, wr_index_bin_of(slice), link);
}

/* The link to the first node of a tree not before (extent_bytes, extent_rank), or NULL.
 */
static inline wr_slice_id *seek(const wr_slice_id *link, uint64_t extent_bytes,
                                uint64_t extent_rank)
{
    const wr_slice_id *best = NULL;
    while (*link != 0) {
        const wr_slice *node = wr_slice_get(*link);
        if (is_before(node, extent_bytes, extent_rank)) {
            link = &node->free.right;
        } else {
            best = link;
            link = &node->free.left;
        }
    }
    return (wr_slice_id *)best;
}

/* The same in the whole index, from `*bin` on, which becomes the node's. */
static inline wr_slice_id *seek_from(const wr_index *index, uint64_t extent_bytes,
                                     uint64_t extent_rank, uint64_t *bin)
{
    wr_slice_id *link = seek(wr_index_root(index, *bin), extent_bytes, extent_rank);
    if (link == NULL && *bin != WR_INDEX_LAST) {
        *bin = wr_index_find_bin(index, *bin + 1);
        link = seek(wr_index_root(index, *bin), 0, 0);
    }
    return link;
}

wr_slice *wr_index_tree_take(wr_index *index, uint64_t extent_bytes, uint64_t bin)
{
    wr_slice_id *link = seek_from(index, extent_bytes, 0, &bin);
    if (link == NULL) {
        return NULL;
    }
    wr_slice *slice = wr_slice_get(*link);
    if (slice->free.next_twin != 0) {
        slice = wr_slice_get(slice->free.next_twin);
        wr_index_unhang(slice);
    } else {
        unhook(index, bin, link);
    }
    return slice;
}

wr_slice *wr_index_take(wr_index *index, uint64_t extent_bytes)
{
    uint64_t bin = wr_index_find_bin(index, wr_index_bin(extent_bytes));
    return bin == WR_INDEX_LAST ? NULL : wr_index_take_from(index, extent_bytes, bin);
}

wr_slice *wr_index_take_equal(wr_index *index, uint64_t extent_bytes)
{
    wr_slice *node = wr_index_find(index, extent_bytes);
    bool equal = node != NULL && node->extent_bytes == extent_bytes;
    return equal ? wr_index_take(index, extent_bytes) : NULL;
}

wr_slice *wr_index_find(const wr_index *index, uint64_t extent_bytes)
{
    extent_bytes = extent_bytes < WR_UNIT_BYTES ? WR_UNIT_BYTES : extent_bytes;
    uint64_t bin = wr_index_bin(extent_bytes);
    const wr_slice_id *link = seek_from(index, extent_bytes, 0, &bin);
    return link == NULL ? NULL : wr_slice_get(*link);
}

wr_slice *wr_index_next(const wr_index *index, const wr_slice *slice)
{
    if (slice->free.next_twin != 0) {
        return wr_slice_get(slice->free.next_twin);
    }
    uint64_t bin = wr_index_bin_of(slice);
    const wr_slice_id *link =
        seek_from(index, slice->extent_bytes, rank(slice) + 1, &bin);
    return link == NULL ? NULL : wr_slice_get(*link);
}

/* The last bin below `end` that is not empty, WR_INDEX_LAST if there is none. */
static uint64_t previous_bin(const wr_index *index, uint64_t end)
{
    uint64_t word = end / 64;
    uint64_t bits = *wr_index_word(index, end) & ~(~UINT64_C(0) << (end % 64));
    while (bits == 0) {
        if (word-- == WR_INDEX_FIRST / 64) {
            return WR_INDEX_LAST;
        }
        bits = *wr_index_word(index, word * 64);
    }
    return word * 64 + 63u - (uint64_t)__builtin_clzll(bits);
}

static wr_slice *last_of(const wr_index *index, uint64_t bin)
{
    wr_slice *node = wr_slice_get(*wr_index_root(index, bin));
    while (node->free.right != 0) {
        node = wr_slice_get(node->free.right);
    }
    return node;
}

/* The last node before (extent_bytes, extent_rank), or NULL. */
static wr_slice *find_before(const wr_index *index, uint64_t extent_bytes,
                             uint64_t extent_rank)
{
    uint64_t bin = wr_index_bin(extent_bytes);
    wr_slice *best = NULL;
    for (wr_slice_id id = *wr_index_root(index, bin); id != 0;) {
        wr_slice *node = wr_slice_get(id);
        bool before = is_before(node, extent_bytes, extent_rank);
        best = before ? node : best;
        id = before ? node->free.right : node->free.left;
    }
    if (best == NULL) {
        bin = previous_bin(index, bin);
        best = bin == WR_INDEX_LAST ? NULL : last_of(index, bin);
    }
    return best;
}

wr_slice *wr_index_find_below(const wr_index *index, uint64_t extent_bytes)
{
    return extent_bytes <= WR_UNIT_BYTES ? NULL : find_before(index, extent_bytes, 0);
}

wr_slice *wr_index_next_below(const wr_index *index, const wr_slice *slice)
{
    return slice->free.next_twin != 0
               ? wr_slice_get(slice->free.next_twin)
               : find_before(index, slice->extent_bytes, rank(slice));
}

uint64_t wr_index_largest(const wr_index *index)
{
    uint64_t bin = previous_bin(index, WR_INDEX_LAST);
    return bin == WR_INDEX_LAST ? 0 : last_of(index, bin)->extent_bytes;
}

/* ---- walker ---- */

typedef struct tree_walk {
    wr_slice_state state;
    uint64_t bin, count, bytes;
    const wr_slice *before; /* the node last visited */
    const char *wrong;
} tree_walk;

static const char *check_node(const tree_walk *walk, const wr_slice *node, uint64_t bound)
{
    if (priority(node) > bound) {
        return "a free index node is above one of higher priority";
    }
    if (wr_index_bin(node->extent_bytes) != walk->bin) {
        return "a slice is in the wrong bin of a free index";
    }
    const wr_slice *before = walk->before;
    if ((before != NULL && !is_before(before, node->extent_bytes, rank(node))) ||
        node->free.previous_twin != 0) {
        return "a free index is out of order";
    }
    return NULL;
}

/* The twins of a node, itself included. */
static void walk_twins(tree_walk *walk, const wr_slice *node)
{
    wr_slice_id id = wr_slice_id_of(node), previous = 0;
    while (id != 0 && walk->wrong == NULL) {
        const wr_slice *slice = wr_slice_get(id);
        if (slice->state != (uint8_t)walk->state) {
            walk->wrong = "a slice in a free index is not free";
        } else if ((previous != 0 && !wr_index_are_twins(slice, node)) ||
                   slice->free.previous_twin != previous) {
            walk->wrong = "twins of a free index do not belong together";
        }
        walk->count++;
        walk->bytes += slice->extent_bytes;
        previous = id;
        id = slice->free.next_twin;
    }
}

/* In order; treaps are shallow, so recursion is bounded in practice by a few dozen
 * levels. */
static void walk_tree(tree_walk *walk, wr_slice_id id, uint64_t bound)
{
    if (id == 0 || walk->wrong != NULL) {
        return;
    }
    const wr_slice *node = wr_slice_get(id);
    walk_tree(walk, node->free.left, priority(node));
    if (walk->wrong == NULL) {
        walk->wrong = check_node(walk, node, bound);
    }
    walk_twins(walk, node);
    walk->before = node;
    walk_tree(walk, node->free.right, priority(node));
}

/* Whether 64 bins, which one word of the map has, are empty: most are, and walkers come
 * at every step. */
static bool are_empty(const wr_index *index, uint64_t first)
{
    wr_slice_id any = 0;
    for (uint64_t bin = first; bin < first + 64; bin++) {
        any |= *wr_index_root(index, bin);
    }
    return any == 0 && *wr_index_word(index, first) == 0;
}

/* Walks the trees of 64 bins; false if the map does not fit them. */
static bool walk_bins(tree_walk *walk, const wr_index *index, uint64_t first)
{
    for (walk->bin = first; walk->bin < first + 64; walk->bin++) {
        wr_slice_id root = *wr_index_root(index, walk->bin);
        bool marked = (*wr_index_word(index, first) >> (walk->bin % 64) & 1) != 0;
        if (marked != (root != 0 || walk->bin == WR_INDEX_LAST)) {
            return false;
        }
        walk->before = NULL;
        walk_tree(walk, root, UINT64_MAX);
    }
    return true;
}

const char *wr_index_walk(const wr_index *index, wr_slice_state state, uint64_t *count,
                          uint64_t *bytes)
{
    tree_walk walk = {.state = state};
    for (uint64_t first = WR_INDEX_FIRST; first <= WR_INDEX_LAST; first += 64) {
        if (!are_empty(index, first) && !walk_bins(&walk, index, first)) {
            return "a free index's bitmap does not fit its bins";
        }
    }
    *count += walk.count;
    *bytes += walk.bytes;
    return walk.wrong;
}
