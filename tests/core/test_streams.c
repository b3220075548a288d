/* SPDX-License-Identifier: MIT */
/* Streams: lending, closing with work queued, a thousand of them. */
#include "support.h"

#include <stdbool.h>
#include <string.h>

static void check_lending(rig *r)
{
    weir_stream *streams[4];
    for (int i = 0; i < 4; i++) {
        streams[i] = open_stream(r->device, NULL);
    }
    drop(make(streams[0], 512 * MIB, NULL));
    weir_usage first = usage_of(r->device);
    weir_sim_ledger before = ledger_of(r);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            weir_buffer buffer = make(streams[i], 512 * MIB, NULL);
            queue_work(r, streams[i]);
            drop(buffer);
            finish_work(r, streams[i]);
        }
    }
    weir_sim_ledger after = ledger_of(r);
    assert_int_equal(memory_calls(&before), memory_calls(&after));
    weir_usage last = usage_of(r->device);
    assert_int_equal(last.reserved_bytes, first.reserved_bytes);
    assert_true(last.lends >= first.lends + 9);
    for (int i = 0; i < 4; i++) {
        assert_ok(weir_stream_close(streams[i]));
    }
}

static void streams__lend_to_each_other_without_the_driver(void **state)
{
    (void)state;
    on_both(check_lending);
}

#define HELD 40

/* A stream at work: it holds all it has, but for a hole in the middle. */
static void make_with_hole(weir_stream *stream, weir_buffer held[HELD])
{
    for (int i = 0; i < HELD; i++) {
        held[i] = make(stream, 4 * MIB, NULL);
    }
    drop(held[HELD / 2]);
    held[HELD / 2] = (weir_buffer){0};
}

static void drop_all(weir_buffer held[HELD], int count)
{
    for (int i = 0; i < count; i++) {
        if (held[i].index != 0) {
            drop(held[i]);
        }
        held[i] = (weir_buffer){0};
    }
}

