/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include "support.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB UINT64_C(1048576)

static weir_device_report report;
static capture captured;

static int take_sample(void **state)
{
    (void)state;
    sample_report(&report);
    captured = (capture){0};
    return 0;
}

static int take_empty(void **state)
{
    (void)state;
    report = (weir_device_report){.size = sizeof report};
    captured = (capture){0};
    return 0;
}

static void write_text(void)
{
    assert_int_equal(wr_report_write_text(&report, capture_write, &captured), WEIR_OK);
}

static cJSON *write_json(void)
{
    assert_int_equal(wr_report_write_json(&report, capture_write, &captured), WEIR_OK);
    cJSON *parsed = cJSON_Parse(captured.text);
    assert_true(cJSON_IsObject(parsed));
    return parsed;
}

static void has_number(const cJSON *object, const char *key, double number)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(item) || item->valuedouble < number ||
        item->valuedouble > number) {
        fail_msg("%s is not %.0f", key, number);
    }
}

static void has_text(const cJSON *object, const char *key, const char *text)
{
    const char *found =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    assert_non_null(found);
    assert_string_equal(found, text);
}

static void has_null(const cJSON *object, const char *key)
{
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, key)));
}

static const cJSON *item_of(const cJSON *object, const char *list, int index, int count)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, list);
    assert_true(cJSON_IsArray(array));
    assert_int_equal(cJSON_GetArraySize(array), count);
    return cJSON_GetArrayItem(array, index);
}

/* ---- text ---- */

static const char sample_text[] =
    "usage\n"
    "  in_use             256.0 MiB  requested bytes of live buffers\n"
    "  padding                412 B  the rest of their slices\n"
    "  deferred             4.0 GiB  dropped; queued device work may still use them\n"
    "  releasable           8.0 MiB  held by nobody: cleanup, idle time or pressure "
    "gives "
    "them back\n"
    "  pinned               2.0 MiB  free, in a page or granule that a live neighbour "
    "shares\n"
    "  reserved             4.3 GiB  taken from the driver\n"
    "  driver_deferred     64.0 MiB  handed back; the driver has not let go yet\n"
    "  peak_in_use          5.0 GiB  the most in_use was\n"
    "  peak_reserved        6.0 GiB  the most reserved was\n"
    "  live_count                 5  live buffers\n"
    "\n"
    "pools\n"
    "  name         kind            from        to       page  granule  limit  pages  "
    "pages_peak  "
    "largest_alloc\n"
    "  arena small  arena            1 B  64.0 KiB  to demand  2.0 MiB   none      1           "
    "2  "
    "      1.5 KiB\n"
    "  arena large  arena       64.0 KiB       any  to demand  2.0 MiB   none   2180        "
    "3070  "
    "      3.0 GiB\n"
    "  persistent   persistent       0 B       any  to demand    whole   none      0           "
    "0  "
    "          0 B\n"
    "\n"
    "bytes by pool\n"
    "  name         live     in_use  padding  deferred  releasable   pinned  reserved\n"
    "  arena small     1      100 B    412 B       0 B         0 B  2.0 MiB   2.0 MiB\n"
    "  arena large     4  256.0 MiB      0 B   4.0 GiB     8.0 MiB      0 B   4.3 GiB\n"
    "  persistent      0        0 B      0 B       0 B         0 B      0 B       0 B\n"
    "  total           5  256.0 MiB    412 B   4.0 GiB     8.0 MiB  2.0 MiB   4.3 GiB\n"
    "\n"
    "largest holders\n"
    "  tag       live     in_use  peak_in_use\n"
    "  weights      4  256.0 MiB    512.0 MiB\n"
    "  untagged     1      100 B        300 B\n"
    "\n"
    "deferred bytes wait\n"
    "  for              deferred\n"
    "  stream sidework   3.0 GiB\n"
    "  graph decode      1.0 GiB\n"
    "\n"
    "live buffers that pin free bytes\n"
    "  tag       buffer   pinned\n"
    "  untagged   100 B  2.0 MiB\n"
    "\n"
    "given back, by cause\n"
    "  periodic                 0 B  given back on the allocation path\n"
    "  idle                     0 B  given back by time\n"
    "  explicit            64.0 MiB  given back by cleanup\n"
    "  pressure                 0 B  given back to make room\n"
    "\n"
    "events\n"
    "  allocations               12  buffers created\n"
    "  releases                   7  buffers whose last reference went\n"
    "  page_allocs                0  pages taken from the driver\n"
    "  page_frees                 0  pages handed back to the driver\n"
    "  commits                    3  commit calls\n"
    "  decommits                  1  decommit calls\n"
    "  moves                      0  granules' memory moved to other addresses\n"
    "  lends                      0  unheld spans or pages that went from one stream to "
    "another\n"
    "  fences                     2  fences recorded\n"
    "  fence_waits                0  host waits for a fence\n"
    "  stalls                     0  allocations that waited for the device\n"
    "  retries                    0  allocations that went round again after something "
    "was "
    "given back\n"
    "  callbacks                  0  reclaim callbacks called\n"
    "  ooms                       0  allocations that failed for memory\n"
    "  limits                     0  allocations that failed for a limit\n"
    "\n"
    "footprint\n"
    "  footprint            4.7 GiB  this process on the device, as the system counts "
    "it\n"
    "  untouched            1.0 MiB  committed, never written, not backed yet\n"
    "  overhead           403.0 MiB  never Weir's: context + unattributed\n"
    "  context            400.0 MiB  what the process had at open\n"
    "  unattributed         3.0 MiB  what is left of the footprint\n"
    "  others               1.0 GiB  other processes\n"
    "  capacity            24.0 GiB  device memory in all\n"
    "  largest_hole         8.0 MiB  the largest free run that needs nothing from the "
    "driver\n"
    "\n"
    "sums\n"
    "in_use 268435556 + padding 412 + deferred 4294967296 + releasable 8388608 + pinned "
    "2096640 = reserved 4573888512 bytes\n"
    "footprint 5062524928 = reserved 4573888512 - untouched 1048576 + driver_deferred "
    "67108864 + overhead 422576128 bytes\n";

