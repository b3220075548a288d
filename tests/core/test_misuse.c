/* SPDX-License-Identifier: MIT */
/* Every wrong call gets the right result and a text, and changes nothing. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- buffers ---- */

static void core__a_double_release_is_stale_and_changes_nothing(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer kept = make(r.stream, 4 * MIB, "kept");
    weir_buffer gone = make(r.stream, 4 * MIB, NULL);
    drop(gone);
    still was = hold_still(&r);
    assert_result(weir_buffer_release(gone), WEIR_STALE);
    assert_result(weir_buffer_release(gone), WEIR_STALE);
    assert_unchanged(&was);
    drop(kept);
    rig_close(&r);
}

static void core__a_stale_handle_never_reaches_the_next_buffer(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    weir_buffer gone = make(r.stream, MIB, NULL);
    drop(gone);
    weir_buffer next = make(r.stream, MIB, NULL);
    still was = hold_still(&r);
    uint8_t byte = 0;
    assert_result(weir_buffer_retain(gone), WEIR_STALE);
    assert_result(weir_buffer_release(gone), WEIR_STALE);
    assert_result(weir_buffer_use(gone, other), WEIR_STALE);
    assert_result(weir_buffer_write(gone, 0, &byte, 1), WEIR_STALE);
    assert_result(weir_buffer_read(gone, 0, &byte, 1), WEIR_STALE);
    assert_int_equal(weir_buffer_address(gone), 0);
    assert_int_equal(weir_buffer_bytes(gone), 0);
    assert_int_equal(weir_buffer_extent(gone), 0);
    assert_int_equal(weir_buffer_references(gone), 0);
    assert_null(weir_buffer_stream(gone));
    assert_unchanged(&was);
    assert_int_equal(weir_buffer_references(next), 1);
    drop(next);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void core__made_up_handles_are_refused(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer live = make(r.stream, MIB, NULL);
    const weir_buffer wrong[] = {
        WEIR_NO_BUFFER,
        {0, UINT32_MAX},
        {UINT32_MAX, 0},
        {UINT32_MAX, UINT32_MAX},
        {UINT32_MAX, live.generation},
        {live.index, 0},
        {live.index, live.generation + 1},
        {live.index, live.generation ^ 0x80000000U},
        {live.index ^ 0x40000000U, live.generation},
        {live.index + 1000000, live.generation},
    };
    still was = hold_still(&r);
    uint8_t byte = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_error(weir_buffer_release(wrong[i]));
        assert_error(weir_buffer_retain(wrong[i]));
        assert_error(weir_buffer_use(wrong[i], r.stream));
        assert_error(weir_buffer_write(wrong[i], 0, &byte, 1));
        assert_error(weir_buffer_read(wrong[i], 0, &byte, 1));
        assert_int_equal(weir_buffer_address(wrong[i]), 0);
        assert_int_equal(weir_buffer_bytes(wrong[i]), 0);
        assert_int_equal(weir_buffer_extent(wrong[i]), 0);
        assert_int_equal(weir_buffer_references(wrong[i]), 0);
        assert_null(weir_buffer_stream(wrong[i]));
    }
    assert_unchanged(&was);
    assert_int_equal(weir_buffer_bytes(live), MIB);
    drop(live);
    rig_close(&r);
}

