/* SPDX-License-Identifier: MIT */
/* Order: what is reusable when, what is deferred until when, and what the driver is asked
 * for it. */
#include "support.h"

#include <stdbool.h>
#include <string.h>

/* ---- one stream ---- */

static void check_own_reuse(rig *r)
{
    weir_buffer one = make(r->stream, 64 * MIB, NULL);
    uint64_t address = weir_buffer_address(one);
    queue_work(r, r->stream);
    weir_sim_ledger before = ledger_of(r);
    drop(one);
    weir_buffer two = make(r->stream, 64 * MIB, NULL);
    assert_driver_quiet(r, &before);
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

static void order__dropped_bytes_are_deferred_until_work_has_passed(void **state)
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
    assert_driver_quiet(r, &before);
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

/* What a stream borrowed and has not used yet is as old as when the lender dropped it. */
static void order__lent_memory_is_not_unmapped_under_a_forgotten_use(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *borrower = open_stream(r.device, "borrower");
    weir_stream *careless = open_stream(r.device, "careless");
    weir_buffer x = make(r.stream, 64 * MIB, NULL);
    queue_work(&r, careless); /* uses x, without saying so */
    drop(x);
    weir_buffer y = make(borrower, 32 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.lends, 1);
    assert_int_equal(usage.reserved_bytes, 64 * MIB);
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_int_equal(outcome.returned_bytes, 0);
    assert_string_equal(outcome.deferred_stream, "careless");
    finish_work(&r, careless);
    outcome = cleanup(r.device, NULL);
    assert_int_equal(outcome.returned_bytes, 32 * MIB);
    drop(y);
    assert_ok(weir_stream_close(careless));
    assert_ok(weir_stream_close(borrower));
    rig_close(&r);
}

/* A stream has been at work only since the bank got its 64 MiB: they may move, though
 * what the other stream has let go meanwhile, and is pooled with them, may not. */
static void order__what_the_bank_has_grows_no_younger_when_more_arrives(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *ends = open_stream(r.device, "ends");
    weir_stream *busy = open_stream(r.device, "busy");
    weir_stream *lender = open_stream(r.device, "lender");
    weir_buffer x = make(ends, 64 * MIB, NULL);
    weir_buffer held = make(r.stream, 2 * MIB, NULL);
    weir_buffer y = make(lender, 16 * MIB, NULL);
    drop(x);
    assert_ok(weir_stream_close(ends));
    cleanup(r.device, &(weir_cleanup_desc){.at_most_bytes = 2 * MIB});
    queue_work(&r, busy);
    drop(y);
    weir_usage before = usage_of(r.device);
    assert_int_equal(before.reserved_bytes, 80 * MIB);
    weir_buffer z = make(r.stream, 100 * MIB, NULL);
    weir_usage after = usage_of(r.device);
    assert_true(after.moves > before.moves);
    assert_true(after.reserved_bytes <= before.reserved_bytes + (100 - 62) * MIB);
    assert_consistent(&r);
    finish_work(&r, busy);
    drop(z);
    drop(held);
    assert_ok(weir_stream_close(busy));
    assert_ok(weir_stream_close(lender));
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
        cmocka_unit_test(order__dropped_bytes_are_deferred_until_work_has_passed),
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
        cmocka_unit_test(order__lent_memory_is_not_unmapped_under_a_forgotten_use),
        cmocka_unit_test(order__what_the_bank_has_grows_no_younger_when_more_arrives),
        cmocka_unit_test(order__trusted_uses_are_not_checked_with_other_streams),
        cmocka_unit_test(order__after_a_sync_nothing_is_deferred),
    };
    return cmocka_run_group_tests_name("core, order", tests, NULL, NULL);
}
