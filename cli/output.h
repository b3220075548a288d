/* SPDX-License-Identifier: MIT */
/* Text for people: tables that line up, and colour where it is wanted. */
#ifndef WEIR_CLI_OUTPUT_H
#define WEIR_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wr_column {
    const char *title;
    int width; /* in characters; the head makes it at least the title's */
    bool is_right;
} wr_column;

/* Widens the columns so that a row fits. */
void wr_table_fit(wr_column *columns, size_t count, const char *const *cells);
/* The titles; then row after row, each as soon as it is known. */
void wr_table_head(wr_column *columns, size_t count);
void wr_table_row(const wr_column *columns, size_t count, const char *const *cells);

typedef enum wr_colour {
    WR_COLOUR_BOLD = 1,
    WR_COLOUR_RED = 31,
    WR_COLOUR_GREEN = 32,
} wr_colour;

/* Starts a colour on standard output, and ends it: nothing unless that is a terminal that
 * can show it and NO_COLOR is not set. Text to print, never NULL. */
const char *wr_colour_begin(wr_colour colour);
const char *wr_colour_end(void);

/* Writes out what was printed so far; an error is kept for wr_output_finish. */
void wr_output_flush(void);

/* Flushes for the last time. Returns `code`, or WR_EXIT_FAILED if not everything could be
 * written; then it says so, unless the reader simply went away. */
int wr_output_finish(int code);

#endif