static void core__absurd_sizes_fail_and_leave_the_output_alone(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer live = make(r.stream, MIB, NULL);
    const struct {
        uint64_t bytes;
        weir_result result;
        weir_result or_result;
    } wrong[] = {
        {0, WEIR_INVALID, WEIR_INVALID},
        {UINT64_MAX, WEIR_INVALID, WEIR_OUT_OF_MEMORY},
        {UINT64_MAX - 1, WEIR_INVALID, WEIR_OUT_OF_MEMORY},
        {UINT64_MAX - 4095, WEIR_INVALID, WEIR_OUT_OF_MEMORY},
        {UINT64_MAX - 2 * MIB, WEIR_INVALID, WEIR_OUT_OF_MEMORY},
        {UINT64_MAX / 2 + 1, WEIR_INVALID, WEIR_OUT_OF_MEMORY},
        {(uint64_t)1 << 48, WEIR_INVALID, WEIR_OUT_OF_MEMORY},
        {24 * GIB + 1, WEIR_INVALID, WEIR_OUT_OF_MEMORY},
        {24 * GIB, WEIR_OUT_OF_MEMORY, WEIR_OUT_OF_MEMORY}, /* the context has 400 MiB */
    };
    still was = hold_still(&r);
    for (int persistent = 0; persistent < 2; persistent++) {
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            weir_buffer_desc desc = {.persistent = persistent != 0};
            weir_buffer out = {77, 78};
            weir_result result =
                weir_buffer_create(r.stream, wrong[i].bytes, &desc, &out);
            if (result != wrong[i].result && result != wrong[i].or_result) {
                fail_msg("%llu bytes: %s", (unsigned long long)wrong[i].bytes,
                         weir_result_name(result));
            }
            assert_true(weir_last_error()[0] != '\0');
            assert_true(out.index == 77 && out.generation == 78);
        }
    }
    assert_unchanged(&was);
    drop(live);
    rig_close(&r);
}

static void core__an_alignment_must_be_a_power_of_two(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    const uint64_t wrong[] = {3, 48, 4097, 3 * MIB, UINT64_MAX, UINT64_MAX - 255};
    still was = hold_still(&r);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_buffer out = {77, 78};
        weir_buffer_desc desc = {.alignment_bytes = wrong[i]};
        assert_result(weir_buffer_create(r.stream, 4096, &desc, &out), WEIR_INVALID);
        assert_true(out.index == 77 && out.generation == 78);
    }
    /* A power of two, but no address has it. */
    weir_buffer out = {77, 78};
    weir_buffer_desc desc = {.alignment_bytes = (uint64_t)1 << 63};
    assert_error(weir_buffer_create(r.stream, 4096, &desc, &out));
    assert_true(out.index == 77 && out.generation == 78);
    assert_unchanged(&was);
    rig_close(&r);
}

static void core__every_alignment_up_to_2_mib_is_honoured(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffers[22];
    for (unsigned bit = 0; bit < 22; bit++) {
        weir_buffer_desc desc = {.alignment_bytes = (uint64_t)1 << bit};
        assert_ok(weir_buffer_create(r.stream, 100 + bit, &desc, &buffers[bit]));
        assert_int_equal(weir_buffer_address(buffers[bit]) % desc.alignment_bytes, 0);
        assert_consistent(&r);
    }
    for (unsigned bit = 0; bit < 22; bit++) {
        drop(buffers[bit]);
    }
    rig_close(&r);
}

static void core__copies_stay_inside_the_buffer(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, 1000, NULL);
    char data[1001] = {0};
    still was = hold_still(&r);
    assert_result(weir_buffer_write(buffer, 0, data, 1001), WEIR_INVALID);
    assert_result(weir_buffer_write(buffer, 1000, data, 1), WEIR_INVALID);
    assert_result(weir_buffer_write(buffer, UINT64_MAX, data, 2), WEIR_INVALID);
    assert_result(weir_buffer_write(buffer, 2, data, UINT64_MAX), WEIR_INVALID);
    assert_result(weir_buffer_write(buffer, 0, NULL, 1), WEIR_INVALID);
    assert_result(weir_buffer_read(buffer, 0, data, 1001), WEIR_INVALID);
    assert_result(weir_buffer_read(buffer, UINT64_MAX, data, 2), WEIR_INVALID);
    assert_result(weir_buffer_read(buffer, 999, data, UINT64_MAX - 998), WEIR_INVALID);
    assert_result(weir_buffer_read(buffer, 0, NULL, 1), WEIR_INVALID);
    assert_unchanged(&was);
    assert_ok(weir_buffer_write(buffer, 0, data, 1000));
    assert_ok(weir_buffer_write(buffer, 999, data, 1));
    drop(buffer);
    rig_close(&r);
}

static void core__a_buffer_of_one_device_is_not_used_on_another(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL);
    rig two = rig_open(NULL, NULL);
    weir_buffer buffer = make(one.stream, MIB, NULL);
    still was = hold_still(&one), was_two = hold_still(&two);
    assert_result(weir_buffer_use(buffer, two.stream), WEIR_INVALID);
    assert_unchanged(&was);
    assert_unchanged(&was_two);
    drop(buffer);
    rig_close(&two);
    rig_close(&one);
}

