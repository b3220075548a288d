/* SPDX-License-Identifier: MIT */
/* Page arithmetic without a pool: splitting, joining, spans of several owners, and a
 * walker that must find every kind of damage. */
#include "page/page.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ADDRESS UINT64_C(0x100000)
#define GRANULE UINT64_C(4096)
#define GRANULES 8u

static char owners[2];
#define A ((struct wr_pool *)(void *)&owners[0])
#define B ((struct wr_pool *)(void *)&owners[1])

typedef struct rig {
    wr_page *page;
    wr_slab_cache cache;
    wr_moment moment;
} rig;

static rig open_rig(uint64_t granule_bytes)
{
    rig r = {.moment = {.settled_below = 10}};
    assert_true(wr_slab_open());
    assert_true(wr_slab_fill(&r.cache, 32));
    r.page = wr_page_create(ADDRESS, GRANULES * GRANULE, granule_bytes, A);
    assert_non_null(r.page);
    r.page->touched = r.page->granule_count;
    return r;
}

/* The slices go back with the page. */
static void close_rig(rig *r)
{
    for (uint32_t g = 0; g < r->page->granule_count;) {
        wr_slice_id id = r->page->granules[g++].first; /* of a span, or 0 */
        while (id != 0) {
            wr_slice *slice = wr_slice_get(id);
            id = slice->next;
            g = wr_page_granule(r->page, wr_slice_end(slice) - 1) + 1;
            wr_slab_push(&r->cache, slice);
        }
    }
    wr_page_destroy(r->page);
    wr_slab_trim(&r->cache, 0);
}

static wr_slice *make(rig *r, uint64_t granule, uint64_t bytes, wr_slice_state state)
{
    wr_slice *slice = wr_slab_pop(&r->cache);
    slice->address = ADDRESS + granule * GRANULE;
    slice->extent_bytes = bytes;
    slice->page = r->page->id;
    slice->state = (uint8_t)state;
    slice->held.requested_bytes = state == WR_SLICE_STATE_HELD ? bytes - 1 : 0;
    slice->held.uses = 0;
    slice->held.link = 0;
    return slice;
}

/* A slice of whole granules, linked. */
static wr_slice *put(rig *r, uint64_t granule, uint64_t count, wr_slice_state state,
                     struct wr_pool *owner)
{
    wr_slice *slice = make(r, granule, count * GRANULE, state);
    wr_page_link(r->page, slice, owner);
    return slice;
}

static wr_slice *split(rig *r, wr_slice *slice, uint64_t bytes)
{
    wr_slice *rest = wr_slab_pop(&r->cache);
    wr_page_split(r->page, slice, slice->address + bytes, rest);
    return rest;
}

static void assert_linked(const wr_slice *left, const wr_slice *right)
{
    assert_int_equal(left->next, wr_slice_id_of(right));
    assert_int_equal(right->prev, wr_slice_id_of(left));
    assert_int_equal(wr_slice_end(left), right->address);
}

static void assert_span(const rig *r, uint32_t first, uint32_t last,
                        const wr_slice *begin, const wr_slice *end)
{
    assert_int_equal(r->page->granules[first].first, wr_slice_id_of(begin));
    assert_int_equal(r->page->granules[last].last, wr_slice_id_of(end));
    assert_int_equal(begin->prev, 0);
    assert_int_equal(end->next, 0);
}

/* ---- tiling ---- */

static void split__makes_two_slices_that_touch(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    wr_slice *all = put(&r, 0, GRANULES, WR_SLICE_STATE_FREE, A);
    wr_slice *end = split(&r, all, 5 * GRANULE + 256);
    wr_slice *middle = split(&r, all, 512);
    assert_span(&r, 0, 7, all, end);
    assert_linked(all, middle);
    assert_linked(middle, end);
    assert_int_equal(all->extent_bytes, 512);
    assert_int_equal(middle->extent_bytes, 5 * GRANULE - 256);
    assert_int_equal(end->extent_bytes, 3 * GRANULE - 256);
    assert_int_equal(end->state, WR_SLICE_STATE_FREE);
    assert_ptr_equal(end->pool, A);
    assert_int_equal(end->page, r.page->id);
    close_rig(&r);
}

