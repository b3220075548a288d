/* SPDX-License-Identifier: MIT */
/* Giving memory back on request: explicit cleanup with its options and outcome,
 * survivors, persistent pages. */
#include "support.h"

#include <stdbool.h>
#include <string.h>

static uint64_t reserved(rig *r)
{
    return usage_of(r->device).reserved_bytes;
}

/* ---- floors and bounds ---- */

static void cleanup__gives_back_what_nobody_holds(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    drop(make(r.stream, 256 * MIB, NULL));
    weir_usage before = settled_usage(r.device);
    assert_int_equal(before.releasable_bytes, before.reserved_bytes);
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_int_equal(outcome.returned_bytes, before.reserved_bytes);
    assert_int_equal(outcome.deferred_bytes, 0);
    assert_int_equal(outcome.pinned_bytes, 0);
    assert_int_equal(outcome.kept_bytes, 0);
    assert_int_equal(outcome.driver_deferred_bytes, 0);
    weir_usage after = usage_of(r.device);
    assert_int_equal(after.reserved_bytes, 0);
    assert_int_equal(after.explicit_bytes, before.reserved_bytes);
    assert_int_equal(after.peak_reserved_bytes, before.reserved_bytes);
    rig_close(&r);
}

static void cleanup__stops_at_the_floor(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    drop(make(r.stream, 256 * MIB, NULL));
    uint64_t before = settled_usage(r.device).reserved_bytes;
    weir_cleanup_desc desc = {.keep_bytes = 100 * MIB};
    weir_cleanup_outcome outcome = cleanup(r.device, &desc);
    assert_int_equal(reserved(&r), 100 * MIB);
    assert_int_equal(outcome.returned_bytes, before - 100 * MIB);
    assert_int_equal(outcome.kept_bytes, 100 * MIB);

    desc.keep_bytes = 33 * MIB; /* not a whole number of granules: the next one above */
    cleanup(r.device, &desc);
    assert_int_equal(reserved(&r), 34 * MIB);
    desc.keep_bytes = GIB; /* more than there is */
    outcome = cleanup(r.device, &desc);
    assert_int_equal(outcome.returned_bytes, 0);
    assert_int_equal(reserved(&r), 34 * MIB);
    rig_close(&r);
}

static void cleanup__of_whole_pages_stops_before_the_floor_is_crossed(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    rig r = rig_open(&sim, NULL);
    weir_buffer buffers[8];
    for (int i = 0; i < 8; i++) {
        buffers[i] = make(r.stream, 64 * MIB, NULL);
    }
    for (int i = 0; i < 8; i++) {
        drop(buffers[i]);
    }
    uint64_t before = settled_usage(r.device).reserved_bytes;
    weir_cleanup_outcome outcome =
        cleanup(r.device, &(weir_cleanup_desc){.keep_bytes = 100 * MIB});
    assert_true(reserved(&r) >= 100 * MIB);
    assert_true(reserved(&r) < before);
    assert_int_equal(outcome.returned_bytes, before - reserved(&r));
    assert_int_equal(outcome.kept_bytes, reserved(&r));
    rig_close(&r);
}

static void cleanup__keeps_the_devices_floor_unless_told(void **state)
{
    (void)state;
    weir_device_desc options = {.no_thread = true, .keep_bytes = 32 * MIB};
    rig r = rig_open(NULL, &options);
    drop(make(r.stream, 128 * MIB, NULL));
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_int_equal(reserved(&r), 32 * MIB);
    assert_int_equal(outcome.kept_bytes, 32 * MIB);
    outcome = cleanup(r.device, &(weir_cleanup_desc){.keep_bytes = 16 * MIB});
    assert_int_equal(reserved(&r), 16 * MIB);
    outcome = cleanup(r.device, &(weir_cleanup_desc){.keep_none = true});
    assert_int_equal(outcome.returned_bytes, 16 * MIB);
    assert_int_equal(reserved(&r), 0);
    rig_close(&r);
}

