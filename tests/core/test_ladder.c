/* SPDX-License-Identifier: MIT */
/* The rungs of the out-of-memory ladder, each counted. */
#include "support.h"

#include <stdbool.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ladder__takes_passed_bytes_before_the_driver),
        cmocka_unit_test(ladder__waits_for_just_enough_fences),
        cmocka_unit_test(ladder__waits_for_the_work_of_closed_streams),
        cmocka_unit_test(ladder__never_waits_when_told_not_to),
        cmocka_unit_test(ladder__gives_back_just_enough_and_tries_again),
        cmocka_unit_test(ladder__moves_granules_rather_than_fail),
        cmocka_unit_test(ladder__fills_the_device_to_the_last_granule),
        cmocka_unit_test(ladder__a_limit_is_reached_only_after_giving_back),
    };
    return cmocka_run_group_tests_name("core, ladder", tests, NULL, NULL);
}