static void join__undoes_a_split_in_the_middle_and_at_the_end(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    wr_slice *all = put(&r, 0, GRANULES, WR_SLICE_STATE_FREE, A);
    wr_slice *end = split(&r, all, 5 * GRANULE);
    wr_slice *middle = split(&r, all, 256);
    assert_ptr_equal(wr_page_join(r.page, all), middle);
    wr_slab_push(&r.cache, middle);
    assert_linked(all, end);
    assert_ptr_equal(wr_page_join(r.page, all), end);
    wr_slab_push(&r.cache, end);
    assert_span(&r, 0, 7, all, all);
    assert_int_equal(all->extent_bytes, GRANULES * GRANULE);
    close_rig(&r);
}

static void link__joins_the_spans_of_one_owner_only(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    wr_slice *left = put(&r, 0, 2, WR_SLICE_STATE_HELD, A);
    wr_slice *other = put(&r, 4, 4, WR_SLICE_STATE_HELD, B);
    wr_slice *between = put(&r, 2, 2, WR_SLICE_STATE_HELD, A);
    assert_linked(left, between);
    assert_span(&r, 0, 3, left, between);
    assert_span(&r, 4, 7, other, other);
    for (uint32_t g = 0; g < GRANULES; g++) {
        assert_ptr_equal(r.page->granules[g].owner, g < 4 ? A : B);
    }
    close_rig(&r);
}

static void unlink__ends_the_neighbours_spans_beside_it(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    wr_slice *left = put(&r, 0, 3, WR_SLICE_STATE_HELD, A);
    wr_slice *middle = put(&r, 3, 2, WR_SLICE_STATE_FREE, A);
    wr_slice *right = put(&r, 5, 3, WR_SLICE_STATE_HELD, A);
    wr_page_unlink(r.page, middle);
    assert_span(&r, 0, 2, left, left);
    assert_span(&r, 3, 4, middle, middle);
    assert_span(&r, 5, 7, right, right);
    wr_page_link(r.page, middle, B);
    assert_span(&r, 3, 4, middle, middle);
    wr_page_unlink(r.page, middle);
    wr_page_link(r.page, middle, A);
    assert_linked(left, middle);
    assert_linked(middle, right);
    close_rig(&r);
}

static void replace__puts_another_record_in_any_place(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    wr_slice *slices[3];
    slices[0] = put(&r, 0, GRANULES, WR_SLICE_STATE_HELD, A);
    slices[1] = split(&r, slices[0], 2 * GRANULE);
    slices[2] = split(&r, slices[1], 2 * GRANULE);
    for (int i = 0; i < 3; i++) {
        wr_slice *fresh = wr_slab_pop(&r.cache);
        wr_slice was = *slices[i];
        wr_page_replace(r.page, slices[i], fresh);
        assert_int_equal(slices[i]->state, WR_SLICE_STATE_OTHER);
        wr_slab_push(&r.cache, slices[i]);
        slices[i] = fresh;
        assert_int_equal(fresh->address, was.address);
        assert_int_equal(fresh->extent_bytes, was.extent_bytes);
        assert_int_equal(fresh->state, WR_SLICE_STATE_HELD);
        assert_ptr_equal(fresh->pool, A);
        fresh->held.requested_bytes = 1;
        assert_span(&r, 0, 7, slices[0], slices[2]);
        assert_linked(slices[0], slices[1]);
        assert_linked(slices[1], slices[2]);
    }
    wr_totals totals = {0};
    assert_null(wr_page_walk(r.page, A, &r.moment, &totals));
    close_rig(&r);
}

