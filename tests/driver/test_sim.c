/* SPDX-License-Identifier: MIT */
/* What is special to the sim driver: sums, failures on demand, the ledger and its cost
 * model. */
#include "sim_rig.h"

#include <math.h>

static weir_sim_desc small_desc(void)
{
    weir_sim_desc desc = weir_sim_defaults();
    desc.capacity_bytes = GIB;
    desc.context_bytes = 100 * MIB;
    return desc;
}

/* ---- opening ---- */

static void a_sim__has_the_documented_defaults(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    assert_int_equal(rig.properties.capacity_bytes, 24 * GIB);
    assert_int_equal(rig.properties.context_bytes, 400 * MIB);
    assert_int_equal(rig.properties.granule_bytes, 2 * MIB);
    assert_int_equal(rig.properties.alignment_bytes, 256);
    assert_false(rig.properties.host_visible);
    rig_close(&rig);
}

static void a_sim__fills_in_what_the_configuration_leaves_open(void **state)
{
    (void)state;
    driver_rig rig = open_sim(&(weir_sim_desc){0});
    assert_int_equal(rig.properties.capacity_bytes, 24 * GIB);
    assert_int_equal(rig.properties.context_bytes, 0);
    assert_int_equal(rig.properties.granule_bytes, 0);
    rig_close(&rig);
}

static void a_sim__refuses_a_configuration_that_makes_no_sense(void **state)
{
    (void)state;
    const weir_driver_table *table = find_table("sim");
    weir_sim_desc bad[7];
    for (size_t i = 0; i < 7; i++) {
        bad[i] = small_desc();
    }
    bad[0].size = 1;
    bad[1].granule_bytes = 3 * MIB;
    bad[2].granule_bytes = 128;
    bad[3].granule_bytes = 2 * GIB;
    bad[4].context_bytes = 2 * GIB;
    bad[5].lets_go = (weir_sim_lets_go)4;
    bad[6].lets_go = (weir_sim_lets_go)-1;
    for (size_t i = 0; i < 7; i++) {
        weir_driver *driver = NULL;
        assert_result(table->open("", &bad[i], &driver), WEIR_INVALID);
        assert_null(driver);
    }
}

static void sim_functions__refuse_another_driver(void **state)
{
    (void)state;
    driver_rig host = {0};
    weir_sim_ledger ledger;
    rig_open(&host, "host", NULL);
    assert_result(weir_sim_queue(host.driver, 1), WEIR_INVALID);
    memset(&ledger, 1, sizeof ledger);
    weir_sim_read_ledger(host.driver, &ledger);
    assert_int_equal(ledger.context_bytes, 0);
    weir_sim_finish(host.driver, 1);
    weir_sim_finish_all(host.driver);
    weir_sim_step(NULL);
    weir_sim_set_others(host.driver, 1);
    weir_sim_set_outside(host.driver, 1);
    weir_sim_fail(host.driver, WEIR_SIM_OP_commit, 1, 0);
    weir_sim_fail_nth(host.driver, 1);
    weir_sim_advance(host.driver, 1);
    weir_sim_shutdown(host.driver);
    uint64_t page = take_page(&host, MIB);
    assert_ok(host.table->page_free(host.driver, page, MIB));
    rig_close(&host);
}

static void a_sim__has_a_clock_that_moves_when_told(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    uint64_t start = rig.table->now_ms(rig.driver);
    weir_sim_advance(rig.driver, 5000);
    assert_int_equal(rig.table->now_ms(rig.driver), start + 5000);
    rig_close(&rig);
}

/* ---- memory ---- */

