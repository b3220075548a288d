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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams__lend_to_each_other_without_the_driver),
        cmocka_unit_test(streams__a_closed_streams_memory_serves_the_next),
        cmocka_unit_test(streams__a_close_that_cannot_record_a_fence_hands_nothing_out),
        cmocka_unit_test(streams__cleanup_waits_for_the_work_of_closed_ones),
        cmocka_unit_test(streams__a_thousand_idle_ones_cost_nothing),
    };
    return cmocka_run_group_tests_name("core, streams", tests, NULL, NULL);
}
