/* SPDX-License-Identifier: MIT */
/* The free index against a sorted array, at random, and a walker that must find damage.
 */
#include "pool/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLICES 600u
#define LARGEST (((UINT64_C(1) << 40) - 1) << WR_UNIT_SHIFT)

typedef struct rig {
    wr_index index;
    wr_slab_cache cache;
    wr_slice *sorted[SLICES]; /* by extent; large ones by address, twins as they follow */
    size_t count;
    uint64_t random, addresses;
} rig;

static uint64_t draw(rig *r, uint64_t below)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return r->random % below;
}

static rig *open_rig(void)
{
    static rig r;
    const char *seed = getenv("WEIR_SEED");
    memset(&r, 0, sizeof r);
    wr_index_init(&r.index);
    r.random = seed == NULL ? 88172645463325252u : strtoull(seed, NULL, 0) * 2 + 1;
    assert_true(wr_slab_open());
    assert_true(wr_slab_fill(&r.cache, SLICES));
    return &r;
}

/* Few different sizes, all sorts of bins: equal extents must be common. */
static uint64_t draw_extent(rig *r)
{
    uint64_t units;
    switch (draw(r, 4)) {
    case 0:
        units = 1 + draw(r, 8);
        break;
    case 1:
        units = 60 + draw(r, 200);
        break;
    case 2:
        units = (UINT64_C(1) << (6 + draw(r, 34))) - draw(r, 2);
        break;
    default:
        units = (UINT64_C(1) << 12) + draw(r, 1 << 10);
    }
    return units << WR_UNIT_SHIFT;
}

/* The number of slices before (extent, address). */
static size_t rank_of(const rig *r, uint64_t extent, uint64_t address)
{
    size_t rank = 0;
    while (rank < r->count &&
           (r->sorted[rank]->extent_bytes < extent ||
            (r->sorted[rank]->extent_bytes == extent && extent >= WR_INDEX_TWINS_BELOW &&
             r->sorted[rank]->address < address))) {
        rank++;
    }
    return rank;
}

static wr_slice *at(const rig *r, size_t rank)
{
    return rank < r->count ? r->sorted[rank] : NULL;
}

static bool is_twin(const wr_slice *slice, uint64_t extent)
{
    return slice != NULL && extent < WR_INDEX_TWINS_BELOW &&
           slice->extent_bytes == extent;
}

/* The youngest twin comes right behind the first. */
static wr_slice *insert_sized(rig *r, uint64_t extent)
{
    uint64_t address = ++r->addresses % 4001 << WR_UNIT_SHIFT;
    size_t rank = rank_of(r, extent, address);
    rank += is_twin(at(r, rank), extent);
    wr_slice *slice = wr_slab_pop(&r->cache);
    slice->state = WR_SLICE_STATE_FREE;
    slice->extent_bytes = extent;
    slice->address = address;
    slice->free.subtrees = slice->free.twins = 0;
    uint64_t bin = wr_index_bin(extent);
    if (draw(r, 2) == 0 || !wr_index_try_insert(&r->index, slice, bin)) {
        wr_index_insert(&r->index, slice);
    }
    memmove(&r->sorted[rank + 1], &r->sorted[rank],
            (r->count - rank) * sizeof r->sorted[0]);
    r->sorted[rank] = slice;
    r->count++;
    return slice;
}

/* The array's part of a removal. */
static void forget(rig *r, size_t rank)
{
    wr_slab_push(&r->cache, r->sorted[rank]);
    r->count--;
    memmove(&r->sorted[rank], &r->sorted[rank + 1],
            (r->count - rank) * sizeof r->sorted[0]);
}

/* By the way without trees, if it goes; then the links are 0. */
static void remove_at(rig *r, size_t rank)
{
    wr_slice *slice = r->sorted[rank];
    if (draw(r, 2) == 0 || !wr_index_try_remove(&r->index, slice)) {
        wr_index_remove(&r->index, slice);
    } else {
        assert_true(slice->free.subtrees == 0 && slice->free.twins == 0);
    }
    forget(r, rank);
}

static void close_rig(rig *r)
{
    while (r->count > 0) {
        remove_at(r, draw(r, r->count));
    }
    assert_true(wr_index_is_empty(&r->index));
    assert_memory_equal(&r->index, &wr_index_none, sizeof r->index);
    wr_slab_trim(&r->cache, 0);
}

/* The place of the node that the slice at `rank` hangs on, or its own. */
static size_t node_of(const rig *r, size_t rank)
{
    while (rank > 0 && is_twin(r->sorted[rank - 1], r->sorted[rank]->extent_bytes)) {
        rank--;
    }
    return rank;
}

