/* SPDX-License-Identifier: MIT */
#include "report/explain.h"

#include "support.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB UINT64_C(1048576)

enum { IN_USE, DEFERRED, RELEASABLE, PINNED, DRIVER_DEFERRED, OVERHEAD, OTHERS };

static weir_device_report report;
static weir_explain_line lines[WEIR_EXPLAIN_LINES];
static capture captured;

static int take_sample(void **state)
{
    (void)state;
    sample_report(&report);
    captured = (capture){0};
    return 0;
}

/* A device on which nothing was ever asked for, and which knows all its numbers. */
static int take_empty(void **state)
{
    (void)state;
    report = (weir_device_report){.size = sizeof report, .capacity_bytes = 24576 * MIB};
    captured = (capture){0};
    return 0;
}

static void line_is(int place, uint64_t bytes, const char *reason, const char *way_out)
{
    wr_explain_from_report(&report, lines);
    assert_int_equal(lines[place].bytes, bytes);
    assert_string_equal(lines[place].reason, reason);
    assert_string_equal(lines[place].way_out, way_out);
}

static void text_is_without(const char *text)
{
    if (strstr(captured.text, text) != NULL) {
        fail_msg("\"%s\" is in:\n%s", text, captured.text);
    }
}

static void write_text(void)
{
    assert_int_equal(wr_explain_write_text(&report, capture_write, &captured), WEIR_OK);
}

static void explain__writes_one_block_with_all_seven_places_and_the_sums(void **state)
{
    (void)state;
    write_text();
    assert_string_equal(
        captured.text,
        "in_use           256.0 MiB  5 buffers plus 412 B of padding: weights 256.0 MiB "
        "in "
        "4, untagged 100 B in 1\n"
        "                            -> drop the buffers\n"
        "deferred           4.0 GiB  dropped, but queued work may still use them: stream "
        "sidework 3.0 GiB, graph decode 1.0 GiB\n"
        "                            -> sync, or weir_device_memory_cleanup with wait; "
        "destroy the graphs\n"
        "releasable         8.0 MiB  held by nobody; kept for the next request: arena "
        "large "
        "8.0 MiB\n"
        "                            -> weir_device_memory_cleanup; idle time and memory "
        "pressure do it too\n"
        "pinned             2.0 MiB  free, but a live buffer shares the granule: "
        "untagged "
        "(100 B) pins 2.0 MiB\n"
        "                            -> drop the named buffers; until then the room "
        "serves "
        "new requests\n"
        "driver_deferred   64.0 MiB  handed back; the driver has not let go yet\n"
        "                            -> weir_device_memory_cleanup with wait, or the "
        "next "
        "submitted work\n"
        "overhead         403.0 MiB  never Weir's: context of 400.0 MiB + unattributed "
        "3.0 "
        "MiB\n"
        "                            -> process exit, or whoever took it without Weir\n"
        "others             1.0 GiB  other processes: 1.0 GiB of 24.0 GiB\n"
        "                            -> they give it back or end\n"
        "in_use 268435556 + padding 412 + deferred 4294967296 + releasable 8388608 + "
        "pinned "
        "2096640 = reserved 4573888512 bytes\n"
        "footprint 5062524928 = reserved 4573888512 - untouched 1048576 + "
        "driver_deferred "
        "67108864 + overhead 422576128 bytes\n");
}

static void explain__is_short_where_there_is_nothing(void **state)
{
    (void)state;
    write_text();
    assert_string_equal(
        captured.text,
        "in_use                 0 B  no live buffers\n"
        "deferred               0 B  no dropped bytes wait for device work\n"
        "releasable             0 B  nothing is kept without a holder\n"
        "pinned                 0 B  no free bytes share a page or granule with a live "
        "buffer\n"
        "driver_deferred        0 B  the driver has let go of all that was handed back\n"
        "overhead               0 B  nothing beside what Weir took\n"
        "others                 0 B  no other process holds memory here\n"
        "in_use 0 + padding 0 + deferred 0 + releasable 0 + pinned 0 = reserved 0 bytes\n"
        "footprint 0 = reserved 0 - untouched 0 + driver_deferred 0 + overhead 0 "
        "bytes\n");
}

