/* SPDX-License-Identifier: MIT */
/* Order: what is reusable when, what is deferred until when, what the driver is asked for
 * it, memory on its way between streams, and the rungs of the out-of-memory ladder. */
#include "support.h"

#include <stdbool.h>
#include <string.h>

static bool apart(weir_buffer one, uint64_t address, uint64_t extent)
{
    uint64_t begin = weir_buffer_address(one);
    return begin + weir_buffer_extent(one) <= address || address + extent <= begin;
}

static void check_driver_quiet(rig *r, const weir_sim_ledger *before)
{
    weir_sim_ledger now = ledger_of(r);
    assert_int_equal(memory_calls(&now), memory_calls(before));
    assert_int_equal(order_calls(&now), order_calls(before));
}

/* Each test of this file runs with granules and with whole pages. */
static void on_both(void (*check)(rig *r))
{
    weir_sim_desc plain = plain_sim();
    const weir_sim_desc *sims[] = {NULL, &plain};
    for (int i = 0; i < 2; i++) {
        rig r = rig_open(sims[i], NULL);
        check(&r);
        assert_consistent(&r);
        rig_close(&r);
    }
}

/* ---- one stream ---- */

static void check_own_reuse(rig *r)
{
    weir_buffer one = make(r->stream, 64 * MIB, NULL);
    uint64_t address = weir_buffer_address(one);
    queue_work(r, r->stream);
    weir_sim_ledger before = ledger_of(r);
    drop(one);
    weir_buffer two = make(r->stream, 64 * MIB, NULL);
    check_driver_quiet(r, &before);
    assert_int_equal(weir_buffer_address(two), address);
    drop(two);
}

static void order__on_its_own_stream_a_slice_is_reusable_at_once(void **state)
{
    (void)state;
    on_both(check_own_reuse);
}

static void check_own_deferred(rig *r)
{
    weir_buffer buffer = make(r->stream, 64 * MIB, NULL);
    queue_work(r, r->stream);
    drop(buffer);
    weir_usage usage = usage_of(r->device);
    assert_sums(&usage);
    assert_int_equal(usage.in_use_bytes, 0);
    assert_true(usage.deferred_bytes >= 64 * MIB);
    weir_cleanup_outcome outcome = cleanup(r->device, NULL);
    assert_int_equal(outcome.returned_bytes, 0);
    assert_true(outcome.deferred_bytes >= 64 * MIB);
    finish_work(r, r->stream);
    outcome = cleanup(r->device, NULL);
    assert_true(outcome.returned_bytes >= 64 * MIB);
    usage = usage_of(r->device);
    assert_int_equal(usage.reserved_bytes, 0);
    assert_int_equal(usage.fence_waits, 0);
}

static void
order__dropped_bytes_are_deferred_until_the_streams_work_has_passed(void **state)
{
    (void)state;
    on_both(check_own_deferred);
}

static void check_own_not_elsewhere(rig *r)
{
    weir_stream *other = open_stream(r->device, "other");
    weir_buffer one = make(r->stream, 64 * MIB, NULL);
    uint64_t address = weir_buffer_address(one), extent = weir_buffer_extent(one);
    queue_work(r, r->stream);
    drop(one);
    weir_buffer two = make(other, 64 * MIB, NULL);
    assert_true(apart(two, address, extent));
    assert_int_equal(usage_of(r->device).fence_waits, 0);
    drop(two);
    assert_ok(weir_stream_close(other));
    finish_work(r, r->stream);
}

static void order__another_stream_does_not_get_bytes_that_queued_work_uses(void **state)
{
    (void)state;
    on_both(check_own_not_elsewhere);
}

/* A program on one stream makes the driver test and record nothing once its sizes are
 * known. */
static void check_one_stream_silent(rig *r)
{
    weir_sim_ledger before = ledger_of(r);
    for (unsigned i = 0; i < 1000; i++) {
        weir_buffer buffer = make(r->stream, (1 + i % 10 * 17) * MIB, NULL);
        queue_work(r, r->stream);
        drop(buffer);
        if (i == 20) {
            before = ledger_of(r);
        }
    }
    check_driver_quiet(r, &before);
    weir_sim_finish_all(r->sim);
}