static void whole__counts_granules_that_lie_wholly_inside(void **state)
{
    (void)state;
    static const struct {
        uint64_t begin, end;
        uint32_t first, past;
    } cases[] = {{0, 8 * GRANULE, 0, 8},
                 {256, 8 * GRANULE, 1, 8},
                 {0, 8 * GRANULE - 256, 0, 7},
                 {256, 2 * GRANULE - 256, 1, 1},
                 {256, 512, 1, 1},
                 {3 * GRANULE, 4 * GRANULE, 3, 4}};
    rig r = open_rig(GRANULE);
    uint32_t first, end;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wr_page_whole(r.page, ADDRESS + cases[i].begin, cases[i].end - cases[i].begin,
                      &first, &end);
        assert_int_equal(first, cases[i].first);
        assert_int_equal(end, cases[i].past);
    }
    close_rig(&r);
    r = open_rig(0); /* a whole page is one granule */
    wr_page_whole(r.page, ADDRESS, GRANULES * GRANULE, &first, &end);
    assert_true(first == 0 && end == 1);
    wr_page_whole(r.page, ADDRESS, GRANULES * GRANULE - 256, &first, &end);
    assert_true(first == 1 && end == 1);
    wr_page_whole(r.page, ADDRESS + 256, GRANULES * GRANULE - 256, &first, &end);
    assert_true(first == 1 && end == 1);
    close_rig(&r);
}

static void whole__counts_chunks_that_lie_wholly_inside(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    uint32_t first, end;
    wr_page_set_chunks(r.page, ADDRESS + GRANULE, 5 * GRANULE, 3 * GRANULE);
    assert_int_equal(wr_page_chunk_begin(r.page, 3), 1);
    assert_int_equal(wr_page_chunk_end(r.page, 1), 4);
    assert_int_equal(wr_page_chunk_end(r.page, 5), 6);
    wr_page_whole(r.page, ADDRESS, 8 * GRANULE, &first, &end);
    assert_int_equal(first, 0);
    assert_int_equal(end, 8);
    wr_page_whole(r.page, ADDRESS + 2 * GRANULE, 6 * GRANULE, &first, &end);
    assert_int_equal(first, 4); /* the chunk of 1 to 3 is cut */
    assert_int_equal(end, 8);
    wr_page_whole(r.page, ADDRESS, 5 * GRANULE, &first, &end);
    assert_int_equal(first, 0);
    assert_int_equal(end, 4); /* so is that of 4 and 5 */
    wr_page_whole(r.page, ADDRESS + 2 * GRANULE, 2 * GRANULE, &first, &end);
    assert_int_equal(first, end);
    wr_page_copy_chunks(r.page, ADDRESS + 6 * GRANULE, r.page, ADDRESS + 4 * GRANULE,
                        2 * GRANULE);
    wr_page_set_chunks(r.page, ADDRESS + 4 * GRANULE, 2 * GRANULE, 0);
    assert_int_equal(wr_page_chunk_end(r.page, 6), 8);
    assert_int_equal(wr_page_chunk_end(r.page, 4), 5);
    close_rig(&r);
}

static void a_chunk__has_passed_with_the_last_release_in_it(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    r.page->in_chunks = true;
    wr_page_set_chunks(r.page, ADDRESS, 6 * GRANULE, 2 * GRANULE);
    wr_slice inside = {.address = ADDRESS + GRANULE + 512, .extent_bytes = 256};
    wr_page_mark(r.page, &inside, 10); /* not below what has passed */
    assert_int_equal(wr_page_settled_bytes(r.page, &r.moment, 0, 6), 4 * GRANULE);
    wr_slice across = {.address = ADDRESS + 3 * GRANULE, .extent_bytes = 2 * GRANULE};
    wr_page_mark(r.page, &across, 10); /* the end of the second, the start of the third */
    assert_int_equal(wr_page_settled_bytes(r.page, &r.moment, 0, 6), 0);
    wr_page_mark(r.page, &inside, 9);
    assert_int_equal(wr_page_settled_bytes(r.page, &r.moment, 0, 6), 2 * GRANULE);
    close_rig(&r);
}

static void mark__reaches_every_granule_of_a_slice_and_no_other(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    for (uint32_t first = 0; first < GRANULES; first++) {
        for (uint32_t end = first + 1; end <= GRANULES; end++) {
            wr_slice slice = {.address = ADDRESS + first * GRANULE,
                              .extent_bytes = (end - first) * GRANULE};
            memset(r.page->marks, 0, GRANULES * sizeof *r.page->marks);
            wr_page_mark(r.page, &slice, 7);
            for (uint32_t g = 0; g < GRANULES; g++) {
                assert_int_equal(r.page->marks[g], g >= first && g < end ? 7 : 0);
            }
        }
    }
    close_rig(&r);
}

