/* SPDX-License-Identifier: MIT */
/* No host memory for slice records, with none left in any list: whatever was asked for
 * fails with a reason or is done later, and no byte is lost. */
#include "core/support.h"

#include "base/memory.h"
#include "manager/epochs.h"
#include "manager/waits.h"
#include "stream/device.h"

/* Takes the spare records of a manager, of its bank and of the process, but for a few. */
static void starve_but(wr_slab_cache *hoard, wr_manager *manager, uint32_t left)
{
    wr_manager_lock(manager);
    wr_slab_trim(&manager->cache, 0);
    wr_manager_unlock(manager);
    wr_bank_lock(manager->bank);
    wr_slab_trim(&manager->bank->cache, 0);
    wr_bank_unlock(manager->bank);
    bool more = true;
    while (more) {
        wr_host_fail_nth(1);
        more = wr_slab_fill(hoard, hoard->count + 1000);
        wr_host_fail_nth(0);
    }
    wr_slab_trim(hoard, hoard->count - (hoard->count < left ? hoard->count : left));
}

static void starve(wr_slab_cache *hoard, wr_manager *manager)
{
    starve_but(hoard, manager, 0);
}

static void feed(wr_slab_cache *hoard)
{
    wr_host_fail_nth(0);
    wr_slab_trim(hoard, 0);
}

typedef struct scene {
    rig r;
    weir_stream *other, *third;
    weir_buffer buffer, kept;
} scene;

static scene open_scene(const weir_sim_desc *sim)
{
    scene s = {.r = rig_open(sim, NULL)};
    s.other = open_stream(s.r.device, "other");
    s.third = open_stream(s.r.device, "third");
    s.kept = make(s.r.stream, MIB, NULL);
    s.buffer = make(s.r.stream, 3 * MIB, NULL);
    drop(make(s.other, 6 * MIB, NULL));
    queue_work(&s.r, s.other);
    queue_work(&s.r, s.third);
    return s;
}

static void close_scene(scene *s)
{
    assert_consistent(&s->r);
    drop(s->kept);
    assert_ok(weir_stream_close(s->other));
    assert_ok(weir_stream_close(s->third));
    rig_close(&s->r);
}

static void use__without_a_record_fails_and_changes_nothing(void **state)
{
    (void)state;
    scene s = open_scene(NULL);
    wr_slab_cache hoard = {0};
    assert_ok(weir_buffer_use(s.buffer, s.other)); /* one needs no record */
    uint32_t uses = wr_slice_get(s.buffer.index)->held.uses;
    starve(&hoard, &s.r.stream->manager);
    wr_host_fail_nth(1);
    assert_result(weir_buffer_use(s.buffer, s.third), WEIR_OUT_OF_HOST_MEMORY);
    assert_int_equal(wr_slice_get(s.buffer.index)->held.uses, uses);
    feed(&hoard);
    assert_ok(weir_buffer_use(s.buffer, s.third));
    drop(s.buffer);
    close_scene(&s);
}

static void release__without_a_record_waits_in_the_batch(void **state)
{
    (void)state;
    scene s = open_scene(NULL);
    wr_slab_cache hoard = {0};
    wr_manager *manager = &s.r.stream->manager;
    assert_ok(weir_buffer_use(s.buffer, s.other));
    starve(&hoard, manager);
    drop(s.buffer); /* never needs one */
    wr_manager_lock(manager);
    wr_host_fail_nth(1);
    wr_waits_close_batch(manager);
    wr_host_fail_nth(0);
    assert_true(manager->batch != 0);
    assert_int_equal(manager->groups, 0);
    wr_manager_unlock(manager);
    assert_consistent(&s.r);
    feed(&hoard);
    wr_manager_lock(manager);
    wr_waits_close_batch(manager);
    assert_int_equal(manager->batch, 0);
    assert_true(manager->groups != 0);
    wr_manager_unlock(manager);
    close_scene(&s);
}

static void epoch__without_a_record_stays_open(void **state)
{
    (void)state;
    scene s = open_scene(NULL);
    wr_slab_cache hoard = {0};
    wr_manager *manager = &s.r.stream->manager;
    queue_work(&s.r, s.r.stream);
    drop(s.buffer);
    starve(&hoard, manager);
    wr_manager_lock(manager);
    uint64_t epoch = manager->epoch;
    wr_host_fail_nth(1);
    wr_epochs_settle(manager, true);
    assert_int_equal(manager->epoch, epoch);
    feed(&hoard);
    wr_epochs_settle(manager, true);
    assert_int_equal(manager->epoch, epoch + 1);
    wr_manager_unlock(manager);
    close_scene(&s);
}

/* A request with `left` spare records, whose nth host call fails. Returns whether it did.
 */
static bool fails(scene *s, uint64_t bytes, uint32_t left, uint64_t nth)
{
    wr_slab_cache hoard = {0};
    weir_buffer made = {7, 8};
    starve_but(&hoard, &s->r.stream->manager, left);
    wr_host_fail_nth(nth);
    weir_result result = weir_buffer_create(s->r.stream, bytes, NULL, &made);
    feed(&hoard);
    if (result != WEIR_OK) {
        assert_true(weir_last_error()[0] != 0);
        assert_true(made.index == 7 && made.generation == 8);
    } else {
        assert_int_equal(weir_buffer_bytes(made), bytes);
        drop(made);
    }
    assert_consistent(&s->r);
    drop(make(s->r.stream, bytes, NULL)); /* nothing is broken for good */
    return result != WEIR_OK;
}

/* Requests of several sizes and a cleanup; the number of requests that failed. */
static uint64_t check_with(const weir_sim_desc *sim, uint32_t left, uint64_t nth)
{
    static const uint64_t sizes[] = {3 * MIB, 40 * MIB, 700 * KIB, 6 * MIB};
    uint64_t failures = 0;
    wr_slab_cache hoard = {0};
    scene s = open_scene(sim);
    drop(s.buffer);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        failures += fails(&s, sizes[i], left, nth);
    }
    starve_but(&hoard, &s.r.stream->manager, left);
    wr_host_fail_nth(nth);
    (void)weir_device_memory_cleanup(s.r.device, NULL, NULL);
    feed(&hoard);
    close_scene(&s);
    return failures;
}

static void check_requests(const weir_sim_desc *sim)
{
    uint64_t failures = 0;
    for (uint64_t nth = 1; nth <= 6; nth++) {
        failures += check_with(sim, 0, nth);
    }
    assert_true(failures > 0);
    for (uint32_t left = 2; left < 160; left += 8) { /* enough for a part of the way */
        check_with(sim, left, 1 + left / 2 % 3);
    }
}

static void request__without_records_fails_and_leaves_nothing_in_granules(void **state)
{
    (void)state;
    check_requests(NULL);
}

static void request__without_records_fails_and_leaves_nothing_in_pages(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    check_requests(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(use__without_a_record_fails_and_changes_nothing),
        cmocka_unit_test(release__without_a_record_waits_in_the_batch),
        cmocka_unit_test(epoch__without_a_record_stays_open),
        cmocka_unit_test(request__without_records_fails_and_leaves_nothing_in_granules),
        cmocka_unit_test(request__without_records_fails_and_leaves_nothing_in_pages),
    };
    return cmocka_run_group_tests_name("manager, no records", tests, NULL, NULL);
}
