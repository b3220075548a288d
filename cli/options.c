/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "cli.h"

#include <stdio.h>
#include <string.h>

/* Digits only; false if there are none or the number does not fit. `*rest` is what
 * follows. */
static bool parse_digits(const char *text, uint64_t *number, const char **rest)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *number = value;
    *rest = at;
    return at != text;
}

bool wr_size_parse(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    uint64_t number;
    const char *unit;
    if (!parse_digits(text, &number, &unit)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            *bytes = number << units[i].shift;
            return number <= UINT64_MAX >> units[i].shift;
        }
    }
    return false;
}

static bool parse_number(const char *text, uint64_t *number)
{
    const char *rest;
    return parse_digits(text, number, &rest) && *rest == '\0';
}

static int refuse(const wr_command *command, const char *problem, const char *what)
{
    return wr_cli_error(WR_EXIT_USAGE, command->name, "%s %s; see weir %s --help",
                        problem, what, command->name);
}

/* The columns that "--name PLACEHOLDER" takes. */
static int option_width(const wr_option *option)
{
    size_t value = option->placeholder != NULL ? strlen(option->placeholder) + 1 : 0;
    return (int)(strlen("--") + strlen(option->name) + value);
}

static void print_option(const wr_option *option, int width)
{
    bool has_value = option->placeholder != NULL;
    printf("  --%s%s%s%*s  %s\n", option->name, has_value ? " " : "",
           has_value ? option->placeholder : "", width - option_width(option), "",
           option->help);
}

static void print_help(const wr_command *command)
{
    static const wr_option help = {.name = "help", .help = "print this and exit"};
    bool has_operands = command->operands != NULL;
    printf("usage: weir %s [options]%s%s\n\n%s\n\noptions:\n", command->name,
           has_operands ? " " : "", has_operands ? command->operands : "",
           command->summary);
    int width = option_width(&help);
    for (size_t i = 0; i < command->option_count; i++) {
        int other = option_width(&command->options[i]);
        width = other > width ? other : width;
    }
    for (size_t i = 0; i < command->option_count; i++) {
        print_option(&command->options[i], width);
    }
    print_option(&help, width);
    if (command->details != NULL) {
        printf("\n%s", command->details);
    }
}

/* The option whose name is the `length` bytes at `name`, or NULL. */
static const wr_option *find_option(const wr_command *command, const char *name,
                                    size_t length)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const char *candidate = command->options[i].name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) {
            return &command->options[i];
        }
    }
    return NULL;
}

static int refuse_value(const wr_command *command, const wr_option *option,
                        const char *text, const char *wanted)
{
    return wr_cli_error(WR_EXIT_USAGE, command->name,
                        "--%s takes %s, not \"%s\"; see weir %s --help", option->name,
                        wanted, text, command->name);
}

static int take_value(const wr_command *command, const wr_option *option,
                      const char *text)
{
    uint64_t number = 0;
    switch (option->kind) {
    case WR_OPTION_KIND_FLAG:
        *(bool *)option->value = true;
        return WR_OPTIONS_RUN;
    case WR_OPTION_KIND_TEXT:
        *(const char **)option->value = text;
        return WR_OPTIONS_RUN;
    case WR_OPTION_KIND_SIZE:
        if (!wr_size_parse(text, &number)) {
            return refuse_value(command, option, text,
                                "a size such as 24GiB, 64MiB or 512");
        }
        break;
    case WR_OPTION_KIND_NUMBER:
        if (!parse_number(text, &number)) {
            return refuse_value(command, option, text, "a whole number");
        }
        break;
    }
    *(uint64_t *)option->value = number;
    return WR_OPTIONS_RUN;
}

/* Reads the option at argv[*at] and leaves `*at` behind it and its value. */
static int take_option(const wr_command *command, char **argv, int *at)
{
    const char *word = argv[(*at)++];
    if (strcmp(word, "--help") == 0) {
        print_help(command);
        return WR_EXIT_OK;
    }
    if (strncmp(word, "--", 2) != 0) {
        return refuse(command, "unknown option", word);
    }
    size_t length = strcspn(word + 2, "=");
    const wr_option *option = find_option(command, word + 2, length);
    if (option == NULL) {
        return refuse(command, "unknown option", word);
    }
    bool has_value = word[2 + length] == '=';
    if (option->kind == WR_OPTION_KIND_FLAG) {
        return has_value ? refuse_value(command, option, word + 3 + length, "no value")
                         : take_value(command, option, NULL);
    }
    if (has_value) {
        return take_value(command, option, word + 3 + length);
    }
    if (argv[*at] == NULL) {
        char missing[80];
        snprintf(missing, sizeof missing, "%s after --%s", option->placeholder,
                 option->name);
        return refuse(command, "missing", missing);
    }
    return take_value(command, option, argv[(*at)++]);
}

/* Whether a word is an option: "-" alone is not, it is a name for standard input. */
static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

int wr_options_parse(const wr_command *command, int argc, char **argv, int *operand_count)
{
    bool options_ended = false;
    int operands = 0;
    for (int at = 1; at < argc;) {
        if (!options_ended && strcmp(argv[at], "--") == 0) {
            options_ended = true;
            at++;
        } else if (!options_ended && is_option(argv[at])) {
            int code = take_option(command, argv, &at);
            if (code != WR_OPTIONS_RUN) {
                return code;
            }
        } else if (command->operands == NULL) {
            return refuse(command, "unexpected argument", argv[at]);
        } else {
            argv[++operands] = argv[at++];
        }
    }
    if (operand_count != NULL) {
        *operand_count = operands;
    }
    return WR_OPTIONS_RUN;
}
