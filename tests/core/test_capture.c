/* SPDX-License-Identifier: MIT */
/* Recording a graph: the order of calls, what is reused, forbidden and left behind. */
#include "recording.h"

#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

/* ---- states ---- */

static void capture__refuses_calls_in_the_wrong_order_and_changes_nothing(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_graph *graph = NULL;
    assert_result(weir_capture_end(r.stream, "g", &graph), WEIR_INVALID);
    assert_result(weir_capture_abort(r.stream), WEIR_INVALID);
    assert_ok(weir_capture_prime(r.stream));
    assert_result(weir_capture_prime(r.stream), WEIR_INVALID);
    assert_result(weir_capture_end(r.stream, "g", &graph), WEIR_INVALID);
    assert_says(weir_last_error(), "primed");
    assert_ok(weir_capture_begin(r.stream));
    assert_result(weir_capture_begin(r.stream), WEIR_INVALID);
    assert_says(weir_last_error(), "capturing already");
    assert_result(weir_capture_prime(r.stream), WEIR_INVALID);
    assert_null(graph);
    graph = end_capture(r.stream, "g");
    assert_string_equal(weir_graph_name(graph), "g");
    assert_result(weir_capture_end(r.stream, "g", &graph), WEIR_INVALID);
    assert_ok(weir_capture_prime(r.stream));
    assert_ok(weir_capture_abort(r.stream));
    assert_result(weir_capture_abort(r.stream), WEIR_INVALID);
    assert_ok(weir_graph_destroy(graph));
    rig_close(&r);
}

static void capture__refuses_null(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_graph *graph = NULL;
    assert_result(weir_capture_prime(NULL), WEIR_INVALID);
    assert_result(weir_capture_begin(NULL), WEIR_INVALID);
    assert_result(weir_capture_abort(NULL), WEIR_INVALID);
    assert_result(weir_capture_end(NULL, "g", &graph), WEIR_INVALID);
    assert_result(weir_graph_launch(NULL, r.stream), WEIR_INVALID);
    assert_ok(weir_graph_destroy(NULL));
    assert_string_equal(weir_graph_name(NULL), "");
    assert_ok(weir_capture_begin(r.stream));
    assert_result(weir_capture_end(r.stream, "g", NULL), WEIR_INVALID);
    graph = end_capture(r.stream, NULL);
    assert_result(weir_graph_launch(graph, NULL), WEIR_INVALID);
    assert_ok(weir_graph_destroy(graph));
    rig_close(&r);
}

static void capture__is_unsupported_where_the_driver_cannot(void **state)
{
    (void)state;
    weir_device *device = NULL;
    assert_ok(weir_device_open("host", &(weir_device_desc){.no_thread = true}, &device));
    weir_stream *stream = weir_device_default_stream(device);
    assert_result(weir_capture_begin(stream), WEIR_UNSUPPORTED);
    assert_result(weir_capture_prime(stream), WEIR_UNSUPPORTED);
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    assert_ok(weir_device_close(device));
}

/* ---- reuse inside a recording ---- */

static void capture__reuses_what_it_dropped_and_nobody_else_does(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_begin(r.stream));
    weir_buffer first = make(r.stream, 1 * MIB, NULL);
    weir_buffer second = make(r.stream, 1 * MIB, NULL);
    uint64_t address = weir_buffer_address(first);
    drop(first), drop(second);
    /* Neighbours are merged, and a part of them is cut off again. */
    weir_buffer both = make(r.stream, 2 * MIB, NULL);
    assert_int_equal(weir_buffer_address(both), address);
    drop(both);
    weir_buffer part = make(r.stream, 512 * KIB, NULL);
    assert_int_equal(weir_buffer_address(part), address);
    assert_consistent(&r);
    drop(part);
    weir_graph *graph = end_capture(r.stream, "g");
    assert_int_equal(waiting_for(&r, "graph g"), 2 * MIB);
    for (int i = 0; i < 8; i++) {
        weir_buffer later = make(r.stream, 512 * KIB, NULL);
        uint64_t at = weir_buffer_address(later);
        assert_true(at >= address + 2 * MIB || at + 512 * KIB <= address);
        drop(later);
    }
    assert_ok(weir_graph_destroy(graph));
    rig_close(&r);
}

