/* SPDX-License-Identifier: MIT */
#include "report/json.h"

#include "support.h"

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static capture captured;
static wr_json json;

static int begin(void **state)
{
    (void)state;
    captured = (capture){0};
    wr_json_begin(&json, capture_write, &captured);
    return 0;
}

static void expect_invalid(const char *reason)
{
    assert_int_equal(wr_json_finish(&json), WEIR_INVALID);
    assert_non_null(strstr(weir_last_error(), reason));
}

static void json__writes_nested_values_with_commas_between(void **state)
{
    (void)state;
    wr_json_open_object(&json, NULL);
    wr_json_u64(&json, "a", 1);
    wr_json_open_array(&json, "list");
    wr_json_i64(&json, NULL, -2);
    wr_json_open_object(&json, NULL);
    wr_json_close(&json);
    wr_json_open_array(&json, NULL);
    wr_json_close(&json);
    wr_json_string(&json, NULL, "x");
    wr_json_close(&json);
    wr_json_null(&json, "b");
    wr_json_close(&json);
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_string_equal(captured.text, "{\"a\":1,\"list\":[-2,{},[],\"x\"],\"b\":null}");
}

static void json__writes_the_ends_of_the_number_ranges(void **state)
{
    (void)state;
    wr_json_open_array(&json, NULL);
    wr_json_u64(&json, NULL, UINT64_MAX);
    wr_json_i64(&json, NULL, INT64_MIN);
    wr_json_i64(&json, NULL, INT64_MAX);
    wr_json_bytes(&json, NULL, 0);
    wr_json_bytes(&json, NULL, UINT64_MAX - 1);
    wr_json_close(&json);
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_string_equal(captured.text, "[18446744073709551615,-9223372036854775808,"
                                       "9223372036854775807,0,18446744073709551614]");
}

static void json__writes_unknown_bytes_as_null(void **state)
{
    (void)state;
    wr_json_bytes(&json, NULL, WEIR_UNKNOWN_BYTES);
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_string_equal(captured.text, "null");
}

static void json__escapes_quotes_and_control_characters(void **state)
{
    (void)state;
    wr_json_string(&json, NULL, "\"\\/\b\f\n\r\t\x01\x1f\x7f");
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_string_equal(captured.text,
                        "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\"");
}