static void core__handles_of_a_closed_device_are_stale(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL);
    weir_buffer released = make(one.stream, MIB, NULL);
    drop(released);
    rig_close(&one);
    rig two = rig_open(NULL, NULL);
    weir_buffer abandoned = make(two.stream, MIB, NULL);
    weir_device_abandon(two.device);

    rig three = rig_open(NULL, NULL);
    weir_buffer live = make(three.stream, MIB, NULL);
    still was = hold_still(&three);
    assert_result(weir_buffer_release(released), WEIR_STALE);
    assert_result(weir_buffer_release(abandoned), WEIR_STALE);
    assert_result(weir_buffer_retain(abandoned), WEIR_STALE);
    assert_int_equal(weir_buffer_address(abandoned), 0);
    assert_null(weir_buffer_stream(abandoned));
    assert_unchanged(&was);
    drop(live);
    rig_close(&three);
}

static void core__references_are_counted(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, MIB, NULL);
    for (int i = 0; i < 1000; i++) {
        assert_ok(weir_buffer_retain(buffer));
    }
    assert_int_equal(weir_buffer_references(buffer), 1001);
    for (int i = 0; i < 1000; i++) {
        assert_ok(weir_buffer_release(buffer));
    }
    assert_int_equal(weir_buffer_references(buffer), 1);
    assert_int_equal(usage_of(r.device).in_use_bytes, MIB);
    drop(buffer);
    assert_result(weir_buffer_release(buffer), WEIR_STALE);
    assert_result(weir_buffer_retain(buffer), WEIR_STALE);
    rig_close(&r);
}

/* ---- NULL everywhere ---- */

static void core__null_arguments_of_buffers_are_invalid(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer live = make(r.stream, MIB, NULL);
    weir_buffer out = {77, 78};
    still was = hold_still(&r);
    assert_result(weir_buffer_create(NULL, MIB, NULL, &out), WEIR_INVALID);
    assert_true(out.index == 77 && out.generation == 78);
    assert_result(weir_buffer_create(r.stream, MIB, NULL, NULL), WEIR_INVALID);
    assert_result(weir_buffer_use(live, NULL), WEIR_INVALID);
    assert_unchanged(&was);
    drop(live);
    rig_close(&r);
}

static void core__null_arguments_of_devices_are_invalid(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    still was = hold_still(&r);
    weir_usage usage = {0};
    weir_cleanup_outcome outcome = {0};
    weir_driver_properties properties;
    assert_result(weir_device_open("sim", NULL, NULL), WEIR_INVALID);
    assert_result(weir_device_memory_usage(NULL, &usage), WEIR_INVALID);
    assert_result(weir_device_memory_usage(r.device, NULL), WEIR_INVALID);
    assert_result(weir_device_memory_cleanup(NULL, NULL, &outcome), WEIR_INVALID);
    assert_result(weir_device_properties(NULL, &properties), WEIR_INVALID);
    assert_result(weir_device_properties(r.device, NULL), WEIR_INVALID);
    assert_result(weir_device_tick(NULL, 1), WEIR_INVALID);
    assert_result(weir_device_sync(NULL), WEIR_INVALID);
    assert_result(weir_device_limit(NULL, 1), WEIR_INVALID);
    assert_result(weir_device_check(NULL), WEIR_INVALID);
    assert_ok(weir_device_close(NULL));
    weir_device_abandon(NULL);
    assert_null(weir_device_default_stream(NULL));
    assert_null(weir_device_driver(NULL));
    (void)weir_device_name(NULL);
    (void)weir_device_preset(NULL);
    assert_unchanged(&was);
    rig_close(&r);
}

