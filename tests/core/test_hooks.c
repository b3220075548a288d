/* SPDX-License-Identifier: MIT */
/* Stream hooks: they run before waits, windows, cleanup and close, with no lock held. */
#include "support.h"

#include <stdbool.h>
#include <string.h>

typedef struct listener {
    rig *r;
    weir_buffer cached; /* held until a hook asks for it */
    int cleanups, closes;
    weir_stream *heard;
} listener;

static void let_go(listener *me)
{
    if (me->cached.generation != 0) {
        drop(me->cached);
        me->cached = WEIR_NO_BUFFER;
    }
}

/* Uses Weir as the header allows: that works only with no lock held. */
static void before_cleanup(void *context, weir_stream *stream)
{
    listener *me = context;
    me->cleanups++;
    me->heard = stream;
    weir_buffer scratch = make(stream, 3 * MIB, "scratch");
    weir_buffer elsewhere = make(me->r->stream, 1000, "scratch");
    (void)usage_of(me->r->device);
    (void)explain(me->r->device);
    assert_ok(weir_device_check(me->r->device));
    drop(elsewhere);
    drop(scratch);
    let_go(me);
}

static void before_close(void *context, weir_stream *stream)
{
    listener *me = context;
    me->closes++;
    me->heard = stream;
    drop(make(stream, MIB, "scratch"));
    let_go(me);
}

static void hooks__empty_caches_before_cleanup_looks(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *stream = open_stream(r.device, "cached");
    listener me = {.r = &r, .cached = make(stream, 64 * MIB, "cached")};
    weir_stream_hook hook = {.context = &me, .before_cleanup = before_cleanup};
    assert_ok(weir_stream_hook_add(stream, &hook));
    cleanup(r.device, &(weir_cleanup_desc){.no_drain = true});
    assert_int_equal(me.cleanups, 0);
    assert_int_equal(usage_of(r.device).in_use_bytes, 64 * MIB);
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_int_equal(me.cleanups, 1);
    assert_ptr_equal(me.heard, stream);
    assert_true(outcome.returned_bytes >= 64 * MIB);
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    assert_ok(weir_stream_hook_remove(stream, &me));
    cleanup(r.device, NULL);
    assert_int_equal(me.cleanups, 1);
    assert_ok(weir_stream_close(stream));
    rig_close(&r);
}

static void hooks__let_a_stream_close(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *stream = open_stream(r.device, "cached");
    listener me = {.r = &r, .cached = make(stream, 64 * MIB, "cached")};
    weir_stream_hook hook = {.context = &me, .before_close = before_close};
    assert_ok(weir_stream_hook_add(stream, &hook));
    assert_ok(weir_stream_close(stream));
    assert_int_equal(me.closes, 1);
    assert_int_equal(usage_of(r.device).live_count, 0);

    listener last = {.r = &r, .cached = make(r.stream, 64 * MIB, "cached")};
    hook.context = &last;
    assert_ok(weir_stream_hook_add(r.stream, &hook));
    assert_ok(weir_device_close(r.device));
    assert_int_equal(last.closes, 1);
}

typedef struct ordered {
    int number;
    int *next;
} ordered;

static void take_turn(void *context, weir_stream *stream)
{
    (void)stream;
    ordered *me = context;
    assert_int_equal(*me->next, me->number);
    (*me->next)++;
}

static void hooks__run_in_order_of_registration(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    int next = 0;
    ordered all[5];
    for (int i = 0; i < 5; i++) {
        all[i] = (ordered){i, &next};
        weir_stream_hook hook = {.context = &all[i], .before_cleanup = take_turn};
        assert_ok(weir_stream_hook_add(r.stream, &hook));
    }
    cleanup(r.device, NULL);
    assert_int_equal(next, 5);
    for (int i = 0; i < 5; i++) {
        assert_ok(weir_stream_hook_remove(r.stream, &all[i]));
    }
    rig_close(&r);
}

