/* SPDX-License-Identifier: MIT */
#include "scenario/run.h"
#include "scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_parses(const char *text)
{
    char error[256] = "";
    int code = weir_scenario_parse_text(text, strlen(text), error, sizeof error);
    if (code != 0) {
        fail_msg("refused with \"%s\":\n%s", error, text);
    }
}

static void assert_refused(const char *text, const char *reason)
{
    char error[256] = "";
    assert_int_equal(weir_scenario_parse_text(text, strlen(text), error, sizeof error),
                     2);
    assert_string_equal(error, reason);
}

static void parser__takes_every_statement(void **state)
{
    (void)state;
    assert_parses("capacity 24GiB\n"
                  "context 400MiB\n"
                  "granule 0\n"
                  "preset adaptive\n"
                  "limit 2 * 1GiB\n"
                  "set idle_ms 5000\n"
                  "set no_wait true\n"
                  "set preset elastic\n"
                  "let size = 3GiB\n"
                  "lets_go on_progress\n");
    assert_parses("alloc x 1MiB\n"
                  "alloc x$i $size stream=s$i tag=\"a b\" fails OUT_OF_MEMORY\n"
                  "alloc y (1MiB + 4) fails LIMIT tag=kv-cache stream=s\n"
                  "free x\n"
                  "use x stream=s\n"
                  "finish s\n"
                  "finish all\n"
                  "sync\n"
                  "sync s\n"
                  "cleanup\n"
                  "cleanup at_most=1GiB wait keep=$floor/2\n"
                  "advance 60000\n"
                  "close s\n"
                  "other 7GiB\n"
                  "outside 0\n"
                  "fail commit 3 after=2\n"
                  "fail mem_info 1\n"
                  "fail fence 0\n"
                  "capture begin s\n"
                  "capture end g\n"
                  "capture abort\n"
                  "destroy g\n"
                  "window persistent begin\n"
                  "window end\n"
                  "shutdown\n"
                  "mark m\n"
                  "random r 7 1KiB 1GiB\n");
    assert_parses("for i in 1..8\n"
                  "  repeat $i * 2\n"
                  "    fork\n"
                  "      cleanup\n"
                  "    exit\n"
                  "  end\n"
                  "end\n");
    assert_parses("expect in_use == 0\n"
                  "expect footprint@m$i != last.driver_deferred - (1GiB + $x)\n"
                  "expect tag(kv-cache).in_use@m <= 4\n"
                  "expect tag(\"a b\").in_use < 4\n"
                  "expect x$i overlaps y\n"
                  "expect a-b apart y\n"
                  "expect says \"# is no comment here\" # but here\n"
                  "expect silent \"EiB\"\n"
                  "expect error says \"holder\"\n");
}

static void parser__takes_texts_without_statements(void **state)
{
    (void)state;
    assert_parses("");
    assert_parses("\n\n  \t\r\n# nothing\n   # nothing");
    assert_parses("free a");
    assert_parses("free a\r\n");
}

static void parser__says_line_and_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"\n\nfrobnicate x\n", "3: unknown statement 'frobnicate'"},
        {"free\n", "1: expected a buffer's name at the end of the line"},
        {"free a b\n", "1: unexpected 'b'"},
        {"free x$i/2\n", "1: unexpected '/2'"},
        {"alloc x\n", "1: expected a number at the end of the line"},
        {"alloc x 64MB\n", "1: '64MB' is not a number; units are B KiB MiB GiB TiB"},
        {"alloc x 1.5GiB\n", "1: '1.5GiB' is not a whole number"},
        {"alloc x 18446744073709551616\n",
         "1: '18446744073709551616' does not fit into 64 bits"},
        {"alloc x 16777216TiB\n", "1: '16777216TiB' does not fit into 64 bits"},
        {"alloc x 1MiB + 1\n",
         "1: expected stream=NAME, tag=TEXT or fails ERROR, found '+'"},
        {"alloc x 1MiB+ 1\n", "1: a size has no spaces outside parentheses here"},
        {"alloc x 1 fails NEVER\n",
         "1: expected an error's name such as OUT_OF_MEMORY or LIMIT, found 'NEVER'"},
        {"alloc x 1 fails OK\n", "1: OK is not an error"},
        {"alloc x 1 tag=a tag=b\n", "1: 'tag=' stands twice"},
        {"use x\n", "1: expected stream=NAME at the end of the line"},
        {"cleanup now\n", "1: expected wait, keep=SIZE or at_most=SIZE, found 'now'"},
        {"capture stop\n", "1: expected begin, end or abort, found 'stop'"},
        {"window begin\n", "1: expected 'persistent begin' or 'end', found 'begin'"},
        {"lets_go later\n",
         "1: expected at_once, on_progress, after_work or never, found 'later'"},
        {"set colour 1\n",
         "1: expected an option: idle_ms keep_bytes limit_bytes no_idle no_wait "
         "trust_uses no_granules or preset, found 'colour'"},
        {"let 1x = 2\n", "1: expected a variable's name, found '1x'"},
        {"let x 2\n", "1: expected '=', found '2'"},
        {"let x = (2\n", "1: expected ')' at the end of the line"},
        {"let x = 2 *\n", "1: expected a number at the end of the line"},
        {"let x = 2 3\n", "1: unexpected '3'"},
        {"let x = $\n", "1: expected a variable's name right behind '$'"},
        {"let x = reserved\n",
         "1: 'reserved' is not a number; variables are written $reserved, fields are for "
         "checks"},
        {"for i in 1\nend\n", "1: expected '..' at the end of the line"},
        {"expect nothing == 1\n", "1: 'nothing' is not a field that can be checked"},
        {"expect in_use = 1\n", "1: expected one of == != < <= > >=, found '='"},
        {"expect tag(a) == 1\n", "1: expected ').in_use', found ')'"},
        {"expect says blas\n", "1: expected a text in double quotes"},
        {"expect says \"blas\n", "1: the text has no closing quote"},
        {"expect error \"x\"\n", "1: expected 'says', found '\"x\"'"},
        {"free \x01\x80\n", "1: expected a buffer's name, found '\?\?'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_refused(cases[i].text, cases[i].reason);
    }
}