static void core__null_arguments_of_streams_are_invalid(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    still was = hold_still(&r);
    weir_stream *stream = NULL;
    weir_usage usage = {0};
    weir_launch launch = {0};
    weir_stream_hook hook = {.context = &r};
    assert_result(weir_stream_create(NULL, NULL, &stream), WEIR_INVALID);
    assert_result(weir_stream_create(r.device, NULL, NULL), WEIR_INVALID);
    assert_null(stream);
    assert_ok(weir_stream_close(NULL));
    assert_result(weir_stream_sync(NULL), WEIR_INVALID);
    assert_result(weir_stream_memory_usage(NULL, &usage), WEIR_INVALID);
    assert_result(weir_stream_memory_usage(r.stream, NULL), WEIR_INVALID);
    assert_result(weir_stream_launch(NULL, &launch), WEIR_INVALID);
    assert_result(weir_stream_launch(r.stream, NULL), WEIR_INVALID);
    assert_error(weir_stream_launch(r.stream, &launch)); /* no kernel */
    assert_result(weir_stream_hook_add(NULL, &hook), WEIR_INVALID);
    assert_result(weir_stream_hook_add(r.stream, NULL), WEIR_INVALID);
    assert_error(weir_stream_hook_remove(NULL, &r));
    assert_null(weir_stream_native(NULL));
    assert_null(weir_stream_device(NULL));
    (void)weir_stream_name(NULL);
    (void)weir_stream_driver_stream(NULL);
    assert_unchanged(&was);
    rig_close(&r);
}

static weir_result swallow(void *context, const char *text, size_t text_bytes)
{
    (void)context;
    (void)text;
    (void)text_bytes;
    return WEIR_OK;
}

static void core__null_arguments_of_reports_are_invalid(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    still was = hold_still(&r);
    weir_tag_usage tag;
    size_t count = 0;
    weir_device_report report = {0};
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    assert_result(weir_device_tag_usage(NULL, "x", &tag), WEIR_INVALID);
    assert_result(weir_device_tag_usage(r.device, "x", NULL), WEIR_INVALID);
    assert_result(weir_device_tags(NULL, &tag, 1, &count), WEIR_INVALID);
    assert_result(weir_device_tags(r.device, NULL, 1, &count), WEIR_INVALID);
    assert_result(weir_device_memory_report(NULL, &report), WEIR_INVALID);
    assert_result(weir_device_memory_report(r.device, NULL), WEIR_INVALID);
    assert_result(weir_device_write_report(NULL, WEIR_FORMAT_TEXT, swallow, NULL),
                  WEIR_INVALID);
    assert_result(weir_device_write_report(r.device, WEIR_FORMAT_TEXT, NULL, NULL),
                  WEIR_INVALID);
    assert_result(weir_device_write_report(r.device, (weir_format)77, swallow, NULL),
                  WEIR_INVALID);
    assert_result(weir_device_explain_lines(NULL, lines), WEIR_INVALID);
    assert_result(weir_device_explain_lines(r.device, NULL), WEIR_INVALID);
    assert_result(weir_device_explain(NULL, swallow, NULL), WEIR_INVALID);
    assert_result(weir_device_explain(r.device, NULL, NULL), WEIR_INVALID);
    assert_result(weir_device_explain_json(NULL, swallow, NULL), WEIR_INVALID);
    assert_result(weir_device_explain_json(r.device, NULL, NULL), WEIR_INVALID);
    assert_unchanged(&was);
    rig_close(&r);
}

static weir_result refuse(void *context, const char *text, size_t text_bytes)
{
    (void)context;
    (void)text;
    (void)text_bytes;
    return WEIR_IO;
}

static void core__a_sink_that_fails_stops_the_writer(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_int_equal(weir_device_explain(r.device, refuse, NULL), WEIR_IO);
    assert_int_equal(weir_device_explain_json(r.device, refuse, NULL), WEIR_IO);
    assert_int_equal(weir_device_write_report(r.device, WEIR_FORMAT_TEXT, refuse, NULL),
                     WEIR_IO);
    assert_int_equal(weir_device_write_report(r.device, WEIR_FORMAT_JSON, refuse, NULL),
                     WEIR_IO);
    rig_close(&r);
}

/* ---- devices ---- */

static void core__a_device_that_cannot_be_opened_leaves_the_output_alone(void **state)
{
    (void)state;
    weir_device *mark = (weir_device *)&mark;
    weir_device *device = mark;
    const char *const names[] = {"no-such-driver", "no-such-driver:0", "simulation"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_result(weir_device_open(names[i], NULL, &device), WEIR_NOT_FOUND);
    }
    assert_error(weir_device_open("", NULL, &device));
    assert_error(weir_device_open(":", NULL, &device));
    assert_result(weir_device_open(NULL, NULL, &device), WEIR_INVALID);
    weir_device_desc desc = {.preset = "no-such-preset"};
    assert_error(weir_device_open("sim", &desc, &device));
    assert_says(weir_last_error(), "no-such-preset");
    assert_result(weir_device_open_driver(NULL, "", NULL, &device), WEIR_INVALID);
    weir_driver_table empty = {.size = sizeof empty, .name = "empty"};
    assert_error(weir_device_open_driver(&empty, "", NULL, &device));
    assert_ptr_equal(device, mark);
}