static void cleanup__never_returns_more_than_at_most(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    drop(make(r.stream, 64 * MIB, NULL));
    const uint64_t bounds[] = {1, 2 * MIB - 1, 2 * MIB, 3 * MIB, 10 * MIB, 64 * MIB, GIB};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        uint64_t before = settled_usage(r.device).reserved_bytes;
        weir_cleanup_outcome outcome =
            cleanup(r.device, &(weir_cleanup_desc){.at_most_bytes = bounds[i]});
        uint64_t whole = bounds[i] / (2 * MIB) * (2 * MIB);
        assert_int_equal(outcome.returned_bytes, whole < before ? whole : before);
        assert_int_equal(reserved(&r), before - outcome.returned_bytes);
        assert_int_equal(outcome.kept_bytes, reserved(&r));
    }
    assert_int_equal(reserved(&r), 0);
    rig_close(&r);
}

/* Two buffers are dropped with time between; the one dropped first goes first. Which one
 * stayed is seen from where the next request of that size lands without a driver call. */
static void check_longest_idle_first(const weir_sim_desc *sim, uint64_t bytes,
                                     bool first_made_first_dropped)
{
    rig r = rig_open(sim, &(weir_device_desc){.no_thread = true, .no_idle = true});
    weir_buffer one = make(r.stream, bytes, NULL);
    weir_buffer two = make(r.stream, bytes, NULL);
    weir_buffer first = first_made_first_dropped ? one : two;
    weir_buffer second = first_made_first_dropped ? two : one;
    uint64_t stays = weir_buffer_address(second);
    uint64_t second_extent = weir_buffer_extent(second);
    assert_ok(weir_device_tick(r.device, 1000));
    drop(first);
    assert_ok(weir_device_tick(r.device, 2000));
    assert_ok(weir_device_tick(r.device, 3000));
    drop(second);
    assert_ok(weir_device_tick(r.device, 4000));
    assert_ok(weir_device_sync(r.device));
    weir_cleanup_outcome outcome =
        cleanup(r.device, &(weir_cleanup_desc){.at_most_bytes = second_extent});
    assert_true(outcome.returned_bytes > 0);
    weir_sim_ledger before = ledger_of(&r);
    weir_buffer next = make(r.stream, bytes, NULL);
    weir_sim_ledger after = ledger_of(&r);
    assert_int_equal(memory_calls(&before), memory_calls(&after));
    assert_int_equal(weir_buffer_address(next), stays);
    drop(next);
    rig_close(&r);
}

static void cleanup__returns_the_longest_idle_first(void **state)
{
    (void)state;
    weir_sim_desc plain = plain_sim();
    check_longest_idle_first(NULL, 8 * MIB, true);
    check_longest_idle_first(NULL, 8 * MIB, false);
    check_longest_idle_first(&plain, 100 * MIB, true);
    check_longest_idle_first(&plain, 100 * MIB, false);
}

/* Whether a request of that size is served at that address, without the driver. */
static bool is_still_there(rig *r, uint64_t bytes, uint64_t address)
{
    weir_sim_ledger before = ledger_of(r);
    weir_buffer next = make(r->stream, bytes, NULL);
    weir_sim_ledger after = ledger_of(r);
    bool there = weir_buffer_address(next) == address &&
                 memory_calls(&before) == memory_calls(&after);
    drop(next);
    return there;
}

/* Three runs between held buffers. What has been idle longest goes first, however large;
 * of what has been idle as long, the smallest. */
static void cleanup__of_runs_idle_as_long_returns_the_smallest_first(void **state)
{
    (void)state;
    const uint64_t sizes[] = {16 * MIB, 4 * MIB, 8 * MIB};
    rig r = rig_open(NULL, &(weir_device_desc){.no_thread = true, .no_idle = true});
    weir_buffer runs[3], walls[3];
    uint64_t addresses[3];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            runs[i] = make(r.stream, sizes[i], NULL);
            walls[i] = make(r.stream, 2 * MIB, NULL);
            addresses[i] = weir_buffer_address(runs[i]);
        }
        uint64_t now = 10000 * (uint64_t)(round + 1);
        assert_ok(weir_device_tick(r.device, now));
        drop(runs[0]);
        assert_ok(weir_device_tick(r.device, now + 1000 * (uint64_t)round));
        drop(runs[1]);
        drop(runs[2]);
        int first = round == 0 ? 1 : 0;
        weir_cleanup_outcome outcome =
            cleanup(r.device, &(weir_cleanup_desc){.at_most_bytes = sizes[first]});
        assert_int_equal(outcome.returned_bytes, sizes[first]);
        for (int i = 0; i < 3; i++) {
            assert_true(i == first || is_still_there(&r, sizes[i], addresses[i]));
        }
        for (int i = 0; i < 3; i++) {
            drop(walls[i]);
        }
        cleanup(r.device, NULL);
        assert_int_equal(reserved(&r), 0);
    }
    rig_close(&r);
}