static void the_capacity__holds_context_outside_others_and_weir_to_the_byte(void **state)
{
    (void)state;
    weir_sim_desc desc = small_desc();
    driver_rig rig = open_sim(&desc);
    uint64_t address = 0;
    weir_sim_set_outside(rig.driver, 24 * MIB);
    weir_sim_set_others(rig.driver, 200 * MIB);
    assert_result(rig.table->page_alloc(rig.driver, 700 * MIB + 1, &address),
                  WEIR_OUT_OF_MEMORY);
    uint64_t page = take_page(&rig, 698 * MIB);
    uint64_t range = take_range(&rig, 10);
    assert_ok(rig.table->commit(rig.driver, range, 2 * MIB));
    assert_result(rig.table->commit(rig.driver, range + 2 * MIB, 2 * MIB),
                  WEIR_OUT_OF_MEMORY);
    weir_sim_set_others(rig.driver, 198 * MIB);
    assert_ok(rig.table->commit(rig.driver, range + 2 * MIB, 2 * MIB));
    /* More than is left may be taken away from outside; Weir's calls fail, nothing wraps.
     */
    weir_sim_set_others(rig.driver, UINT64_MAX / 2);
    assert_result(rig.table->page_alloc(rig.driver, 1, &address), WEIR_OUT_OF_MEMORY);
    assert_int_equal(address, 0);

    weir_memory_info info;
    assert_ok(rig.table->memory_info(rig.driver, &info));
    assert_int_equal(info.footprint_bytes, (100 + 24 + 698 + 4) * MIB);
    assert_int_equal(info.others_bytes, UINT64_MAX / 2);
    assert_ok(rig.table->page_free(rig.driver, page, 698 * MIB));
    rig_close(&rig);
}

static void bytes_not_let_go__count_against_the_capacity_until_progress(void **state)
{
    (void)state;
    weir_sim_desc desc = small_desc();
    desc.lets_go = WEIR_SIM_LETS_GO_ON_PROGRESS;
    driver_rig rig = open_sim(&desc);
    uint64_t page = take_page(&rig, 900 * MIB);
    assert_ok(rig.table->page_free(rig.driver, page, 900 * MIB));
    assert_int_equal(rig.table->pending_bytes(rig.driver), 900 * MIB);
    assert_result(rig.table->page_alloc(rig.driver, 100 * MIB, &page),
                  WEIR_OUT_OF_MEMORY);
    weir_memory_info info;
    assert_ok(rig.table->memory_info(rig.driver, &info));
    assert_int_equal(info.footprint_bytes, 1000 * MIB);

    assert_ok(rig.table->progress(rig.driver, false));
    assert_int_equal(rig.table->pending_bytes(rig.driver), 900 * MIB);
    assert_ok(rig.table->progress(rig.driver, true));
    assert_int_equal(rig.table->pending_bytes(rig.driver), 0);
    page = take_page(&rig, 900 * MIB);
    weir_sim_ledger ledger = ledger_of(&rig);
    assert_int_equal(ledger.handed_out_bytes, 1800 * MIB);
    assert_int_equal(ledger.handed_back_bytes, 900 * MIB);
    rig_close(&rig);
}

static void bytes_never_let_go__stay_whatever_is_called(void **state)
{
    (void)state;
    weir_sim_desc desc = small_desc();
    desc.lets_go = WEIR_SIM_LETS_GO_NEVER;
    driver_rig rig = open_sim(&desc);
    uint64_t range = take_range(&rig, 4);
    assert_ok(rig.table->commit(rig.driver, range, 8 * MIB));
    assert_ok(rig.table->decommit(rig.driver, range, 8 * MIB));
    assert_ok(rig.table->progress(rig.driver, true));
    assert_int_equal(ledger_of(&rig).pending_bytes, 8 * MIB);
    rig_close(&rig);
}

static void a_move__changes_no_sum_and_needs_no_room(void **state)
{
    (void)state;
    weir_sim_desc desc = small_desc();
    desc.lets_go = WEIR_SIM_LETS_GO_NEVER;
    driver_rig rig = open_sim(&desc);
    uint64_t range = take_range(&rig, 1000);
    assert_ok(rig.table->commit(rig.driver, range, 924 * MIB));
    uint64_t other = take_range(&rig, 10);
    assert_ok(rig.table->move(rig.driver, other, range + 4 * MIB, 20 * MIB));
    weir_sim_ledger ledger = ledger_of(&rig);
    assert_int_equal(ledger.handed_out_bytes, 924 * MIB);
    assert_int_equal(ledger.handed_back_bytes, 0);
    assert_int_equal(ledger.pending_bytes, 0);
    assert_ok(rig.table->decommit(rig.driver, other, 20 * MIB));
    assert_result(rig.table->decommit(rig.driver, range + 4 * MIB, 2 * MIB),
                  WEIR_INVALID);
    rig_close(&rig);
}

