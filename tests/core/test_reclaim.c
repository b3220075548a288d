/* SPDX-License-Identifier: MIT */
/* Reclaim callbacks: when they are called, what may be called inside, and removal. */
#define _GNU_SOURCE
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* A cache of the program's that a callback empties. */
typedef struct cache {
    weir_buffer buffer;
    uint64_t needed_bytes;
    int calls;
    int *order; /* counts calls of all caches */
    int turn;   /* of its last call */
} cache;

static bool empty_cache(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)device;
    cache *c = context;
    c->calls++;
    c->needed_bytes = needed_bytes;
    c->turn = c->order == NULL ? 0 : ++*c->order;
    bool full = c->buffer.index != 0;
    if (full) {
        drop(c->buffer);
        c->buffer = WEIR_NO_BUFFER;
    }
    return full;
}

static weir_result create(rig *r, uint64_t bytes, weir_buffer *buffer)
{
    return weir_buffer_create(r->stream, bytes, NULL, buffer);
}

static void reclaim__callbacks_are_called_in_order_until_one_releases(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    int order = 0;
    cache caches[3] = {{.order = &order}, {.order = &order}, {.order = &order}};
    caches[1].buffer = make(r.stream, 20 * GIB, NULL);
    for (int i = 0; i < 3; i++) {
        assert_ok(weir_device_reclaim_add(r.device, empty_cache, &caches[i]));
    }
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_ok(create(&r, 10 * GIB, &buffer));
    assert_int_equal(caches[0].turn, 1);
    assert_int_equal(caches[1].turn, 2);
    assert_int_equal(caches[2].calls, 0);
    assert_true(caches[1].needed_bytes >= 10 * GIB);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.callbacks, 2);
    assert_int_equal(usage.retries, 1);
    assert_int_equal(usage.ooms, 0);
    drop(buffer);
    rig_close(&r);
}

static void reclaim__all_are_called_when_one_does_not_release_enough(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    cache caches[2] = {{.calls = 0}, {.calls = 0}};
    for (int i = 0; i < 2; i++) {
        caches[i].buffer = make(r.stream, 10 * GIB, NULL);
        assert_ok(weir_device_reclaim_add(r.device, empty_cache, &caches[i]));
    }
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_ok(create(&r, 20 * GIB, &buffer));
    assert_int_equal(caches[0].calls, 1);
    assert_int_equal(caches[1].calls, 1);
    drop(buffer);
    assert_consistent(&r);
    rig_close(&r);
}

static bool promise_everything(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)device;
    (void)needed_bytes;
    ++*(int *)context;
    return true;
}

static void reclaim__a_callback_that_releases_nothing_is_called_once(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    int calls = 0;
    cache nothing = {.calls = 0};
    weir_buffer held = make(r.stream, 20 * GIB, NULL), buffer = WEIR_NO_BUFFER;
    assert_ok(weir_device_reclaim_add(r.device, promise_everything, &calls));
    assert_ok(weir_device_reclaim_add(r.device, empty_cache, &nothing));
    assert_result(create(&r, 10 * GIB, &buffer), WEIR_OUT_OF_MEMORY);
    assert_int_equal(calls, 1);
    assert_int_equal(nothing.calls, 1);
    assert_result(create(&r, 10 * GIB, &buffer), WEIR_OUT_OF_MEMORY);
    assert_int_equal(calls, 2);
    assert_int_equal(usage_of(r.device).ooms, 2);
    drop(held);
    rig_close(&r);
}

static void reclaim__it_comes_after_what_nobody_holds(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    rig r = rig_open(&sim, NULL);
    cache full = {.buffer = make(r.stream, 2 * GIB, NULL)};
    assert_ok(weir_device_reclaim_add(r.device, empty_cache, &full));
    drop(make(r.stream, 12 * GIB, NULL));
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_ok(create(&r, 16 * GIB, &buffer));
    assert_int_equal(full.calls, 0);
    drop(buffer);
    drop(full.buffer);
    rig_close(&r);
}

