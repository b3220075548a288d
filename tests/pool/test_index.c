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
    wr_slice *sorted[SLICES]; /* by extent, then address */
    size_t count;
    uint64_t random;
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
        units = 60 + draw(r, 80);
        break;
    case 2:
        units = (UINT64_C(1) << (6 + draw(r, 34))) - draw(r, 2);
        break;
    default:
        units = (UINT64_C(1) << 12) + draw(r, 1 << 10);
    }
    return units << WR_UNIT_SHIFT;
}

static uint64_t draw_address(rig *r)
{
    return (1 + draw(r, 4000)) << WR_UNIT_SHIFT;
}

/* The number of slices before (extent, address). */
static size_t rank_of(const rig *r, uint64_t extent, uint64_t address)
{
    size_t rank = 0;
    while (rank < r->count && (r->sorted[rank]->extent_bytes < extent ||
                               (r->sorted[rank]->extent_bytes == extent &&
                                r->sorted[rank]->address < address))) {
        rank++;
    }
    return rank;
}

static wr_slice *at(const rig *r, size_t rank)
{
    return rank < r->count ? r->sorted[rank] : NULL;
}

static wr_slice *insert_sized(rig *r, uint64_t extent, uint64_t address)
{
    size_t rank = rank_of(r, extent, address);
    wr_slice *there = at(r, rank);
    if (there != NULL && there->extent_bytes == extent && there->address == address) {
        return there; /* two slices never lie at one address */
    }
    wr_slice *slice = wr_slab_pop(&r->cache);
    slice->state = WR_SLICE_STATE_FREE;
    slice->extent_bytes = extent;
    slice->address = address;
    wr_index_insert(&r->index, slice);
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

static void remove_at(rig *r, size_t rank)
{
    wr_index_remove(&r->index, r->sorted[rank]);
    forget(r, rank);
}

static void close_rig(rig *r)
{
    while (r->count > 0) {
        remove_at(r, draw(r, r->count));
    }
    assert_true(wr_index_is_empty(&r->index));
    static const wr_index none;
    assert_memory_equal(r->index.root, none.root, sizeof none.root);
    assert_memory_equal(r->index.map, none.map, sizeof none.map);
    wr_slab_trim(&r->cache, 0);
}

static void check_finds(rig *r, uint64_t extent, uint64_t address)
{
    assert_ptr_equal(wr_index_find(&r->index, extent), at(r, rank_of(r, extent, 0)));
    size_t rank = rank_of(r, extent, address);
    assert_ptr_equal(wr_index_find_after(&r->index, extent, address), at(r, rank));
    assert_ptr_equal(wr_index_find_before(&r->index, extent, address),
                     rank == 0 ? NULL : at(r, rank - 1));
    assert_int_equal(wr_index_largest(&r->index),
                     r->count == 0 ? 0 : r->sorted[r->count - 1]->extent_bytes);
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

/* Takes by one of the two ways, and from the array what that must have been. */
static void check_take(rig *r, uint64_t extent, bool equal)
{
    size_t rank = rank_of(r, extent, 0);
    wr_slice *expected = at(r, rank);
    if (equal && expected != NULL && expected->extent_bytes != extent) {
        expected = NULL;
    }
    wr_slice *taken =
        equal ? wr_index_take_equal(&r->index, extent) : wr_index_take(&r->index, extent);
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
        uint64_t extent = draw_extent(r), address = draw_address(r);
        uint64_t choice = draw(r, 8);
        if (choice < (grows ? 5u : 2u) && r->count < SLICES) {
            insert_sized(r, extent, address);
        } else if (choice < 6 && r->count > 0) {
            remove_at(r, draw(r, r->count));
        } else if (choice == 6) {
            check_take(r, extent, false);
        } else {
            check_take(r, extent, true);
        }
        check_finds(r, draw_extent(r), draw(r, 2) == 0 ? draw_address(r) : 0);
        if (r->count > 0) { /* at a slice, and just behind it */
            const wr_slice *slice = r->sorted[draw(r, r->count)];
            check_finds(r, slice->extent_bytes, slice->address + draw(r, 2));
        }
        if (step % 1000 == 0) {
            check_walk(r);
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
        assert_null(wr_index_find_after(&wr_index_none, extents[i], 1));
        assert_null(wr_index_find_before(&wr_index_none, extents[i], 1));
        assert_null(wr_index_take(&wr_index_none, extents[i]));
        assert_null(wr_index_take_equal(&wr_index_none, extents[i]));
    }
    assert_int_equal(wr_index_largest(&wr_index_none), 0);
}

static void index__goes_to_the_last_bin(void **state)
{
    (void)state;
    rig *r = open_rig();
    insert_sized(r, LARGEST - WR_UNIT_BYTES, WR_UNIT_BYTES);
    assert_null(wr_index_find(&r->index, LARGEST));
    wr_slice *largest = insert_sized(r, LARGEST, WR_UNIT_BYTES);
    assert_ptr_equal(wr_index_find(&r->index, LARGEST), largest);
    assert_null(wr_index_find_after(&r->index, LARGEST, 2 * WR_UNIT_BYTES));
    insert_sized(r, WR_UNIT_BYTES, WR_UNIT_BYTES);
    check_finds(r, LARGEST, 0);
    check_finds(r, 0, 0);
    check_finds(r, WR_UNIT_BYTES, 0);
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

static void walk__finds_bitmaps_that_do_not_fit(void **state)
{
    (void)state;
    const char *text = "a free index's bitmaps do not fit its bins";
    rig *r = open_rig();
    insert_sized(r, 5 * WR_UNIT_BYTES, WR_UNIT_BYTES);
    r->index.map[0] ^= UINT64_C(1) << 5;
    assert_walk_says(r, text);
    r->index.map[0] ^= UINT64_C(1) << 5 | UINT64_C(1) << 9;
    assert_walk_says(r, text);
    r->index.map[0] ^= UINT64_C(1) << 9;
    r->index.word_map ^= 1;
    assert_walk_says(r, text);
    r->index.word_map ^= 1;
    check_walk(r);
    close_rig(r);
}

static void walk__finds_slices_that_should_not_be_there(void **state)
{
    (void)state;
    rig *r = open_rig();
    wr_slice *slice = NULL;
    for (uint64_t i = 1; i <= 40; i++) {
        slice = insert_sized(r, 7 * WR_UNIT_BYTES, i * WR_UNIT_BYTES);
    }
    slice->state = WR_SLICE_STATE_HELD;
    assert_walk_says(r, "a slice in a free index is not free");
    slice->state = WR_SLICE_STATE_FREE;
    slice->extent_bytes = 6 * WR_UNIT_BYTES;
    assert_walk_says(r, "a slice is in the wrong bin of a free index");
    slice->extent_bytes = 7 * WR_UNIT_BYTES;
    uint64_t address = slice->address;
    slice->address = 0;
    assert_walk_says(r, "a free index is out of order");
    slice->address = address;
    check_walk(r);
    close_rig(r);
}

static void walk__finds_a_tree_whose_priorities_do_not_fall(void **state)
{
    (void)state;
    rig *r = open_rig();
    wr_slice *low = insert_sized(r, 7 * WR_UNIT_BYTES, WR_UNIT_BYTES);
    wr_slice *high = insert_sized(r, 7 * WR_UNIT_BYTES, 2 * WR_UNIT_BYTES);
    wr_slice_id *root = &r->index.root[7];
    wr_slice_id was = *root;
    bool low_first = was == wr_slice_id_of(low);
    wr_slice *child = low_first ? high : low; /* now it goes to the top */
    *root = wr_slice_id_of(child);
    *(low_first ? &low->free.right : &high->free.left) = 0;
    *(low_first ? &high->free.left : &low->free.right) = was;
    assert_walk_says(r, "a free index node is above one of higher priority");
    *(low_first ? &high->free.left : &low->free.right) = 0;
    *(low_first ? &low->free.right : &high->free.left) = wr_slice_id_of(child);
    *root = was;
    check_walk(r);
    close_rig(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(index__agrees_with_a_sorted_array_at_random),
        cmocka_unit_test(index__finds_nothing_when_it_is_empty),
        cmocka_unit_test(index__goes_to_the_last_bin),
        cmocka_unit_test(walk__finds_bitmaps_that_do_not_fit),
        cmocka_unit_test(walk__finds_slices_that_should_not_be_there),
        cmocka_unit_test(walk__finds_a_tree_whose_priorities_do_not_fall),
    };
    return cmocka_run_group_tests_name("pool, index", tests, NULL, NULL);
}