static void create__without_host_memory_leaves_nothing(void **state)
{
    (void)state;
    rig r = open_rig(GRANULE);
    uint32_t id = r.page->id;
    close_rig(&r);
    wr_page *page = NULL;
    uint64_t failures = 0;
    for (uint64_t nth = 1; page == NULL; nth++, failures++) {
        wr_host_fail_nth(nth);
        page = wr_page_create(ADDRESS, GRANULES * GRANULE, GRANULE, A);
        wr_host_fail_nth(0);
    }
    assert_int_equal(failures, 3);  /* addresses, memory, then success */
    assert_int_equal(page->id, id); /* the failed ones gave their record back */
    wr_page_destroy(page);
}

static void create__fails_when_no_record_can_be_backed_and_goes_on_later(void **state)
{
    (void)state;
    enum { COUNT = 1200 };
    static wr_page *pages[COUNT];
    int failures = 0;
    for (int i = 0; i < COUNT; i++) {
        wr_host_fail_nth(1); /* whole pages need nothing but records, chunk by chunk */
        pages[i] = wr_page_create(ADDRESS, GRANULE, 0, A);
        wr_host_fail_nth(0);
        if (pages[i] == NULL) {
            failures++;
            pages[i] = wr_page_create(ADDRESS, GRANULE, 0, A);
        }
        assert_non_null(pages[i]);
        assert_ptr_equal(wr_page_get(pages[i]->id), pages[i]);
    }
    assert_in_range(failures, 1, 3);
    for (int i = 0; i < COUNT; i++) {
        wr_page_destroy(pages[i]);
    }
}

/* ---- the walker ---- */

/* Pages of A: held, half a granule free, limbo and dropped, whole granules free (passed
 * and not), bare. B has the last two granules. */
typedef struct scene {
    rig r;
    wr_slice *held, *rest, *limbo, *dropped, *free, *bare;
} scene;

static scene open_scene(void)
{
    scene s = {.r = open_rig(GRANULE)};
    s.held = put(&s.r, 0, 1, WR_SLICE_STATE_HELD, A);
    s.rest = split(&s.r, s.held, 1024);
    s.rest->state = WR_SLICE_STATE_FREE;
    s.held->held.requested_bytes = 1000;
    s.limbo = put(&s.r, 1, 1, WR_SLICE_STATE_LIMBO, A);
    s.dropped = split(&s.r, s.limbo, 2048);
    s.dropped->state = WR_SLICE_STATE_DROPPED;
    s.free = put(&s.r, 2, 3, WR_SLICE_STATE_FREE, A);
    s.bare = put(&s.r, 5, 1, WR_SLICE_STATE_BARE, A);
    put(&s.r, 6, 2, WR_SLICE_STATE_HELD, B);
    s.r.page->marks[3] = 10; /* not passed; 9 is */
    s.r.page->marks[4] = 9;
    return s;
}

static const char *walk(const scene *s, wr_totals *totals)
{
    return wr_page_walk(s->r.page, A, &s->r.moment, totals);
}

static void walk__adds_up_what_each_state_means(void **state)
{
    (void)state;
    scene s = open_scene();
    wr_totals totals = {0};
    assert_null(walk(&s, &totals));
    assert_int_equal(totals.in_use, 1000);
    assert_int_equal(totals.padding, 24);
    assert_int_equal(totals.live, 1);
    assert_int_equal(totals.pinned, GRANULE - 1024);
    assert_int_equal(totals.releasable, 2 * GRANULE);
    assert_int_equal(totals.deferred, 2 * GRANULE); /* limbo, dropped, not passed */
    wr_totals others = {0};
    assert_null(wr_page_walk(s.r.page, B, &s.r.moment, &others));
    assert_int_equal(others.in_use, 2 * GRANULE - 1);
    close_rig(&s.r);
}

static void assert_walk_says(const scene *s, const char *text)
{
    wr_totals totals = {0};
    const char *found = walk(s, &totals);
    assert_non_null(found);
    assert_string_equal(found, text);
}

