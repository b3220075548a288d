/* SPDX-License-Identifier: MIT */
/* More calls that are refused with a reason: drivers that do not make sense, objects that
 * have ended, arguments that do not belong together. */
#include "support.h"

#include <string.h>

/* ---- drivers ---- */

static const weir_driver_table *sim_table(void)
{
    const weir_driver_table *table = NULL;
    for (size_t i = 0; (table = weir_driver_at(i)) != NULL; i++) {
        if (strcmp(table->name, "sim") == 0) {
            break;
        }
    }
    assert_non_null(table);
    return table;
}

static weir_driver_properties told; /* what the driver says of itself, where not 0 */
static uint64_t closed;

static void tell(weir_driver *driver, weir_driver_properties *properties)
{
    sim_table()->properties(driver, properties);
    if (told.granule_bytes != 0) {
        properties->granule_bytes = told.granule_bytes;
    }
    if (told.capacity_bytes != 0) {
        properties->capacity_bytes = told.capacity_bytes;
    }
}

static void tell_nothing(weir_driver *driver, weir_driver_properties *properties)
{
    tell(driver, properties);
    properties->capacity_bytes = 0;
}

static void close_counted(weir_driver *driver)
{
    closed++;
    sim_table()->close(driver);
}

static weir_result open_table(const weir_driver_table *table, weir_device **device)
{
    weir_sim_desc sim = weir_sim_defaults();
    weir_device_desc desc = {.no_thread = true, .driver_config = &sim};
    return weir_device_open_driver(table, NULL, &desc, device);
}

static void assert_table_refused(const weir_driver_table *table)
{
    weir_device *device = NULL;
    assert_result(open_table(table, &device), WEIR_INVALID);
    assert_null(device);
}

static void driver__of_another_size_is_refused(void **state)
{
    (void)state;
    weir_driver_table table = *sim_table();
    table.size = sizeof table - 8;
    assert_table_refused(&table);
    assert_says(weir_last_error(), "another size");
    assert_table_refused(NULL);
    weir_device *device = NULL;
    table.size = 0; /* the first layout */
    assert_ok(open_table(&table, &device));
    assert_string_equal(weir_device_name(device), "sim"); /* no argument, no colon */
    assert_ok(weir_device_close(device));
}

static void driver__whose_properties_make_no_sense_is_closed_again(void **state)
{
    (void)state;
    static const weir_driver_properties wrong[] = {
        {.granule_bytes = 3 * 4096},
        {.granule_bytes = 2048},
        {.capacity_bytes = (UINT64_C(1) << 44) + 1},
    };
    weir_driver_table table = *sim_table();
    table.properties = tell;
    table.close = close_counted;
    closed = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        told = wrong[i];
        assert_table_refused(&table);
        assert_says(weir_last_error(), "do not make sense");
        assert_int_equal(closed, i + 1);
    }
    told = (weir_driver_properties){0};
    table.properties = tell_nothing;
    assert_table_refused(&table);
    assert_says(weir_last_error(), "device of 0 bytes");
    assert_int_equal(closed, 4);
}

static void driver__with_granules_can_be_used_without_them(void **state)
{
    (void)state;
    rig r = rig_open(NULL, &(weir_device_desc){.no_thread = true, .no_granules = true});
    weir_buffer buffer = make(r.stream, 64 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.commits, 0);
    assert_int_equal(usage.page_allocs, 1);
    drop(buffer);
    rig_close(&r);
}

/* ---- devices ---- */

static void close__of_a_device_with_open_streams_is_busy(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *one = open_stream(r.device, "one"), *two = open_stream(r.device, "two");
    assert_result(weir_device_close(r.device), WEIR_BUSY);
    assert_says(weir_last_error(), "2 streams are still open");
    assert_ok(weir_stream_close(one));
    assert_result(weir_device_close(r.device), WEIR_BUSY);
    assert_says(weir_last_error(), "1 streams are still open");
    drop(make(two, MIB, NULL)); /* nothing has changed */
    assert_ok(weir_stream_close(two));
    rig_close(&r);
}

static void sync__of_a_device_says_which_failure_came_first(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    queue_work(&r, other);
    uint64_t before = ledger_of(&r).calls[WEIR_SIM_OP_stream_sync];
    weir_sim_fail(r.sim, WEIR_SIM_OP_stream_sync, 1, 0);
    assert_error(weir_device_sync(r.device));
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_stream_sync], before + 1);
    assert_ok(weir_device_sync(r.device));
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

/* ---- streams that have ended ---- */

static void stream__that_is_closed_makes_no_buffers_and_uses_none(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *closed_one = open_stream(r.device, "ended");
    weir_buffer buffer = make(r.stream, MIB, NULL), out = {7, 8};
    drop(make(closed_one, MIB, NULL));
    queue_work(&r, closed_one); /* so that it stays for a while */
    assert_ok(weir_stream_close(closed_one));
    assert_result(weir_buffer_create(closed_one, MIB, NULL, &out), WEIR_INVALID);
    assert_says(weir_last_error(), "\"ended\" is closed");
    assert_true(out.index == 7 && out.generation == 8);
    assert_result(weir_buffer_use(buffer, closed_one), WEIR_INVALID);
    assert_says(weir_last_error(), "\"ended\" is closed");
    assert_consistent(&r);
    drop(buffer);
    rig_close(&r);
}

