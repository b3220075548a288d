/* SPDX-License-Identifier: MIT */
/* Waits beyond the ordinary: more streams than one record lists, more fences than a batch
 * notes, more epochs than the ring has, counters that run over. */
#include "core/support.h"

#include "manager/epochs.h"
#include "manager/uses.h"
#include "manager/waits.h"
#include "stream/device.h"

#define MANY 75 /* streams: more than WR_BATCH_MAX fences, more than 7 sets of uses */

static uint64_t deferred(rig *r)
{
    return usage_of(r->device).deferred_bytes;
}

static void open_many(rig *r, weir_stream **streams, int count)
{
    for (int i = 0; i < count; i++) {
        streams[i] = open_stream(r->device, NULL);
    }
}

static void close_many(weir_stream **streams, int count)
{
    for (int i = 0; i < count; i++) {
        assert_ok(weir_stream_close(streams[i]));
    }
}

static void uses__by_many_streams_are_all_waited_for_in_any_order(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[MANY];
    open_many(&r, streams, MANY);
    weir_buffer buffer = make(r.stream, 4 * MIB, NULL);
    for (int i = 0; i < MANY; i++) {
        assert_ok(weir_buffer_use(buffer, streams[i]));
        assert_ok(weir_buffer_use(buffer, streams[i])); /* twice is once */
        queue_work(&r, streams[i]);
    }
    wr_slice *slice = wr_slice_get(buffer.index);
    for (int i = 0; i < MANY; i++) {
        assert_true(wr_uses_has(slice, streams[i]->manager.slot));
    }
    assert_false(wr_uses_has(slice, r.stream->manager.slot));
    drop(buffer);
    assert_consistent(&r);
    for (int i = 0; i < MANY; i++) { /* odd ones first */
        assert_ok(weir_device_tick(r.device, 0));
        assert_true(deferred(&r) >= 4 * MIB);
        assert_consistent(&r);
        finish_work(&r, streams[(2 * i + 1) % MANY]);
    }
    for (int i = 0; i < 10 && deferred(&r) > 0; i++) {
        cleanup(r.device, NULL);
        assert_consistent(&r);
    }
    assert_int_equal(deferred(&r), 0);
    close_many(streams, MANY);
    rig_close(&r);
}

static void uses__can_be_taken_back_one_by_one(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, MIB, NULL);
    wr_manager *manager = &r.stream->manager;
    wr_slice *slice = wr_slice_get(buffer.index);
    wr_manager_lock(manager);
    uint32_t spares = manager->cache.count;
    for (uint32_t slot = 10; slot < 40; slot++) {
        assert_ok(wr_uses_add(manager, slice, slot));
    }
    wr_uses_remove(manager, slice, 99); /* not there */
    for (uint32_t i = 0; i < 30; i++) {
        uint32_t slot = 10 + i * 7 % 30;
        assert_true(wr_uses_has(slice, slot));
        wr_uses_remove(manager, slice, slot);
        for (uint32_t j = 0; j < 30; j++) {
            assert_int_equal(wr_uses_has(slice, 10 + j * 7 % 30), j > i);
        }
    }
    assert_int_equal(slice->held.uses, 0);
    assert_true(manager->cache.count >= spares); /* no record is lost */
    assert_ok(wr_uses_add(manager, slice, 5));
    wr_uses_remove(manager, slice, 6);
    assert_true(wr_uses_has(slice, 5));
    wr_uses_remove(manager, slice, 5);
    assert_int_equal(slice->held.uses, 0);
    wr_manager_unlock(manager);
    drop(buffer);
    rig_close(&r);
}

static void batch__of_slices_with_many_uses_shares_its_fences(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[MANY];
    weir_buffer buffers[8];
    open_many(&r, streams, MANY);
    for (int b = 0; b < 8; b++) {
        buffers[b] = make(r.stream, MIB, NULL);
        for (int i = 0; i < MANY; i++) {
            assert_ok(weir_buffer_use(buffers[b], streams[(i + b) % MANY]));
        }
    }
    for (int i = 0; i < MANY; i++) {
        queue_work(&r, streams[i]);
    }
    uint64_t before = ledger_of(&r).calls[WEIR_SIM_OP_fence_record];
    for (int b = 0; b < 8; b++) {
        drop(buffers[b]);
    }
    assert_ok(weir_device_tick(r.device, 0));
    /* each slice's last set goes first: at most 10 streams each, most of them shared */
    uint64_t recorded = ledger_of(&r).calls[WEIR_SIM_OP_fence_record] - before;
    assert_in_range(recorded, 1, MANY);
    assert_true(deferred(&r) >= 8 * MIB);
    assert_consistent(&r);
    weir_sim_finish_all(r.sim);
    for (int i = 0; i < 20 && deferred(&r) > 0; i++) {
        cleanup(r.device, NULL);
    }
    assert_int_equal(deferred(&r), 0);
    close_many(streams, MANY);
    rig_close(&r);
}