static void capture__of_many_temporaries_takes_no_more_than_their_peak(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_begin(r.stream));
    for (uint64_t i = 0; i < 500; i++) {
        weir_buffer a = make(r.stream, (1 + i % 7) * 300 * KIB, NULL);
        weir_buffer b = make(r.stream, (1 + i % 5) * 500 * KIB, NULL);
        drop(a), drop(b);
    }
    assert_true(usage_of(r.device).reserved_bytes <= 8 * MIB);
    weir_graph *graph = end_capture(r.stream, "g");
    assert_consistent(&r);
    assert_ok(weir_graph_destroy(graph));
    rig_close(&r);
}

static void capture__hands_out_aligned_buffers_from_what_it_dropped(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_begin(r.stream));
    for (int i = 0; i < 20; i++) {
        weir_buffer buffer;
        assert_ok(weir_buffer_create(r.stream, 100 * KIB,
                                     &(weir_buffer_desc){.alignment_bytes = 64 * KIB},
                                     &buffer));
        assert_int_equal(weir_buffer_address(buffer) % (64 * KIB), 0);
        drop(buffer);
    }
    assert_true(usage_of(r.device).reserved_bytes <= 2 * MIB);
    assert_ok(weir_capture_abort(r.stream));
    rig_close(&r);
}

/* ---- what a recording forbids ---- */

static void use_everything(rig *r, weir_stream *side)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_result(weir_device_memory_cleanup(r->device, NULL, NULL), WEIR_BUSY);
    assert_says(weir_last_error(), "\"decode\" has been capturing for 2000 ms");
    assert_result(weir_buffer_create(side, 100 * GIB, NULL, &buffer), WEIR_OUT_OF_MEMORY);
    assert_says(weir_last_error(), "\"decode\" has been capturing for 2000 ms");
    weir_sim_advance(r->sim, 60000);
    assert_ok(weir_device_tick(r->device, 0));
    weir_buffer kept = make(side, 64 * MIB, NULL);
    assert_ok(weir_buffer_use(kept, r->stream));
    queue_work(r, r->stream);
    drop(kept);
    for (int i = 0; i < 100; i++) {
        drop(make(side, (uint64_t)(i + 1) * 256 * KIB, NULL));
    }
    weir_buffer other = make(r->stream, 3 * GIB, NULL);
    drop(other);
    assert_result(weir_device_close(r->device), WEIR_BUSY);
}

static void capture__keeps_all_others_from_freeing_moving_and_waiting(void **state)
{
    (void)state;
    weir_sim_desc descs[2] = {weir_sim_defaults(), plain_sim()};
    for (int i = 0; i < 2; i++) {
        rig r = rig_open(&descs[i], NULL);
        weir_stream *decode = open_stream(r.device, "decode");
        weir_stream *side = open_stream(r.device, "side");
        drop(make(side, 20 * GIB, NULL));
        drop(make(decode, 16 * KIB, NULL));
        queue_work(&r, decode);
        assert_ok(weir_capture_begin(decode));
        weir_sim_advance(r.sim, 2000);
        uint64_t before = forbidden_calls(&r);
        use_everything(&r, side);
        assert_int_equal(forbidden_calls(&r), before);
        assert_consistent(&r);
        assert_says(explain(r.device), "stream decode has been capturing for 62000 ms");
        weir_graph *graph = end_capture(decode, "g"); /* it was not spoiled */
        assert_ok(weir_graph_destroy(graph));
        end_stream(decode), end_stream(side);
        rig_close(&r);
    }
}