static void streams__at_work_keep_their_holes_and_lend_what_they_let_go(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    weir_buffer held[HELD];
    make_with_hole(r.stream, held);
    weir_usage first = usage_of(r.device);
    weir_buffer one = make(other, 4 * MIB, NULL);
    weir_usage kept = usage_of(r.device);
    assert_int_equal(kept.lends, first.lends);
    assert_int_equal(kept.moves, first.moves);
    assert_int_equal(kept.reserved_bytes, first.reserved_bytes + 4 * MIB);
    drop_all(held, HELD / 2);
    weir_buffer two = make(other, 4 * MIB, NULL);
    weir_usage lent = usage_of(r.device);
    assert_int_equal(lent.lends, kept.lends + 1);
    assert_int_equal(lent.reserved_bytes, kept.reserved_bytes);
    assert_consistent(&r);
    drop(one);
    drop(two);
    drop_all(held, HELD);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

typedef struct own_work {
    int lends;    /* after so many, an odd number... */
    int requests; /* ...the one that borrowed first makes so many */
} own_work;

/* Two streams hold 100 MiB by turns until it has gone over from one to the other
 * `lends` times, with own work of one of them; then the one that does not have it asks
 * for so much. */
static void check_after_lends(uint64_t limit_bytes, int lends, own_work own,
                              uint64_t bytes, uint64_t reserved_bytes)
{
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[2] = {r.stream, open_stream(r.device, "other")};
    assert_ok(weir_device_limit(r.device, limit_bytes));
    for (int i = 0; i <= lends; i++) {
        drop(make(streams[i % 2], 100 * MIB, NULL));
        for (int k = 0; i == own.lends && k < own.requests; k++) {
            drop(make(streams[1], MIB, NULL));
        }
    }
    drop(make(streams[(lends + 1) % 2], bytes, NULL));
    weir_usage usage = usage_of(r.device);
    bool borrowed = reserved_bytes == 100 * MIB;
    assert_int_equal(usage.lends, lends + borrowed);
    assert_int_equal(usage.reserved_bytes, reserved_bytes);
    drop(make(streams[(lends + 1) % 2], 50 * MIB, NULL)); /* once is enough for now */
    assert_int_equal(usage_of(r.device).reserved_bytes, reserved_bytes);
    assert_consistent(&r);
    assert_ok(weir_stream_close(streams[1]));
    rig_close(&r);
}

/* A twelfth of 100 MiB is 8.33 MiB. */
static void streams__that_often_borrow_get_a_little_new_memory_first(void **state)
{
    (void)state;
    const own_work none = {0};
    check_after_lends(0, 31, none, 8 * MIB, 100 * MIB); /* 15 of them its own */
    check_after_lends(0, 32, none, 8 * MIB, 108 * MIB);
    check_after_lends(0, 32, none, 10 * MIB, 100 * MIB);
    check_after_lends(100 * MIB, 32, none, 8 * MIB, 100 * MIB);
    check_after_lends(0, 32, (own_work){1, 1000}, 8 * MIB, 108 * MIB);
    check_after_lends(0, 32, (own_work){1, 1024}, 8 * MIB, 100 * MIB); /* too far apart */
    check_after_lends(0, 32, (own_work){31, 1000}, 8 * MIB, 108 * MIB);
    check_after_lends(0, 32, (own_work){31, 1024}, 8 * MIB, 100 * MIB); /* too long ago */
}

/* The other stream asks for 6 MiB when there are 2 MiB left, and 4 MiB in the hole. */
static void check_hole_is_last_resort(uint64_t capacity_bytes, uint64_t limit_bytes)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = capacity_bytes;
    sim.context_bytes = 0;
    rig r = rig_open(&sim, NULL);
    weir_stream *other = open_stream(r.device, "other");
    weir_buffer held[HELD];
    make_with_hole(r.stream, held);
    assert_ok(weir_device_limit(r.device, limit_bytes));
    weir_buffer buffer = make(other, 6 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_true(usage.moves > 0);
    assert_int_equal(usage.retries, 0);
    assert_int_equal(usage.reserved_bytes, (HELD * 4 + 2) * MIB);
    assert_consistent(&r);
    drop(buffer);
    drop_all(held, HELD);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void streams__at_work_give_their_holes_before_a_request_fails(void **state)
{
    (void)state;
    check_hole_is_last_resort((HELD * 4 + 2) * MIB, 0);
    check_hole_is_last_resort(GIB, (HELD * 4 + 2) * MIB);
}

static void check_close_gives_on(rig *r)
{
    weir_stream *ends = open_stream(r->device, "ends");
    weir_buffer buffer = make(ends, 256 * MIB, NULL);
    uint64_t address = weir_buffer_address(buffer);
    queue_work(r, ends);
    drop(buffer);
    assert_ok(weir_stream_close(ends));
    weir_usage usage = usage_of(r->device);
    assert_sums(&usage);
    assert_int_equal(usage.in_use_bytes, 0);
    weir_sim_finish_all(r->sim);
    weir_sim_ledger before = ledger_of(r);
    weir_buffer next = make(r->stream, 256 * MIB, NULL);
    weir_sim_ledger after = ledger_of(r);
    assert_int_equal(memory_calls(&before), memory_calls(&after));
    assert_int_equal(weir_buffer_address(next), address);
    drop(next);
}

static void streams__a_closed_streams_memory_serves_the_next(void **state)
{
    (void)state;
    on_both(check_close_gives_on);
}

/* No fence can be recorded when the stream closes: then Weir waits, or keeps the bytes,
 * or the stream stays; it does not hand out what queued work uses. */
static void check_close_without_fence(rig *r)
{
    weir_stream *ends = open_stream(r->device, "ends");
    weir_buffer buffer = make(ends, 256 * MIB, NULL);
    uint64_t address = weir_buffer_address(buffer), extent = weir_buffer_extent(buffer);
    queue_work(r, ends);
    drop(buffer);
    weir_sim_fail(r->sim, WEIR_SIM_OP_fence_record, UINT64_MAX, 0);
    weir_result closed = weir_stream_close(ends);
    weir_sim_fail(r->sim, WEIR_SIM_OP_fence_record, 0, 0);
    weir_buffer next = make(r->stream, 256 * MIB, NULL);
    weir_sim_ledger ledger = ledger_of(r);
    bool waited =
        ledger.calls[WEIR_SIM_OP_stream_sync] + ledger.calls[WEIR_SIM_OP_fence_wait] > 0;
    assert_true(waited || apart(next, address, extent));
    drop(next);
    weir_sim_finish_all(r->sim);
    if (closed != WEIR_OK) {
        assert_ok(weir_stream_close(ends));
    }
}

static void streams__a_close_that_cannot_record_a_fence_hands_nothing_out(void **state)
{
    (void)state;
    on_both(check_close_without_fence);
}

static void check_closed_is_waited_for(rig *r)
{
    weir_stream *ends = open_stream(r->device, "ends");
    weir_buffer buffer = make(ends, 256 * MIB, NULL);
    queue_work(r, ends);
    drop(buffer);
    assert_ok(weir_stream_close(ends));
    weir_cleanup_outcome outcome = cleanup(r->device, NULL);
    assert_true(outcome.deferred_bytes >= 256 * MIB);
    assert_string_equal(outcome.deferred_stream, "ends");
    outcome = cleanup(r->device, &(weir_cleanup_desc){.wait = true});
    assert_true(outcome.returned_bytes >= 256 * MIB);
    assert_int_equal(usage_of(r->device).reserved_bytes, 0);
}

static void streams__cleanup_waits_for_the_work_of_closed_ones(void **state)
{
    (void)state;
    on_both(check_closed_is_waited_for);
}

static void check_thousand(rig *r)
{
    static weir_stream *streams[1000];
    for (int i = 0; i < 1000; i++) {
        streams[i] = open_stream(r->device, NULL);
        drop(make(streams[i], MIB, NULL));
    }
    cleanup(r->device, NULL);
    assert_int_equal(usage_of(r->device).reserved_bytes, 0);
    weir_buffer held = make(r->stream, 64 * MIB, NULL);
    drop(make(r->stream, MIB, NULL));
    weir_sim_ledger before = ledger_of(r);
    for (int i = 0; i < 1000; i++) {
        drop(make(r->stream, MIB, NULL));
    }
    assert_driver_quiet(r, &before);
    for (uint64_t i = 0; i < 10; i++) {
        assert_ok(weir_device_tick(r->device, 1000 + i));
    }
    weir_sim_ledger after = ledger_of(r);
    assert_int_equal(memory_calls(&before), memory_calls(&after));
    assert_true(order_calls(&after) - order_calls(&before) <=
                10); /* not one per stream */
    drop(held);
    for (int i = 0; i < 1000; i++) {
        assert_ok(weir_stream_close(streams[i]));
    }
}

static void streams__a_thousand_idle_ones_cost_nothing(void **state)
{
    (void)state;
    on_both(check_thousand);
}

static void check_apart(rig *r)
{
    weir_stream *streams[20];
    for (int i = 0; i < 20; i++) {
        streams[i] = open_stream(r->device, NULL);
        drop(make(streams[i], 1000, NULL));
        assert_int_equal((uintptr_t)streams[i] % 128, 0);
    }
    for (int i = 0; i < 20; i++) {
        assert_ok(weir_stream_close(streams[i]));
    }
}

/* Else one that works would slow down its neighbours in other threads. */
static void streams__begin_cache_lines_of_their_own(void **state)
{
    (void)state;
    on_both(check_apart);
}

#define PEAK_STREAMS 20

static void hold_and_drop(weir_stream *stream, int count)
{
    weir_buffer held[8];
    for (int i = 0; i < count; i++) {
        held[i] = make(stream, MIB, NULL);
    }
    for (int i = 0; i < count; i++) {
        drop(held[i]);
    }
}

/* Nobody asks in between, so that the streams say by themselves what they hold. */
static void check_peak_of(rig *r, int count)
{
    weir_stream *streams[PEAK_STREAMS];
    for (int i = 0; i < count; i++) {
        streams[i] = open_stream(r->device, NULL);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < count; i++) {
            hold_and_drop(streams[i], 8);
        }
    }
    assert_int_equal(usage_of(r->device).peak_in_use_bytes, 8 * MIB);
    weir_buffer beside = make(streams[0], 5 * MIB, NULL);
    hold_and_drop(streams[count - 1], 8);
    drop(beside);
    hold_and_drop(streams[1], 8);
    assert_int_equal(usage_of(r->device).peak_in_use_bytes, 13 * MIB);
    for (int i = 0; i < count; i++) {
        assert_ok(weir_stream_close(streams[i]));
    }
}

static void check_peak_of_few(rig *r)
{
    check_peak_of(r, 3);
}

static void check_peak_of_many(rig *r)
{
    check_peak_of(r, PEAK_STREAMS);
}

static void streams__peak_together_only_where_they_hold_together(void **state)
{
    (void)state;
    on_both(check_peak_of_few);
    on_both(check_peak_of_many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams__lend_to_each_other_without_the_driver),
        cmocka_unit_test(streams__at_work_keep_their_holes_and_lend_what_they_let_go),
        cmocka_unit_test(streams__that_often_borrow_get_a_little_new_memory_first),
        cmocka_unit_test(streams__at_work_give_their_holes_before_a_request_fails),
        cmocka_unit_test(streams__a_closed_streams_memory_serves_the_next),
        cmocka_unit_test(streams__a_close_that_cannot_record_a_fence_hands_nothing_out),
        cmocka_unit_test(streams__cleanup_waits_for_the_work_of_closed_ones),
        cmocka_unit_test(streams__a_thousand_idle_ones_cost_nothing),
        cmocka_unit_test(streams__begin_cache_lines_of_their_own),
        cmocka_unit_test(streams__peak_together_only_where_they_hold_together),
    };
    return cmocka_run_group_tests_name("core, streams", tests, NULL, NULL);
}