static void order__one_stream_alone_costs_no_fence(void **state)
{
    (void)state;
    on_both(check_one_stream_silent);
}

/* ---- uses on other streams ---- */

static void check_cross_use(rig *r)
{
    weir_stream *copy = open_stream(r->device, "copy");
    weir_stream *third = open_stream(r->device, "third");
    weir_buffer x = make(r->stream, 64 * MIB, NULL);
    uint64_t address = weir_buffer_address(x), extent = weir_buffer_extent(x);
    assert_ok(weir_buffer_use(x, copy));
    queue_work(r, copy);
    drop(x);
    weir_usage usage = usage_of(r->device);
    assert_sums(&usage);
    assert_int_equal(usage.in_use_bytes, 0);
    assert_true(usage.deferred_bytes >= 64 * MIB);

    weir_buffer y = make(r->stream, 64 * MIB, NULL);
    weir_buffer t = make(third, 64 * MIB, NULL);
    assert_true(apart(y, address, extent));
    assert_true(apart(t, address, extent));
    usage = usage_of(r->device);
    assert_true(usage.deferred_bytes >= 64 * MIB);
    assert_int_equal(usage.fence_waits, 0);
    assert_int_equal(ledger_of(r).calls[WEIR_SIM_OP_fence_wait], 0);

    finish_work(r, copy);
    uint64_t reserved = usage_of(r->device).reserved_bytes;
    weir_buffer z = make(r->stream, 64 * MIB, NULL);
    assert_int_equal(usage_of(r->device).reserved_bytes, reserved);
    assert_int_equal(weir_buffer_address(z), address);
    drop(y);
    drop(t);
    drop(z);
    assert_ok(weir_stream_close(copy));
    assert_ok(weir_stream_close(third));
}

static void order__bytes_used_elsewhere_wait_for_that_stream(void **state)
{
    (void)state;
    on_both(check_cross_use);
}

static void check_release_covers_later_work(rig *r)
{
    weir_stream *copy = open_stream(r->device, "copy");
    weir_buffer x = make(r->stream, 64 * MIB, NULL);
    uint64_t address = weir_buffer_address(x), extent = weir_buffer_extent(x);
    assert_ok(weir_buffer_use(x, copy));
    finish_work(r, copy);
    queue_work(r, copy); /* after the declaration, before the release */
    drop(x);
    weir_buffer y = make(r->stream, 64 * MIB, NULL);
    assert_true(apart(y, address, extent));
    finish_work(r, copy);
    drop(y);
    assert_ok(weir_stream_close(copy));
}

static void order__a_release_covers_all_work_queued_up_to_it(void **state)
{
    (void)state;
    on_both(check_release_covers_later_work);
}

static void check_many_users(rig *r)
{
    weir_stream *users[6];
    weir_buffer x = make(r->stream, 64 * MIB, NULL);
    uint64_t address = weir_buffer_address(x), extent = weir_buffer_extent(x);
    for (int i = 0; i < 6; i++) {
        users[i] = open_stream(r->device, NULL);
        assert_ok(weir_buffer_use(x, users[i]));
        assert_ok(weir_buffer_use(x, users[i])); /* said twice is said once */
        queue_work(r, users[i]);
    }
    drop(x);
    weir_buffer held[6];
    for (int i = 0; i < 6; i++) {
        held[i] = make(r->stream, 64 * MIB, NULL);
        assert_true(apart(held[i], address, extent));
        finish_work(r, users[i]);
    }
    weir_buffer last = make(r->stream, 64 * MIB, NULL);
    assert_int_equal(weir_buffer_address(last), address);
    drop(last);
    for (int i = 0; i < 6; i++) {
        drop(held[i]);
        assert_ok(weir_stream_close(users[i]));
    }
}

static void order__bytes_used_by_many_streams_wait_for_all_of_them(void **state)
{
    (void)state;
    on_both(check_many_users);
}

