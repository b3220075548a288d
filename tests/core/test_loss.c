/* SPDX-License-Identifier: MIT */
/* Drivers that are gone before Weir: quiet, and without any further call to them. */
#include "support.h"

#include <string.h>

static void assert_no_memory_calls_since(rig *r, const weir_sim_ledger *before)
{
    weir_sim_ledger now = ledger_of(r);
    assert_int_equal(memory_calls(&now), memory_calls(before));
}

static void assert_no_calls_since(rig *r, const weir_sim_ledger *before)
{
    weir_sim_ledger now = ledger_of(r);
    assert_int_equal(all_calls(&now), all_calls(before));
}

/* Buffers held, free, deferred and used across streams; then the driver goes. */
typedef struct wreck {
    rig r;
    weir_stream *side;
    weir_buffer held, used;
    weir_sim_ledger before;
} wreck;

static wreck make_wreck(const weir_sim_desc *sim)
{
    wreck w = {.r = rig_open(sim, NULL)};
    w.side = open_stream(w.r.device, "side");
    w.held = make(w.r.stream, 64 * MIB, "held");
    w.used = make(w.r.stream, 1 * MIB, "used");
    weir_buffer free = make(w.r.stream, 300 * MIB, "free");
    weir_buffer deferred = make(w.side, 32 * MIB, "deferred");
    drop(free);
    assert_ok(weir_buffer_use(w.used, w.side));
    queue_work(&w.r, w.side);
    drop(deferred);
    drop(w.used);
    weir_sim_shutdown(w.r.sim);
    w.before = ledger_of(&w.r);
    return w;
}

static void end_wreck(wreck *w)
{
    assert_ok(weir_stream_close(w->side));
    assert_ok(weir_device_close(w->r.device));
}

static void for_pages_and_granules(void (*test)(const weir_sim_desc *sim))
{
    weir_sim_desc plain = plain_sim(), granular = weir_sim_defaults();
    test(&plain);
    test(&granular);
}

static void no_memory_call(const weir_sim_desc *sim)
{
    wreck w = make_wreck(sim);
    drop(w.held);
    weir_sim_advance(w.r.sim, 20000);
    assert_ok(weir_device_tick(w.r.device, 0));
    weir_sim_advance(w.r.sim, 20000);
    assert_ok(weir_device_tick(w.r.device, 0));
    cleanup(w.r.device, &(weir_cleanup_desc){.wait = true});
    assert_no_memory_calls_since(&w.r, &w.before);
    end_wreck(&w);
}

static void no_memory_call_is_attempted_after_a_loss(void **state)
{
    (void)state;
    for_pages_and_granules(no_memory_call);
}

static void no_call_at_all(const weir_sim_desc *sim)
{
    wreck w = make_wreck(sim);
    assert_result(weir_device_sync(w.r.device), WEIR_DEVICE_LOST);
    weir_sim_ledger before = ledger_of(&w.r);
    weir_usage usage;
    drop(w.held);
    usage = usage_of(w.r.device);
    assert_sums(&usage);
    assert_ok(weir_device_tick(w.r.device, 0));
    cleanup(w.r.device, &(weir_cleanup_desc){.wait = true});
    (void)explain(w.r.device);
    assert_ok(weir_device_check(w.r.device));
    assert_ok(weir_stream_close(w.side));
    assert_no_calls_since(&w.r, &before);
    assert_ok(weir_device_close(w.r.device));
}

static void once_a_call_has_said_so_no_other_is_made(void **state)
{
    (void)state;
    for_pages_and_granules(no_call_at_all);
}

static void counts_as_returned(const weir_sim_desc *sim)
{
    wreck w = make_wreck(sim);
    drop(w.held);
    cleanup(w.r.device, NULL);
    weir_usage usage = usage_of(w.r.device);
    assert_sums(&usage);
    assert_int_equal(usage.reserved_bytes, 0);
    assert_int_equal(usage.driver_deferred_bytes, 0);
    end_wreck(&w);
}

static void memory_of_a_lost_device_counts_as_returned(void **state)
{
    (void)state;
    for_pages_and_granules(counts_as_returned);
}

static void refuses_requests(const weir_sim_desc *sim)
{
    wreck w = make_wreck(sim);
    weir_buffer buffer = WEIR_NO_BUFFER;
    /* Nobody has asked the driver yet; this request has to. */
    assert_result(weir_buffer_create(w.r.stream, 2 * GIB, NULL, &buffer),
                  WEIR_DEVICE_LOST);
    assert_says(weir_last_error(), "lost");
    /* There would be room for this one in what was free. */
    assert_result(weir_buffer_create(w.r.stream, 4096, NULL, &buffer), WEIR_DEVICE_LOST);
    assert_says(weir_last_error(), "close it");
    assert_result(weir_buffer_create(w.side, 4096, &(weir_buffer_desc){.tag = "late"},
                                     &buffer),
                  WEIR_DEVICE_LOST);
    assert_int_equal(buffer.index, 0);
    assert_no_memory_calls_since(&w.r, &w.before);
    drop(w.held);
    end_wreck(&w);
}

static void requests_to_a_lost_device_are_refused_with_a_text(void **state)
{
    (void)state;
    for_pages_and_granules(refuses_requests);
}

static void work_on_a_lost_device_is_refused_with_a_text(void **state)
{
    (void)state;
    wreck w = make_wreck(NULL);
    char bytes[16] = "";
    weir_stream *late = NULL;
    assert_result(weir_stream_sync(w.side), WEIR_DEVICE_LOST);
    assert_result(weir_buffer_write(w.held, 0, bytes, sizeof bytes), WEIR_DEVICE_LOST);
    assert_result(weir_buffer_read(w.held, 0, bytes, sizeof bytes), WEIR_DEVICE_LOST);
    assert_result(weir_buffer_use(w.held, w.side), WEIR_DEVICE_LOST);
    assert_result(weir_stream_create(w.r.device, NULL, &late), WEIR_DEVICE_LOST);
    assert_null(late);
    drop(w.held);
    end_wreck(&w);
}

static void a_lost_device_with_holders_is_busy_and_can_be_abandoned(void **state)
{
    (void)state;
    wreck w = make_wreck(NULL);
    assert_result(weir_device_close(w.r.device), WEIR_BUSY);
    assert_says(weir_last_error(), "held");
    assert_no_memory_calls_since(&w.r, &w.before);
    weir_device_abandon(w.r.device);
    assert_result(weir_buffer_release(w.held), WEIR_STALE);
}

static void a_device_that_is_not_lost_keeps_its_driver(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_sim_fail(r.sim, WEIR_SIM_OP_stream_test, 1, 0);
    weir_sim_fail(r.sim, WEIR_SIM_OP_commit, 1, 0);
    weir_buffer buffer = WEIR_NO_BUFFER;
    (void)weir_buffer_create(r.stream, 5 * MIB, NULL, &buffer);
    if (buffer.index == 0) {
        buffer = make(r.stream, 5 * MIB, NULL);
    }
    assert_consistent(&r);
    drop(buffer);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_call_is_attempted_after_a_loss),
        cmocka_unit_test(once_a_call_has_said_so_no_other_is_made),
        cmocka_unit_test(memory_of_a_lost_device_counts_as_returned),
        cmocka_unit_test(requests_to_a_lost_device_are_refused_with_a_text),
        cmocka_unit_test(work_on_a_lost_device_is_refused_with_a_text),
        cmocka_unit_test(a_lost_device_with_holders_is_busy_and_can_be_abandoned),
        cmocka_unit_test(a_device_that_is_not_lost_keeps_its_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
