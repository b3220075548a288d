/* SPDX-License-Identifier: MIT */
/* Command lines: long options, described by tables from which the help is printed too. */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an option takes, and where its value goes. */
typedef enum wr_option_kind {
    WR_OPTION_KIND_FLAG = 0,   /* nothing; bool */
    WR_OPTION_KIND_TEXT = 1,   /* const char *, pointing into argv */
    WR_OPTION_KIND_SIZE = 2,   /* 24GiB, 64MiB, 512; uint64_t */
    WR_OPTION_KIND_NUMBER = 3, /* a whole number; uint64_t */
} wr_option_kind;

typedef struct wr_option {
    const char *name; /* without the dashes */
    wr_option_kind kind;
    void *value;             /* untouched if the option is not given */
    const char *placeholder; /* "NAME"; NULL for a flag */
    const char *help;        /* one line */
} wr_option;

typedef struct wr_command {
    const char *name;
    const char *summary;  /* one line */
    const char *operands; /* "FILE..."; NULL: the command takes none */
    const char *details;  /* paragraphs for --help, ending with a newline, or NULL */
    const wr_option *options;
    size_t option_count;
} wr_command;

/* Reads options in any place up to "--", as "--name value" or "--name=value". What is
 * left are the operands: they are moved to argv[1] and on, and `*operand_count` is how
 * many there are
 * (`operand_count` may be NULL if the command takes none).
 *
 * Returns WR_OPTIONS_RUN, or the exit code when there is nothing to run: the help was
 * asked for and printed, or an error was. */
#define WR_OPTIONS_RUN (-1)
int wr_options_parse(const wr_command *command, int argc, char **argv,
                     int *operand_count);

/* "24GiB", "64MiB", "512", "512B" to bytes; false if it is not a size or does not fit. */
bool wr_size_parse(const char *text, uint64_t *bytes);

#endif
