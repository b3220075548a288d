/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "output.h"

#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int wr_cli_error(wr_exit code, const char *command, const char *format, ...)
{
    fflush(stdout);
    fprintf(stderr, "weir%s%s: ", command != NULL ? " " : "",
            command != NULL ? command : "");
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return (int)code;
}

enum {
    MARGIN = 2, /* spaces before every column */
};

void wr_table_fit(wr_column *columns, size_t count, const char *const *cells)
{
    for (size_t i = 0; i < count; i++) {
        int width = (int)strlen(cells[i]);
        if (columns[i].width < width) {
            columns[i].width = width;
        }
    }
}

static void print_cell(const wr_column *column, bool is_last, const char *text)
{
    int width = column->is_right ? column->width : is_last ? 0 : -column->width;
    printf("%*s%*s", MARGIN, "", width, text);
}

void wr_table_head(wr_column *columns, size_t count)
{
    fputs(wr_colour_begin(WR_COLOUR_BOLD), stdout);
    for (size_t i = 0; i < count; i++) {
        wr_table_fit(&columns[i], 1, &columns[i].title);
        print_cell(&columns[i], i + 1 == count, columns[i].title);
    }
    puts(wr_colour_end());
}

void wr_table_row(const wr_column *columns, size_t count, const char *const *cells)
{
    for (size_t i = 0; i < count; i++) {
        print_cell(&columns[i], i + 1 == count, cells[i]);
    }
    putchar('\n');
    wr_output_flush();
}

static bool has_colour(void)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0') &&
           terminal != NULL && strcmp(terminal, "dumb") != 0;
}

const char *wr_colour_begin(wr_colour colour)
{
    if (!has_colour()) {
        return "";
    }
    switch (colour) {
    case WR_COLOUR_BOLD:
        return "\x1b[1m";
    case WR_COLOUR_RED:
        return "\x1b[31m";
    case WR_COLOUR_GREEN:
        return "\x1b[32m";
    }
    return "";
}

const char *wr_colour_end(void)
{
    return has_colour() ? "\x1b[0m" : "";
}

/* Why the first failing flush failed; 0: none did. The main thread's. */
static int flush_error;

void wr_output_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && flush_error == 0) {
        flush_error = errno;
    }
}

int wr_output_finish(int code)
{
    wr_output_flush();
    if (flush_error == 0 && ferror(stdout) == 0) {
        return code;
    }
    if (flush_error != EPIPE) {
        wr_cli_error(WR_EXIT_FAILED, NULL, "standard output could not be written: %s",
                     flush_error != 0 ? strerror(flush_error) : "part of it is lost");
    }
    return WR_EXIT_FAILED;
}