static void check_finds(rig *r, uint64_t extent)
{
    size_t rank = rank_of(r, extent, 0);
    assert_ptr_equal(wr_index_find(&r->index, extent), at(r, rank));
    assert_ptr_equal(wr_index_find_below(&r->index, extent),
                     rank == 0 ? NULL : r->sorted[node_of(r, rank - 1)]);
    assert_int_equal(wr_index_largest(&r->index),
                     r->count == 0 ? 0 : r->sorted[r->count - 1]->extent_bytes);
}

/* All of them on the way up, and on the way down, where twins keep their order. */
static void check_order(rig *r)
{
    const wr_slice *slice = wr_index_find(&r->index, 0);
    for (size_t i = 0; i < r->count; i++) {
        assert_ptr_equal(slice, r->sorted[i]);
        slice = wr_index_next(&r->index, slice);
    }
    assert_null(slice);
    slice = wr_index_find_below(&r->index, LARGEST + 1);
    for (size_t end = r->count, first; end > 0; end = first) {
        first = node_of(r, end - 1);
        for (size_t i = first; i < end; i++) {
            assert_ptr_equal(slice, r->sorted[i]);
            slice = wr_index_next_below(&r->index, slice);
        }
    }
    assert_null(slice);
}

static void check_walk(rig *r)
{
    uint64_t count = 0, bytes = 0, sum = 0;
    for (size_t i = 0; i < r->count; i++) {
        sum += r->sorted[i]->extent_bytes;
    }
    assert_null(wr_index_walk(&r->index, WR_SLICE_STATE_FREE, &count, &bytes));
    assert_int_equal(count, r->count);
    assert_int_equal(bytes, sum);
}

/* By the way without merging, if it goes, or else by the other. */
static wr_slice *take(rig *r, uint64_t extent)
{
    uint64_t bin = wr_index_find_bin(&r->index, wr_index_bin(extent));
    wr_slice *slice =
        draw(r, 2) == 0 ? NULL : wr_index_try_take_larger(&r->index, extent, bin);
    if (slice == NULL) {
        return wr_index_take(&r->index, extent);
    }
    assert_true(slice->extent_bytes > extent);
    assert_true(slice->free.subtrees == 0 && slice->free.twins == 0);
    return slice;
}

/* Takes by one of the two ways, and from the array what that must have been. */
static void check_take(rig *r, uint64_t extent, bool equal)
{
    size_t rank = rank_of(r, extent, 0);
    wr_slice *expected = at(r, rank);
    if (equal && expected != NULL && expected->extent_bytes != extent) {
        expected = NULL;
    }
    if (expected != NULL && is_twin(at(r, rank + 1), expected->extent_bytes)) {
        expected = r->sorted[++rank];
    }
    wr_slice *taken = equal ? wr_index_take_equal(&r->index, extent) : take(r, extent);
    assert_ptr_equal(taken, expected);
    if (taken != NULL) {
        forget(r, rank);
    }
}

static void index__agrees_with_a_sorted_array_at_random(void **state)
{
    (void)state;
    rig *r = open_rig();
    print_message("seed %llu\n", (unsigned long long)r->random);
    for (int step = 0; step < 60000; step++) {
        bool grows = step / 4000 % 2 == 0;
        uint64_t extent = draw_extent(r), choice = draw(r, 8);
        if (choice < (grows ? 5u : 2u) && r->count < SLICES) {
            insert_sized(r, extent);
        } else if (choice < 6 && r->count > 0) {
            remove_at(r, draw(r, r->count));
        } else {
            check_take(r, extent, choice == 7);
        }
        check_finds(r, draw_extent(r) + draw(r, 2));
        if (step % 1000 == 0) {
            check_walk(r);
            check_order(r);
        }
    }
    close_rig(r);
}

static void index__finds_nothing_when_it_is_empty(void **state)
{
    (void)state;
    const uint64_t extents[] = {0, WR_UNIT_BYTES, 64 * WR_UNIT_BYTES, LARGEST};
    for (size_t i = 0; i < 4; i++) {
        assert_null(wr_index_find(&wr_index_none, extents[i]));
        assert_null(wr_index_find_below(&wr_index_none, extents[i]));
        assert_null(wr_index_take_equal(&wr_index_none, extents[i]));
    }
    assert_null(wr_index_take(&wr_index_none, WR_UNIT_BYTES));
    assert_null(wr_index_take(&wr_index_none, LARGEST));
    assert_null(wr_index_try_take_larger(&wr_index_none, LARGEST, WR_INDEX_LAST));
    assert_int_equal(wr_index_largest(&wr_index_none), 0);
}

