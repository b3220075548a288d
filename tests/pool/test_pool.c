/* SPDX-License-Identifier: MIT */
/* Pools of each kind without a manager: what they hand out of what they have, and what
 * their books say. */
#include "pool/pool.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ADDRESS UINT64_C(0x40000000)
#define GRANULE UINT64_C(65536)
#define GRANULES 16u
#define KIB UINT64_C(1024)

typedef struct rig {
    wr_layout layout;
    wr_slab_cache cache;
    wr_moment moment;
    wr_pool pool;
    wr_page *pages[4];
    uint32_t page_count;
    uint64_t next_address;
} rig;

static void open_rig(rig *r, wr_layout layout)
{
    *r = (rig){.layout = layout, .next_address = ADDRESS};
    assert_true(wr_slab_open());
    assert_true(wr_slab_fill(&r->cache, 200));
    r->moment = (wr_moment){.mark = UINT64_C(5) << WR_TICK_BITS,
                            .settled_below = UINT64_C(6) << WR_TICK_BITS};
    r->pool = (wr_pool){.index = &wr_index_none,
                        .layout = &r->layout,
                        .moment = &r->moment,
                        .cache = &r->cache,
                        .granule_bytes = layout.granular ? GRANULE : 0};
    assert_true(wr_pool_open(&r->pool));
}

/* A page (`granule_bytes` 0: whole) that is one free slice. */
static wr_page *add_page(rig *r, uint64_t bytes, uint64_t granule_bytes)
{
    wr_page *page = wr_page_create(r->next_address, bytes, granule_bytes, &r->pool);
    assert_non_null(page);
    r->next_address += 2 * bytes;
    page->touched = page->granule_count;
    r->pages[r->page_count++] = page;
    r->pool.range = granule_bytes != 0 ? page : NULL;
    wr_slice *slice = wr_slab_pop(&r->cache);
    slice->address = page->address;
    slice->extent_bytes = bytes;
    slice->page = page->id;
    wr_pool_adopt(&r->pool, slice);
    return page;
}

static void assert_sound(rig *r)
{
    wr_totals walked = {0}, books = {0};
    wr_pool_recount(&r->pool);
    wr_books_sum(&r->pool.books, &books);
    for (uint32_t i = 0; i < r->page_count; i++) {
        const char *wrong = wr_page_walk(r->pages[i], &r->pool, &r->moment, &walked);
        if (wrong != NULL) {
            fail_msg("%s", wrong);
        }
    }
    assert_null(wr_pool_walk(&r->pool));
    assert_int_equal(walked.releasable, books.releasable);
    assert_int_equal(walked.pinned, books.pinned);
    assert_int_equal(walked.deferred, books.deferred);
}

/* Everything was released; the slices go back with their pages. */
static void close_rig(rig *r)
{
    assert_int_equal(WR_OWN(r->pool.books.free), WR_OWN(r->pool.books.reserved));
    for (uint32_t i = 0; i < r->page_count; i++) {
        wr_slice_id id = r->pages[i]->granules[0].first;
        while (id != 0) {
            wr_slice *slice = wr_slice_get(id);
            id = slice->next;
            wr_slab_push(&r->cache, slice);
        }
        wr_page_destroy(r->pages[i]);
    }
    wr_pool_close(&r->pool);
    assert_ptr_equal(r->pool.index, &wr_index_none);
    assert_null(r->pool.kept);
    wr_slab_trim(&r->cache, 0);
}

static wr_slice *enter(wr_slice *slice)
{
    if (slice != NULL) { /* what the books above a pool note */
        slice->held.requested_bytes = 0;
        slice->held.uses = 0;
    }
    return slice;
}

static wr_slice *reserve(rig *r, uint64_t bytes)
{
    return enter(wr_pool_try_reserve(&r->pool, bytes));
}

static wr_slice *reserve_aligned(rig *r, uint64_t bytes, uint64_t alignment)
{
    return enter(wr_pool_try_reserve_aligned(&r->pool, bytes, alignment));
}