static void stream__that_ended_keeps_its_memory_until_its_work_has_passed(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *ended = open_stream(r.device, "ended");
    weir_stream *user = open_stream(r.device, "user");
    weir_buffer buffer = make(ended, 4 * MIB, NULL);
    assert_ok(weir_buffer_use(buffer, user));
    drop(make(ended, 4 * MIB, NULL));
    queue_work(&r, ended);
    queue_work(&r, user);
    drop(buffer);
    weir_driver_stream queue = weir_stream_driver_stream(ended);
    assert_ok(weir_stream_close(ended));
    for (int i = 0; i < 3; i++) {
        assert_ok(weir_device_tick(r.device, 0));
        cleanup(r.device, NULL);
        assert_true(usage_of(r.device).deferred_bytes >= 8 * MIB);
        assert_consistent(&r);
    }
    weir_sim_finish(r.sim, queue);
    assert_ok(weir_device_tick(r.device, 0));
    cleanup(r.device, NULL);
    assert_true(usage_of(r.device).deferred_bytes >= 4 * MIB); /* what `user` reads */
    assert_consistent(&r);
    finish_work(&r, user);
    assert_ok(weir_device_tick(r.device, 0));
    cleanup(r.device, NULL);
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    assert_ok(weir_stream_close(user));
    rig_close(&r);
}

static void stream__that_records_or_is_primed_cannot_be_closed(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *stream = open_stream(r.device, "busy");
    assert_ok(weir_capture_prime(stream));
    assert_result(weir_stream_close(stream), WEIR_BUSY);
    assert_says(weir_last_error(), "\"busy\" is capturing, or primed");
    assert_ok(weir_capture_begin(stream));
    assert_result(weir_stream_close(stream), WEIR_BUSY);
    assert_ok(weir_capture_abort(stream));
    assert_ok(weir_stream_close(stream));
    rig_close(&r);
}

/* ---- arguments ---- */

static void run_nothing(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    (void)launch;
    (void)begin;
    (void)end;
}

static void launch__needs_the_arguments_that_it_counts(void **state)
{
    (void)state;
    weir_kernel kernel = {.name = "nothing", .host = run_nothing};
    weir_device *device = NULL;
    assert_ok(weir_device_open("host", &(weir_device_desc){.no_thread = true}, &device));
    weir_stream *stream = weir_device_default_stream(device);
    weir_launch launch = {.kernel = &kernel, .argument_bytes = 8, .element_count = 1};
    assert_result(weir_stream_launch(stream, &launch), WEIR_INVALID);
    assert_says(weir_last_error(), "arguments are NULL");
    launch.argument_bytes = 0;
    assert_ok(weir_stream_launch(stream, &launch));
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_device_close(device));
}

static void copies__of_no_bytes_need_no_data(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, 1000, NULL);
    assert_ok(weir_buffer_write(buffer, 1000, NULL, 0));
    assert_ok(weir_buffer_read(buffer, 0, NULL, 0));
    assert_result(weir_buffer_write(buffer, 1001, NULL, 0), WEIR_INVALID);
    assert_result(weir_buffer_read(buffer, 1001, NULL, 0), WEIR_INVALID);
    drop(buffer);
    rig_close(&r);
}

static void tags__that_are_asked_for_need_a_place_and_a_name(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_tag_usage usage = {.live_count = 99};
    size_t count = 99;
    assert_result(weir_device_tag_usage(NULL, "x", &usage), WEIR_INVALID);
    assert_result(weir_device_tag_usage(r.device, NULL, &usage), WEIR_INVALID);
    assert_result(weir_device_tags(r.device, &usage, 1, NULL), WEIR_INVALID);
    assert_result(weir_device_tags(r.device, NULL, 1, &count), WEIR_INVALID);
    assert_true(count == 99 && usage.live_count == 99);
    assert_ok(weir_device_tags(r.device, NULL, 0, &count));
    const char *longest = "a name that is longer than thirty-one bytes";
    assert_ok(weir_device_tag_usage(r.device, longest, &usage));
    assert_int_equal(strlen(usage.tag), 31);
    assert_memory_equal(usage.tag, longest, 31);
    assert_int_equal(usage.live_count, 0);
    rig_close(&r);
}

static bool release_nothing(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)context;
    (void)device;
    (void)needed_bytes;
    return false;
}

static void reclaim__needs_a_device_and_a_callback(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_result(weir_device_reclaim_add(NULL, release_nothing, NULL), WEIR_INVALID);
    assert_result(weir_device_reclaim_add(r.device, NULL, NULL), WEIR_INVALID);
    assert_result(weir_device_reclaim_remove(r.device, release_nothing, NULL),
                  WEIR_NOT_FOUND);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(driver__of_another_size_is_refused),
        cmocka_unit_test(driver__whose_properties_make_no_sense_is_closed_again),
        cmocka_unit_test(driver__with_granules_can_be_used_without_them),
        cmocka_unit_test(close__of_a_device_with_open_streams_is_busy),
        cmocka_unit_test(sync__of_a_device_says_which_failure_came_first),
        cmocka_unit_test(stream__that_is_closed_makes_no_buffers_and_uses_none),
        cmocka_unit_test(stream__that_ended_keeps_its_memory_until_its_work_has_passed),
        cmocka_unit_test(stream__that_records_or_is_primed_cannot_be_closed),
        cmocka_unit_test(launch__needs_the_arguments_that_it_counts),
        cmocka_unit_test(copies__of_no_bytes_need_no_data),
        cmocka_unit_test(tags__that_are_asked_for_need_a_place_and_a_name),
        cmocka_unit_test(reclaim__needs_a_device_and_a_callback),
    };
    return cmocka_run_group_tests_name("core, refusals", tests, NULL, NULL);
}