static void batch__with_more_streams_than_it_notes_waits_for_all(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[MANY];
    weir_buffer buffers[MANY];
    open_many(&r, streams, MANY);
    for (int i = 0; i < MANY; i++) {
        buffers[i] = make(r.stream, MIB, NULL);
        assert_ok(weir_buffer_use(buffers[i], streams[i]));
        assert_ok(weir_buffer_use(buffers[i], streams[(i + 1) % MANY]));
        queue_work(&r, streams[i]);
    }
    wr_manager *manager = &r.stream->manager;
    /* drops that find the lock taken come as one batch, which may have any length */
    wr_lock_take(&manager->lock);
    for (int i = 0; i < MANY; i++) {
        drop(buffers[i]);
    }
    wr_lock_leave(&manager->lock);
    assert_true(deferred(&r) >= MANY * MIB);
    assert_consistent(&r);
    assert_ok(weir_device_tick(r.device, 0));
    assert_true(deferred(&r) >= MANY * MIB);
    for (int i = 0; i + 1 < MANY; i++) {
        finish_work(&r, streams[i]);
    }
    cleanup(r.device, NULL);
    assert_true(deferred(&r) >= 2 * MIB); /* those that the last stream uses */
    assert_consistent(&r);
    finish_work(&r, streams[MANY - 1]);
    cleanup(r.device, NULL);
    assert_int_equal(deferred(&r), 0);
    close_many(streams, MANY);
    rig_close(&r);
}

static void epochs__stay_open_while_the_ring_is_full(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    wr_manager *manager = &r.stream->manager;
    queue_work(&r, r.stream);
    for (unsigned i = 0; i < 2 * WR_EPOCH_SLOTS; i++) {
        drop(make(r.stream, MIB, NULL));
        wr_manager_lock(manager);
        wr_epochs_settle(manager, true);
        wr_manager_unlock(manager);
        assert_true(manager->epoch - manager->passed <= WR_EPOCH_SLOTS);
    }
    assert_int_equal(manager->epoch - manager->passed, WR_EPOCH_SLOTS); /* one is open */
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_fence_record], WR_EPOCH_SLOTS - 1);
    assert_true(manager->dirty);
    assert_true(deferred(&r) >= MIB);
    assert_consistent(&r);
    finish_work(&r, r.stream);
    cleanup(r.device, NULL);
    assert_int_equal(deferred(&r), 0);
    assert_false(manager->dirty);
    assert_true(wr_waits_is_quiet(manager));
    rig_close(&r);
}

static void polls__are_counted_past_the_largest_number(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    wr_manager *manager = &r.stream->manager;
    weir_buffer buffer = make(r.stream, MIB, NULL);
    assert_ok(weir_buffer_use(buffer, other));
    queue_work(&r, other);
    drop(buffer);
    wr_manager_lock(manager);
    wr_waits_close_batch(manager);
    manager->polls = UINT32_MAX - 1;
    assert_false(wr_waits_poll(manager));
    assert_int_equal(manager->polls, UINT32_MAX);
    assert_false(wr_waits_poll(manager));
    assert_int_equal(manager->polls, 1); /* 0 would be no poll */
    wr_manager_unlock(manager);
    finish_work(&r, other);
    wr_manager_lock(manager);
    assert_true(wr_waits_poll(manager));
    wr_manager_unlock(manager);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void count__names_the_stream_of_what_is_not_fenced_yet(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[3];
    uint64_t bytes[8] = {0};
    open_many(&r, streams, 3);
    weir_buffer one = make(r.stream, MIB, NULL), two = make(r.stream, 2 * MIB, NULL);
    assert_ok(weir_buffer_use(one, streams[0]));
    assert_ok(weir_buffer_use(two, streams[1]));
    assert_ok(weir_buffer_use(two, streams[2]));
    for (int i = 0; i < 3; i++) {
        queue_work(&r, streams[i]);
    }
    drop(one);
    drop(two);
    wr_manager *manager = &r.stream->manager;
    wr_manager_lock(manager);
    assert_true(manager->batch != 0);
    wr_waits_count(manager, bytes, 8);
    wr_manager_unlock(manager);
    assert_int_equal(bytes[streams[0]->manager.slot], MIB);
    assert_int_equal(bytes[streams[1]->manager.slot] + bytes[streams[2]->manager.slot],
                     2 * MIB);
    weir_sim_finish_all(r.sim);
    close_many(streams, 3);
    rig_close(&r);
}

static void fence__that_cannot_be_recorded_leaves_the_slice_in_the_batch(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[12];
    open_many(&r, streams, 12);
    weir_buffer buffer = make(r.stream, MIB, NULL);
    for (int i = 0; i < 12; i++) {
        assert_ok(weir_buffer_use(buffer, streams[i]));
        queue_work(&r, streams[i]);
    }
    drop(buffer);
    for (uint64_t good = 0; good < 12; good++) {
        weir_sim_fail(r.sim, WEIR_SIM_OP_fence_record, 1, good);
        assert_ok(weir_device_tick(r.device, 0));
        weir_sim_fail(r.sim, WEIR_SIM_OP_fence_record, 0, 0);
        assert_true(deferred(&r) >= MIB);
        assert_consistent(&r);
    }
    weir_sim_finish_all(r.sim);
    for (int i = 0; i < 5; i++) {
        cleanup(r.device, NULL);
    }
    assert_int_equal(deferred(&r), 0);
    close_many(streams, 12);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uses__by_many_streams_are_all_waited_for_in_any_order),
        cmocka_unit_test(uses__can_be_taken_back_one_by_one),
        cmocka_unit_test(batch__of_slices_with_many_uses_shares_its_fences),
        cmocka_unit_test(batch__with_more_streams_than_it_notes_waits_for_all),
        cmocka_unit_test(epochs__stay_open_while_the_ring_is_full),
        cmocka_unit_test(polls__are_counted_past_the_largest_number),
        cmocka_unit_test(count__names_the_stream_of_what_is_not_fenced_yet),
        cmocka_unit_test(fence__that_cannot_be_recorded_leaves_the_slice_in_the_batch),
    };
    return cmocka_run_group_tests_name("manager, waits", tests, NULL, NULL);
}