static void reclaim__it_makes_room_below_every_kind_of_limit(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = WEIR_NO_BUFFER;
    cache full = {.buffer = make(r.stream, 32 * MIB, "full")};
    assert_ok(weir_device_reclaim_add(r.device, empty_cache, &full));
    assert_ok(weir_device_limit(r.device, 40 * MIB));
    assert_ok(create(&r, 32 * MIB, &buffer));
    full.buffer = buffer;
    assert_ok(weir_device_limit(r.device, 0));
    assert_ok(weir_device_pool_limit(r.device, "arena", 40 * MIB));
    assert_ok(create(&r, 40 * MIB, &buffer));
    assert_ok(weir_device_pool_limit(r.device, "arena", 0));
    drop(buffer);
    full.buffer = make(r.stream, 32 * MIB, "full");
    assert_ok(weir_device_tag_limit(r.device, "full", 40 * MIB));
    buffer = make(r.stream, 32 * MIB, "full");
    assert_int_equal(full.calls, 3);
    assert_int_equal(full.needed_bytes, 24 * MIB);
    assert_int_equal(usage_of(r.device).callbacks, 3);
    assert_int_equal(usage_of(r.device).limits, 0);
    drop(buffer);
    rig_close(&r);
}

/* ---- inside ---- */

typedef struct nested {
    rig *r;
    int calls;
    weir_result small, large, close;
} nested;

static bool allocate_inside(void *context, weir_device *device, uint64_t needed_bytes)
{
    nested *n = context;
    weir_buffer buffer = WEIR_NO_BUFFER;
    n->calls++;
    n->small = weir_buffer_create(n->r->stream, KIB, NULL, &buffer);
    if (n->small == WEIR_OK) {
        drop(buffer);
    }
    n->large = weir_buffer_create(n->r->stream, needed_bytes, NULL, &buffer);
    n->close = weir_device_close(device);
    return false;
}

static void reclaim__an_allocation_inside_calls_no_callbacks(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    nested n = {.r = &r};
    weir_buffer held = make(r.stream, 20 * GIB, NULL), buffer = WEIR_NO_BUFFER;
    assert_ok(weir_device_reclaim_add(r.device, allocate_inside, &n));
    assert_result(create(&r, 10 * GIB, &buffer), WEIR_OUT_OF_MEMORY);
    assert_int_equal(n.calls, 1);
    assert_int_equal(n.small, WEIR_OK);
    assert_int_equal(n.large, WEIR_OUT_OF_MEMORY);
    assert_int_equal(n.close, WEIR_BUSY);
    assert_int_equal(usage_of(r.device).callbacks, 1);
    drop(held);
    assert_consistent(&r);
    rig_close(&r);
}

static void use_data_windows_and_captures(rig *r, weir_stream *stream)
{
    uint32_t word = 7;
    void *pointer = NULL;
    weir_graph *graph = NULL;
    weir_buffer buffer = make(stream, KIB, NULL);
    assert_ok(weir_buffer_write(buffer, 0, &word, sizeof word));
    assert_ok(weir_buffer_read(buffer, 0, &word, sizeof word));
    assert_ok(weir_malloc(stream, KIB, NULL, &pointer));
    assert_ok(weir_free(r->device, pointer));
    assert_ok(weir_window_begin(stream));
    assert_ok(weir_window_end(stream));
    assert_ok(weir_capture_prime(stream));
    assert_ok(weir_capture_begin(stream));
    assert_ok(weir_buffer_use(buffer, stream));
    assert_ok(weir_capture_end(stream, "inside", &graph));
    assert_ok(weir_graph_launch(graph, stream));
    assert_ok(weir_graph_destroy(graph));
    assert_result(weir_device_preset_replace(r->device, "adaptive", NULL, 0), WEIR_BUSY);
    drop(buffer);
}

static bool use_everything(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)needed_bytes;
    rig *r = context;
    weir_usage usage = {0};
    weir_device_report report = {.size = 0};
    weir_shortage shortage = {.size = 0};
    weir_stream *stream = open_stream(device, "inside");
    weir_buffer buffer = make(stream, KIB, "inside");
    use_data_windows_and_captures(r, stream);
    assert_ok(weir_buffer_use(buffer, r->stream));
    assert_ok(weir_buffer_retain(buffer));
    drop(buffer);
    drop(buffer);
    assert_ok(weir_tag_push("inside"));
    assert_ok(weir_tag_pop());
    assert_ok(weir_device_sync(device));
    assert_ok(weir_device_tick(device, 0));
    assert_ok(weir_device_memory_usage(device, &usage));
    assert_ok(weir_device_memory_report(device, &report));
    assert_ok(
        weir_device_memory_cleanup(device, &(weir_cleanup_desc){.wait = true}, NULL));
    assert_ok(weir_device_check(device));
    assert_says(explain(device), "in_use");
    assert_ok(weir_device_limit(device, 100 * GIB));
    assert_ok(weir_device_pool_limit(device, "arena", 100 * GIB));
    assert_ok(weir_device_tag_limit(device, "inside", 100 * GIB));
    assert_ok(weir_device_reclaim_add(device, empty_cache, r));
    assert_ok(weir_device_reclaim_remove(device, empty_cache, r));
    assert_ok(weir_stream_close(stream));
    weir_last_shortage(&shortage);
    assert_ok(weir_device_reclaim_remove(device, use_everything, context));
    return true;
}