static void remove_itself(void *context, weir_stream *stream)
{
    listener *me = context;
    me->cleanups++;
    assert_ok(weir_stream_hook_remove(stream, me));
}

static void hooks__may_remove_themselves(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    listener all[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        weir_stream_hook hook = {.context = &all[i], .before_cleanup = remove_itself};
        assert_ok(weir_stream_hook_add(r.stream, &hook));
    }
    cleanup(r.device, NULL);
    cleanup(r.device, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(all[i].cleanups, 1);
        assert_result(weir_stream_hook_remove(r.stream, &all[i]), WEIR_NOT_FOUND);
    }
    rig_close(&r);
}

/* Queues work like whoever collects it above Weir. */
typedef struct collector {
    int drains;
    weir_result answer;
} collector;

static weir_result drain_it(void *context, weir_stream *stream)
{
    collector *me = context;
    me->drains++;
    drop(make(stream, 1000, "scratch"));
    return me->answer;
}

static void hooks__drain_before_waits_and_at_windows(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_graph *graph = NULL;
    collector me = {0};
    weir_stream_hook hook = {.context = &me, .drain = drain_it};
    assert_ok(weir_stream_hook_add(r.stream, &hook));
    assert_ok(weir_stream_sync(r.stream));
    assert_ok(weir_device_sync(r.device));
    assert_int_equal(me.drains, 2);
    assert_ok(weir_window_begin(r.stream));
    assert_ok(weir_window_end(r.stream));
    assert_int_equal(me.drains, 4);
    assert_ok(weir_capture_begin(r.stream));
    assert_ok(weir_capture_end(r.stream, NULL, &graph));
    assert_int_equal(me.drains, 6);
    assert_ok(weir_graph_destroy(graph));
    cleanup(r.device, NULL);
    assert_int_equal(me.drains, 6);
    assert_ok(weir_stream_hook_remove(r.stream, &me));
    rig_close(&r);
}

static void hooks__that_cannot_drain_fail_the_call(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_graph *graph = NULL;
    collector me = {.answer = WEIR_OUT_OF_MEMORY};
    weir_stream_hook hook = {.context = &me, .drain = drain_it};
    assert_ok(weir_stream_hook_add(r.stream, &hook));
    assert_result(weir_stream_sync(r.stream), WEIR_OUT_OF_MEMORY);
    assert_result(weir_window_begin(r.stream), WEIR_OUT_OF_MEMORY);
    me.answer = WEIR_OK;
    assert_result(weir_window_end(r.stream), WEIR_INVALID); /* none has begun */
    assert_ok(weir_capture_begin(r.stream));
    me.answer = WEIR_OUT_OF_MEMORY;
    assert_result(weir_capture_end(r.stream, NULL, &graph), WEIR_OUT_OF_MEMORY);
    assert_null(graph);
    assert_ok(weir_stream_hook_remove(r.stream, &me));
    assert_ok(weir_stream_sync(r.stream)); /* the capture is over */
    rig_close(&r);
}

static void hooks__hear_of_a_device_that_is_abandoned(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    listener me = {.r = &r, .cached = make(r.stream, MIB, "cached")};
    weir_stream_hook hook = {.context = &me, .before_close = before_close};
    assert_ok(weir_stream_hook_add(r.stream, &hook));
    make(r.stream, MIB, "leaked");
    weir_device_abandon(r.device);
    assert_int_equal(me.closes, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hooks__empty_caches_before_cleanup_looks),
        cmocka_unit_test(hooks__let_a_stream_close),
        cmocka_unit_test(hooks__run_in_order_of_registration),
        cmocka_unit_test(hooks__may_remove_themselves),
        cmocka_unit_test(hooks__drain_before_waits_and_at_windows),
        cmocka_unit_test(hooks__that_cannot_drain_fail_the_call),
        cmocka_unit_test(hooks__hear_of_a_device_that_is_abandoned),
    };
    return cmocka_run_group_tests_name("core, hooks", tests, NULL, NULL);
}