static void explain__says_that_numbers_are_not_known(void **state)
{
    (void)state;
    report.footprint_bytes = WEIR_UNKNOWN_BYTES;
    report.overhead_bytes = WEIR_UNKNOWN_BYTES;
    report.others_bytes = WEIR_UNKNOWN_BYTES;
    report.unattributed_bytes = -1;
    line_is(OVERHEAD, WEIR_UNKNOWN_BYTES,
            "not known: nobody tells the footprint of this process", "");
    line_is(OTHERS, WEIR_UNKNOWN_BYTES,
            "not known: nobody tells what other processes hold", "");
    write_text();
    assert_non_null(strstr(captured.text, "\noverhead               n/a  not known"));
    assert_non_null(strstr(captured.text, "\nothers                 n/a  not known"));
    assert_non_null(strstr(captured.text, "\nfootprint n/a = reserved 4573888512 - "));
    assert_non_null(strstr(captured.text, " + overhead n/a bytes\n"));
    text_is_without("EiB");
    text_is_without("18446744073709551615");
    text_is_without("17179869184");
    text_is_without("-1 B");
}

static void explain__names_the_places_in_their_order(void **state)
{
    (void)state;
    static const char *const names[WEIR_EXPLAIN_LINES] = {"in_use",          "deferred",
                                                          "releasable",      "pinned",
                                                          "driver_deferred", "overhead",
                                                          "others"};
    wr_explain_from_report(&report, lines);
    for (size_t i = 0; i < WEIR_EXPLAIN_LINES; i++) {
        assert_string_equal(lines[i].name, names[i]);
    }
}

static void explain__leaves_out_counts_where_one_tag_holds_all(void **state)
{
    (void)state;
    report.usage.in_use_bytes = 256 * MIB;
    report.usage.live_count = 4;
    report.holders[0] =
        (weir_tag_usage){.tag = "weights", .in_use_bytes = 256 * MIB, .live_count = 4};
    line_is(IN_USE, 256 * MIB, "4 buffers: weights 256.0 MiB", "drop the buffers");
}

static void explain__speaks_of_one_buffer_in_the_singular(void **state)
{
    (void)state;
    report.usage.in_use_bytes = 32;
    report.usage.padding_bytes = 480;
    report.usage.live_count = 1;
    report.holders[0] =
        (weir_tag_usage){.tag = "pebble", .in_use_bytes = 32, .live_count = 1};
    line_is(IN_USE, 32, "1 buffer plus 480 B of padding: pebble 32 B",
            "drop the buffers");
}

static void explain__ends_a_list_that_does_not_fit_in_what_is_left_out(void **state)
{
    (void)state;
    report.usage.in_use_bytes = 8 * MIB;
    report.usage.live_count = 8;
    for (int i = 0; i < 8; i++) {
        weir_tag_usage *holder = &report.holders[i];
        *holder = (weir_tag_usage){.in_use_bytes = MIB, .live_count = 1};
        memset(holder->tag, 'a' + i, sizeof holder->tag - 1);
    }
    line_is(IN_USE, 8 * MIB,
            "8 buffers: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1.0 MiB in 1, "
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 1.0 MiB in 1, "
            "ccccccccccccccccccccccccccccccc 1.0 MiB in 1, "
            "ddddddddddddddddddddddddddddddd 1.0 MiB in 1, and 4.0 MiB more",
            "drop the buffers");
}

static void explain__says_what_the_named_holders_leave_over(void **state)
{
    (void)state;
    report.usage.in_use_bytes += 5 * MIB;
    report.usage.live_count += 2;
    line_is(IN_USE, 261 * MIB + 100,
            "7 buffers plus 412 B of padding: weights 256.0 MiB in 4, untagged 100 B in "
            "1, and 5.0 MiB more",
            "drop the buffers");
}

