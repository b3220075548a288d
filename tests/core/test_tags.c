/* SPDX-License-Identifier: MIT */
/* Tags: scopes of a thread, tags of a call, their books. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void core__tags_nest_to_sixteen_and_not_below_none(void **state)
{
    (void)state;
    assert_error(weir_tag_pop());
    assert_result(weir_tag_push(NULL), WEIR_INVALID);
    for (int i = 0; i < 16; i++) {
        assert_ok(weir_tag_push("deep"));
    }
    assert_error(weir_tag_push("too deep"));
    for (int i = 0; i < 16; i++) {
        assert_ok(weir_tag_pop());
    }
    assert_error(weir_tag_pop());
}

static void core__a_tag_scope_names_buffers_unless_the_call_does(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_tag_push("outer"));
    assert_ok(weir_tag_push("inner"));
    weir_buffer inner = make(r.stream, MIB, NULL);
    weir_buffer named = make(r.stream, 2 * MIB, "named");
    assert_ok(weir_tag_pop());
    weir_buffer outer = make(r.stream, 4 * MIB, NULL);
    assert_ok(weir_tag_pop());
    weir_buffer none = make(r.stream, 8 * MIB, NULL);
    const struct {
        const char *tag;
        uint64_t bytes;
    } expected[] = {{"inner", MIB},
                    {"named", 2 * MIB},
                    {"outer", 4 * MIB},
                    {"", 8 * MIB},
                    {"unknown", 0}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        weir_tag_usage usage;
        assert_ok(weir_device_tag_usage(r.device, expected[i].tag, &usage));
        assert_int_equal(usage.in_use_bytes, expected[i].bytes);
    }
    weir_tag_usage tags[2] = {0};
    size_t count = 0;
    assert_ok(weir_device_tags(r.device, tags, 2, &count));
    assert_int_equal(count, 4);
    assert_string_equal(tags[0].tag, "");
    assert_string_equal(tags[1].tag, "outer");
    drop(inner);
    drop(named);
    drop(outer);
    drop(none);
    rig_close(&r);
}

static void core__a_long_tag_is_cut_to_31_bytes(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    char tag[200];
    memset(tag, 'x', sizeof tag - 1);
    tag[sizeof tag - 1] = '\0';
    weir_buffer buffer = make(r.stream, MIB, tag);
    weir_tag_usage tags[4] = {0};
    size_t count = 0;
    assert_ok(weir_device_tags(r.device, tags, 4, &count));
    assert_int_equal(count, 1);
    assert_int_equal(strlen(tags[0].tag), 31);
    assert_int_equal(tags[0].in_use_bytes, MIB);
    weir_tag_usage usage;
    assert_ok(weir_device_tag_usage(r.device, tag, &usage));
    assert_int_equal(usage.in_use_bytes, MIB);
    drop(buffer);
    rig_close(&r);
}

static void core__every_byte_has_a_tag_however_many_there_are(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    static weir_buffer buffers[1000];
    static weir_tag_usage tags[1001];
    char tag[32];
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(tag, sizeof tag, "tag %u", i);
        buffers[i] = make(r.stream, 1024 + i, tag);
    }
    for (unsigned i = 0; i < 200; i++) {
        snprintf(tag, sizeof tag, "tag %u", i);
        weir_tag_usage usage;
        assert_ok(weir_device_tag_usage(r.device, tag, &usage));
        assert_int_equal(usage.in_use_bytes, 1024 + i);
    }
    size_t count = 0;
    assert_ok(weir_device_tags(r.device, tags, 1001, &count));
    assert_true(count <= 1001);
    uint64_t sum = 0, live = 0;
    for (size_t i = 0; i < count; i++) {
        sum += tags[i].in_use_bytes;
        live += tags[i].live_count;
    }
    assert_int_equal(sum, usage_of(r.device).in_use_bytes);
    assert_int_equal(live, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        drop(buffers[i]);
    }
    assert_consistent(&r);
    rig_close(&r);
}

/* ---- looked up once ---- */

static weir_tag known(weir_device *device, const char *text)
{
    weir_tag tag = {0};
    assert_ok(weir_device_tag(device, text, &tag));
    return tag;
}

static weir_buffer make_tagged(weir_stream *stream, uint64_t bytes, weir_tag tag)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_ok(weir_buffer_create_tagged(stream, bytes, tag, &buffer));
    return buffer;
}