static void capture__refuses_what_would_wait_for_its_stream(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    weir_buffer buffer = make(decode, 4096, NULL);
    char data[16];
    queue_work(&r, decode);
    assert_ok(weir_capture_begin(decode));
    assert_result(weir_stream_sync(decode), WEIR_BUSY);
    assert_result(weir_device_sync(r.device), WEIR_BUSY);
    assert_result(weir_buffer_read(buffer, 0, data, sizeof data), WEIR_BUSY);
    assert_says(weir_last_error(), "decode");
    assert_result(weir_stream_close(decode), WEIR_BUSY);
    assert_ok(weir_stream_sync(r.stream));
    /* Others are ordered behind what was queued before. */
    assert_ok(weir_buffer_use(buffer, r.stream));
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_stream_wait], 1);
    weir_graph *graph = end_capture(decode, "g");
    assert_ok(weir_graph_destroy(graph));
    drop(buffer);
    weir_sim_finish_all(r.sim);
    end_stream(decode);
    rig_close(&r);
}

static void capture__out_of_memory_leaves_it_good(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = WEIR_NO_BUFFER;
    weir_buffer large = make(r.stream, 20 * GIB, "large");
    assert_ok(weir_capture_begin(r.stream));
    uint64_t before = forbidden_calls(&r);
    weir_usage usage = usage_of(r.device);
    assert_result(weir_buffer_create(r.stream, 10 * GIB, NULL, &buffer),
                  WEIR_OUT_OF_MEMORY);
    assert_says(weir_last_error(), "large");
    assert_int_equal(forbidden_calls(&r), before);
    weir_usage now = usage_of(r.device);
    assert_same_bytes(&usage, &now);
    weir_buffer small = make(r.stream, 1 * MIB, NULL);
    weir_graph *graph = end_capture(r.stream, "g");
    drop(small), drop(large);
    assert_ok(weir_graph_destroy(graph));
    rig_close(&r);
}

/* A hole of 10 MiB of addresses with memory in its middle alone, before what is held. */
static void make_hole(rig *r, weir_buffer *held)
{
    weir_buffer front = make(r->stream, 4 * MIB, NULL);
    weir_buffer middle = make(r->stream, 2 * MIB, NULL);
    weir_buffer back = make(r->stream, 4 * MIB, NULL);
    *held = make(r->stream, 2 * MIB, NULL);
    drop(front), drop(back);
    cleanup(r->device, NULL);
    drop(middle);
    assert_int_equal(usage_of(r->device).reserved_bytes, 4 * MIB);
}

/* Of the two commits that the hole needs the second one fails. */
static void fail_between_commits(rig *r, weir_stream *stream)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    uint64_t before = forbidden_calls(r);
    weir_sim_fail(r->sim, WEIR_SIM_OP_commit, 100, 1);
    assert_result(weir_buffer_create(stream, 10 * MIB, NULL, &buffer),
                  WEIR_OUT_OF_MEMORY);
    weir_sim_fail(r->sim, WEIR_SIM_OP_commit, 0, 0);
    assert_int_equal(forbidden_calls(r), before);
    assert_int_equal(usage_of(r->device).reserved_bytes, 8 * MIB);
    assert_consistent(r);
}

static void capture__what_a_failed_growth_left_goes_back_at_its_end(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < 2; aborts++) {
        rig r = rig_open(NULL, NULL);
        weir_buffer held;
        make_hole(&r, &held);
        assert_ok(weir_capture_begin(r.stream));
        fail_between_commits(&r, r.stream);
        weir_graph *graph = NULL;
        if (aborts) {
            assert_ok(weir_capture_abort(r.stream));
        } else {
            graph = end_capture(r.stream, "g");
        }
        assert_int_equal(usage_of(r.device).reserved_bytes, 4 * MIB);
        assert_ok(weir_graph_destroy(graph));
        drop(held);
        rig_close(&r);
    }
}

static void capture__uses_what_a_failed_growth_left(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held;
    make_hole(&r, &held);
    assert_ok(weir_capture_begin(r.stream));
    fail_between_commits(&r, r.stream);
    uint64_t commits = ledger_of(&r).calls[WEIR_SIM_OP_commit];
    weir_buffer smaller = make(r.stream, 4 * MIB, NULL);
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_commit], commits);
    weir_graph *graph = end_capture(r.stream, "g");
    assert_consistent(&r);
    assert_int_equal(usage_of(r.device).in_use_bytes, 6 * MIB);
    drop(smaller);
    assert_ok(weir_graph_destroy(graph));
    drop(held);
    rig_close(&r);
}