static void an_address__is_never_handed_out_twice(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    uint64_t highest = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t page = take_page(&rig, GIB);
        assert_true(page > highest);
        assert_ok(rig.table->page_free(rig.driver, page, GIB));
        uint64_t range = take_range(&rig, 5);
        assert_true(range >= page + GIB);
        assert_ok(rig.table->range_free(rig.driver, range, 10 * MIB));
        highest = range + 10 * MIB - 1;
    }
    rig_close(&rig);
}

static void contents__need_memory_behind_the_addresses(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    char data[16];
    weir_driver_stream stream = take_stream(&rig);
    uint64_t page = take_page(&rig, 1000);
    uint64_t range = take_range(&rig, 4);
    assert_ok(rig.table->commit(rig.driver, range, 2 * MIB));
    assert_ok(rig.table->write(rig.driver, stream, page + 984, data, 16));
    assert_result(rig.table->write(rig.driver, stream, page + 985, data, 16),
                  WEIR_INVALID);
    assert_result(rig.table->write(rig.driver, stream, 0, data, 16), WEIR_INVALID);
    assert_result(rig.table->read(rig.driver, stream, range + 2 * MIB - 15, data, 16),
                  WEIR_INVALID);
    assert_ok(rig.table->copy(rig.driver, stream, range, page, 1000));
    assert_result(rig.table->copy(rig.driver, stream, page, range, 1001), WEIR_INVALID);
    assert_result(rig.table->copy(rig.driver, stream, page, range + 2 * MIB, 1),
                  WEIR_INVALID);
    assert_result(rig.table->write(rig.driver, stream + 1, page, data, 1), WEIR_INVALID);
    assert_ok(test_stream(&rig, stream));
    rig_close(&rig);
}

static void a_read__waits_for_its_stream_and_fills_in_zeros(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    char data[16] = "something else";
    const char zeros[16] = {0};
    weir_driver_stream stream = take_stream(&rig);
    uint64_t page = take_page(&rig, 1000);
    queue(&rig, stream, 3);
    assert_ok(rig.table->read(rig.driver, stream, page, data, 16));
    assert_memory_equal(data, zeros, 16);
    assert_ok(test_stream(&rig, stream));
    rig_close(&rig);
}

/* ---- failures ---- */

static void a_failure_on_demand__comes_after_so_many_calls_and_so_often(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    const weir_result expected[] = {
        WEIR_OK, WEIR_OK, WEIR_OUT_OF_MEMORY, WEIR_OUT_OF_MEMORY, WEIR_OK, WEIR_OK};
    weir_sim_fail(rig.driver, WEIR_SIM_OP_page_alloc, 2, 2);
    for (size_t i = 0; i < 6; i++) {
        uint64_t address;
        assert_result(rig.table->page_alloc(rig.driver, MIB, &address), expected[i]);
    }
    weir_sim_ledger ledger = ledger_of(&rig);
    assert_int_equal(ledger.calls[WEIR_SIM_OP_page_alloc], 6);
    assert_int_equal(ledger.handed_out_bytes, 4 * MIB);
    rig_close(&rig);
}

static void a_later_failure__replaces_the_earlier_one_of_its_kind(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence fence;
    weir_memory_info info;
    weir_sim_fail(rig.driver, WEIR_SIM_OP_fence_record, 5, 0);
    weir_sim_fail(rig.driver, WEIR_SIM_OP_memory_info, UINT64_MAX, 0);
    assert_result(rig.table->fence_record(rig.driver, stream, &fence), WEIR_DRIVER);
    weir_sim_fail(rig.driver, WEIR_SIM_OP_fence_record, 1, 1);
    fence = record(&rig, stream);
    assert_result(rig.table->fence_record(rig.driver, stream, &fence), WEIR_DRIVER);
    fence = record(&rig, stream);
    weir_sim_fail(rig.driver, WEIR_SIM_OP_fence_record, 5, 0);
    weir_sim_fail(rig.driver, WEIR_SIM_OP_fence_record, 0, 0);
    fence = record(&rig, stream);
    assert_result(rig.table->memory_info(rig.driver, &info), WEIR_DRIVER);
    rig_close(&rig);
}

