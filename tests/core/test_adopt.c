/* SPDX-License-Identifier: MIT */
/* Drivers and streams of the caller's own. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const weir_driver_table *sim_table(void)
{
    size_t i = 0;
    while (strcmp(weir_driver_at(i)->name, "sim") != 0) {
        i++;
    }
    return weir_driver_at(i);
}

static void core__a_driver_table_must_be_complete(void **state)
{
    (void)state;
    weir_device *device = NULL;
    const size_t mandatory[] = {
        offsetof(weir_driver_table, open),
        offsetof(weir_driver_table, close),
        offsetof(weir_driver_table, properties),
        offsetof(weir_driver_table, page_alloc),
        offsetof(weir_driver_table, page_free),
        offsetof(weir_driver_table, write),
        offsetof(weir_driver_table, read),
        offsetof(weir_driver_table, copy),
        offsetof(weir_driver_table, stream_open),
        offsetof(weir_driver_table, stream_close),
        offsetof(weir_driver_table, stream_test),
        offsetof(weir_driver_table, stream_sync),
        offsetof(weir_driver_table, stream_wait),
        offsetof(weir_driver_table, fence_record),
        offsetof(weir_driver_table, fence_test),
        offsetof(weir_driver_table, fence_wait),
        offsetof(weir_driver_table, fence_release),
        offsetof(weir_driver_table, name),
        /* mandatory where there are granules, as here */
        offsetof(weir_driver_table, range_reserve),
        offsetof(weir_driver_table, range_free),
        offsetof(weir_driver_table, commit),
        offsetof(weir_driver_table, decommit),
    };
    for (size_t i = 0; i < sizeof mandatory / sizeof mandatory[0]; i++) {
        weir_driver_table table = *sim_table();
        memset((char *)&table + mandatory[i], 0, sizeof(void *));
        assert_error(weir_device_open_driver(&table, "", NULL, &device));
        assert_null(device);
    }
    weir_driver_table table = *sim_table();
    table.size = 8;
    assert_error(weir_device_open_driver(&table, "", NULL, &device));
}

static void core__optional_driver_entries_may_be_missing(void **state)
{
    (void)state;
    weir_driver_table table = *sim_table();
    table.move = NULL;
    table.memory_info = NULL;
    table.untouched = NULL;
    table.pending_bytes = NULL;
    table.progress = NULL;
    table.launch = NULL;
    table.queue = NULL;
    table.stream_native = NULL;
    table.now_ms = NULL;
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = 64 * MIB;
    sim.context_bytes = 0;
    weir_device_desc options = {.no_thread = true, .driver_config = &sim};
    rig r = {0};
    assert_ok(weir_device_open_driver(&table, "", &options, &r.device));
    r.sim = weir_device_driver(r.device);
    r.stream = weir_device_default_stream(r.device);
    weir_buffer one = make(r.stream, 30 * MIB, NULL);
    weir_buffer two = make(r.stream, 30 * MIB, NULL);
    drop(one);
    one = make(r.stream, 32 * MIB,
               NULL); /* granules are moved, which here is not one call */
    weir_device_report report = {0};
    assert_ok(weir_device_memory_report(r.device, &report));
    assert_true(report.footprint_bytes == WEIR_UNKNOWN_BYTES);
    assert_result(weir_stream_launch(r.stream,
                                     &(weir_launch){.kernel = &(weir_kernel){0}}),
                  WEIR_UNSUPPORTED);
    assert_null(weir_stream_native(r.stream));
    assert_ok(weir_device_tick(r.device, 0));
    assert_consistent(&r);
    drop(one);
    drop(two);
    rig_close(&r);
}

static void core__a_stream_tells_what_it_was_made_from(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    int queue;
    char name[100];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    weir_stream *adopted = NULL;
    weir_stream_desc desc = {.name = name, .native = &queue};
    assert_ok(weir_stream_create(r.device, &desc, &adopted));
    assert_ptr_equal(weir_stream_native(adopted), &queue);
    assert_ptr_equal(weir_stream_device(adopted), r.device);
    assert_int_equal(strlen(weir_stream_name(adopted)), 31);
    assert_string_equal(weir_device_name(r.device), "sim");
    assert_string_equal(weir_device_preset(r.device), "elastic");
    drop(make(adopted, MIB, NULL));
    assert_ok(weir_stream_close(adopted));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core__a_driver_table_must_be_complete),
        cmocka_unit_test(core__optional_driver_entries_may_be_missing),
        cmocka_unit_test(core__a_stream_tells_what_it_was_made_from),
    };
    return cmocka_run_group_tests_name("core, adopt", tests, NULL, NULL);
}