static const wr_layout arena = {.granular = true};
static const wr_layout pages = {.granular = false};
static const wr_layout exclusive = {.whole = true, .slack_shift = 2};
static const wr_layout persistent = {.exact = true};
static const wr_layout kept = {.exact = true, .granular = true};

/* ---- opening ---- */

static void open__without_host_memory_fails_and_can_be_tried_again(void **state)
{
    (void)state;
    rig r = {.layout = kept};
    r.pool = (wr_pool){.index = &wr_index_none, .layout = &r.layout};
    wr_host_fail_nth(1);
    assert_false(wr_pool_open(&r.pool));
    assert_ptr_equal(r.pool.index, &wr_index_none);
    wr_host_fail_nth(2);
    assert_false(wr_pool_open(&r.pool));
    assert_null(r.pool.kept);
    wr_host_fail_nth(0);
    assert_true(wr_pool_open(&r.pool));
    assert_non_null(r.pool.kept);
    assert_null(wr_pool_walk(&r.pool));
    wr_pool_close(&r.pool);
    assert_null(wr_pool_walk(&r.pool)); /* without an index */
}

/* ---- plain ---- */

static void plain__cuts_the_tightest_run_and_merges_on_release(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, arena);
    add_page(&r, GRANULES * GRANULE, GRANULE);
    wr_slice *slices[5];
    for (uint64_t i = 0; i < 5; i++) {
        slices[i] = reserve(&r, (i + 1) * 16 * KIB);
        assert_int_equal(slices[i]->extent_bytes, (i + 1) * 16 * KIB);
        assert_sound(&r);
    }
    uint64_t address = slices[1]->address;
    wr_pool_release(&r.pool, slices[3], r.moment.mark);
    wr_pool_release(&r.pool, slices[1], r.moment.mark);
    wr_slice *tight = reserve(&r, 24 * KIB);
    assert_int_equal(tight->address, address);
    assert_sound(&r);
    wr_pool_release(&r.pool, tight, r.moment.mark);
    wr_pool_release(&r.pool, slices[2], r.moment.mark); /* between two free ones */
    assert_sound(&r);
    wr_pool_release(&r.pool, slices[0], r.moment.mark);
    wr_pool_release(&r.pool, slices[4], r.moment.mark);
    assert_int_equal(wr_index_largest(r.pool.index), GRANULES * GRANULE);
    assert_null(reserve(&r, GRANULES * GRANULE + WR_UNIT_BYTES));
    assert_sound(&r);
    close_rig(&r);
}

static void plain__aligns_by_leaving_the_front_free(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, pages);
    add_page(&r, 256 * KIB, 0);
    wr_slice *first = reserve_aligned(&r, 4 * KIB, 64 * KIB); /* lies right already */
    assert_int_equal(first->address, ADDRESS);
    wr_slice *second = reserve_aligned(&r, 4 * KIB, 64 * KIB);
    assert_int_equal(second->address, ADDRESS + 64 * KIB);
    assert_sound(&r);
    assert_null(reserve_aligned(&r, 4 * KIB, 512 * KIB)); /* no run is sure to have one */
    wr_slice *front = reserve(&r, 60 * KIB);
    assert_int_equal(front->address, ADDRESS + 4 * KIB);
    wr_pool_release(&r.pool, first, r.moment.mark);
    wr_pool_release(&r.pool, second, r.moment.mark);
    wr_pool_release(&r.pool, front, r.moment.mark);
    assert_sound(&r);
    close_rig(&r);
}

/* ---- whole pages ---- */