static void explain__makes_names_from_outside_printable(void **state)
{
    (void)state;
    strcpy(report.holders[0].tag, "\x1b[2Jw\xff");
    strcpy(report.waiting[0].name, "stream \r\n");
    strcpy(report.pools[1].name, "\tlarge");
    strcpy(report.pinning[0].tag, "\x07");
    write_text();
    assert_non_null(strstr(captured.text, ": ?[2Jw? 256.0 MiB in 4,"));
    assert_non_null(strstr(captured.text, ": stream ?? 3.0 GiB,"));
    assert_non_null(strstr(captured.text, ": ?large 8.0 MiB\n"));
    assert_non_null(strstr(captured.text, ": ? (100 B) pins 2.0 MiB\n"));
}

static void explain__sends_to_the_stream_or_to_the_graph(void **state)
{
    (void)state;
    report.usage.deferred_bytes = 4096 * MIB;
    report.waiting[0] = (weir_waiting){.name = "stream sidework", .bytes = 4096 * MIB};
    line_is(DEFERRED, 4096 * MIB,
            "dropped, but queued work may still use them: stream sidework 4.0 GiB",
            "wait for the fence: a sync, or weir_device_memory_cleanup with wait");
    report.waiting[0] = (weir_waiting){.name = "graph decodegraph", .bytes = 4096 * MIB};
    line_is(DEFERRED, 4096 * MIB,
            "dropped, but queued work may still use them: graph decodegraph 4.0 GiB",
            "destroy the graph, then sync the streams it ran on");
    report.waiting[0] = (weir_waiting){0};
    line_is(DEFERRED, 4096 * MIB, "dropped, but queued work may still use them",
            "wait for the fence: a sync, or weir_device_memory_cleanup with wait");
}

static void explain__tells_a_shared_page_from_a_shared_granule(void **state)
{
    (void)state;
    report.pinning[0] = (weir_pinning){
        .tag = "survivor", .buffer_bytes = MIB, .pinned_bytes = 2 * MIB - 512};
    report.pools[0].granule_bytes = 0;
    line_is(PINNED, 2 * MIB - 512,
            "free, but a live buffer shares the page: survivor (1.0 MiB) pins 2.0 MiB",
            "drop the named buffers; until then the room serves new requests");
    report.pools[1].pinned_bytes = MIB;
    wr_explain_from_report(&report, lines);
    assert_non_null(strstr(lines[PINNED].reason, "shares the page or granule: survivor"));
}

static void explain__says_plainly_that_unattributed_is_negative(void **state)
{
    (void)state;
    report.context_bytes = 400 * MIB;
    report.unattributed_bytes = -(int64_t)(2 * MIB);
    report.overhead_bytes = 398 * MIB;
    report.footprint_bytes = 398 * MIB;
    line_is(OVERHEAD, 398 * MIB,
            "never Weir's: context of 400.0 MiB + unattributed -2.0 MiB (less is counted "
            "than Weir took)",
            "process exit");
}

static void explain__counts_no_bytes_for_a_negative_overhead(void **state)
{
    (void)state;
    report.usage.in_use_bytes = 8 * MIB;
    report.usage.reserved_bytes = 8 * MIB;
    report.usage.live_count = 1;
    report.context_bytes = 2 * MIB;
    report.unattributed_bytes = -(int64_t)(5 * MIB);
    report.overhead_bytes = 0;
    report.footprint_bytes = 5 * MIB;
    line_is(OVERHEAD, 0,
            "never Weir's: context of 2.0 MiB + unattributed -5.0 MiB (less is counted "
            "than Weir took)",
            "");
    write_text();
    assert_non_null(strstr(captured.text,
                           "footprint 5242880 = reserved 8388608 - untouched "
                           "0 + driver_deferred 0 + overhead -3145728 bytes"));
}

static void explain__does_not_call_a_wrong_sum_equal(void **state)
{
    (void)state;
    report.usage.releasable_bytes += 1;
    report.footprint_bytes += 1;
    write_text();
    assert_non_null(strstr(captured.text, "pinned 2096640 != reserved 4573888512 bytes"));
    assert_non_null(
        strstr(captured.text, "footprint 5062524929 != reserved 4573888512 -"));
}