static uint64_t in_use(weir_device *device, const char *text)
{
    weir_tag_usage usage;
    assert_ok(weir_device_tag_usage(device, text, &usage));
    return usage.in_use_bytes;
}

static void core__a_tag_looked_up_counts_as_its_text_does(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_tag cache = known(r.device, "cache"), again = known(r.device, "cache");
    assert_true(cache.value == again.value);
    assert_true(cache.value != known(r.device, "weights").value);
    assert_ok(weir_tag_push("scope"));
    weir_buffer buffers[] = {make(r.stream, MIB, "cache"),
                             make_tagged(r.stream, 2 * MIB, cache),
                             make_tagged(r.stream, 4 * MIB, known(r.device, "weights")),
                             make_tagged(r.stream, 8 * MIB, (weir_tag){0})};
    assert_ok(weir_tag_pop());
    assert_int_equal(in_use(r.device, "cache"), 3 * MIB);
    assert_int_equal(in_use(r.device, "weights"), 4 * MIB);
    assert_int_equal(in_use(r.device, "scope"), 8 * MIB);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        drop(buffers[i]);
    }
    assert_int_equal(in_use(r.device, "cache"), 0);
    assert_consistent(&r);
    rig_close(&r);
}

static void core__a_tag_looked_up_keeps_to_limits_that_come_later(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_tag cache = known(r.device, "cache");
    weir_buffer first = make_tagged(r.stream, MIB, cache), more = WEIR_NO_BUFFER;
    assert_ok(weir_device_tag_limit(r.device, "cache", 2 * MIB));
    assert_result(weir_buffer_create_tagged(r.stream, 2 * MIB, cache, &more), WEIR_LIMIT);
    weir_buffer second = make_tagged(r.stream, MIB, cache);
    assert_ok(weir_device_tag_limit(r.device, "cache", 0));
    more = make_tagged(r.stream, 2 * MIB, cache);
    assert_int_equal(in_use(r.device, "cache"), 4 * MIB);
    drop(first), drop(second), drop(more);
    assert_consistent(&r);
    rig_close(&r);
}

static void core__what_is_no_tag_of_the_device_is_refused(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL), other = rig_open(NULL, NULL);
    weir_tag cache = known(r.device, "cache"), foreign = known(other.device, "cache");
    still was = hold_still(&r);
    weir_buffer buffer = WEIR_NO_BUFFER;
    const weir_tag wrong[] = {foreign, {cache.value + 1}, {1}, {UINT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_result(weir_buffer_create_tagged(r.stream, 256, wrong[i], &buffer),
                      WEIR_INVALID);
    }
    assert_result(weir_buffer_create_tagged(NULL, 256, cache, &buffer), WEIR_INVALID);
    assert_result(weir_buffer_create_tagged(r.stream, 0, cache, &buffer), WEIR_INVALID);
    assert_result(weir_buffer_create_tagged(r.stream, 256, cache, NULL), WEIR_INVALID);
    assert_result(weir_device_tag(NULL, "cache", &foreign), WEIR_INVALID);
    assert_result(weir_device_tag(r.device, NULL, &foreign), WEIR_INVALID);
    assert_result(weir_device_tag(r.device, "", &foreign), WEIR_INVALID);
    assert_result(weir_device_tag(r.device, "cache", NULL), WEIR_INVALID);
    assert_unchanged(&was);
    rig_close(&other);
    rig_close(&r);
}

static void core__past_the_table_a_tag_looked_up_is_other(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    char text[16];
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "tag %d", i);
        (void)known(r.device, text);
    }
    weir_buffer buffer = make_tagged(r.stream, MIB, known(r.device, "late"));
    assert_int_equal(in_use(r.device, "other"), MIB);
    drop(buffer);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core__tags_nest_to_sixteen_and_not_below_none),
        cmocka_unit_test(core__a_tag_scope_names_buffers_unless_the_call_does),
        cmocka_unit_test(core__a_long_tag_is_cut_to_31_bytes),
        cmocka_unit_test(core__every_byte_has_a_tag_however_many_there_are),
        cmocka_unit_test(core__a_tag_looked_up_counts_as_its_text_does),
        cmocka_unit_test(core__a_tag_looked_up_keeps_to_limits_that_come_later),
        cmocka_unit_test(core__what_is_no_tag_of_the_device_is_refused),
        cmocka_unit_test(core__past_the_table_a_tag_looked_up_is_other),
    };
    return cmocka_run_group_tests_name("core, tags", tests, NULL, NULL);
}