static void check_use_orders_the_device(rig *r)
{
    weir_stream *other = open_stream(r->device, "other");
    weir_buffer x = make(r->stream, MIB, NULL);
    queue_work(r, r->stream);
    weir_sim_ledger before = ledger_of(r);
    assert_ok(weir_buffer_use(x, other));
    weir_sim_ledger after = ledger_of(r);
    assert_int_equal(after.calls[WEIR_SIM_OP_stream_wait],
                     before.calls[WEIR_SIM_OP_stream_wait] + 1);
    assert_int_equal(after.calls[WEIR_SIM_OP_fence_wait], 0);
    assert_int_equal(after.calls[WEIR_SIM_OP_stream_sync], 0);
    assert_ok(weir_buffer_use(x, r->stream)); /* its own: nothing to order */
    assert_int_equal(ledger_of(r).calls[WEIR_SIM_OP_stream_wait],
                     after.calls[WEIR_SIM_OP_stream_wait]);
    drop(x);
    weir_sim_finish_all(r->sim);
    assert_ok(weir_stream_close(other));
}

static void order__a_use_makes_the_other_stream_wait_on_the_device_only(void **state)
{
    (void)state;
    on_both(check_use_orders_the_device);
}

static void check_batches(rig *r)
{
    weir_stream *side = open_stream(r->device, "side");
    static weir_buffer buffers[256];
    for (int i = 0; i < 256; i++) {
        buffers[i] = make(r->stream, 4 * KIB, NULL);
        assert_ok(weir_buffer_use(buffers[i], side));
    }
    queue_work(r, side);
    weir_sim_ledger before = ledger_of(r);
    uint64_t counted = usage_of(r->device).fences;
    for (int i = 0; i < 256; i++) {
        drop(buffers[i]);
    }
    drop(make(r->stream, 4 * KIB, NULL)); /* closes what is open */
    uint64_t recorded = ledger_of(r).calls[WEIR_SIM_OP_fence_record] -
                        before.calls[WEIR_SIM_OP_fence_record];
    assert_true(recorded >= 1);
    assert_true(recorded <= 256 / 64 + 1);
    assert_int_equal(usage_of(r->device).fences - counted, recorded);
    assert_ok(weir_device_check(r->device));
    finish_work(r, side);
    assert_ok(weir_stream_close(side));
}

static void order__releases_share_one_fence_in_batches(void **state)
{
    (void)state;
    on_both(check_batches);
}

static void check_tick_closes_batches(rig *r)
{
    weir_stream *side = open_stream(r->device, "side");
    weir_buffer buffer = make(r->stream, 4 * MIB, NULL);
    assert_ok(weir_buffer_use(buffer, side));
    queue_work(r, side);
    drop(buffer);
    assert_ok(weir_device_tick(r->device, 1000));
    uint64_t recorded = ledger_of(r).calls[WEIR_SIM_OP_fence_record];
    assert_true(recorded >= 1);
    queue_work(r, side); /* later work does not hold it back */
    assert_int_equal(usage_of(r->device).fence_waits, 0);
    weir_sim_finish_all(r->sim);
    assert_ok(weir_stream_close(side));
}

static void order__a_tick_closes_the_batch(void **state)
{
    (void)state;
    on_both(check_tick_closes_batches);
}

static void check_close_with_uses(rig *r)
{
    weir_stream *user = open_stream(r->device, "user");
    weir_buffer x = make(r->stream, 64 * MIB, NULL);
    uint64_t address = weir_buffer_address(x), extent = weir_buffer_extent(x);
    assert_ok(weir_buffer_use(x, user));
    queue_work(r, user);
    assert_ok(weir_stream_close(user));
    weir_stream *next = open_stream(r->device, "next"); /* may stand where user stood */
    drop(x);
    assert_true(usage_of(r->device).deferred_bytes >= 64 * MIB);
    weir_buffer y = make(r->stream, 64 * MIB, NULL);
    assert_true(apart(y, address, extent));
    weir_sim_finish_all(r->sim);
    weir_buffer z = make(r->stream, 64 * MIB, NULL);
    assert_int_equal(weir_buffer_address(z), address);
    drop(y);
    drop(z);
    assert_ok(weir_stream_close(next));
    cleanup(r->device, &(weir_cleanup_desc){.wait = true});
    assert_int_equal(usage_of(r->device).reserved_bytes, 0);
}