static void walk__finds_slices_that_cannot_be(void **state)
{
    (void)state;
    scene s = open_scene();
    s.rest->pool = B;
    assert_walk_says(&s, "a slice in a span belongs to another pool");
    s.rest->pool = A;
    uint64_t extent = s.held->extent_bytes;
    s.held->extent_bytes = 0;
    assert_walk_says(&s, "a slice's extent is not a multiple of the unit");
    s.held->extent_bytes = extent + 1;
    assert_walk_says(&s, "a slice's extent is not a multiple of the unit");
    s.held->extent_bytes = extent;
    s.held->held.requested_bytes = extent + 1;
    assert_walk_says(&s, "a slice is smaller than its request");
    s.held->held.requested_bytes = extent;
    s.limbo->state = WR_SLICE_STATE_SPARE;
    assert_walk_says(&s, "a slice in a span has a state that none may have");
    s.limbo->state = WR_SLICE_STATE_OTHER;
    assert_walk_says(&s, "a slice in a span has a state that none may have");
    s.limbo->state = 77;
    assert_walk_says(&s, "a slice in a span has a state that none may have");
    s.limbo->state = WR_SLICE_STATE_LIMBO;
    wr_totals totals = {0};
    assert_null(walk(&s, &totals));
    close_rig(&s.r);
}

static void walk__finds_links_that_do_not_hold(void **state)
{
    (void)state;
    scene s = open_scene();
    s.held->prev = wr_slice_id_of(s.rest);
    assert_walk_says(&s, "a span does not begin with its first slice");
    s.held->prev = 0;
    s.held->address += 256;
    assert_walk_says(&s, "a span does not begin with its first slice");
    s.held->address -= 256;
    s.rest->address += 256;
    assert_walk_says(&s, "neighbouring slices do not touch");
    s.rest->address -= 256;
    s.rest->prev = wr_slice_id_of(s.limbo);
    assert_walk_says(&s, "neighbouring slices do not touch");
    s.rest->prev = wr_slice_id_of(s.held);
    s.r.page->granules[5].last = wr_slice_id_of(s.free);
    assert_walk_says(&s, "a span does not end with its last slice");
    s.r.page->granules[5].last = wr_slice_id_of(s.bare);
    wr_totals totals = {0};
    assert_null(walk(&s, &totals));
    close_rig(&s.r);
}

static void walk__finds_free_neighbours_that_were_not_merged(void **state)
{
    (void)state;
    scene s = open_scene();
    wr_slice *half = split(&s.r, s.free, GRANULE);
    assert_walk_says(&s, "two free neighbours are not merged");
    wr_totals totals = {0};
    half->state = WR_SLICE_STATE_KEPT; /* those wait for their own size */
    assert_null(walk(&s, &totals));
    half->state = s.free->state = WR_SLICE_STATE_BARE; /* one is being backed */
    totals = (wr_totals){0};
    assert_null(walk(&s, &totals));
    close_rig(&s.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(split__makes_two_slices_that_touch),
        cmocka_unit_test(join__undoes_a_split_in_the_middle_and_at_the_end),
        cmocka_unit_test(link__joins_the_spans_of_one_owner_only),
        cmocka_unit_test(unlink__ends_the_neighbours_spans_beside_it),
        cmocka_unit_test(replace__puts_another_record_in_any_place),
        cmocka_unit_test(whole__counts_granules_that_lie_wholly_inside),
        cmocka_unit_test(whole__counts_chunks_that_lie_wholly_inside),
        cmocka_unit_test(a_chunk__has_passed_with_the_last_release_in_it),
        cmocka_unit_test(mark__reaches_every_granule_of_a_slice_and_no_other),
        cmocka_unit_test(create__without_host_memory_leaves_nothing),
        cmocka_unit_test(create__fails_when_no_record_can_be_backed_and_goes_on_later),
        cmocka_unit_test(walk__adds_up_what_each_state_means),
        cmocka_unit_test(walk__finds_slices_that_cannot_be),
        cmocka_unit_test(walk__finds_links_that_do_not_hold),
        cmocka_unit_test(walk__finds_free_neighbours_that_were_not_merged),
    };
    return cmocka_run_group_tests_name("page, pages", tests, NULL, NULL);
}
