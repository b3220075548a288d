/* SPDX-License-Identifier: MIT */
#include "../../cli/demo/demo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static void verdict__says_what_came_back(void **state)
{
    (void)state;
    weir_device_report report = {
        .usage = {.releasable_bytes = 256 * MIB, .reserved_bytes = 256 * MIB}};
    char text[WR_DEMO_VERDICT_BYTES];
    assert_true(wr_demo_verdict(&report, 256 * MIB, false, text));
    assert_string_equal(text, "cached, not leaked: cleanup returns 256.0 MiB");
    assert_true(wr_demo_verdict(&report, 256 * MIB, true, text));
    assert_string_equal(text, "cached, not leaked: idle time returns 256.0 MiB");
    report.usage.reserved_bytes = 0;
    assert_true(wr_demo_verdict(&report, 0, false, text));
    assert_string_equal(text, "not leaked: nothing was kept");
}

static void verdict__names_who_still_holds_what(void **state)
{
    (void)state;
    weir_device_report report = {
        .usage = {.in_use_bytes = 65 * MIB, .reserved_bytes = 256 * MIB, .live_count = 3},
        .holders = {{.tag = "weights", .in_use_bytes = 64 * MIB, .live_count = 1},
                    {.tag = "", .in_use_bytes = MIB, .live_count = 2}}};
    char text[WR_DEMO_VERDICT_BYTES];
    assert_false(wr_demo_verdict(&report, 190 * MIB, false, text));
    assert_string_equal(text, "held: 64.0 MiB by weights, 1.0 MiB by untagged buffers");
}

static void verdict__fits_the_longest_tags(void **state)
{
    (void)state;
    weir_device_report report = {.usage = {.in_use_bytes = 5}};
    for (int i = 0; i < 8; i++) {
        report.holders[i].live_count = 1;
        report.holders[i].in_use_bytes = UINT64_MAX - 1;
        memset(report.holders[i].tag, 'x', sizeof report.holders[i].tag - 1);
    }
    char text[WR_DEMO_VERDICT_BYTES];
    assert_false(wr_demo_verdict(&report, 0, false, text));
    assert_true(strlen(text) < sizeof text - 1);
}

static void verdict__names_the_stream_that_is_waited_for(void **state)
{
    (void)state;
    weir_device_report report = {
        .usage = {.deferred_bytes = 64 * MIB, .reserved_bytes = 64 * MIB},
        .waiting = {{.name = "stream sidework", .bytes = 64 * MIB}}};
    char text[WR_DEMO_VERDICT_BYTES];
    assert_false(wr_demo_verdict(&report, 0, false, text));
    assert_string_equal(text,
                        "not finished: 64.0 MiB wait for queued work of stream sidework");
}

static void verdict__says_what_did_not_come_back(void **state)
{
    (void)state;
    weir_device_report report = {
        .usage = {.releasable_bytes = 256 * MIB, .reserved_bytes = 256 * MIB}};
    char text[WR_DEMO_VERDICT_BYTES];
    assert_false(wr_demo_verdict(&report, 64 * MIB, true, text));
    assert_string_equal(text, "kept: idle time returns 64.0 MiB of 256.0 MiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdict__says_what_came_back),
        cmocka_unit_test(verdict__names_who_still_holds_what),
        cmocka_unit_test(verdict__fits_the_longest_tags),
        cmocka_unit_test(verdict__names_the_stream_that_is_waited_for),
        cmocka_unit_test(verdict__says_what_did_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