static void core__structs_of_an_unknown_size_are_refused(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    still was = hold_still(&r);
    weir_device *device = NULL;
    weir_stream *stream = NULL;
    weir_buffer buffer = WEIR_NO_BUFFER;
    weir_usage usage = {.size = 3};
    weir_cleanup_outcome outcome = {.size = 3};
    weir_device_report report = {.size = 3};
    assert_result(weir_device_open("sim", &(weir_device_desc){.size = 3}, &device),
                  WEIR_INVALID);
    assert_result(weir_stream_create(r.device, &(weir_stream_desc){.size = 3}, &stream),
                  WEIR_INVALID);
    assert_result(weir_buffer_create(r.stream, 1, &(weir_buffer_desc){.size = 3},
                                     &buffer),
                  WEIR_INVALID);
    assert_result(weir_device_memory_usage(r.device, &usage), WEIR_INVALID);
    assert_result(weir_stream_memory_usage(r.stream, &usage), WEIR_INVALID);
    assert_result(weir_device_memory_report(r.device, &report), WEIR_INVALID);
    assert_result(weir_device_memory_cleanup(r.device, NULL, &outcome), WEIR_INVALID);
    assert_result(weir_device_memory_cleanup(r.device, &(weir_cleanup_desc){.size = 3},
                                             NULL),
                  WEIR_INVALID);
    assert_result(weir_stream_hook_add(r.stream, &(weir_stream_hook){.size = 3}),
                  WEIR_INVALID);
    usage.size = sizeof usage;
    assert_ok(weir_device_memory_usage(r.device, &usage));
    assert_int_equal(usage.size, sizeof usage);
    assert_unchanged(&was);
    rig_close(&r);
}

static void core__close_with_live_buffers_is_busy_and_names_them(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer big = make(r.stream, 64 * MIB, "kv-cache");
    weir_buffer small = make(r.stream, 3 * MIB, "weights");
    still was = hold_still(&r);
    assert_result(weir_device_close(r.device), WEIR_BUSY);
    assert_says(weir_last_error(), "kv-cache");
    assert_says(weir_last_error(), "64");
    assert_says(weir_last_error(), "weights");
    assert_unchanged(&was);
    drop(big);
    assert_result(weir_device_close(r.device), WEIR_BUSY);
    assert_says(weir_last_error(), "weights");
    drop(small);
    rig_close(&r);
}

static void core__close_of_a_stream_with_live_buffers_is_busy_and_names_them(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *stream = open_stream(r.device, "side");
    weir_buffer buffer = make(stream, 5 * MIB, "activations");
    still was = hold_still(&r);
    assert_result(weir_stream_close(stream), WEIR_BUSY);
    assert_says(weir_last_error(), "activations");
    assert_unchanged(&was);
    drop(buffer);
    assert_ok(weir_stream_close(stream));
    rig_close(&r);
}

static void core__the_default_stream_cannot_be_closed(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    still was = hold_still(&r);
    assert_error(weir_stream_close(r.stream));
    assert_unchanged(&was);
    weir_buffer buffer = make(r.stream, MIB, NULL);
    drop(buffer);
    rig_close(&r);
}

static void core__a_limit_below_what_is_held_takes_nothing(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, 64 * MIB, "held");
    still was = hold_still(&r);
    assert_ok(weir_device_limit(r.device, MIB));
    assert_unchanged(&was);
    weir_buffer out = {77, 78};
    assert_result(weir_buffer_create(r.stream, 64 * MIB, NULL, &out), WEIR_LIMIT);
    assert_true(out.index == 77 && out.generation == 78);
    assert_says(weir_last_error(), "limit");
    assert_says(weir_last_error(), "held");
    assert_unchanged(&was);
    assert_int_equal(usage_of(r.device).limits, 1);
    assert_ok(weir_device_limit(r.device, 0));
    weir_buffer more = make(r.stream, 64 * MIB, NULL);
    drop(more);
    drop(buffer);
    rig_close(&r);
}