static void report__writes_tables_that_line_up(void **state)
{
    (void)state;
    write_text();
    assert_string_equal(captured.text, sample_text);
}

static void report__has_no_block_for_an_empty_list(void **state)
{
    (void)state;
    write_text();
    static const char *const titles[] = {"\npools\n", "\nbytes by pool\n",
                                         "\nlargest holders\n", "\ndeferred bytes wait\n",
                                         "\nlive buffers that pin free bytes\n"};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        assert_null(strstr(captured.text, titles[i]));
    }
    assert_non_null(strstr(captured.text, "\n\nevents\n"));
}

static void report__writes_unknown_numbers_as_words(void **state)
{
    (void)state;
    report.footprint_bytes = WEIR_UNKNOWN_BYTES;
    report.overhead_bytes = WEIR_UNKNOWN_BYTES;
    report.others_bytes = WEIR_UNKNOWN_BYTES;
    report.unattributed_bytes = -1;
    write_text();
    assert_non_null(strstr(captured.text, "\n  footprint                n/a  "));
    assert_non_null(strstr(captured.text, "\n  overhead                 n/a  "));
    assert_non_null(strstr(captured.text, "\n  unattributed             n/a  "));
    assert_non_null(strstr(captured.text, "\n  others                   n/a  "));
    assert_null(strstr(captured.text, "EiB"));
    assert_null(strstr(captured.text, "18446744073709551615"));
    assert_null(strstr(captured.text, "-1 B"));
}

static void report__writes_a_negative_overhead_with_its_sign(void **state)
{
    (void)state;
    report.context_bytes = 1 * MIB;
    report.unattributed_bytes = -(int64_t)(3 * MIB);
    report.overhead_bytes = 0;
    write_text();
    assert_non_null(strstr(captured.text, "\n  overhead            -2.0 MiB  "));
    assert_non_null(strstr(captured.text, "\n  unattributed        -3.0 MiB  "));
}

static void report__fits_as_many_pools_as_there_can_be(void **state)
{
    (void)state;
    report.pool_count = 99; /* more than the array has */
    for (size_t i = 0; i < sizeof report.pools / sizeof report.pools[0]; i++) {
        memset(report.pools[i].name, 'p', sizeof report.pools[i].name - 1);
        report.pools[i].in_use_bytes = i == 31 ? MIB : 0;
    }
    write_text();
    assert_non_null(
        strstr(captured.text, "\n  total                               0  1.0 MiB"));
}