/* ---- what stays, and why ---- */

static void cleanup__names_the_stream_that_bytes_wait_for(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *side = open_stream(r.device, "sidework");
    weir_buffer buffer = make(r.stream, 64 * MIB, NULL);
    assert_ok(weir_buffer_use(buffer, side));
    queue_work(&r, side);
    drop(buffer);
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_true(outcome.deferred_bytes >= 64 * MIB);
    assert_string_equal(outcome.deferred_stream, "sidework");
    assert_true(reserved(&r) >= 64 * MIB);
    assert_says(explain(r.device), "sidework");
    assert_int_equal(usage_of(r.device).fence_waits, 0);
    finish_work(&r, side);
    outcome = cleanup(r.device, NULL);
    assert_true(outcome.returned_bytes >= 64 * MIB);
    assert_int_equal(outcome.deferred_bytes, 0);
    assert_int_equal(reserved(&r), 0);
    assert_ok(weir_stream_close(side));
    rig_close(&r);
}

static void cleanup__waits_for_fences_when_asked(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *side = open_stream(r.device, "side");
    weir_buffer buffer = make(r.stream, 64 * MIB, NULL);
    assert_ok(weir_buffer_use(buffer, side));
    queue_work(&r, side);
    queue_work(&r, r.stream);
    drop(buffer);
    weir_cleanup_outcome outcome = cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_true(outcome.returned_bytes >= 64 * MIB);
    assert_int_equal(outcome.deferred_bytes, 0);
    assert_int_equal(reserved(&r), 0);
    assert_int_equal(ledger_of(&r).device_syncs, 0);
    assert_ok(weir_stream_close(side));
    rig_close(&r);
}

static void cleanup__names_the_buffer_that_pins_most(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    rig r = rig_open(&sim, &(weir_device_desc){.no_thread = true, .preset = "adaptive"});
    weir_buffer live = make(r.stream, 1000, "survivor"); /* in an 8 MiB page */
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_int_equal(outcome.returned_bytes, 0);
    assert_true(outcome.pinned_bytes >= 8 * MIB - 4096);
    assert_int_equal(outcome.pinned_by_bytes, 1000);
    assert_string_equal(outcome.pinned_by_tag, "survivor");
    assert_true(outcome.pinned_by.index == live.index &&
                outcome.pinned_by.generation == live.generation);
    assert_int_equal(usage_of(r.device).pinned_bytes, outcome.pinned_bytes);
    assert_says(explain(r.device), "survivor");
    drop(live);
    outcome = cleanup(r.device, NULL);
    assert_int_equal(outcome.returned_bytes, 8 * MIB);
    assert_int_equal(outcome.pinned_bytes, 0);
    assert_int_equal(outcome.pinned_by_bytes, 0);
    rig_close(&r);
}

static void cleanup__leaves_one_survivor_its_granules_only(void **state)
{
    (void)state;
    weir_device *device = NULL;
    assert_ok(weir_device_open("host", &(weir_device_desc){.no_thread = true}, &device));
    weir_stream *stream = weir_device_default_stream(device);
    static char filling[4 * 1024 * 1024];
    memset(filling, 7, sizeof filling);
    weir_buffer buffers[64];
    for (int i = 0; i < 64; i++) {
        buffers[i] = make(stream, 4 * MIB, i == 29 ? "survivor" : "batch");
        assert_ok(weir_buffer_write(buffers[i], 0, filling, sizeof filling));
    }
    for (int i = 0; i < 64; i++) {
        if (i != 29) {
            drop(buffers[i]);
        }
    }
    weir_cleanup_outcome outcome = cleanup(device, &(weir_cleanup_desc){.wait = true});
    weir_usage usage = usage_of(device);
    assert_sums(&usage);
    assert_true(usage.reserved_bytes >= 4 * MIB);
    assert_true(usage.reserved_bytes <= 8 * MIB);
    assert_true(outcome.returned_bytes >= 63 * 4 * MIB - 4 * MIB);
    assert_says(explain(device), "survivor");
    char read[16] = {0};
    assert_ok(weir_buffer_read(buffers[29], 4 * MIB - 16, read, 16));
    for (int i = 0; i < 16; i++) {
        assert_int_equal(read[i], 7);
    }
    assert_ok(weir_device_check(device));
    drop(buffers[29]);
    cleanup(device, &(weir_cleanup_desc){.wait = true});
    assert_int_equal(usage_of(device).reserved_bytes, 0);
    assert_ok(weir_device_close(device));
}