static void capture__what_a_failed_growth_left_waits_for_the_last_capture(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    weir_buffer held;
    make_hole(&r, &held);
    assert_ok(weir_capture_begin(decode));
    assert_ok(weir_capture_begin(r.stream));
    fail_between_commits(&r, r.stream);
    weir_graph *first = end_capture(r.stream, "first");
    assert_int_equal(usage_of(r.device).reserved_bytes, 8 * MIB);
    assert_ok(weir_capture_abort(decode));
    assert_int_equal(usage_of(r.device).reserved_bytes, 4 * MIB);
    assert_ok(weir_graph_destroy(first));
    drop(held);
    end_stream(decode);
    rig_close(&r);
}

/* Behind a stream that has ended, the own one is fenced: nobody may ask that fence. */
static void capture__is_not_spoiled_by_what_waits_for_an_ended_stream(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *side = open_stream(r.device, "side");
    weir_buffer buffer = make(r.stream, 1 * MIB, NULL);
    assert_ok(weir_buffer_use(buffer, side));
    queue_work(&r, side);
    drop(buffer);
    assert_ok(weir_stream_close(side));
    usage_of(r.device);
    assert_ok(weir_capture_begin(r.stream));
    assert_int_equal(usage_of(r.device).deferred_bytes, 1 * MIB);
    weir_graph *graph = end_capture(r.stream, "g");
    assert_ok(weir_graph_destroy(graph));
    rig_close(&r);
}

static void capture__that_the_driver_finds_spoiled_ends_without_a_graph(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_graph *graph = NULL;
    weir_driver_fence fence = 0;
    assert_ok(weir_capture_begin(r.stream));
    weir_buffer held = make(r.stream, 1 * MIB, NULL);
    drop(make(r.stream, 4 * MIB, NULL));
    assert_true(r.sim->table->fence_record(r.sim, weir_stream_driver_stream(r.stream),
                                           &fence) != WEIR_OK);
    assert_result(weir_capture_end(r.stream, "g", &graph), WEIR_DRIVER);
    assert_null(graph);
    assert_consistent(&r);
    cleanup(r.device, NULL);
    assert_true(usage_of(r.device).reserved_bytes <= 2 * MIB);
    drop(held);
    rig_close(&r);
}

/* ---- priming ---- */

static void prime__takes_all_that_the_capture_can_need(void **state)
{
    (void)state;
    weir_sim_desc descs[2] = {weir_sim_defaults(), plain_sim()};
    for (int i = 0; i < 2; i++) {
        rig r = rig_open(&descs[i], NULL);
        assert_ok(weir_capture_prime(r.stream));
        run_steps(r.stream);
        assert_consistent(&r);
        weir_usage primed = usage_of(r.device);
        assert_true(primed.deferred_bytes >= STEPS_BYTES &&
                    primed.reserved_bytes >= STEPS_BYTES);
        assert_says(explain(r.device), "priming");
        assert_ok(weir_capture_begin(r.stream));
        weir_sim_ledger before = ledger_of(&r);
        run_steps(r.stream);
        weir_sim_ledger after = ledger_of(&r);
        assert_int_equal(memory_calls(&after), memory_calls(&before));
        weir_graph *graph = end_capture(r.stream, "g");
        assert_ok(weir_graph_destroy(graph));
        rig_close(&r);
    }
}

static void prime__that_is_aborted_keeps_nothing(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_prime(r.stream));
    weir_buffer held = make(r.stream, 1 * MIB, NULL);
    run_steps(r.stream);
    assert_ok(weir_capture_abort(r.stream));
    assert_consistent(&r);
    cleanup(r.device, NULL);
    assert_int_equal(usage_of(r.device).reserved_bytes, 2 * MIB);
    drop(held);
    rig_close(&r);
}

/* ---- aborting ---- */