static void order__a_user_stream_may_close_before_the_release(void **state)
{
    (void)state;
    on_both(check_close_with_uses);
}

/* ---- undeclared uses ---- */

static void order__memory_is_not_unmapped_under_a_forgotten_use(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *careless = open_stream(r.device, "careless");
    weir_buffer x = make(r.stream, 64 * MIB, NULL);
    queue_work(&r, careless); /* uses x, without saying so */
    drop(x);
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_int_equal(outcome.returned_bytes, 0);
    assert_true(outcome.deferred_bytes >= 64 * MIB);
    assert_string_equal(outcome.deferred_stream, "careless");
    finish_work(&r, careless);
    outcome = cleanup(r.device, NULL);
    assert_true(outcome.returned_bytes >= 64 * MIB);
    assert_ok(weir_stream_close(careless));
    rig_close(&r);
}

static void order__trusted_uses_are_not_checked_with_other_streams(void **state)
{
    (void)state;
    rig r = rig_open(NULL, &(weir_device_desc){.no_thread = true, .trust_uses = true});
    weir_stream *unrelated = open_stream(r.device, "unrelated");
    weir_buffer x = make(r.stream, 64 * MIB, NULL);
    queue_work(&r, unrelated);
    drop(x);
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_true(outcome.returned_bytes >= 64 * MIB);
    finish_work(&r, unrelated);
    assert_ok(weir_stream_close(unrelated));
    rig_close(&r);
}

/* ---- between streams ---- */

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
    check_driver_quiet(r, &before);
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

/* ---- the ladder ---- */

static weir_sim_desc small_sim(uint64_t granule_bytes)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = GIB;
    sim.context_bytes = 0;
    sim.granule_bytes = granule_bytes;
    return sim;
}

static void ladder__takes_passed_bytes_before_the_driver(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *side = open_stream(r.device, "side");
    weir_buffer x = make(r.stream, 64 * MIB, NULL);
    assert_ok(weir_buffer_use(x, side));
    queue_work(&r, side);
    drop(x);
    finish_work(&r, side);
    weir_sim_ledger before = ledger_of(&r);
    weir_buffer y = make(r.stream, 64 * MIB, NULL);
    weir_sim_ledger after = ledger_of(&r);
    assert_int_equal(memory_calls(&before), memory_calls(&after));
    assert_int_equal(usage_of(r.device).stalls, 0);
    drop(y);
    assert_ok(weir_stream_close(side));
    rig_close(&r);
}

static void check_ladder_waits(uint64_t granule_bytes)
{
    weir_sim_desc sim = small_sim(granule_bytes);
    rig r = rig_open(&sim, NULL);
    weir_stream *streams[4];
    for (int i = 0; i < 4; i++) {
        streams[i] = open_stream(r.device, NULL);
        weir_buffer x = make(streams[i], 240 * MIB, NULL);
        queue_work(&r, streams[i]);
        drop(x);
    }
    weir_usage before = usage_of(r.device);
    assert_true(before.deferred_bytes >= 960 * MIB);
    weir_buffer y = make(r.stream, 200 * MIB, NULL);
    weir_usage after = usage_of(r.device);
    assert_int_equal(after.stalls, before.stalls + 1);
    assert_true(after.fence_waits >= before.fence_waits + 1);
    assert_true(after.fence_waits <= before.fence_waits + 2); /* just enough */
    assert_int_equal(after.ooms, 0);
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_stream_sync], 0);
    assert_true(after.deferred_bytes >= 2 * 240 * MIB);
    assert_consistent(&r);
    drop(y);
    weir_sim_finish_all(r.sim);
    for (int i = 0; i < 4; i++) {
        assert_ok(weir_stream_close(streams[i]));
    }
    rig_close(&r);
}

static void ladder__waits_for_just_enough_fences(void **state)
{
    (void)state;
    check_ladder_waits(2 * MIB);
    check_ladder_waits(0);
}