static void exclusive__takes_a_page_within_its_slack_only(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, exclusive);
    wr_page *small = add_page(&r, 64 * KIB, 0);
    add_page(&r, 128 * KIB, 0);
    assert_int_equal(small->wear, WR_PAGE_WORN);
    assert_null(reserve(&r, 65 * KIB)); /* 128 is more than a quarter above */
    wr_slice *slice = reserve(&r, 52 * KIB);
    assert_int_equal(slice->extent_bytes, 64 * KIB);
    assert_int_equal(small->wear, WR_PAGE_WORN - 1);
    assert_null(reserve(&r, 52 * KIB));
    wr_slice *loose = enter(wr_pool_try_reserve_loose(&r.pool, 52 * KIB));
    assert_int_equal(loose->extent_bytes, 128 * KIB);
    assert_null(wr_pool_try_reserve_loose(&r.pool, 52 * KIB));
    assert_sound(&r);
    wr_pool_release(&r.pool, slice, r.moment.mark);
    wr_pool_release(&r.pool, loose, r.moment.mark);
    assert_sound(&r);
    for (int i = 0; i < 20; i++) {
        slice = reserve(&r, 64 * KIB);
        wr_pool_release(&r.pool, slice, r.moment.mark);
    }
    assert_int_equal(small->wear, 0); /* and no lower */
    close_rig(&r);
}

static void whole__aligned_requests_ask_for_room(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, exclusive);
    add_page(&r, 64 * KIB, 0);
    assert_null(reserve_aligned(&r, 64 * KIB, 4 * KIB));
    wr_slice *slice = reserve_aligned(&r, 60 * KIB, 4 * KIB);
    assert_int_equal(slice->extent_bytes, 64 * KIB);
    wr_pool_release(&r.pool, slice, r.moment.mark);
    close_rig(&r);
}

static void loose__is_for_pools_of_whole_pages(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, persistent);
    add_page(&r, 64 * KIB, 0);
    assert_null(wr_pool_try_reserve_loose(&r.pool, KIB));
    close_rig(&r);
    open_rig(&r, pages);
    add_page(&r, 64 * KIB, 0);
    assert_null(wr_pool_try_reserve_loose(&r.pool, KIB));
    close_rig(&r);
}

static void persistent__reuses_a_page_for_its_size_only(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, persistent);
    add_page(&r, 64 * KIB, 0);
    assert_null(reserve(&r, 32 * KIB));
    assert_null(reserve(&r, 65 * KIB));
    wr_slice *slice = reserve(&r, 64 * KIB);
    assert_non_null(slice);
    wr_pool_release(&r.pool, slice, r.moment.mark);
    assert_ptr_equal(reserve(&r, 64 * KIB), slice);
    wr_pool_release(&r.pool, slice, r.moment.mark);
    wr_pool_flush_kept(&r.pool, 100, 0); /* there is nothing kept aside */
    assert_sound(&r);
    close_rig(&r);
}

/* ---- kept slices ---- */

static void kept__slices_wait_for_their_size_until_they_are_flushed_by_age(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, kept);
    add_page(&r, GRANULES * GRANULE, GRANULE);
    wr_slice *slices[3];
    for (int i = 0; i < 3; i++) {
        slices[i] = reserve(&r, 2 * GRANULE);
        assert_non_null(slices[i]);
    }
    for (uint64_t i = 0; i < 3; i++) {
        r.moment.mark = UINT64_C(5) << WR_TICK_BITS | (10 + i);
        wr_pool_release(&r.pool, slices[i], r.moment.mark);
        assert_int_equal(slices[i]->state, WR_SLICE_STATE_KEPT);
        assert_sound(&r);
    }
    wr_slice *again = reserve(&r, 2 * GRANULE); /* the lowest of them, as it lies */
    assert_ptr_equal(again, slices[0]);
    r.moment.mark = UINT64_C(5) << WR_TICK_BITS | 20;
    wr_pool_release(&r.pool, again, r.moment.mark);
    wr_pool_flush_kept(&r.pool, 21, 10); /* ages 1, 10, 9 */
    assert_int_equal(slices[0]->state, WR_SLICE_STATE_KEPT);
    assert_int_equal(slices[1]->state, WR_SLICE_STATE_FREE);
    assert_int_equal(slices[2]->state, WR_SLICE_STATE_KEPT);
    assert_sound(&r);
    wr_pool_flush_kept(&r.pool, 21, 9); /* merges with its neighbours on both sides */
    assert_int_equal(slices[1]->extent_bytes, (GRANULES - 2) * GRANULE);
    wr_pool_flush_kept(&r.pool, 21, 0);
    assert_int_equal(wr_index_largest(r.pool.index), GRANULES * GRANULE);
    assert_true(wr_index_is_empty(r.pool.kept));
    assert_sound(&r);
    close_rig(&r);
}

