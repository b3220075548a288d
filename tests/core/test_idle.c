/* SPDX-License-Identifier: MIT */
/* Idle reclaim under a clock that the test moves. */
#define _POSIX_C_SOURCE 200809L
#include "support.h"

#include "manager/cleanup.h"
#include "stream/device.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define IDLE_MS 5000

static uint64_t reserved(rig *r)
{
    return usage_of(r->device).reserved_bytes;
}

/* Ticks twice a second from `*now` until nothing is reserved; how long that took. */
static uint64_t idle_until_returned(rig *r, uint64_t *now)
{
    uint64_t start = *now;
    while (reserved(r) != 0 && *now - start < 200000) {
        *now += 500;
        assert_ok(weir_device_tick(r->device, *now));
        assert_consistent(r);
    }
    return *now - start;
}

static void quiet_time(rig *r, uint64_t *now, uint64_t ms)
{
    for (uint64_t end = *now + ms; *now < end;) {
        *now += 500;
        assert_ok(weir_device_tick(r->device, *now));
    }
}

static void idle__memory_goes_back_after_idle_ms_and_not_before(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    uint64_t now = 1000;
    assert_ok(weir_device_tick(r.device, now));
    drop(make(r.stream, 64 * MIB, NULL));
    uint64_t took = idle_until_returned(&r, &now);
    assert_true(took >= IDLE_MS - 500);
    assert_true(took <= IDLE_MS + 1000);
    assert_true(usage_of(r.device).idle_bytes >= 64 * MIB);
    rig_close(&r);
}

/* Such bytes are in no pool, and no tick brings them back. */
static void idle__a_driver_that_does_not_let_go_keeps_nobody_awake(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    sim.lets_go = WEIR_SIM_LETS_GO_NEVER;
    rig r = rig_open(&sim, NULL);
    uint64_t now = 1000;
    for (int round = 0; round < 2; round++) {
        drop(make(r.stream, 64 * MIB, NULL));
        assert_ok(weir_device_memory_cleanup(r.device, NULL, NULL));
        assert_true(wr_idle_has_work(&r.device->bank)); /* it is worth a try */
        quiet_time(&r, &now, 5000);
        assert_true(usage_of(r.device).driver_deferred_bytes > 0);
        assert_false(wr_idle_has_work(&r.device->bank));
    }
    rig_close(&r);
}

static void idle__drives_equal_bytes_each_time_that_they_come(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    sim.lets_go = WEIR_SIM_LETS_GO_AFTER_WORK;
    rig r = rig_open(&sim, NULL);
    uint64_t now = 1000;
    for (int round = 0; round < 10; round++) {
        drop(make(r.stream, 64 * MIB, NULL));
        assert_ok(weir_device_memory_cleanup(r.device, NULL, NULL));
        assert_true(usage_of(r.device).driver_deferred_bytes > 0);
        quiet_time(&r, &now, 500);
        assert_int_equal(usage_of(r.device).driver_deferred_bytes, 0);
        assert_false(wr_idle_has_work(&r.device->bank));
    }
    rig_close(&r);
}

static void idle__drives_as_long_as_work_comes_first(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    sim.lets_go = WEIR_SIM_LETS_GO_AFTER_WORK;
    rig r = rig_open(&sim, NULL);
    uint64_t now = 1000;
    drop(make(r.stream, 64 * MIB, NULL));
    assert_ok(weir_device_memory_cleanup(r.device, NULL, NULL));
    weir_driver_stream stream = weir_stream_driver_stream(r.stream);
    assert_ok(weir_sim_queue(r.sim, stream));
    quiet_time(&r, &now, 60000);
    assert_true(usage_of(r.device).driver_deferred_bytes > 0);
    assert_true(wr_idle_has_work(&r.device->bank));
    weir_sim_finish(r.sim, stream);
    quiet_time(&r, &now, 500);
    assert_int_equal(usage_of(r.device).driver_deferred_bytes, 0);
    rig_close(&r);
}

