/* SPDX-License-Identifier: MIT */
#include "../../cli/options.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void size__takes_numbers_with_binary_units(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_true(wr_size_parse("0", &bytes));
    assert_int_equal(bytes, 0);
    assert_true(wr_size_parse("512", &bytes));
    assert_int_equal(bytes, 512);
    assert_true(wr_size_parse("7B", &bytes));
    assert_int_equal(bytes, 7);
    assert_true(wr_size_parse("3KiB", &bytes));
    assert_int_equal(bytes, 3072);
    assert_true(wr_size_parse("64MiB", &bytes));
    assert_int_equal(bytes, UINT64_C(64) << 20);
    assert_true(wr_size_parse("24GiB", &bytes));
    assert_int_equal(bytes, UINT64_C(24) << 30);
    assert_true(wr_size_parse("16777215TiB", &bytes));
    assert_int_equal(bytes, UINT64_C(16777215) << 40);
    assert_true(wr_size_parse("18446744073709551615", &bytes));
    assert_int_equal(bytes, UINT64_MAX);
}

static void size__refuses_everything_else(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "MiB",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1 MiB",
        "1MB",
        "1mib",
        "1.5GiB",
        "0x10",
        "18446744073709551616",
        "16777216TiB",
        "99999999999999999999999",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t bytes;
        assert_false(wr_size_parse(bad[i], &bytes));
    }
}

typedef struct values {
    bool flag;
    const char *text;
    uint64_t size;
    uint64_t number;
} values;

static int parse(const char *operands, values *into, char **argv, int *operand_count)
{
    const wr_option options[] = {
        {"flag", WR_OPTION_KIND_FLAG, &into->flag, NULL, "a flag"},
        {"text", WR_OPTION_KIND_TEXT, &into->text, "TEXT", "a text"},
        {"size", WR_OPTION_KIND_SIZE, &into->size, "SIZE", "a size"},
        {"number", WR_OPTION_KIND_NUMBER, &into->number, "N", "a number"},
    };
    const wr_command command = {
        .name = "test", .operands = operands, .options = options, .option_count = 4};
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    return wr_options_parse(&command, argc, argv, operand_count);
}

static void options__take_values_behind_a_space_or_an_equals_sign(void **state)
{
    (void)state;
    values got = {0};
    char *argv[] = {"test",   "--size=4KiB", "--flag", "--text",
                    "--flag", "--number",    "12",     NULL};
    assert_int_equal(parse(NULL, &got, argv, NULL), WR_OPTIONS_RUN);
    assert_true(got.flag);
    assert_string_equal(got.text, "--flag");
    assert_int_equal(got.size, 4096);
    assert_int_equal(got.number, 12);
}

static void options__may_stand_among_operands_up_to_two_dashes(void **state)
{
    (void)state;
    values got = {0};
    int count = 0;
    char *argv[] = {"test", "one", "--flag", "-", "--text=", "--", "--size", NULL};
    assert_int_equal(parse("FILE...", &got, argv, &count), WR_OPTIONS_RUN);
    assert_true(got.flag);
    assert_string_equal(got.text, "");
    assert_int_equal(count, 3);
    assert_string_equal(argv[1], "one");
    assert_string_equal(argv[2], "-");
    assert_string_equal(argv[3], "--size");
}

static void options__that_are_not_given_leave_their_values_alone(void **state)
{
    (void)state;
    values got = {.text = "before", .size = 5};
    char *argv[] = {"test", NULL};
    assert_int_equal(parse(NULL, &got, argv, NULL), WR_OPTIONS_RUN);
    assert_string_equal(got.text, "before");
    assert_int_equal(got.size, 5);
}

static void options__of_which_a_name_is_a_prefix_are_not_taken(void **state)
{
    (void)state;
    values got = {0};
    char *shorter[] = {"test", "--fla", NULL};
    char *longer[] = {"test", "--flags", NULL};
    assert_int_equal(parse(NULL, &got, shorter, NULL), 2);
    assert_int_equal(parse(NULL, &got, longer, NULL), 2);
    assert_false(got.flag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size__takes_numbers_with_binary_units),
        cmocka_unit_test(size__refuses_everything_else),
        cmocka_unit_test(options__take_values_behind_a_space_or_an_equals_sign),
        cmocka_unit_test(options__may_stand_among_operands_up_to_two_dashes),
        cmocka_unit_test(options__that_are_not_given_leave_their_values_alone),
        cmocka_unit_test(options__of_which_a_name_is_a_prefix_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
