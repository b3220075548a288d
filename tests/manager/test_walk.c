/* SPDX-License-Identifier: MIT */
/* weir_device_check must find damage: a counter or a slice is made wrong on purpose, the
 * check says what, and is content again once it is put right. */
#include "core/support.h"

#include "stream/device.h"

#define STEP 256u
#define HELD (3 * MIB - 1000)

typedef struct scene {
    rig r;
    weir_buffer held, odd, beside;
    wr_manager *manager;
    wr_bank *bank;
    wr_books *books; /* of the pool that the buffers are in */
    wr_slice *slice; /* of `held` */
} scene;

/* Held, free beside held ones, free granules of the stream and of the bank. */
static scene open_scene(void)
{
    scene s = {.r = rig_open(NULL, NULL)};
    weir_stream *ended = open_stream(s.r.device, "ended");
    weir_buffer apart = make(ended, 6 * MIB, NULL);
    s.held = make(s.r.stream, HELD, "held");
    s.odd = make(s.r.stream, 6 * MIB, NULL);
    s.beside = make(s.r.stream, HELD, NULL);
    drop(s.odd);
    drop(apart);
    assert_ok(weir_stream_close(ended));
    s.manager = &s.r.stream->manager;
    s.bank = s.manager->bank;
    s.slice = wr_slice_get(s.held.index);
    s.books = &s.slice->pool->books;
    assert_consistent(&s.r);
    return s;
}

static void close_scene(scene *s)
{
    assert_consistent(&s->r);
    drop(s->held);
    drop(s->beside);
    rig_close(&s->r);
}

static void assert_check_says(scene *s, const char *where, const char *what)
{
    assert_result(weir_device_check(s->r.device), WEIR_INVALID);
    assert_says(weir_last_error(), where);
    assert_says(weir_last_error(), what);
}

/* A counter that is `STEP` too high, then right again. */
static void assert_counter_is_checked(scene *s, wr_counter *counter, const char *where,
                                      const char *what)
{
    WR_ADD(*counter, STEP);
    assert_check_says(s, where, what);
    WR_SUB(*counter, STEP);
    assert_ok(weir_device_check(s->r.device));
}

static void check__finds_every_counter_of_a_stream_that_is_wrong(void **state)
{
    (void)state;
    scene s = open_scene();
    wr_books *b = s.books;
    assert_counter_is_checked(&s, &b->in_use, "default", "in_use or live is not");
    assert_counter_is_checked(&s, &b->entered, "default", "in_use or live is not");
    assert_counter_is_checked(&s, &b->reserved, "default", "padding is not the rest");
    assert_counter_is_checked(&s, &s.manager->in_use, "default",
                              "a stream's in_use is not the sum of its pools'");
    close_scene(&s);
}

static void check__finds_every_sum_of_free_bytes_that_is_wrong(void **state)
{
    (void)state;
    scene s = open_scene();
    wr_books *b = s.books;
    WR_ADD(b->reserved, STEP);
    WR_ADD(b->limbo, STEP);
    assert_check_says(&s, "default", "deferred is not what the slices wait for");
    WR_SUB(b->limbo, STEP);
    WR_ADD(b->free, STEP);
    assert_check_says(&s, "default", "pinned is not what partly held granules");
    WR_SUB(b->free, STEP);
    WR_SUB(b->reserved, STEP);
    WR_SUB(b->whole, STEP);
    WR_SUB(b->settled, STEP);
    assert_check_says(&s, "default", "releasable is not what whole granules hold");
    WR_ADD(b->whole, STEP);
    WR_ADD(b->settled, STEP);
    close_scene(&s);
}

static void check__finds_damage_in_the_bank(void **state)
{
    (void)state;
    scene s = open_scene();
    wr_class *class = &s.bank->classes[s.slice->pool->number];
    assert_true(WR_GET(class->bank.books.free) >= 6 * MIB);
    assert_counter_is_checked(&s, &class->bank.books.reserved, "bank",
                              "padding is not the rest");
    /* bare addresses have an index and no books */
    cleanup(s.r.device, NULL);
    assert_ok(weir_device_check(s.r.device));
    assert_non_null(class->bare);
    assert_false(wr_index_is_empty(class->bare));
    uint64_t map = class->bare->map[0];
    class->bare->map[0] ^= 1;
    assert_check_says(&s, "bank", "bitmap does not fit");
    class->bare->map[0] = map;
    close_scene(&s);
}