static void core__out_of_memory_states_the_request_and_the_holders(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer holder = make(r.stream, 20 * GIB, "decoder");
    still was = hold_still(&r);
    weir_buffer out = {77, 78};
    assert_result(weir_buffer_create(r.stream, 5 * GIB, NULL, &out), WEIR_OUT_OF_MEMORY);
    assert_true(out.index == 77 && out.generation == 78);
    assert_says(weir_last_error(), "decoder");
    assert_says(weir_last_error(), "5");
    assert_unchanged(&was);
    assert_int_equal(usage_of(r.device).ooms, 1);
    drop(holder);
    rig_close(&r);
}

/* ---- hooks ---- */

static void core__a_hook_removed_twice_is_not_found(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    int one = 0, two = 0;
    weir_stream_hook hook = {.context = &one};
    assert_ok(weir_stream_hook_add(r.stream, &hook));
    assert_result(weir_stream_hook_remove(r.stream, &two), WEIR_NOT_FOUND);
    assert_ok(weir_stream_hook_remove(r.stream, &one));
    assert_result(weir_stream_hook_remove(r.stream, &one), WEIR_NOT_FOUND);
    rig_close(&r);
}

static void core__the_number_of_hooks_has_an_end(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    static char contexts[1000];
    size_t added = 0;
    weir_result result = WEIR_OK;
    while (added < sizeof contexts && result == WEIR_OK) {
        weir_stream_hook hook = {.context = &contexts[added]};
        result = weir_stream_hook_add(r.stream, &hook);
        added += result == WEIR_OK;
    }
    assert_true(added >= 4);
    if (result != WEIR_OK) {
        assert_int_equal(result, WEIR_LIMIT);
        assert_true(weir_last_error()[0] != '\0');
    }
    cleanup(r.device, NULL); /* they have nothing to call */
    while (added > 0) {
        assert_ok(weir_stream_hook_remove(r.stream, &contexts[--added]));
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core__a_double_release_is_stale_and_changes_nothing),
        cmocka_unit_test(core__a_stale_handle_never_reaches_the_next_buffer),
        cmocka_unit_test(core__made_up_handles_are_refused),
        cmocka_unit_test(core__absurd_sizes_fail_and_leave_the_output_alone),
        cmocka_unit_test(core__an_alignment_must_be_a_power_of_two),
        cmocka_unit_test(core__every_alignment_up_to_2_mib_is_honoured),
        cmocka_unit_test(core__copies_stay_inside_the_buffer),
        cmocka_unit_test(core__a_buffer_of_one_device_is_not_used_on_another),
        cmocka_unit_test(core__handles_of_a_closed_device_are_stale),
        cmocka_unit_test(core__references_are_counted),
        cmocka_unit_test(core__null_arguments_of_buffers_are_invalid),
        cmocka_unit_test(core__null_arguments_of_devices_are_invalid),
        cmocka_unit_test(core__null_arguments_of_streams_are_invalid),
        cmocka_unit_test(core__null_arguments_of_reports_are_invalid),
        cmocka_unit_test(core__a_sink_that_fails_stops_the_writer),
        cmocka_unit_test(core__a_device_that_cannot_be_opened_leaves_the_output_alone),
        cmocka_unit_test(core__structs_of_an_unknown_size_are_refused),
        cmocka_unit_test(core__close_with_live_buffers_is_busy_and_names_them),
        cmocka_unit_test(
            core__close_of_a_stream_with_live_buffers_is_busy_and_names_them),
        cmocka_unit_test(core__the_default_stream_cannot_be_closed),
        cmocka_unit_test(core__a_limit_below_what_is_held_takes_nothing),
        cmocka_unit_test(core__out_of_memory_states_the_request_and_the_holders),
        cmocka_unit_test(core__a_hook_removed_twice_is_not_found),
        cmocka_unit_test(core__the_number_of_hooks_has_an_end),
    };
    return cmocka_run_group_tests_name("core, misuse", tests, NULL, NULL);
}
