/* SPDX-License-Identifier: MIT */
/* A small table whose columns line up: filled cell by cell, row after row, the first row
 * being the heads; then written. Owned by one thread, no lock. */
#ifndef WR_REPORT_TABLE_H
#define WR_REPORT_TABLE_H

#include "sink.h"

#define WR_TABLE_CELLS 360 /* 34 rows of up to 10 columns, and some */
#define WR_TABLE_CELL_BYTES 48

typedef struct wr_table {
    const char *align; /* a letter a column, 'l' or 'r'; as long as there are columns */
    size_t cell_count;
    char cells[WR_TABLE_CELLS][WR_TABLE_CELL_BYTES];
} wr_table;

/* `heads`: one word a column, separated by blanks. */
void wr_table_init(wr_table *table, const char *align, const char *heads);
/* The next cell. The text is made printable. */
void wr_table_add(wr_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The next cell, a size. */
void wr_table_add_bytes(wr_table *table, uint64_t bytes);
/* All complete rows, each indented by two blanks. */
void wr_table_write(const wr_table *table, wr_sink *sink);

#endif