static void reclaim__everything_but_close_may_be_called_inside(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, 20 * GIB, NULL), buffer = WEIR_NO_BUFFER;
    assert_ok(weir_device_reclaim_add(r.device, use_everything, &r));
    assert_result(create(&r, 10 * GIB, &buffer), WEIR_OUT_OF_MEMORY);
    assert_int_equal(usage_of(r.device).callbacks, 1);
    assert_result(weir_device_reclaim_remove(r.device, use_everything, &r),
                  WEIR_NOT_FOUND);
    drop(held);
    assert_consistent(&r);
    rig_close(&r);
}

/* ---- adding and removing ---- */

static void reclaim__at_most_eight_are_registered(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    cache caches[9] = {{.calls = 0}};
    for (int i = 0; i < 8; i++) {
        assert_ok(weir_device_reclaim_add(r.device, empty_cache, &caches[i]));
    }
    assert_result(weir_device_reclaim_add(r.device, empty_cache, &caches[8]), WEIR_LIMIT);
    assert_ok(weir_device_reclaim_remove(r.device, empty_cache, &caches[3]));
    assert_result(weir_device_reclaim_remove(r.device, empty_cache, &caches[3]),
                  WEIR_NOT_FOUND);
    assert_result(weir_device_reclaim_remove(r.device, promise_everything, &caches[4]),
                  WEIR_NOT_FOUND);
    assert_ok(weir_device_reclaim_add(r.device, empty_cache, &caches[8]));
    assert_result(weir_device_reclaim_add(r.device, NULL, NULL), WEIR_INVALID);
    assert_result(weir_device_reclaim_add(NULL, empty_cache, NULL), WEIR_INVALID);
    assert_result(weir_device_reclaim_remove(NULL, empty_cache, NULL), WEIR_INVALID);
    rig_close(&r);
}

typedef struct slow {
    atomic_bool inside, go_on, done;
} slow;

static bool wait_inside(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)device;
    (void)needed_bytes;
    slow *s = context;
    s->inside = true;
    while (!s->go_on) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    s->done = true;
    return false;
}

static void *fail_to_allocate(void *context)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    weir_buffer_create(context, 30 * GIB, NULL, &buffer);
    weir_buffer_create(context, 23 * GIB, NULL, &buffer);
    return NULL;
}

static void *let_go_soon(void *context)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    ((slow *)context)->go_on = true;
    return NULL;
}

static void reclaim__removal_waits_for_a_running_callback(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    slow s = {false, false, false};
    weir_buffer held = make(r.stream, 20 * GIB, NULL);
    pthread_t allocator, releaser;
    assert_ok(weir_device_reclaim_add(r.device, wait_inside, &s));
    assert_int_equal(pthread_create(&allocator, NULL, fail_to_allocate, r.stream), 0);
    while (!s.inside) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    assert_int_equal(pthread_create(&releaser, NULL, let_go_soon, &s), 0);
    assert_ok(weir_device_reclaim_remove(r.device, wait_inside, &s));
    assert_true(s.done);
    pthread_join(allocator, NULL);
    pthread_join(releaser, NULL);
    drop(held);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reclaim__callbacks_are_called_in_order_until_one_releases),
        cmocka_unit_test(reclaim__all_are_called_when_one_does_not_release_enough),
        cmocka_unit_test(reclaim__a_callback_that_releases_nothing_is_called_once),
        cmocka_unit_test(reclaim__it_comes_after_what_nobody_holds),
        cmocka_unit_test(reclaim__it_makes_room_below_every_kind_of_limit),
        cmocka_unit_test(reclaim__an_allocation_inside_calls_no_callbacks),
        cmocka_unit_test(reclaim__everything_but_close_may_be_called_inside),
        cmocka_unit_test(reclaim__at_most_eight_are_registered),
        cmocka_unit_test(reclaim__removal_waits_for_a_running_callback),
    };
    return cmocka_run_group_tests_name("core, reclaim callbacks", tests, NULL, NULL);
}