static void kept__age_counts_on_when_the_ticks_start_anew(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, kept);
    add_page(&r, GRANULES * GRANULE, GRANULE);
    wr_slice *slice = reserve(&r, GRANULE);
    r.moment.mark = UINT64_C(5) << WR_TICK_BITS | (WR_TICK_MASK - 1);
    wr_pool_release(&r.pool, slice, r.moment.mark);
    wr_pool_flush_kept(&r.pool, 2, 5); /* 4 ticks later */
    assert_int_equal(slice->state, WR_SLICE_STATE_KEPT);
    wr_pool_flush_kept(&r.pool, 3, 5);
    assert_true(wr_index_is_empty(r.pool.kept));
    close_rig(&r);
}

/* ---- outdated pages ---- */

static void outdated__pages_serve_nothing_and_may_go_in_any_order(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, pages);
    wr_page *one = add_page(&r, 64 * KIB, 0), *two = add_page(&r, 64 * KIB, 0);
    wr_slice *held = reserve(&r, 16 * KIB);
    wr_pool_outdate(&r.pool, one);
    wr_pool_outdate(&r.pool, two);
    assert_null(reserve(&r, 16 * KIB));
    assert_sound(&r);
    wr_pool_release(&r.pool, held, r.moment.mark);
    assert_null(reserve(&r, 16 * KIB));
    assert_sound(&r); /* outdated bytes are releasable all the same */
    assert_int_equal(WR_OWN(r.pool.books.whole), 128 * KIB);
    wr_slice *slice = wr_slice_get(two->granules[0].first);
    wr_pool_detach(&r.pool, slice);
    wr_pool_attach(&r.pool, slice); /* as when the driver refuses it */
    assert_null(reserve(&r, 16 * KIB));
    wr_pool_forget_outdated(&r.pool, one);
    assert_ptr_equal(r.pool.outdated, two);
    assert_null(two->next_outdated);
    wr_pool_forget_outdated(&r.pool, two);
    assert_null(r.pool.outdated);
    close_rig(&r);
}

/* ---- coming and going ---- */

static void cut__takes_whole_granules_from_any_part_of_a_run(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, end;
    } cuts[] = {{0, 2}, {7, 9}, {14, 16}, {0, 16}};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        rig r;
        open_rig(&r, arena);
        wr_page *page = add_page(&r, GRANULES * GRANULE, GRANULE);
        uint64_t begin = wr_page_granule_address(page, 0) + cuts[i].first * GRANULE;
        uint64_t bytes = (cuts[i].end - cuts[i].first) * GRANULE;
        wr_slice *run = wr_index_find(r.pool.index, GRANULE);
        wr_slice *part = wr_pool_cut(&r.pool, run, begin, begin + bytes);
        assert_int_equal(part->address, begin);
        assert_int_equal(part->extent_bytes, bytes);
        assert_true(part->prev == 0 && part->next == 0 && part->pool == NULL);
        assert_int_equal(part->state, WR_SLICE_STATE_TRANSIT);
        assert_int_equal(WR_OWN(r.pool.books.reserved), GRANULES * GRANULE - bytes);
        assert_null(wr_pool_walk(&r.pool));
        wr_pool_adopt(&r.pool, part);
        assert_int_equal(wr_index_largest(r.pool.index), GRANULES * GRANULE);
        assert_sound(&r);
        close_rig(&r);
    }
}

/* ---- tight cuts ---- */