static void check__finds_counts_of_the_device_that_are_wrong(void **state)
{
    (void)state;
    scene s = open_scene();
    wr_class *class = &s.bank->classes[s.slice->pool->number];
    assert_counter_is_checked(&s, &class->reserved, class->layout.name,
                              "its parts add up to");
    wr_counter_raise(&s.bank->peak_reserved, WR_GET(s.bank->reserved) + STEP);
    assert_counter_is_checked(&s, &s.bank->reserved, "reserved is",
                              "its parts add up to");
    uint64_t peak = WR_GET(s.bank->peak_reserved);
    WR_PUT(s.bank->peak_reserved, MIB);
    assert_check_says(&s, "device", "a peak is below its value");
    WR_PUT(s.bank->peak_reserved, peak);
    close_scene(&s);
}

static void check__finds_slices_that_are_wrong(void **state)
{
    (void)state;
    scene s = open_scene();
    s.slice->held.requested_bytes = s.slice->extent_bytes + 1;
    assert_check_says(&s, "default", "a slice is smaller than its request");
    s.slice->held.requested_bytes = HELD;
    s.slice->state = WR_SLICE_STATE_SPARE;
    assert_check_says(&s, "default", "a state that none may have");
    s.slice->state = WR_SLICE_STATE_LIMBO;
    assert_check_says(&s, "default", "in_use or live is not");
    s.slice->state = WR_SLICE_STATE_HELD;
    wr_index *index = s.slice->pool->index;
    wr_slice *run = wr_index_find(index, 5 * MIB);
    assert_non_null(run);
    run->bin++;
    run->extent_bytes -= STEP;
    assert_check_says(&s, "default", "neighbouring slices do not touch");
    run->bin--;
    run->extent_bytes += STEP;
    index->map[0] ^= 1;
    assert_check_says(&s, "default", "bitmap does not fit");
    index->map[0] ^= 1;
    close_scene(&s);
}

static void check__finds_damage_in_whole_pages(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    scene s = {.r = rig_open(&sim, NULL)};
    weir_buffer held = make(s.r.stream, 5 * MIB, NULL);
    weir_buffer more = make(s.r.stream, 100 * MIB, NULL);
    wr_slice *slice = wr_slice_get(more.index);
    slice->extent_bytes += 1;
    assert_check_says(&s, "default", "not a multiple of the unit");
    slice->extent_bytes -= 1;
    slice = wr_slice_get(held.index);
    slice->extent_bytes += 1;
    assert_check_says(&s, "default", "not a multiple of the unit");
    slice->extent_bytes -= 1;
    assert_consistent(&s.r);
    drop(held);
    drop(more);
    rig_close(&s.r);
}

static void check__finds_damage_in_what_graphs_hold(void **state)
{
    (void)state;
    scene s = open_scene();
    weir_stream *stream = open_stream(s.r.device, "capturing");
    weir_graph *graph = NULL;
    assert_ok(weir_capture_begin(stream));
    drop(make(stream, 4 * MIB, NULL));
    wr_manager *manager = &stream->manager;
    assert_ok(weir_device_check(s.r.device));
    assert_ok(weir_capture_end(stream, NULL, &graph));
    assert_true(manager->recorded != 0);
    assert_ok(weir_device_check(s.r.device));
    manager->recorded_bytes += STEP;
    assert_check_says(&s, "capturing", "not those of their list");
    manager->recorded_bytes -= STEP;
    wr_slice *slice = wr_slice_get(manager->recorded);
    uint32_t uses = slice->held.uses;
    slice->held.uses = 0;
    assert_check_says(&s, "capturing", "is held by none");
    slice->held.uses = uses;
    wr_slice_id link = s.slice->held.link;
    manager->recorded = wr_slice_id_of(s.slice); /* not even released */
    assert_check_says(&s, "capturing", "is held by none");
    s.slice->held.link = link;
    manager->recorded = wr_slice_id_of(slice);
    assert_ok(weir_device_check(s.r.device));
    assert_ok(weir_graph_destroy(graph));
    assert_ok(weir_stream_close(stream));
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check__finds_every_counter_of_a_stream_that_is_wrong),
        cmocka_unit_test(check__finds_every_sum_of_free_bytes_that_is_wrong),
        cmocka_unit_test(check__finds_damage_in_the_bank),
        cmocka_unit_test(check__finds_counts_of_the_device_that_are_wrong),
        cmocka_unit_test(check__finds_slices_that_are_wrong),
        cmocka_unit_test(check__finds_damage_in_whole_pages),
        cmocka_unit_test(check__finds_damage_in_what_graphs_hold),
    };
    return cmocka_run_group_tests_name("manager, walkers", tests, NULL, NULL);
}