static void every_kind_of_call__is_counted_and_can_fail(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    const weir_driver_table *table = rig.table;
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence fence = record(&rig, stream);
    uint64_t page = take_page(&rig, MIB);
    uint64_t range = take_range(&rig, 4);
    uint64_t address = 77;
    weir_memory_info info;
    assert_ok(table->commit(rig.driver, range, 2 * MIB));
    weir_sim_ledger before = ledger_of(&rig);
    for (int op = 0; op < WEIR_SIM_OP_COUNT; op++) {
        weir_sim_fail(rig.driver, (weir_sim_op)op, 1, 0);
    }
    assert_result(table->page_alloc(rig.driver, MIB, &address), WEIR_OUT_OF_MEMORY);
    assert_result(table->page_free(rig.driver, page, MIB), WEIR_DRIVER);
    assert_result(table->range_reserve(rig.driver, 2 * MIB, &address), WEIR_DRIVER);
    assert_result(table->commit(rig.driver, range + 2 * MIB, 2 * MIB),
                  WEIR_OUT_OF_MEMORY);
    assert_result(table->decommit(rig.driver, range, 2 * MIB), WEIR_DRIVER);
    assert_result(table->move(rig.driver, range + 4 * MIB, range, 2 * MIB), WEIR_DRIVER);
    assert_result(table->memory_info(rig.driver, &info), WEIR_DRIVER);
    assert_result(table->fence_record(rig.driver, stream, &fence), WEIR_DRIVER);
    assert_result(table->fence_test(rig.driver, fence), WEIR_DRIVER);
    assert_result(table->fence_wait(rig.driver, fence), WEIR_DRIVER);
    assert_result(table->stream_test(rig.driver, stream), WEIR_DRIVER);
    assert_result(table->stream_sync(rig.driver, stream), WEIR_DRIVER);
    assert_result(table->stream_wait(rig.driver, stream, fence), WEIR_DRIVER);
    assert_int_equal(address, 77);
    weir_sim_ledger after = ledger_of(&rig);
    for (int op = 0; op < WEIR_SIM_OP_COUNT; op++) {
        assert_int_equal(after.calls[op], before.calls[op] + 1);
    }
    assert_int_equal(after.handed_out_bytes, before.handed_out_bytes);
    assert_int_equal(after.handed_back_bytes, before.handed_back_bytes);
    assert_ok(table->page_free(rig.driver, page, MIB));
    assert_ok(table->decommit(rig.driver, range, 2 * MIB));
    rig_close(&rig);
}

static void the_nth_memory_call__fails_once_whatever_its_kind(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 5; nth++) {
        driver_rig rig = open_sim(NULL);
        weir_driver_stream stream = take_stream(&rig);
        uint64_t page;
        uint64_t range = take_range(&rig, 1);
        weir_driver_fence fence;
        weir_memory_info info;
        weir_sim_fail_nth(rig.driver, nth);
        weir_result results[6];
        results[1] = rig.table->commit(rig.driver, range, 2 * MIB);
        assert_ok(rig.table->memory_info(rig.driver, &info));
        results[2] = rig.table->page_alloc(rig.driver, MIB, &page);
        assert_ok(rig.table->stream_test(rig.driver, stream));
        results[3] = rig.table->fence_record(rig.driver, stream, &fence);
        results[4] = rig.table->fence_test(rig.driver, 0);
        results[5] = rig.table->fence_wait(rig.driver, 0);
        for (uint64_t call = 1; call <= 5; call++) {
            assert_int_equal(results[call] != WEIR_OK, call == nth);
        }
        weir_sim_fail_nth(rig.driver, 1);
        weir_sim_fail_nth(rig.driver, 0);
        assert_ok(rig.table->page_alloc(rig.driver, MIB, &page));
        rig_close(&rig);
    }
}

