/* SPDX-License-Identifier: MIT */
/* A device that is paid by chunk: large commits come in few, and a chunk moves, is lent
 * and goes back whole. */
#include "support.h"

#define GRANULE (2 * MIB)

/* As the CUDA driver has them. */
#define CHUNK (120 * MIB)
#define HEAD (16 * MIB) /* the first chunk of a run that has several */

static rig open_chunks(uint64_t capacity_bytes)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = capacity_bytes;
    sim.context_bytes = 0;
    sim.granule_bytes = GRANULE;
    sim.chunk_bytes = CHUNK;
    return rig_open(&sim, NULL);
}

static void chunks__of_a_large_buffer_cost_a_fraction(void **state)
{
    (void)state;
    rig r = open_chunks(24 * GIB);
    weir_buffer buffer = make(r.stream, 8 * GIB, NULL);
    assert_true(ledger_of(&r).modelled_seconds < 8 * 0.0015); /* in granules: 0.14 s */
    drop(buffer);
    rig_close(&r);
}

/* One MiB of each batch of small buffers stays: two granules at most stay with it. */
static void chunks__of_small_buffers_leave_little_behind_a_survivor(void **state)
{
    (void)state;
    rig r = open_chunks(24 * GIB);
    weir_buffer buffers[256];
    for (int i = 0; i < 256; i++) {
        buffers[i] = make(r.stream, MIB, NULL);
    }
    for (int i = 0; i < 256; i++) {
        if (i != 100) {
            drop(buffers[i]);
        }
    }
    cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_true(usage_of(r.device).reserved_bytes <= 4 * MIB);
    drop(buffers[100]);
    rig_close(&r);
}

static void chunks__that_are_partly_held_are_pinned_whole(void **state)
{
    (void)state;
    rig r = open_chunks(24 * GIB);
    weir_buffer large = make(r.stream, 8 * GIB, NULL);
    drop(large);
    weir_buffer small = make(r.stream, MIB, "survivor");
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.reserved_bytes, 8 * GIB);
    assert_int_equal(usage.in_use_bytes + usage.pinned_bytes, HEAD);
    cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    usage = usage_of(r.device);
    assert_sums(&usage);
    assert_int_equal(usage.reserved_bytes, HEAD);
    assert_says(explain(r.device), "survivor");
    assert_ok(weir_device_check(r.device));
    drop(small);
    cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    rig_close(&r);
}

/* A full device, every other buffer of 64 MiB dropped: what is asked for then
 * fits only where the free ones are moved together. */
static void chunks__are_moved_whole_where_a_larger_run_is_needed(void **state)
{
    (void)state;
    rig r = open_chunks(8 * GIB);
    weir_buffer held[128];
    for (int i = 0; i < 16; i++) { /* in chunks of 64 MiB, the first one in two */
        held[i] = make(r.stream, 512 * MIB, NULL);
    }
    for (int i = 0; i < 16; i++) {
        drop(held[i]);
    }
    for (int i = 0; i < 128; i++) {
        held[i] = make(r.stream, 64 * MIB, NULL);
    }
    for (int i = 0; i < 128; i += 2) {
        drop(held[i]);
    }
    weir_buffer large = make(r.stream, 2 * GIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.reserved_bytes, 8 * GIB);
    assert_true(usage.moves > 0);
    assert_ok(weir_device_check(r.device));
    drop(large);
    for (int i = 1; i < 128; i += 2) {
        drop(held[i]);
    }
    cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    rig_close(&r);
}

