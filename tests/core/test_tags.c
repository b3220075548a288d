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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core__tags_nest_to_sixteen_and_not_below_none),
        cmocka_unit_test(core__a_tag_scope_names_buffers_unless_the_call_does),
        cmocka_unit_test(core__a_long_tag_is_cut_to_31_bytes),
        cmocka_unit_test(core__every_byte_has_a_tag_however_many_there_are),
    };
    return cmocka_run_group_tests_name("core, tags", tests, NULL, NULL);
}
