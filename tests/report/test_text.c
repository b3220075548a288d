/* SPDX-License-Identifier: MIT */
#include "report/text.h"

#include "report/table.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void format_bytes__gives_three_or_four_digits_and_a_unit(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {100, "100 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {1075, "1.0 KiB"}, /* 1.0498 */
        {1076, "1.1 KiB"}, /* 1.0508 */
        {67108864, "64.0 MiB"},
        {1048575, "1.0 MiB"},    /* 1023.999 KiB */
        {1048524, "1023.9 KiB"}, /* 1023.949 */
        {1048525, "1.0 MiB"},    /* 1023.950 */
        {UINT64_C(1610612736), "1.5 GiB"},
        {UINT64_C(25769803776), "24.0 GiB"},
        {UINT64_C(1) << 40, "1.0 TiB"},
        {UINT64_C(1) << 50, "1.0 PiB"},
        {UINT64_C(1) << 60, "1024.0 PiB"},
        {UINT64_MAX - 1, "16384.0 PiB"},
        {WEIR_UNKNOWN_BYTES, "n/a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[24];
        assert_ptr_equal(weir_format_bytes(cases[i].bytes, text), text);
        assert_string_equal(text, cases[i].text);
    }
}

static void format_signed_bytes__puts_a_minus_before_the_size(void **state)
{
    (void)state;
    char text[WR_BYTES_TEXT];
    assert_string_equal(wr_format_signed_bytes(0, text), "0 B");
    assert_string_equal(wr_format_signed_bytes(1536, text), "1.5 KiB");
    assert_string_equal(wr_format_signed_bytes(-1, text), "-1 B");
    assert_string_equal(wr_format_signed_bytes(-5242880, text), "-5.0 MiB");
    assert_string_equal(wr_format_signed_bytes(INT64_MIN, text), "-8192.0 PiB");
}

static void printable__replaces_what_a_terminal_would_obey(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(wr_text_printable("\x1b[31mred\n\x7f", text, sizeof text),
                        "?[31mred??");
    assert_string_equal(wr_text_printable("\xc2\x9b 31m", text, sizeof text), "? 31m");
    assert_string_equal(wr_text_printable("\xff\xc3", text, sizeof text), "??");
    assert_string_equal(wr_text_printable("gr\xc3\xbc\xc3\x9f", text, sizeof text),
                        "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(wr_text_printable("", text, sizeof text), "");
}

static void printable__cuts_between_characters(void **state)
{
    (void)state;
    char text[4];
    assert_string_equal(wr_text_printable("ab\xc3\xbc", text, sizeof text), "ab");
    assert_string_equal(wr_text_printable("a\xc3\xbc", text, sizeof text), "a\xc3\xbc");
}

static void text__takes_a_piece_whole_or_not_at_all(void **state)
{
    (void)state;
    char memory[10];
    wr_text text;
    wr_text_init(&text, memory, sizeof memory);
    assert_true(wr_text_add(&text, 0, "%s", "12345"));
    assert_false(wr_text_add(&text, 0, "%s", "67890"));
    assert_string_equal(memory, "12345");
    assert_false(wr_text_add(&text, 1, "%s", "6789"));
    assert_true(wr_text_add(&text, 0, "%s", "6789"));
    assert_string_equal(memory, "123456789");
}

static void table__lines_up_its_columns_by_characters(void **state)
{
    (void)state;
    capture captured = {0};
    wr_sink sink;
    wr_table table;
    wr_sink_init(&sink, capture_write, &captured);
    wr_table_init(&table, "lrl", "name size why");
    wr_table_add(&table, "gr\xc3\xbc\xc3\x9f");
    wr_table_add_bytes(&table, 1536);
    wr_table_add(&table, "-");
    wr_table_add(&table, "weights");
    wr_table_add_bytes(&table, WEIR_UNKNOWN_BYTES);
    wr_table_add(&table, "two\nlines");
    wr_table_write(&table, &sink);
    assert_int_equal(wr_sink_finish(&sink), WEIR_OK);
    assert_string_equal(captured.text, "  name        size  why\n"
                                       "  gr\xc3\xbc\xc3\x9f     1.5 KiB  -\n"
                                       "  weights      n/a  two?lines\n");
}

static void sink__refuses_a_line_that_does_not_fit(void **state)
{
    (void)state;
    capture captured = {0};
    wr_sink sink;
    wr_sink_init(&sink, capture_write, &captured);
    wr_sink_print(&sink, "%*s", (int)sizeof sink.buffer, "");
    wr_sink_print(&sink, "more");
    assert_int_equal(wr_sink_finish(&sink), WEIR_INVALID);
    assert_int_equal(captured.call_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_bytes__gives_three_or_four_digits_and_a_unit),
        cmocka_unit_test(format_signed_bytes__puts_a_minus_before_the_size),
        cmocka_unit_test(printable__replaces_what_a_terminal_would_obey),
        cmocka_unit_test(printable__cuts_between_characters),
        cmocka_unit_test(text__takes_a_piece_whole_or_not_at_all),
        cmocka_unit_test(table__lines_up_its_columns_by_characters),
        cmocka_unit_test(sink__refuses_a_line_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