/* Another stream takes a small run over: it gets the whole chunk. */
static void chunks__change_streams_whole(void **state)
{
    (void)state;
    rig r = open_chunks(8 * GIB);
    weir_stream *other = NULL;
    assert_ok(weir_stream_create(r.device, NULL, &other));
    drop(make(r.stream, 8 * GIB, NULL));
    weir_buffer small = make(other, MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.reserved_bytes, 8 * GIB);
    assert_int_equal(usage.in_use_bytes + usage.pinned_bytes, HEAD);
    assert_ok(weir_device_check(r.device));
    drop(small);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void chunks__of_their_own_make_buffers_movable(void **state)
{
    (void)state;
    rig r = open_chunks(24 * GIB);
    weir_buffer held[8];
    for (int i = 0; i < 8; i++) {
        held[i] = make(r.stream, 54 * MIB, NULL);
    }
    for (int i = 0; i < 8; i += 2) {
        drop(held[i]);
    }
    weir_sim_ledger before = ledger_of(&r);
    weir_buffer large = make(r.stream, 4 * 54 * MIB, NULL); /* four that lie apart */
    weir_sim_ledger after = ledger_of(&r);
    assert_int_equal(usage_of(r.device).reserved_bytes, 8 * 54 * MIB);
    assert_int_equal(after.calls[WEIR_SIM_OP_commit], before.calls[WEIR_SIM_OP_commit]);
    drop(large);
    for (int i = 1; i < 8; i += 2) {
        drop(held[i]);
    }
    rig_close(&r);
}

/* Two holes of one size: one is a chunk, the other lies across two. */
static void chunks__are_kept_whole_where_another_hole_does(void **state)
{
    (void)state;
    rig r = open_chunks(24 * GIB);
    weir_buffer whole = make(r.stream, 40 * MIB, NULL);
    weir_buffer wall = make(r.stream, 2 * MIB, NULL);
    weir_buffer one = make(r.stream, 40 * MIB, NULL),
                two = make(r.stream, 40 * MIB, NULL);
    drop(one);
    drop(two);
    weir_buffer left = make(r.stream, 20 * MIB, NULL);
    weir_buffer across = make(r.stream, 40 * MIB, NULL);
    weir_buffer right = make(r.stream, 20 * MIB, NULL);
    drop(across);
    drop(whole); /* at the lower address */
    weir_buffer again = make(r.stream, 40 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.pinned_bytes, 0);
    assert_int_equal(usage.releasable_bytes, 40 * MIB);
    assert_int_equal(cleanup(r.device, NULL).returned_bytes, 40 * MIB);
    weir_buffer rest[] = {wall, left, right, again};
    for (int i = 0; i < 4; i++) {
        drop(rest[i]);
    }
    rig_close(&r);
}

/* What is free lies in chunks that are too large for what is needed. */
static void chunks__too_large_to_move_go_back_before_the_peak_rises(void **state)
{
    (void)state;
    rig r = open_chunks(24 * GIB);
    weir_buffer first = make(r.stream, 100 * MIB, NULL);
    weir_buffer middle = make(r.stream, 30 * MIB, NULL);
    weir_buffer last = make(r.stream, 100 * MIB, NULL);
    drop(first);
    drop(last);
    weir_buffer large = make(r.stream, 170 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.reserved_bytes, 200 * MIB);
    assert_int_equal(usage.peak_reserved_bytes, 230 * MIB);
    assert_true(usage.pressure_bytes > 0);
    assert_ok(weir_device_check(r.device));
    drop(large);
    drop(middle);
    rig_close(&r);
}

/* Memory for a run is made in one chunk, and in more only when many requests were served.
 */
static void chunks__are_smaller_when_many_requests_share_their_price(void **state)
{
    (void)state;
    rig r = open_chunks(24 * GIB);
    weir_buffer early = make(r.stream, 64 * MIB, NULL);
    for (int i = 0; i < 64 * 32; i++) {
        drop(make(r.stream, MIB, NULL));
    }
    weir_buffer late = make(r.stream, 64 * MIB, NULL);
    drop(early);
    drop(late);
    weir_buffer one = make(r.stream, MIB, "one"), two = make(r.stream, 64 * MIB, NULL);
    cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_true(usage_of(r.device).reserved_bytes <= 64 * MIB + 4 * MIB);
    drop(one);
    drop(two);
    rig_close(&r);
}

/* After many requests a growth makes `made_bytes` behind a hole of 12 MiB at the end of
 * all memory. The next request, larger than the hole by then by 8 MiB, fits into a free
 * chunk of 64 MiB; but if one of 8 MiB is moved behind the hole, that can stay whole. How
 * many moves there were. */
static uint64_t count_moves_after(uint64_t made_bytes)
{
    rig r = open_chunks(24 * GIB);
    weir_buffer most = make(r.stream, 256 * MIB, NULL);
    weir_buffer large = make(r.stream, 64 * MIB, NULL);
    weir_buffer wall = make(r.stream, 2 * MIB, NULL);
    weir_buffer small = make(r.stream, 8 * MIB, NULL);
    weir_buffer front = make(r.stream, 20 * MIB, NULL);
    weir_buffer hole = make(r.stream, 12 * MIB, NULL);
    drop(front);
    drop(hole);
    front = make(r.stream, 20 * MIB, NULL);
    for (int i = 0; i < 11000; i++) {
        drop(make(r.stream, MIB, NULL));
    }
    drop(make(r.stream, 12 * MIB + made_bytes, NULL));
    drop(small);
    drop(large);
    assert_int_equal(usage_of(r.device).reserved_bytes, 362 * MIB + made_bytes);
    weir_buffer next = make(r.stream, 20 * MIB + made_bytes, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.reserved_bytes, 362 * MIB + made_bytes);
    weir_buffer rest[] = {most, wall, front, next};
    for (int i = 0; i < 4; i++) {
        drop(rest[i]);
    }
    rig_close(&r);
    return usage.moves;
}

/* 362 MiB / 64 is between 4 and 6 MiB. */
static void chunks__are_moved_for_a_better_place_only_after_a_large_growth(void **state)
{
    (void)state;
    assert_int_equal(count_moves_after(4 * MIB), 0);
    assert_int_equal(count_moves_after(6 * MIB), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks__of_a_large_buffer_cost_a_fraction),
        cmocka_unit_test(chunks__of_small_buffers_leave_little_behind_a_survivor),
        cmocka_unit_test(chunks__that_are_partly_held_are_pinned_whole),
        cmocka_unit_test(chunks__are_moved_whole_where_a_larger_run_is_needed),
        cmocka_unit_test(chunks__change_streams_whole),
        cmocka_unit_test(chunks__of_their_own_make_buffers_movable),
        cmocka_unit_test(chunks__are_kept_whole_where_another_hole_does),
        cmocka_unit_test(chunks__too_large_to_move_go_back_before_the_peak_rises),
        cmocka_unit_test(chunks__are_moved_for_a_better_place_only_after_a_large_growth),
        cmocka_unit_test(chunks__are_smaller_when_many_requests_share_their_price),
    };
    return cmocka_run_group_tests_name("core, chunks", tests, NULL, NULL);
}