static void json__keeps_utf8_as_it_is(void **state)
{
    (void)state;
    wr_json_string(&json, NULL, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\x8a");
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_string_equal(captured.text, "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\x8a\"");
}

/* Each: some bytes, and what they become. */
static void json__replaces_each_byte_that_is_not_utf8(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a\xff", "a\\ufffd"},                       /* never a first byte */
        {"\x80z", "\\ufffdz"},                       /* continues nothing */
        {"\xc3", "\\ufffd"},                         /* cut */
        {"\xe2\x82", "\\ufffd\\ufffd"},              /* cut */
        {"\xf0\x9f\x8c.", "\\ufffd\\ufffd\\ufffd."}, /* cut by another character */
        {"\xc0\xaf", "\\ufffd\\ufffd"},              /* longer than needed */
        {"\xe0\x80\xaf", "\\ufffd\\ufffd\\ufffd"},   /* longer than needed */
        {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},   /* half a surrogate pair */
        {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* beyond U+10FFFF */
        {"\xf8\x88\x80\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[64];
        strcpy(expected, "\"");
        strcat(strcat(expected, cases[i][1]), "\"");
        begin(NULL);
        wr_json_string(&json, NULL, cases[i][0]);
        assert_int_equal(wr_json_finish(&json), WEIR_OK);
        assert_string_equal(captured.text, expected);
    }
}

static void json__escapes_keys_too(void **state)
{
    (void)state;
    wr_json_open_object(&json, NULL);
    wr_json_u64(&json, "a\"\n", 1);
    wr_json_close(&json);
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_string_equal(captured.text, "{\"a\\\"\\n\":1}");
}

static void json__is_read_back_by_another_parser_for_every_byte(void **state)
{
    (void)state;
    char every_byte[256];
    for (int i = 0; i < 255; i++) {
        every_byte[i] = (char)(i + 1);
    }
    every_byte[255] = '\0';
    wr_json_string(&json, NULL, every_byte);
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    cJSON *parsed = cJSON_Parse(captured.text);
    assert_true(cJSON_IsString(parsed));
    const char *text = cJSON_GetStringValue(parsed);
    assert_memory_equal(text, every_byte, 127);
    assert_int_equal(strlen(text), 127 + 128 * 3);
    assert_memory_equal(text + 127, "\xef\xbf\xbd\xef\xbf\xbd", 6);
    cJSON_Delete(parsed);
}

static void json__refuses_a_value_without_key_in_an_object(void **state)
{
    (void)state;
    wr_json_open_object(&json, NULL);
    wr_json_u64(&json, NULL, 1);
    wr_json_close(&json);
    expect_invalid("needs a key");
}

static void json__refuses_a_key_in_an_array(void **state)
{
    (void)state;
    wr_json_open_array(&json, NULL);
    wr_json_u64(&json, "key", 1);
    wr_json_close(&json);
    expect_invalid("has no key");
}

static void json__refuses_a_key_at_the_top(void **state)
{
    (void)state;
    wr_json_null(&json, "key");
    expect_invalid("has no key");
}

static void json__refuses_a_second_value_at_the_top(void **state)
{
    (void)state;
    wr_json_null(&json, NULL);
    wr_json_null(&json, NULL);
    expect_invalid("one value at the top");
}

static void json__refuses_a_close_too_many(void **state)
{
    (void)state;
    wr_json_open_array(&json, NULL);
    wr_json_close(&json);
    wr_json_close(&json);
    expect_invalid("nothing is open");
}

static void json__refuses_to_finish_with_something_open(void **state)
{
    (void)state;
    wr_json_open_array(&json, NULL);
    expect_invalid("still open");
}

static void json__refuses_to_finish_without_a_value(void **state)
{
    (void)state;
    expect_invalid("without a value");
}

static void json__nests_to_its_limit_and_no_further(void **state)
{
    (void)state;
    for (int i = 0; i < WR_JSON_MAX_DEPTH; i++) {
        wr_json_open_array(&json, NULL);
    }
    for (int i = 0; i < WR_JSON_MAX_DEPTH; i++) {
        wr_json_close(&json);
    }
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_int_equal(captured.used_bytes, 2 * WR_JSON_MAX_DEPTH);

    begin(NULL);
    for (int i = 0; i < WR_JSON_MAX_DEPTH + 1; i++) {
        wr_json_open_array(&json, NULL);
    }
    expect_invalid("too deep");
}

static void json__keeps_its_first_failure_and_calls_the_sink_no_more(void **state)
{
    (void)state;
    captured.fail_call = 2;
    wr_json_open_array(&json, NULL);
    for (int i = 0; i < 1000; i++) {
        wr_json_string(&json, NULL, "sixteen letters.");
    }
    wr_json_close(&json);
    wr_json_close(&json); /* one too many, but not the first failure */
    assert_int_equal(wr_json_finish(&json), WEIR_IO);
    assert_int_equal(captured.call_count, 2);
}

static void json__gathers_small_pieces_before_it_calls_the_sink(void **state)
{
    (void)state;
    wr_json_open_array(&json, NULL);
    for (int i = 0; i < 100; i++) {
        wr_json_u64(&json, NULL, 12345678);
    }
    wr_json_close(&json);
    assert_int_equal(captured.call_count, 0);
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_int_equal(captured.call_count, 1);
    assert_int_equal(captured.used_bytes, 1 + 100 * 9 - 1 + 1);
}

static void json__writes_strings_longer_than_its_buffer(void **state)
{
    (void)state;
    static char long_text[5000];
    memset(long_text, 'x', sizeof long_text - 1);
    wr_json_string(&json, NULL, long_text);
    assert_int_equal(wr_json_finish(&json), WEIR_OK);
    assert_int_equal(captured.used_bytes, sizeof long_text - 1 + 2);
    assert_memory_equal(captured.text + 1, long_text, sizeof long_text - 1);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json__writes_nested_values_with_commas_between),
        TEST(json__writes_the_ends_of_the_number_ranges),
        TEST(json__writes_unknown_bytes_as_null),
        TEST(json__escapes_quotes_and_control_characters),
        TEST(json__keeps_utf8_as_it_is),
        TEST(json__replaces_each_byte_that_is_not_utf8),
        TEST(json__escapes_keys_too),
        TEST(json__is_read_back_by_another_parser_for_every_byte),
        TEST(json__refuses_a_value_without_key_in_an_object),
        TEST(json__refuses_a_key_in_an_array),
        TEST(json__refuses_a_key_at_the_top),
        TEST(json__refuses_a_second_value_at_the_top),
        TEST(json__refuses_a_close_too_many),
        TEST(json__refuses_to_finish_with_something_open),
        TEST(json__refuses_to_finish_without_a_value),
        TEST(json__nests_to_its_limit_and_no_further),
        TEST(json__keeps_its_first_failure_and_calls_the_sink_no_more),
        TEST(json__gathers_small_pieces_before_it_calls_the_sink),
        TEST(json__writes_strings_longer_than_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