/* The peak is freed 99 % at random: exactly the granules of the survivors stay. */
static void cleanup__leaves_exactly_the_granules_of_scattered_survivors(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    static weir_buffer buffers[3000];
    static bool granule[(3000 * 400 / 2048 + 64) * 4];
    uint64_t random = 5;
    for (unsigned i = 0; i < 3000; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        buffers[i] = make(r.stream, 70 * KIB + (random >> 33) % (600 * KIB), "scattered");
    }
    uint64_t lowest = UINT64_MAX;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t address = weir_buffer_address(buffers[i]);
        lowest = address < lowest ? address : lowest;
    }
    lowest = lowest / (2 * MIB);
    uint64_t survivors_granules = 0;
    for (unsigned i = 0; i < 3000; i++) {
        if (i % 100 != 37) {
            drop(buffers[i]);
            continue;
        }
        uint64_t first = weir_buffer_address(buffers[i]) / (2 * MIB) - lowest;
        uint64_t last =
            (weir_buffer_address(buffers[i]) + weir_buffer_extent(buffers[i]) - 1) /
                (2 * MIB) -
            lowest;
        for (uint64_t g = first; g <= last; g++) {
            assert_true(g < sizeof granule / sizeof granule[0]);
            survivors_granules += !granule[g];
            granule[g] = true;
        }
    }
    cleanup(r.device, NULL);
    assert_int_equal(reserved(&r), survivors_granules * 2 * MIB);
    assert_consistent(&r);
    for (unsigned i = 37; i < 3000; i += 100) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

static void cleanup__says_what_the_driver_has_not_let_go(void **state)
{
    (void)state;
    weir_sim_desc sim = weir_sim_defaults();
    sim.lets_go = WEIR_SIM_LETS_GO_ON_PROGRESS;
    rig r = rig_open(&sim, NULL);
    drop(make(r.stream, 64 * MIB, NULL));
    weir_cleanup_outcome outcome = cleanup(r.device, NULL);
    assert_true(outcome.returned_bytes >= 64 * MIB);
    assert_int_equal(outcome.driver_deferred_bytes, outcome.returned_bytes);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.reserved_bytes, 0);
    assert_int_equal(usage.driver_deferred_bytes, outcome.returned_bytes);
    assert_consistent(&r);
    outcome = cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_int_equal(outcome.returned_bytes, 0);
    assert_int_equal(outcome.driver_deferred_bytes, 0);
    assert_int_equal(usage_of(r.device).driver_deferred_bytes, 0);
    rig_close(&r);
}

static void cleanup__ends_its_wait_when_the_driver_never_lets_go(void **state)
{
    (void)state;
    weir_sim_desc sim = weir_sim_defaults();
    sim.lets_go = WEIR_SIM_LETS_GO_NEVER;
    rig r = rig_open(&sim, NULL);
    drop(make(r.stream, 64 * MIB, NULL));
    weir_cleanup_outcome outcome = cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_true(outcome.returned_bytes >= 64 * MIB);
    assert_int_equal(outcome.driver_deferred_bytes, outcome.returned_bytes);
    rig_close(&r);
}

static void cleanup__returns_unheld_persistent_pages(void **state)
{
    (void)state;
    weir_sim_desc plain = plain_sim();
    const weir_sim_desc *sims[] = {NULL, &plain};
    for (int i = 0; i < 2; i++) {
        rig r = rig_open(sims[i], NULL);
        weir_buffer_desc desc = {.persistent = true, .tag = "weights"};
        weir_buffer one, two;
        assert_ok(weir_buffer_create(r.stream, 30 * MIB, &desc, &one));
        assert_ok(weir_buffer_create(r.stream, 20 * MIB, &desc, &two));
        drop(one);
        uint64_t before = reserved(&r);
        weir_cleanup_outcome outcome = cleanup(r.device, NULL);
        assert_true(outcome.returned_bytes >= 30 * MIB);
        assert_int_equal(reserved(&r), before - outcome.returned_bytes);
        assert_true(reserved(&r) >= 20 * MIB);
        assert_consistent(&r);
        drop(two);
        rig_close(&r);
    }
}