static void idle__a_cleanup_wakes_the_thread_to_drive_the_driver(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    sim.lets_go = WEIR_SIM_LETS_GO_AFTER_WORK;
    rig r = rig_open(&sim, &(weir_device_desc){.idle_ms = 40, .keep_bytes = 64 * MIB});
    drop(make(r.stream, 64 * MIB, NULL));
    for (int i = 0; i < 2000 && WR_GET(r.device->bank.parked) == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(WR_GET(r.device->bank.parked), 1);
    assert_ok(weir_device_memory_cleanup(r.device,
                                         &(weir_cleanup_desc){.keep_none = true}, NULL));
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    for (int i = 0; i < 2000 && usage_of(r.device).driver_deferred_bytes > 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(usage_of(r.device).driver_deferred_bytes, 0);
    rig_close(&r);
}

static void idle__the_sims_clock_counts_when_no_time_is_given(void **state)
{
    (void)state;
    rig r = rig_open(NULL, &(weir_device_desc){.no_thread = true, .idle_ms = 200});
    assert_ok(weir_device_tick(r.device, 0));
    drop(make(r.stream, 64 * MIB, NULL));
    assert_ok(weir_device_tick(r.device, 0));
    assert_true(reserved(&r) >= 64 * MIB);
    for (int i = 0; i < 12; i++) {
        weir_sim_advance(r.sim, 100);
        assert_ok(weir_device_tick(r.device, 0));
    }
    assert_int_equal(reserved(&r), 0);
    rig_close(&r);
}

static void idle__can_be_turned_off(void **state)
{
    (void)state;
    rig r = rig_open(NULL, &(weir_device_desc){.no_thread = true, .no_idle = true});
    uint64_t now = 1000;
    assert_ok(weir_device_tick(r.device, now));
    drop(make(r.stream, 64 * MIB, NULL));
    quiet_time(&r, &now, 60000);
    assert_true(reserved(&r) >= 64 * MIB);
    rig_close(&r);
}

static void idle__keeps_the_devices_floor(void **state)
{
    (void)state;
    weir_device_desc options = {.no_thread = true, .keep_bytes = 32 * MIB};
    rig r = rig_open(NULL, &options);
    uint64_t now = 1000;
    assert_ok(weir_device_tick(r.device, now));
    drop(make(r.stream, 128 * MIB, NULL));
    quiet_time(&r, &now, 60000);
    assert_int_equal(reserved(&r), 32 * MIB);
    rig_close(&r);
}

static void idle__takes_deferred_bytes_once_their_work_has_passed(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *side = open_stream(r.device, "side");
    uint64_t now = 1000;
    assert_ok(weir_device_tick(r.device, now));
    weir_buffer buffer = make(r.stream, 64 * MIB, NULL);
    assert_ok(weir_buffer_use(buffer, side));
    queue_work(&r, side);
    drop(buffer);
    quiet_time(&r, &now, 60000);
    assert_true(usage_of(r.device).deferred_bytes >= 64 * MIB);
    finish_work(&r, side);
    quiet_time(&r, &now, 60000);
    assert_int_equal(reserved(&r), 0);
    assert_int_equal(usage_of(r.device).fence_waits, 0);
    assert_ok(weir_stream_close(side));
    rig_close(&r);
}

/* The same work every second, or every four: after warm-up no memory call reaches the
 * driver. */
static void check_steady_loop(const weir_sim_desc *sim, uint64_t period_ms)
{
    rig r = rig_open(sim, NULL);
    uint64_t now = 1000, settled = 0;
    for (int step = 0; step < 60; step++) {
        weir_buffer weights = make(r.stream, 33 * MIB, NULL);
        weir_buffer small = make(r.stream, 1000, NULL);
        weir_buffer more = make(r.stream, 64 * MIB, NULL);
        drop(weights);
        drop(more);
        drop(small);
        for (uint64_t end = now + period_ms; now < end;) {
            now += 500;
            assert_ok(weir_device_tick(r.device, now));
        }
        weir_sim_ledger ledger = ledger_of(&r);
        if (step == 5) {
            settled = memory_calls(&ledger);
        } else if (step > 5) {
            assert_int_equal(memory_calls(&ledger), settled);
        }
    }
    rig_close(&r);
}

static void idle__what_a_steady_loop_uses_is_never_returned(void **state)
{
    (void)state;
    weir_sim_desc plain = plain_sim();
    check_steady_loop(NULL, 500);
    check_steady_loop(NULL, 4000);
    check_steady_loop(&plain, 500);
    check_steady_loop(&plain, 4000);
}

static void idle__a_loop_beside_it_does_not_keep_unused_memory(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    uint64_t now = 1000;
    assert_ok(weir_device_tick(r.device, now));
    drop(make(r.stream, GIB, NULL)); /* once, at the start */
    for (int step = 0; step < 40; step++) {
        drop(make(r.stream, 8 * MIB, NULL));
        quiet_time(&r, &now, 500);
    }
    assert_true(reserved(&r) >= 8 * MIB);
    assert_true(reserved(&r) <= 16 * MIB);
    rig_close(&r);
}

static void idle__what_is_soon_asked_for_again_waits_longer(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    uint64_t now = 1000;
    assert_ok(weir_device_tick(r.device, now));
    uint64_t took[8];
    for (int i = 0; i < 8; i++) {
        drop(make(r.stream, 64 * MIB, NULL));
        took[i] = idle_until_returned(&r, &now);
        assert_int_equal(reserved(&r), 0);
        now += 500;
        assert_ok(weir_device_tick(r.device, now));
    }
    assert_true(took[0] <= IDLE_MS + 1000);
    assert_true(took[1] > took[0] + IDLE_MS / 2);
    assert_true(took[3] > took[1] + IDLE_MS / 2);
    for (int i = 0; i < 8; i++) {
        assert_true(took[i] <= 8 * IDLE_MS + 1000);
    }
    /* It halves again while nobody asks. */
    quiet_time(&r, &now, 20 * 8 * IDLE_MS);
    drop(make(r.stream, 64 * MIB, NULL));
    assert_true(idle_until_returned(&r, &now) <= IDLE_MS + 1000);
    rig_close(&r);
}

static void idle__a_clock_that_stands_or_goes_back_changes_nothing(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_device_tick(r.device, 100000));
    drop(make(r.stream, 64 * MIB, NULL));
    for (int i = 0; i < 20; i++) {
        assert_ok(weir_device_tick(r.device, 100000));
        assert_ok(weir_device_tick(r.device, 50000));
    }
    assert_true(reserved(&r) >= 64 * MIB);
    assert_consistent(&r);
    rig_close(&r);
}

static void idle__nothing_releasable_costs_no_driver_call(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, 64 * MIB, NULL);
    uint64_t now = 1000;
    assert_ok(weir_device_tick(r.device, now));
    weir_sim_ledger before = ledger_of(&r);
    quiet_time(&r, &now, 100000);
    weir_sim_ledger after = ledger_of(&r);
    assert_int_equal(memory_calls(&before), memory_calls(&after));
    drop(held);
    rig_close(&r);
}