static void tight__takes_the_end_or_the_run_that_loses_fewest_granules(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, arena);
    add_page(&r, GRANULES * GRANULE, GRANULE);
    r.pool.tight_until = 1000;
    /* held | 2 granules and a half free | held | the rest free */
    wr_slice *low = reserve(&r, GRANULE / 2);
    wr_slice *middle = reserve(&r, 5 * GRANULE / 2);
    wr_slice *high = reserve(&r, GRANULE);
    assert_int_equal(middle->address, ADDRESS + GRANULE / 2);
    wr_pool_release(&r.pool, middle, r.moment.mark);
    /* from the front half a granule costs nothing, from the end it would cost one */
    wr_slice *cut = reserve(&r, GRANULE / 2);
    assert_int_equal(cut->address, ADDRESS + GRANULE / 2);
    assert_sound(&r);
    wr_slice *two = reserve(&r, 2 * GRANULE); /* all of a run: nothing to choose */
    assert_int_equal(two->address, ADDRESS + GRANULE);
    wr_pool_release(&r.pool, cut, r.moment.mark);
    wr_pool_release(&r.pool, two, r.moment.mark);
    wr_pool_release(&r.pool, low, r.moment.mark);
    wr_pool_release(&r.pool, high, r.moment.mark);
    assert_sound(&r);
    close_rig(&r);
}

/* ---- the walker ---- */

static void walk__finds_damage_in_either_index(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, kept);
    add_page(&r, GRANULES * GRANULE, GRANULE);
    wr_slice *slice = reserve(&r, GRANULE);
    wr_pool_release(&r.pool, slice, r.moment.mark);
    assert_null(wr_pool_walk(&r.pool));
    slice->state = WR_SLICE_STATE_FREE;
    assert_string_equal(wr_pool_walk(&r.pool), "a slice in a free index is not free");
    slice->state = WR_SLICE_STATE_KEPT;
    wr_slice *run = wr_index_find(r.pool.index, GRANULE);
    run->state = WR_SLICE_STATE_HELD;
    assert_string_equal(wr_pool_walk(&r.pool), "a slice in a free index is not free");
    run->state = WR_SLICE_STATE_FREE;
    assert_null(wr_pool_walk(&r.pool));
    close_rig(&r);
}

static void accepts__is_a_stretch_and_what_is_near_a_page(void **state)
{
    (void)state;
    const wr_layout layout = {
        .min_bytes = 10, .max_bytes = 20, .near_bytes = 80, .page_bytes = 100};
    static const struct {
        uint64_t bytes;
        bool accepted;
    } cases[] = {{9, false},  {10, true}, {20, true},  {21, false},
                 {79, false}, {80, true}, {100, true}, {101, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(wr_layout_accepts(&layout, cases[i].bytes), cases[i].accepted);
    }
    const wr_layout plain = {.min_bytes = 10, .max_bytes = 20, .page_bytes = 100};
    assert_false(wr_layout_accepts(&plain, 90));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open__without_host_memory_fails_and_can_be_tried_again),
        cmocka_unit_test(plain__cuts_the_tightest_run_and_merges_on_release),
        cmocka_unit_test(plain__aligns_by_leaving_the_front_free),
        cmocka_unit_test(exclusive__takes_a_page_within_its_slack_only),
        cmocka_unit_test(whole__aligned_requests_ask_for_room),
        cmocka_unit_test(loose__is_for_pools_of_whole_pages),
        cmocka_unit_test(persistent__reuses_a_page_for_its_size_only),
        cmocka_unit_test(kept__slices_wait_for_their_size_until_they_are_flushed_by_age),
        cmocka_unit_test(kept__age_counts_on_when_the_ticks_start_anew),
        cmocka_unit_test(outdated__pages_serve_nothing_and_may_go_in_any_order),
        cmocka_unit_test(cut__takes_whole_granules_from_any_part_of_a_run),
        cmocka_unit_test(tight__takes_the_end_or_the_run_that_loses_fewest_granules),
        cmocka_unit_test(walk__finds_damage_in_either_index),
        cmocka_unit_test(accepts__is_a_stretch_and_what_is_near_a_page),
    };
    return cmocka_run_group_tests_name("pool, pools", tests, NULL, NULL);
}