static void persistent__a_page_is_reused_by_equal_sizes_only(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer_desc desc = {.persistent = true};
    weir_buffer one, two, three;
    assert_ok(weir_buffer_create(r.stream, 30 * MIB, &desc, &one));
    uint64_t address = weir_buffer_address(one);
    drop(one);
    assert_ok(weir_buffer_create(r.stream, 28 * MIB, &desc, &two));
    assert_true(weir_buffer_address(two) != address);
    weir_buffer usual = make(r.stream, 30 * MIB, NULL);
    assert_true(weir_buffer_address(usual) != address);
    assert_ok(weir_buffer_create(r.stream, 30 * MIB, &desc, &three));
    assert_int_equal(weir_buffer_address(three), address);
    assert_consistent(&r);
    drop(two);
    drop(three);
    drop(usual);
    rig_close(&r);
}

static void persistent__alignment_is_honoured(void **state)
{
    (void)state;
    weir_sim_desc plain = plain_sim();
    const weir_sim_desc *sims[] = {NULL, &plain};
    for (int i = 0; i < 2; i++) {
        rig r = rig_open(sims[i], NULL);
        weir_buffer buffers[12];
        for (unsigned k = 0; k < 12; k++) {
            weir_buffer_desc desc = {.persistent = true, .alignment_bytes = 512ULL << k};
            assert_ok(weir_buffer_create(r.stream, 5 * MIB / 3 + k, &desc, &buffers[k]));
            assert_int_equal(weir_buffer_address(buffers[k]) % desc.alignment_bytes, 0);
            assert_consistent(&r);
        }
        for (unsigned k = 0; k < 12; k++) {
            drop(buffers[k]);
        }
        rig_close(&r);
    }
}

static void cleanup__serves_all_streams(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[20];
    for (int i = 0; i < 20; i++) {
        streams[i] = open_stream(r.device, NULL);
        drop(make(streams[i], 1000, NULL));
        drop(make(streams[i], 5 * MIB, NULL));
    }
    cleanup(r.device, NULL);
    assert_int_equal(reserved(&r), 0);
    for (int i = 0; i < 20; i++) {
        assert_ok(weir_stream_close(streams[i]));
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cleanup__gives_back_what_nobody_holds),
        cmocka_unit_test(cleanup__stops_at_the_floor),
        cmocka_unit_test(cleanup__of_whole_pages_stops_before_the_floor_is_crossed),
        cmocka_unit_test(cleanup__keeps_the_devices_floor_unless_told),
        cmocka_unit_test(cleanup__never_returns_more_than_at_most),
        cmocka_unit_test(cleanup__returns_the_longest_idle_first),
        cmocka_unit_test(cleanup__of_runs_idle_as_long_returns_the_smallest_first),
        cmocka_unit_test(cleanup__names_the_stream_that_bytes_wait_for),
        cmocka_unit_test(cleanup__waits_for_fences_when_asked),
        cmocka_unit_test(cleanup__names_the_buffer_that_pins_most),
        cmocka_unit_test(cleanup__leaves_one_survivor_its_granules_only),
        cmocka_unit_test(cleanup__leaves_exactly_the_granules_of_scattered_survivors),
        cmocka_unit_test(cleanup__says_what_the_driver_has_not_let_go),
        cmocka_unit_test(cleanup__ends_its_wait_when_the_driver_never_lets_go),
        cmocka_unit_test(cleanup__returns_unheld_persistent_pages),
        cmocka_unit_test(persistent__a_page_is_reused_by_equal_sizes_only),
        cmocka_unit_test(persistent__alignment_is_honoured),
        cmocka_unit_test(cleanup__serves_all_streams),
    };
    return cmocka_run_group_tests_name("core, cleanup", tests, NULL, NULL);
}