static void explain__is_an_array_of_seven_objects_in_json(void **state)
{
    (void)state;
    report.others_bytes = WEIR_UNKNOWN_BYTES;
    wr_explain_from_report(&report, lines);
    assert_int_equal(wr_explain_write_json(&report, capture_write, &captured), WEIR_OK);
    cJSON *array = cJSON_Parse(captured.text);
    assert_int_equal(cJSON_GetArraySize(array), WEIR_EXPLAIN_LINES);
    for (int i = 0; i < WEIR_EXPLAIN_LINES; i++) {
        const cJSON *item = cJSON_GetArrayItem(array, i);
        const cJSON *bytes = cJSON_GetObjectItem(item, "bytes");
        assert_int_equal(cJSON_GetArraySize(item), 4);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(item, "name")),
                            lines[i].name);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(item, "reason")),
                            lines[i].reason);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(item, "way_out")),
                            lines[i].way_out);
        assert_true(i == OTHERS ? cJSON_IsNull(bytes)
                                : (uint64_t)bytes->valuedouble == lines[i].bytes);
    }
    cJSON_Delete(array);
}

static void explain__names_the_stream_that_keeps_everything_from_going_back(void **state)
{
    (void)state;
    report.capturing = (weir_capturing){.stream = "decode", .for_ms = 1500};
    write_text();
    assert_non_null(
        strstr(captured.text, "stream decode has been capturing for 1500 ms"));
    assert_non_null(
        strstr(captured.text, "-> end or abort the capture of stream decode"));
    assert_non_null(strstr(captured.text, "-> end or abort the capture, then wait"));
}

static void explain__returns_what_the_sink_returns(void **state)
{
    (void)state;
    captured.fail_call = 2;
    assert_int_equal(wr_explain_write_text(&report, capture_write, &captured), WEIR_IO);
    assert_int_equal(captured.call_count, 2);
    captured = (capture){.fail_call = 1};
    assert_int_equal(wr_explain_write_json(&report, capture_write, &captured), WEIR_IO);
    assert_int_equal(captured.call_count, 1);
}

/* Every number and count at its largest, every name at its longest: nothing overflows. */
static void explain__stands_a_report_full_of_ones(void **state)
{
    (void)state;
    memset(&report, 0xff, sizeof report);
    for (int i = 0; i < 8; i++) {
        report.holders[i].tag[sizeof report.holders[i].tag - 1] = '\0';
        report.waiting[i].name[sizeof report.waiting[i].name - 1] = '\0';
        report.pinning[i].tag[sizeof report.pinning[i].tag - 1] = '\0';
    }
    report.capturing.stream[sizeof report.capturing.stream - 1] = '\0';
    for (int i = 0; i < 32; i++) {
        report.pools[i].name[sizeof report.pools[i].name - 1] = '\0';
    }
    write_text();
    text_is_without("EiB");
    assert_non_null(strstr(captured.text, "overhead               n/a  not known"));
}

#define SAMPLE(name) cmocka_unit_test_setup(name, take_sample)
#define EMPTY(name) cmocka_unit_test_setup(name, take_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAMPLE(explain__writes_one_block_with_all_seven_places_and_the_sums),
        EMPTY(explain__is_short_where_there_is_nothing),
        SAMPLE(explain__says_that_numbers_are_not_known),
        EMPTY(explain__names_the_places_in_their_order),
        EMPTY(explain__leaves_out_counts_where_one_tag_holds_all),
        EMPTY(explain__speaks_of_one_buffer_in_the_singular),
        EMPTY(explain__ends_a_list_that_does_not_fit_in_what_is_left_out),
        SAMPLE(explain__says_what_the_named_holders_leave_over),
        SAMPLE(explain__makes_names_from_outside_printable),
        EMPTY(explain__sends_to_the_stream_or_to_the_graph),
        SAMPLE(explain__tells_a_shared_page_from_a_shared_granule),
        EMPTY(explain__says_plainly_that_unattributed_is_negative),
        EMPTY(explain__counts_no_bytes_for_a_negative_overhead),
        SAMPLE(explain__does_not_call_a_wrong_sum_equal),
        SAMPLE(explain__is_an_array_of_seven_objects_in_json),
        SAMPLE(explain__names_the_stream_that_keeps_everything_from_going_back),
        SAMPLE(explain__returns_what_the_sink_returns),
        EMPTY(explain__stands_a_report_full_of_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