static void report__warns_once_of_each_pool_that_sends_requests_elsewhere(void **state)
{
    (void)state;
    report.pools[0].limit_bytes = 4 * MIB;
    report.pools[0].spills = 1000;
    report.pools[1].spills = 1;
    write_text();
    assert_non_null(strstr(
        captured.text, "\n\nwarnings\n"
                       "  pool \"arena small\" is full at 4.0 MiB: other pools served "
                       "1000 requests for it\n"
                       "  pool \"arena large\" was full: other pools served 1 "
                       "requests for it\n"));
}

/* ---- JSON ---- */

static void report__has_every_counter_of_the_lists_in_json(void **state)
{
    (void)state;
    uint64_t number = 1;
#define SET(name, text) report.usage.name##_bytes = number++;
    WEIR_USAGE_LIST(SET)
#undef SET
#define SET(name, text) report.usage.name = number++;
    WEIR_EVENT_LIST(SET)
#undef SET
    report.usage.live_count = number;
    cJSON *parsed = write_json();
    const cJSON *usage = cJSON_GetObjectItemCaseSensitive(parsed, "usage");
    double expected = 1;
#define EXPECT(name, text) has_number(usage, #name "_bytes", expected++);
    WEIR_USAGE_LIST(EXPECT)
#undef EXPECT
#define EXPECT(name, text) has_number(usage, #name, expected++);
    WEIR_EVENT_LIST(EXPECT)
#undef EXPECT
    has_number(usage, "live_count", expected);
    assert_int_equal(cJSON_GetArraySize(usage), expected);
    cJSON_Delete(parsed);
}

static void report__has_the_footprint_and_its_parts_in_json(void **state)
{
    (void)state;
    cJSON *parsed = write_json();
    has_number(parsed, "footprint_bytes", 4828 * MIB);
    has_number(parsed, "untouched_bytes", 1 * MIB);
    has_number(parsed, "overhead_bytes", 403 * MIB);
    has_number(parsed, "context_bytes", 400 * MIB);
    has_number(parsed, "unattributed_bytes", 3 * MIB);
    has_number(parsed, "others_bytes", 1024 * MIB);
    has_number(parsed, "capacity_bytes", 24576 * MIB);
    has_number(parsed, "largest_hole_bytes", 8 * MIB);
    assert_int_equal(cJSON_GetArraySize(parsed), 14);
    cJSON_Delete(parsed);
}

static void report__has_one_object_a_pool_in_json(void **state)
{
    (void)state;
    report.pools[0].kind = WEIR_POOL_KIND_SLICED;
    cJSON *parsed = write_json();
    const cJSON *small = item_of(parsed, "pools", 0, 3);
    has_text(small, "kind", "sliced");
    has_text(small, "name", "arena small");
    has_number(small, "min_slice_bytes", 1);
    has_number(small, "max_slice_bytes", 65536);
    has_number(small, "page_bytes", 0);
    has_number(small, "granule_bytes", 2 * MIB);
    has_number(small, "pages", 1);
    has_number(small, "pages_peak", 2);
    has_number(small, "limit_bytes", 0);
    has_number(small, "spills", 0);
    has_number(small, "largest_alloc_bytes", 1536);
    has_number(small, "live_count", 1);
    has_number(small, "in_use_bytes", 100);
    has_number(small, "padding_bytes", 412);
    has_number(small, "deferred_bytes", 0);
    has_number(small, "releasable_bytes", 0);
    has_number(small, "pinned_bytes", 2 * MIB - 512);
    has_number(small, "reserved_bytes", 2 * MIB);
    assert_int_equal(cJSON_GetArraySize(small), 18);
    const cJSON *large = item_of(parsed, "pools", 1, 3);
    has_null(large, "max_slice_bytes");
    has_number(large, "deferred_bytes", 4096 * MIB);
    has_number(large, "releasable_bytes", 8 * MIB);
    cJSON_Delete(parsed);
}

static void report__has_the_holders_waits_and_pins_in_json(void **state)
{
    (void)state;
    strcpy(report.pinning[0].tag, "a\"\xff");
    cJSON *parsed = write_json();
    const cJSON *holder = item_of(parsed, "holders", 0, 2);
    has_text(holder, "tag", "weights");
    has_number(holder, "in_use_bytes", 256 * MIB);
    has_number(holder, "peak_in_use_bytes", 512 * MIB);
    has_number(holder, "live_count", 4);
    has_text(item_of(parsed, "holders", 1, 2), "tag", "");
    const cJSON *waiting = item_of(parsed, "waiting", 1, 2);
    has_text(waiting, "name", "graph decode");
    has_number(waiting, "bytes", 1024 * MIB);
    const cJSON *pinning = item_of(parsed, "pinning", 0, 1);
    has_text(pinning, "tag", "a\"\xef\xbf\xbd");
    has_number(pinning, "buffer_bytes", 100);
    has_number(pinning, "pinned_bytes", 2 * MIB - 512);
    const cJSON *buffer = cJSON_GetObjectItemCaseSensitive(pinning, "buffer");
    has_number(buffer, "index", 7);
    has_number(buffer, "generation", 3);
    cJSON_Delete(parsed);
}