static void check_waits_for_closed(uint64_t granule_bytes)
{
    weir_sim_desc sim = small_sim(granule_bytes);
    rig r = rig_open(&sim, NULL);
    weir_stream *ends = open_stream(r.device, "ends");
    weir_buffer buffer = make(ends, 800 * MIB, NULL);
    queue_work(&r, ends);
    drop(buffer);
    assert_ok(weir_stream_close(ends));
    buffer = make(r.stream, 800 * MIB, NULL);
    assert_int_equal(usage_of(r.device).stalls, 1);
    assert_consistent(&r);
    drop(buffer);
    rig_close(&r);
}

static void ladder__waits_for_the_work_of_closed_streams(void **state)
{
    (void)state;
    check_waits_for_closed(2 * MIB);
    check_waits_for_closed(0);
}

static void check_no_wait(uint64_t granule_bytes)
{
    weir_sim_desc sim = small_sim(granule_bytes);
    rig r = rig_open(&sim, &(weir_device_desc){.no_thread = true, .no_wait = true});
    weir_stream *side = open_stream(r.device, "side");
    weir_buffer x = make(side, 800 * MIB, NULL);
    queue_work(&r, side);
    drop(x);
    weir_usage before = usage_of(r.device);
    weir_buffer y = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(r.stream, 800 * MIB, NULL, &y), WEIR_OUT_OF_MEMORY);
    assert_says(weir_last_error(), "deferred");
    weir_usage after = usage_of(r.device);
    assert_same_bytes(&before, &after);
    assert_int_equal(after.ooms, 1);
    assert_int_equal(after.fence_waits, 0);
    assert_int_equal(after.stalls, 0);
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_fence_wait], 0);
    finish_work(&r, side);
    y = make(r.stream, 800 * MIB, NULL);
    assert_int_equal(usage_of(r.device).ooms, 1);
    drop(y);
    assert_ok(weir_stream_close(side));
    rig_close(&r);
}

static void ladder__never_waits_when_told_not_to(void **state)
{
    (void)state;
    check_no_wait(2 * MIB);
    check_no_wait(0);
}