static void after_the_shutdown__every_call_fails_and_is_counted(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    const weir_driver_table *table = rig.table;
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence fence = record(&rig, stream);
    uint64_t page = take_page(&rig, MIB);
    uint64_t range = take_range(&rig, 1);
    uint64_t graph;
    char byte = 0;
    weir_launch launch = {.kernel = &(weir_kernel){.name = "any"}};
    weir_sim_shutdown(rig.driver);
    assert_result(table->page_free(rig.driver, page, MIB), WEIR_DEVICE_LOST);
    assert_result(table->page_alloc(rig.driver, MIB, &page), WEIR_DEVICE_LOST);
    assert_result(table->commit(rig.driver, range, 2 * MIB), WEIR_DEVICE_LOST);
    assert_result(table->range_free(rig.driver, range, 2 * MIB), WEIR_DEVICE_LOST);
    assert_result(table->fence_test(rig.driver, fence), WEIR_DEVICE_LOST);
    assert_result(table->stream_sync(rig.driver, stream), WEIR_DEVICE_LOST);
    assert_result(table->stream_open(rig.driver, NULL, &stream), WEIR_DEVICE_LOST);
    assert_result(table->queue(rig.driver, stream), WEIR_DEVICE_LOST);
    assert_result(table->launch(rig.driver, stream, &launch), WEIR_DEVICE_LOST);
    assert_result(table->progress(rig.driver, true), WEIR_DEVICE_LOST);
    assert_result(table->write(rig.driver, stream, page, &byte, 1), WEIR_DEVICE_LOST);
    assert_result(table->read(rig.driver, stream, page, &byte, 1), WEIR_DEVICE_LOST);
    assert_result(table->copy(rig.driver, stream, page, page, 1), WEIR_DEVICE_LOST);
    assert_result(table->capture_begin(rig.driver, stream), WEIR_DEVICE_LOST);
    assert_result(table->capture_end(rig.driver, stream, &graph), WEIR_DEVICE_LOST);
    assert_result(table->capture_abort(rig.driver, stream), WEIR_DEVICE_LOST);
    assert_result(table->graph_launch(rig.driver, stream, 1), WEIR_DEVICE_LOST);
    table->fence_release(rig.driver, fence);
    table->stream_close(rig.driver, stream);
    weir_sim_ledger ledger = ledger_of(&rig);
    assert_int_equal(ledger.calls[WEIR_SIM_OP_page_free], 1);
    assert_int_equal(ledger.calls[WEIR_SIM_OP_page_alloc], 2);
    assert_int_equal(ledger.handed_back_bytes, 0);
    rig_close(&rig);
}

/* ---- the ledger ---- */

static void a_page_freed_while_work_is_queued__is_a_wait_for_the_device(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream stream = take_stream(&rig);
    assert_ok(rig.table->page_free(rig.driver, take_page(&rig, MIB), MIB));
    assert_int_equal(ledger_of(&rig).device_syncs, 0);
    queue(&rig, stream, 1);
    assert_ok(rig.table->page_free(rig.driver, take_page(&rig, MIB), MIB));
    assert_int_equal(ledger_of(&rig).device_syncs, 1);
    uint64_t range = take_range(&rig, 1);
    assert_ok(rig.table->commit(rig.driver, range, 2 * MIB));
    assert_ok(rig.table->decommit(rig.driver, range, 2 * MIB));
    assert_int_equal(ledger_of(&rig).device_syncs, 1);
    rig_close(&rig);
}

/* Seconds that the model adds for what is done between two calls. */
static double spent(const driver_rig *rig)
{
    static double last;
    double now = ledger_of(rig).modelled_seconds;
    double result = now - last;
    last = now;
    return result;
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > expected * 0.01 + 1e-9) {
        fail_msg("%g, expected %g", value, expected);
    }
}