static void abort__leaves_nothing_behind_however_often(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    weir_buffer foreign = make(r.stream, 3 * MIB, NULL);
    uint64_t reserved = 0;
    for (int i = 0; i < 50; i++) {
        assert_ok(weir_capture_begin(decode));
        assert_ok(weir_buffer_use(foreign, decode));
        weir_buffer held = make(decode, 4 * MIB, NULL);
        run_steps(decode);
        assert_ok(weir_capture_abort(decode));
        assert_consistent(&r);
        assert_int_equal(usage_of(r.device).in_use_bytes, 7 * MIB);
        drop(held);
        reserved = i == 0 ? usage_of(r.device).reserved_bytes : reserved;
        assert_int_equal(usage_of(r.device).reserved_bytes, reserved);
    }
    drop(foreign);
    end_stream(decode);
    rig_close(&r);
}

static void abort__frees_a_buffer_of_another_stream_that_was_dropped_inside(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    weir_buffer foreign = make(r.stream, 4 * MIB, NULL);
    assert_ok(weir_capture_begin(decode));
    assert_ok(weir_buffer_use(foreign, decode));
    drop(foreign);
    assert_int_equal(waiting_for(&r, "stream decode (capturing)"), 4 * MIB);
    assert_ok(weir_capture_abort(decode));
    assert_int_equal(usage_of(r.device).deferred_bytes, 0);
    end_stream(decode);
    rig_close(&r);
}

/* ---- failures ---- */

/* One life of a graph; whatever fails, the books agree and nothing stays behind. */
static bool live_through(rig *r, weir_stream *decode, weir_buffer foreign)
{
    weir_buffer made[3] = {{0}};
    weir_graph *graph = NULL;
    bool good = weir_capture_prime(decode) == WEIR_OK;
    good &= weir_buffer_create(decode, 3 * MIB, NULL, &made[0]) == WEIR_OK;
    bool began = weir_capture_begin(decode) == WEIR_OK;
    good &= began;
    good &= weir_buffer_use(foreign, decode) == WEIR_OK;
    for (int i = 1; i < 3; i++) {
        good &= weir_buffer_create(decode, 5 * MIB, NULL, &made[i]) == WEIR_OK;
    }
    weir_buffer_release(made[1]);
    bool ended = began && weir_capture_end(decode, "g", &graph) == WEIR_OK;
    good &= ended && weir_graph_launch(graph, r->stream) == WEIR_OK;
    weir_buffer_release(made[0]);
    weir_buffer_release(made[2]);
    weir_graph_destroy(graph);
    if (!began) {
        weir_capture_abort(decode);
    }
    return good;
}