static void report__has_null_for_unknown_numbers_in_json(void **state)
{
    (void)state;
    report.footprint_bytes = WEIR_UNKNOWN_BYTES;
    report.overhead_bytes = WEIR_UNKNOWN_BYTES;
    report.others_bytes = WEIR_UNKNOWN_BYTES;
    cJSON *parsed = write_json();
    has_null(parsed, "footprint_bytes");
    has_null(parsed, "overhead_bytes");
    has_null(parsed, "unattributed_bytes");
    has_null(parsed, "others_bytes");
    has_number(parsed, "context_bytes", 400 * MIB);
    cJSON_Delete(parsed);
}

static void report__has_a_negative_overhead_in_json(void **state)
{
    (void)state;
    report.context_bytes = 1 * MIB;
    report.unattributed_bytes = -(int64_t)(3 * MIB);
    report.overhead_bytes = 0;
    cJSON *parsed = write_json();
    has_number(parsed, "overhead_bytes", -2.0 * 1048576);
    has_number(parsed, "unattributed_bytes", -3.0 * 1048576);
    cJSON_Delete(parsed);
}

static void report__names_the_stream_that_is_capturing(void **state)
{
    (void)state;
    cJSON *parsed = write_json();
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(parsed, "capturing")));
    cJSON_Delete(parsed);
    report.capturing = (weir_capturing){.stream = "decode", .for_ms = 1500};
    captured = (capture){0};
    parsed = write_json();
    const cJSON *capturing = cJSON_GetObjectItemCaseSensitive(parsed, "capturing");
    has_text(capturing, "stream", "decode");
    has_number(capturing, "for_ms", 1500);
    cJSON_Delete(parsed);
    captured = (capture){0};
    write_text();
    assert_non_null(strstr(captured.text, "capturing, so that nothing goes back"));
    assert_non_null(strstr(captured.text, "decode"));
}

static void report__has_empty_arrays_for_empty_lists_in_json(void **state)
{
    (void)state;
    cJSON *parsed = write_json();
    item_of(parsed, "pools", 0, 0);
    item_of(parsed, "holders", 0, 0);
    item_of(parsed, "waiting", 0, 0);
    item_of(parsed, "pinning", 0, 0);
    cJSON_Delete(parsed);
}

static void report__returns_what_the_sink_returns(void **state)
{
    (void)state;
    captured.fail_call = 3;
    assert_int_equal(wr_report_write_text(&report, capture_write, &captured), WEIR_IO);
    assert_int_equal(captured.call_count, 3);
    captured = (capture){.fail_call = 1};
    assert_int_equal(wr_report_write_json(&report, capture_write, &captured), WEIR_IO);
    assert_int_equal(captured.call_count, 1);
}

#define SAMPLE(name) cmocka_unit_test_setup(name, take_sample)
#define EMPTY(name) cmocka_unit_test_setup(name, take_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAMPLE(report__writes_tables_that_line_up),
        EMPTY(report__has_no_block_for_an_empty_list),
        SAMPLE(report__writes_unknown_numbers_as_words),
        EMPTY(report__writes_a_negative_overhead_with_its_sign),
        EMPTY(report__fits_as_many_pools_as_there_can_be),
        SAMPLE(report__warns_once_of_each_pool_that_sends_requests_elsewhere),
        EMPTY(report__has_every_counter_of_the_lists_in_json),
        SAMPLE(report__has_the_footprint_and_its_parts_in_json),
        SAMPLE(report__has_one_object_a_pool_in_json),
        SAMPLE(report__has_the_holders_waits_and_pins_in_json),
        SAMPLE(report__has_null_for_unknown_numbers_in_json),
        EMPTY(report__has_a_negative_overhead_in_json),
        EMPTY(report__has_empty_arrays_for_empty_lists_in_json),
        EMPTY(report__names_the_stream_that_is_capturing),
        SAMPLE(report__returns_what_the_sink_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