/* How often the process's threads of that name have gone to sleep. */
static uint64_t count_sleeps(const char *name)
{
    uint64_t sleeps = 0;
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        char path[300], line[128];
        bool is_it = false;
        snprintf(path, sizeof path, "/proc/self/task/%.200s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            unsigned long long number;
            is_it |= strncmp(line, "Name:", 5) == 0 && strstr(line, name) != NULL;
            if (is_it && sscanf(line, "voluntary_ctxt_switches: %llu", &number) == 1) {
                sleeps += number;
            }
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(threads);
    return sleeps;
}

/* Its step is 75 s, so it can sleep only once, but for locks that it has to wait for. */
static void
idle__a_loop_that_frees_nothing_whole_does_not_keep_the_thread_awake(void **state)
{
    (void)state;
    enum { RELEASES = 1000 };
    const weir_device_desc desc = {.idle_ms = 600000};
    weir_device *device;
    assert_ok(weir_device_open("sim", &desc, &device));
    weir_stream *stream = weir_device_default_stream(device);
    weir_buffer held = make(stream, 4096, NULL);
    for (int i = 0; i < RELEASES; i++) {
        drop(make(stream, 4096, NULL));
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    assert_true(count_sleeps("weir-reclaim") < RELEASES / 10);
    drop(held);
    assert_ok(weir_device_close(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle__memory_goes_back_after_idle_ms_and_not_before),
        cmocka_unit_test(idle__a_driver_that_does_not_let_go_keeps_nobody_awake),
        cmocka_unit_test(idle__drives_equal_bytes_each_time_that_they_come),
        cmocka_unit_test(idle__drives_as_long_as_work_comes_first),
        cmocka_unit_test(idle__a_cleanup_wakes_the_thread_to_drive_the_driver),
        cmocka_unit_test(idle__the_sims_clock_counts_when_no_time_is_given),
        cmocka_unit_test(idle__can_be_turned_off),
        cmocka_unit_test(idle__keeps_the_devices_floor),
        cmocka_unit_test(idle__takes_deferred_bytes_once_their_work_has_passed),
        cmocka_unit_test(idle__what_a_steady_loop_uses_is_never_returned),
        cmocka_unit_test(idle__a_loop_beside_it_does_not_keep_unused_memory),
        cmocka_unit_test(idle__what_is_soon_asked_for_again_waits_longer),
        cmocka_unit_test(idle__a_clock_that_stands_or_goes_back_changes_nothing),
        cmocka_unit_test(idle__nothing_releasable_costs_no_driver_call),
        cmocka_unit_test(
            idle__a_loop_that_frees_nothing_whole_does_not_keep_the_thread_awake),
    };
    return cmocka_run_group_tests_name("core, idle", tests, NULL, NULL);
}