static void ladder__gives_back_just_enough_and_tries_again(void **state)
{
    (void)state;
    weir_sim_desc sim = small_sim(0);
    rig r = rig_open(&sim, NULL);
    weir_buffer buffers[8];
    for (int i = 0; i < 8; i++) {
        buffers[i] = make(r.stream, 100 * MIB, NULL);
    }
    for (int i = 0; i < 8; i++) {
        drop(buffers[i]);
    }
    /* No page of 100 MiB holds it: some go back, not all. */
    weir_buffer y = make(r.stream, 400 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_true(usage.pressure_bytes >= 100 * MIB);
    assert_true(usage.pressure_bytes <= 400 * MIB);
    assert_true(usage.retries >= 1);
    assert_int_equal(usage.ooms, 0);
    assert_true(usage.reserved_bytes >= 800 * MIB);
    assert_consistent(&r);
    drop(y);
    rig_close(&r);
}

static void ladder__moves_granules_rather_than_fail(void **state)
{
    (void)state;
    weir_sim_desc sim = small_sim(2 * MIB);
    rig r = rig_open(&sim, NULL);
    weir_buffer buffers[64];
    for (int i = 0; i < 64; i++) {
        buffers[i] = make(r.stream, 16 * MIB, NULL);
    }
    for (int i = 0; i < 64; i += 2) {
        drop(buffers[i]);
    }
    /* 512 MiB are free, in holes of 16. */
    weir_buffer y = make(r.stream, 500 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.ooms, 0);
    assert_true(usage.reserved_bytes <= GIB);
    assert_consistent(&r);
    for (int i = 1; i < 64; i += 2) {
        drop(buffers[i]);
    }
    drop(y);
    rig_close(&r);
}

static void ladder__fills_the_device_to_the_last_granule(void **state)
{
    (void)state;
    weir_sim_desc sim = small_sim(2 * MIB);
    rig r = rig_open(&sim, NULL);
    static weir_buffer buffers[512];
    for (int i = 0; i < 512; i++) {
        buffers[i] = make(r.stream, 2 * MIB, NULL);
    }
    weir_buffer out = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(r.stream, 2 * MIB, NULL, &out), WEIR_OUT_OF_MEMORY);
    assert_consistent(&r);
    drop(buffers[77]);
    buffers[77] = make(r.stream, 2 * MIB, NULL);
    for (int i = 0; i < 512; i++) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

static void ladder__a_limit_is_reached_only_after_giving_back(void **state)
{
    (void)state;
    rig r =
        rig_open(NULL, &(weir_device_desc){.no_thread = true, .limit_bytes = 256 * MIB});
    weir_stream *other = open_stream(r.device, "other");
    drop(make(r.stream, 100 * MIB, NULL));
    drop(make(other, 100 * MIB, NULL));
    weir_buffer whole = make(r.stream, 250 * MIB, NULL);
    assert_true(usage_of(r.device).reserved_bytes <= 256 * MIB);
    weir_buffer out = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(other, 32 * MIB, NULL, &out), WEIR_LIMIT);
    assert_int_equal(usage_of(r.device).limits, 1);
    assert_int_equal(usage_of(r.device).ooms, 0);
    drop(whole);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

/* ---- sync ---- */

static void check_sync(rig *r)
{
    weir_stream *other = open_stream(r->device, "other");
    weir_buffer x = make(other, 64 * MIB, NULL);
    queue_work(r, other);
    drop(x);
    assert_ok(weir_stream_sync(other));
    weir_usage usage = usage_of(r->device);
    assert_int_equal(usage.deferred_bytes, 0);
    assert_int_equal(usage.releasable_bytes, usage.reserved_bytes);
    assert_ok(weir_stream_close(other));
}

static void order__after_a_sync_nothing_is_deferred(void **state)
{
    (void)state;
    on_both(check_sync);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order__on_its_own_stream_a_slice_is_reusable_at_once),
        cmocka_unit_test(
            order__dropped_bytes_are_deferred_until_the_streams_work_has_passed),
        cmocka_unit_test(order__another_stream_does_not_get_bytes_that_queued_work_uses),
        cmocka_unit_test(order__one_stream_alone_costs_no_fence),
        cmocka_unit_test(order__bytes_used_elsewhere_wait_for_that_stream),
        cmocka_unit_test(order__a_release_covers_all_work_queued_up_to_it),
        cmocka_unit_test(order__bytes_used_by_many_streams_wait_for_all_of_them),
        cmocka_unit_test(order__a_use_makes_the_other_stream_wait_on_the_device_only),
        cmocka_unit_test(order__releases_share_one_fence_in_batches),
        cmocka_unit_test(order__a_tick_closes_the_batch),
        cmocka_unit_test(order__a_user_stream_may_close_before_the_release),
        cmocka_unit_test(order__memory_is_not_unmapped_under_a_forgotten_use),
        cmocka_unit_test(order__trusted_uses_are_not_checked_with_other_streams),
        cmocka_unit_test(order__after_a_sync_nothing_is_deferred),
        cmocka_unit_test(streams__lend_to_each_other_without_the_driver),
        cmocka_unit_test(streams__a_closed_streams_memory_serves_the_next),
        cmocka_unit_test(streams__a_close_that_cannot_record_a_fence_hands_nothing_out),
        cmocka_unit_test(streams__cleanup_waits_for_the_work_of_closed_ones),
        cmocka_unit_test(streams__a_thousand_idle_ones_cost_nothing),
        cmocka_unit_test(ladder__takes_passed_bytes_before_the_driver),
        cmocka_unit_test(ladder__waits_for_just_enough_fences),
        cmocka_unit_test(ladder__waits_for_the_work_of_closed_streams),
        cmocka_unit_test(ladder__never_waits_when_told_not_to),
        cmocka_unit_test(ladder__gives_back_just_enough_and_tries_again),
        cmocka_unit_test(ladder__moves_granules_rather_than_fail),
        cmocka_unit_test(ladder__fills_the_device_to_the_last_granule),
        cmocka_unit_test(ladder__a_limit_is_reached_only_after_giving_back),
    };
    return cmocka_run_group_tests_name("core, order", tests, NULL, NULL);
}