static void index__goes_to_the_last_bin(void **state)
{
    (void)state;
    rig *r = open_rig();
    insert_sized(r, LARGEST - WR_UNIT_BYTES);
    assert_null(wr_index_find(&r->index, LARGEST));
    wr_slice *largest = insert_sized(r, LARGEST);
    assert_ptr_equal(wr_index_find(&r->index, LARGEST), largest);
    assert_null(wr_index_next(&r->index, largest));
    insert_sized(r, WR_UNIT_BYTES);
    check_finds(r, LARGEST);
    check_finds(r, 0);
    check_finds(r, WR_UNIT_BYTES);
    check_walk(r);
    close_rig(r);
}

/* ---- the walker ---- */

static void assert_walk_says(const rig *r, const char *text)
{
    uint64_t count = 0, bytes = 0;
    const char *found = wr_index_walk(&r->index, WR_SLICE_STATE_FREE, &count, &bytes);
    assert_non_null(found);
    assert_string_equal(found, text);
}

static void walk__finds_a_bitmap_that_does_not_fit(void **state)
{
    (void)state;
    const char *text = "a free index's bitmap does not fit its bins";
    rig *r = open_rig();
    uint64_t bin = wr_index_bin_of(insert_sized(r, 5 * WR_UNIT_BYTES));
    *wr_index_word(&r->index, bin) ^= UINT64_C(1) << bin % 64;
    assert_walk_says(r, text);
    *wr_index_word(&r->index, bin) ^= UINT64_C(1) << bin % 64;
    r->index.map[0] ^= UINT64_C(1) << 9;
    assert_walk_says(r, text);
    r->index.map[0] ^= UINT64_C(1) << 9;
    check_walk(r);
    close_rig(r);
}

static void walk__finds_slices_that_should_not_be_there(void **state)
{
    (void)state;
    rig *r = open_rig();
    wr_slice *node = insert_sized(r, 70 * WR_UNIT_BYTES);
    wr_slice *twin = insert_sized(r, 70 * WR_UNIT_BYTES);
    twin->state = WR_SLICE_STATE_HELD;
    assert_walk_says(r, "a slice in a free index is not free");
    twin->state = WR_SLICE_STATE_FREE;
    twin->extent_bytes = 71 * WR_UNIT_BYTES;
    assert_walk_says(r, "twins of a free index do not belong together");
    twin->extent_bytes = 70 * WR_UNIT_BYTES;
    twin->free.previous_twin = 0;
    assert_walk_says(r, "twins of a free index do not belong together");
    twin->free.previous_twin = wr_slice_id_of(node);
    node->extent_bytes = 6 * WR_UNIT_BYTES;
    assert_walk_says(r, "a slice is in the wrong bin of a free index");
    node->extent_bytes = 70 * WR_UNIT_BYTES;
    check_walk(r);
    close_rig(r);
}

/* Two extents of one bin make a tree of two nodes; turned round, it is wrong. */
static void walk__finds_a_tree_that_is_not_one(void **state)
{
    (void)state;
    rig *r = open_rig();
    wr_slice *small = insert_sized(r, 256 * WR_UNIT_BYTES);
    wr_slice *large = insert_sized(r, 257 * WR_UNIT_BYTES);
    assert_true(small->bin == large->bin);
    wr_slice_id *root = wr_index_root(&r->index, wr_index_bin_of(small));
    bool small_above = *root == wr_slice_id_of(small);
    wr_slice *top = small_above ? small : large, *child = small_above ? large : small;
    wr_slice_id *down = small_above ? &small->free.right : &large->free.left;
    wr_slice_id *up = small_above ? &large->free.left : &small->free.right;
    assert_true(*down == wr_slice_id_of(child));
    *root = wr_slice_id_of(child);
    *up = wr_slice_id_of(top);
    *down = 0;
    assert_walk_says(r, "a free index node is above one of higher priority");
    *root = wr_slice_id_of(top);
    *up = 0;
    *(small_above ? &small->free.left : &large->free.right) = wr_slice_id_of(child);
    assert_walk_says(r, "a free index is out of order");
    *(small_above ? &small->free.left : &large->free.right) = 0;
    *down = wr_slice_id_of(child);
    check_walk(r);
    close_rig(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index__agrees_with_a_sorted_array_at_random),
        cmocka_unit_test(index__finds_nothing_when_it_is_empty),
        cmocka_unit_test(index__goes_to_the_last_bin),
        cmocka_unit_test(walk__finds_a_bitmap_that_does_not_fit),
        cmocka_unit_test(walk__finds_slices_that_should_not_be_there),
        cmocka_unit_test(walk__finds_a_tree_that_is_not_one),
    };
    return cmocka_run_group_tests_name("pool, index", tests, NULL, NULL);
}