static void parser__matches_blocks(void **state)
{
    (void)state;
    assert_refused("free a\nfor i in 1..2\n  repeat 3\n  end\n", "2: 'for' has no 'end'");
    assert_refused("fork\n", "1: 'fork' has no 'exit'");
    assert_refused("end\n", "1: 'end' without a block to close");
    assert_refused("exit\n", "1: 'exit' without a block to close");
    assert_refused("fork\nend\n", "2: 'end' cannot close the 'fork' of line 1");
    assert_refused("repeat 1\nexit\n", "2: 'exit' cannot close the 'repeat' of line 1");
    assert_refused("fork\nrepeat 2\nfork\nexit\nend\nexit\n",
                   "3: a fork cannot stand inside a fork");
    assert_parses("fork\nexit\nfork\nexit\n");
}

static void parser__wants_settings_first(void **state)
{
    (void)state;
    assert_refused("capacity 1GiB\nlet x = 1\n\ncleanup\ngranule 0\n",
                   "5: settings come before the first other statement (line 4)");
    assert_refused("repeat 1\nlimit 5\nend\n",
                   "2: settings come before the first other statement (line 1)");
}

static void parser__bounds_what_nests(void **state)
{
    (void)state;
    char text[WR_SCN_BLOCK_DEPTH * 16 + 64] = "";
    for (int i = 0; i <= WR_SCN_BLOCK_DEPTH; i++) {
        strcat(text, "repeat 1\n");
    }
    assert_refused(text, "33: blocks nest deeper than 32");

    char deep[2 * WR_SCN_EXPR_DEPTH + 64] = "let x = ";
    for (int i = 0; i <= WR_SCN_EXPR_DEPTH; i++) {
        strcat(deep, "(");
    }
    assert_refused(deep, "1: parentheses nest deeper than 64");
}

static void parser__bounds_what_is_long(void **state)
{
    (void)state;
    char name[WR_SCN_NAME_BYTES + 16] = "free ";
    memset(name + 5, 'x', WR_SCN_NAME_BYTES);
    assert_refused(name, "1: a buffer's name is longer than 255 bytes");
    name[5 + WR_SCN_NAME_BYTES - 1] = '\0';
    assert_parses(name);

    size_t bytes = WR_SCN_MAX_TEXT_BYTES + 1;
    char *text = calloc(bytes, 1);
    char error[128];
    assert_non_null(text);
    assert_int_equal(weir_scenario_parse_text(text, bytes, error, sizeof error), 2);
    assert_string_equal(error, "0: a scenario has at most 4194304 bytes, not 4194305");
    free(text);
}

static void parser__keeps_short_error_buffers_whole(void **state)
{
    (void)state;
    char error[8] = "xxxxxxx";
    assert_int_equal(weir_scenario_parse_text("nonsense", 8, error, sizeof error), 2);
    assert_string_equal(error, "1: unkn");
    assert_int_equal(weir_scenario_parse_text("nonsense", 8, NULL, 0), 2);
}

/* ---- expressions ---- */