static bool live_with_failure(uint64_t nth, bool host)
{
    rig r = rig_open(NULL, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    weir_buffer foreign = make(r.stream, 1 * MIB, NULL);
    queue_work(&r, decode);
    if (host) {
        wr_host_fail_nth(nth);
    } else {
        weir_sim_fail_nth(r.sim, nth);
    }
    bool good = live_through(&r, decode, foreign);
    wr_host_fail_nth(0);
    weir_sim_fail_nth(r.sim, 0);
    assert_consistent(&r);
    drop(foreign);
    weir_sim_finish_all(r.sim);
    end_stream(decode);
    rig_close(&r);
    return good;
}

static void capture__stands_any_driver_call_that_fails(void **state)
{
    (void)state;
    uint64_t nth = 1;
    for (uint64_t good = 0; good < 5 && nth < 500; nth++) {
        good = live_with_failure(nth, false) ? good + 1 : 0;
    }
    assert_true(nth < 500);
}

static void capture__stands_any_host_allocation_that_fails(void **state)
{
    (void)state;
    uint64_t nth = 1;
    for (uint64_t good = 0; good < 5 && nth < 500; nth++) {
        good = live_with_failure(nth, true) ? good + 1 : 0;
    }
    assert_true(nth < 500);
}

/* ---- calls that a capture must not meet ---- */

static struct meeting {
    const weir_driver_table *real;
    weir_stream *stream;
    weir_result began;
    unsigned met;
} meeting;

/* As another thread would, while this one is in the driver. */
static void meet(void)
{
    if (meeting.stream != NULL) {
        meeting.began = weir_capture_begin(meeting.stream);
        meeting.met++;
    }
}

static weir_result meeting_sync(weir_driver *driver, weir_driver_stream stream)
{
    meet();
    return meeting.real->stream_sync(driver, stream);
}

static weir_result meeting_launch(weir_driver *driver, weir_driver_stream stream,
                                  uint64_t graph)
{
    meet();
    return meeting.real->graph_launch(driver, stream, graph);
}

static void capture__does_not_begin_under_a_wait_or_a_launch(void **state)
{
    (void)state;
    meeting = (struct meeting){0};
    for (size_t i = 0; meeting.real == NULL; i++) {
        const weir_driver_table *table = weir_driver_at(i);
        meeting.real = strcmp(table->name, "sim") == 0 ? table : NULL;
    }
    weir_driver_table table = *meeting.real;
    table.stream_sync = meeting_sync;
    table.graph_launch = meeting_launch;
    weir_device *device = NULL;
    weir_graph *graph = NULL;
    assert_ok(weir_device_open_driver(&table, "", &(weir_device_desc){.no_thread = true},
                                      &device));
    weir_stream *stream = weir_device_default_stream(device);
    assert_ok(weir_capture_begin(stream));
    assert_ok(weir_capture_end(stream, NULL, &graph));
    meeting.stream = stream;
    assert_ok(weir_stream_sync(stream));
    assert_int_equal(meeting.began, WEIR_BUSY);
    assert_ok(weir_graph_launch(graph, stream));
    assert_int_equal(meeting.began, WEIR_BUSY);
    assert_int_equal(meeting.met, 2);
    meeting.stream = NULL;
    assert_ok(weir_capture_begin(stream)); /* now it may */
    assert_result(weir_graph_launch(graph, stream), WEIR_BUSY);
    assert_ok(weir_capture_abort(stream));
    assert_ok(weir_graph_destroy(graph));
    assert_ok(weir_device_check(device));
    assert_ok(weir_device_close(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capture__refuses_calls_in_the_wrong_order_and_changes_nothing),
        cmocka_unit_test(capture__refuses_null),
        cmocka_unit_test(capture__is_unsupported_where_the_driver_cannot),
        cmocka_unit_test(capture__reuses_what_it_dropped_and_nobody_else_does),
        cmocka_unit_test(capture__of_many_temporaries_takes_no_more_than_their_peak),
        cmocka_unit_test(capture__hands_out_aligned_buffers_from_what_it_dropped),
        cmocka_unit_test(capture__keeps_all_others_from_freeing_moving_and_waiting),
        cmocka_unit_test(capture__refuses_what_would_wait_for_its_stream),
        cmocka_unit_test(capture__out_of_memory_leaves_it_good),
        cmocka_unit_test(capture__what_a_failed_growth_left_goes_back_at_its_end),
        cmocka_unit_test(capture__uses_what_a_failed_growth_left),
        cmocka_unit_test(capture__what_a_failed_growth_left_waits_for_the_last_capture),
        cmocka_unit_test(capture__is_not_spoiled_by_what_waits_for_an_ended_stream),
        cmocka_unit_test(capture__that_the_driver_finds_spoiled_ends_without_a_graph),
        cmocka_unit_test(prime__takes_all_that_the_capture_can_need),
        cmocka_unit_test(prime__that_is_aborted_keeps_nothing),
        cmocka_unit_test(abort__leaves_nothing_behind_however_often),
        cmocka_unit_test(abort__frees_a_buffer_of_another_stream_that_was_dropped_inside),
        cmocka_unit_test(capture__stands_any_driver_call_that_fails),
        cmocka_unit_test(capture__does_not_begin_under_a_wait_or_a_launch),
        cmocka_unit_test(capture__stands_any_host_allocation_that_fails),
    };
    return cmocka_run_group_tests_name("core, captures", tests, NULL, NULL);
}