static void the_cost_model__follows_the_measured_figures(void **state)
{
    (void)state;
    for (uint64_t granule = 2 * MIB; granule <= 512 * MIB; granule *= 16) {
        weir_sim_desc desc = weir_sim_defaults();
        desc.granule_bytes = granule;
        driver_rig rig = open_sim(&desc);
        spent(&rig);
        spent(&rig);
        uint64_t range = take_range(&rig, 4 * GIB / granule);
        assert_ok(rig.table->commit(rig.driver, range, GIB));
        double chunks = (double)(GIB / granule);
        double commit_us = granule == 2 * MIB ? 34.4 : granule == 32 * MIB ? 32.0 : 36.0;
        double decommit_us = granule == 2 * MIB    ? 25.0
                             : granule == 32 * MIB ? 34.7
                                                   : 62.5;
        double move_us = granule == 2 * MIB ? 42.4 : granule == 32 * MIB ? 37.9 : 41.0;
        assert_near(spent(&rig), chunks * commit_us * 1e-6);
        assert_ok(rig.table->move(rig.driver, range + GIB, range, GIB));
        assert_near(spent(&rig), chunks * move_us * 1e-6);
        assert_ok(rig.table->decommit(rig.driver, range + GIB, GIB));
        assert_near(spent(&rig), chunks * decommit_us * 1e-6);
        rig_close(&rig);
    }
}

static void the_cost_of_a_page__grows_with_its_size(void **state)
{
    (void)state;
    const struct {
        uint64_t bytes;
        double alloc_us, free_us;
    } rows[] = {{1, 35, 30},
                {256, 35, 30},
                {MIB, 46, 38},
                {64 * MIB, 77, 80},
                {GIB, 211, 652},
                {8 * GIB, 1070, 5698},
                {15 * GIB, 1929, 10744},
                {544 * MIB, 144, 366}};
    driver_rig rig = open_sim(NULL);
    spent(&rig);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t page = take_page(&rig, rows[i].bytes);
        assert_near(spent(&rig), rows[i].alloc_us * 1e-6);
        assert_ok(rig.table->page_free(rig.driver, page, rows[i].bytes));
        assert_near(spent(&rig), rows[i].free_us * 1e-6);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sim__has_the_documented_defaults),
        cmocka_unit_test(a_sim__fills_in_what_the_configuration_leaves_open),
        cmocka_unit_test(a_sim__refuses_a_configuration_that_makes_no_sense),
        cmocka_unit_test(sim_functions__refuse_another_driver),
        cmocka_unit_test(a_sim__has_a_clock_that_moves_when_told),
        cmocka_unit_test(the_capacity__holds_context_outside_others_and_weir_to_the_byte),
        cmocka_unit_test(bytes_not_let_go__count_against_the_capacity_until_progress),
        cmocka_unit_test(bytes_never_let_go__stay_whatever_is_called),
        cmocka_unit_test(a_move__changes_no_sum_and_needs_no_room),
        cmocka_unit_test(an_address__is_never_handed_out_twice),
        cmocka_unit_test(contents__need_memory_behind_the_addresses),
        cmocka_unit_test(a_read__waits_for_its_stream_and_fills_in_zeros),
        cmocka_unit_test(a_failure_on_demand__comes_after_so_many_calls_and_so_often),
        cmocka_unit_test(a_later_failure__replaces_the_earlier_one_of_its_kind),
        cmocka_unit_test(every_kind_of_call__is_counted_and_can_fail),
        cmocka_unit_test(the_nth_memory_call__fails_once_whatever_its_kind),
        cmocka_unit_test(after_the_shutdown__every_call_fails_and_is_counted),
        cmocka_unit_test(a_page_freed_while_work_is_queued__is_a_wait_for_the_device),
        cmocka_unit_test(the_cost_model__follows_the_measured_figures),
        cmocka_unit_test(the_cost_of_a_page__grows_with_its_size),
    };
    return cmocka_run_group_tests_name("driver sim", tests, NULL, NULL);
}