/* Evaluates without a device; the verdict is left in `result`. */
static wr_scn_value evaluate(const char *expression, wr_scn_result *result)
{
    char text[512];
    snprintf(text, sizeof text, "let x = %s\n", expression);
    wr_scn_program program;
    wr_scn_error error;
    if (!wr_scn_program_parse(&program, text, strlen(text), &error)) {
        fail_msg("%s: %s", expression, error.text);
    }
    wr_scn_run run = {.program = &program};
    wr_scn_value value = 0;
    assert_true(wr_scn_variable_set(&run, (wr_scn_text){"seven", 5}, 7));
    wr_scn_evaluate(&run, &program.statements[0].number[0], &value);
    *result = run.result;
    wr_scn_run_finish(&run);
    wr_scn_program_finish(&program);
    return value;
}

static void assert_value(const char *expression, int64_t expected)
{
    wr_scn_result result;
    wr_scn_value value = evaluate(expression, &result);
    assert_int_equal(result.verdict, WR_SCN_OK);
    if (value != expected) {
        char text[24];
        fail_msg("%s is %s", expression, wr_scn_value_text(value, text));
    }
}

static void assert_wrong(const char *expression, const char *reason)
{
    wr_scn_result result;
    evaluate(expression, &result);
    assert_int_equal(result.verdict, WR_SCN_WRONG);
    assert_string_equal(result.message, reason);
}

static void expression__knows_units(void **state)
{
    (void)state;
    assert_value("5", 5);
    assert_value("5B", 5);
    assert_value("3KiB", 3072);
    assert_value("2MiB", INT64_C(2) << 20);
    assert_value("2GiB", INT64_C(2) << 30);
    assert_value("2TiB", INT64_C(2) << 40);
}

static void
expression__multiplies_before_it_adds_and_goes_from_left_to_right(void **state)
{
    (void)state;
    assert_value("2 + 3 * 4", 14);
    assert_value("2*3+4", 10);
    assert_value("(2 + 3) * 4", 20);
    assert_value("10 - 3 - 2", 5);
    assert_value("10 - (3 - 2)", 9);
    assert_value("100 / 7 / 2", 7);
    assert_value("100 / 7 * 7", 98);
    assert_value("500MiB-$seven*100MiB+1", -INT64_C(200) * 1048576 + 1);
    assert_value("1 - 4", -3);
    assert_value("(1 - 8) / 2", -3);
    assert_value("$seven*$seven", 49);
    assert_value("((((1))))", 1);
}

static void expression__refuses_what_has_no_value(void **state)
{
    (void)state;
    assert_wrong("1 / (7 - $seven)", "'1 / (7 - $seven)' divides by zero");
    assert_wrong("$eight", "there is no variable '$eight'");
    assert_wrong("16777215TiB * 2", "'16777215TiB * 2' does not fit into 64 bits");
    assert_wrong("18446744073709551615 + 1",
                 "'18446744073709551615 + 1' does not fit into 64 bits");
    assert_wrong("0 - 18446744073709551615 - 1",
                 "'0 - 18446744073709551615 - 1' does not fit into 64 bits");
}

static void expression__reaches_both_ends_of_64_bits(void **state)
{
    (void)state;
    wr_scn_result result;
    char text[24];
    wr_scn_value value = evaluate("18446744073709551615", &result);
    assert_string_equal(wr_scn_value_text(value, text), "18446744073709551615");
    value = evaluate("0 - 4294967295 * 4294967297", &result);
    assert_string_equal(wr_scn_value_text(value, text), "-18446744073709551615");
}

static void names__take_variables_in(void **state)
{
    (void)state;
    wr_scn_run run = {0};
    char name[WR_SCN_NAME_BYTES];
    wr_scn_variable_set(&run, (wr_scn_text){"i", 1}, 12);
    wr_scn_variable_set(&run, (wr_scn_text){"i_b", 3}, -4);
    assert_true(wr_scn_expand(&run, (wr_scn_text){"x$i", 3}, name));
    assert_string_equal(name, "x12");
    assert_true(wr_scn_expand(&run, (wr_scn_text){"x$i_b.$i$", 9}, name));
    assert_string_equal(name, "x-4.12$");
    assert_false(wr_scn_expand(&run, (wr_scn_text){"x$j", 3}, name));
    assert_string_equal(run.result.message, "there is no variable '$j'");
    wr_scn_run_finish(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parser__takes_every_statement),
        cmocka_unit_test(parser__takes_texts_without_statements),
        cmocka_unit_test(parser__says_line_and_reason),
        cmocka_unit_test(parser__matches_blocks),
        cmocka_unit_test(parser__wants_settings_first),
        cmocka_unit_test(parser__bounds_what_nests),
        cmocka_unit_test(parser__bounds_what_is_long),
        cmocka_unit_test(parser__keeps_short_error_buffers_whole),
        cmocka_unit_test(expression__knows_units),
        cmocka_unit_test(
            expression__multiplies_before_it_adds_and_goes_from_left_to_right),
        cmocka_unit_test(expression__refuses_what_has_no_value),
        cmocka_unit_test(expression__reaches_both_ends_of_64_bits),
        cmocka_unit_test(names__take_variables_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
