/* SPDX-License-Identifier: MIT */
/* Cells lie in one array, row by row; widths are worked out when the table is written. */
#include "table.h"

#include "base/check.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void wr_table_add(wr_table *table, const char *format, ...)
{
    WR_ASSERT(table->cell_count < WR_TABLE_CELLS);
    if (table->cell_count == WR_TABLE_CELLS) {
        return;
    }
    char text[WR_TABLE_CELL_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wr_text_printable(text, table->cells[table->cell_count++], WR_TABLE_CELL_BYTES);
}

void wr_table_init(wr_table *table, const char *align, const char *heads)
{
    table->align = align;
    table->cell_count = 0;
    while (*heads != '\0') {
        size_t length = strcspn(heads, " ");
        wr_table_add(table, "%.*s", (int)length, heads);
        heads += length + strspn(heads + length, " ");
    }
    WR_ASSERT(table->cell_count == strlen(align));
}

void wr_table_add_bytes(wr_table *table, uint64_t bytes)
{
    char text[WR_BYTES_TEXT];
    wr_table_add(table, "%s", weir_format_bytes(bytes, text));
}

static size_t column_width(const wr_table *table, size_t column, size_t columns)
{
    size_t widest = 0;
    for (size_t cell = column; cell < table->cell_count; cell += columns) {
        size_t width = wr_text_width(table->cells[cell]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* One cell and its padding; the last column gets none behind it. */
static void write_cell(wr_sink *sink, const char *cell, char align, int padding,
                       bool is_last)
{
    int before = align == 'r' ? padding : 0;
    int behind = is_last ? 0 : padding - before;
    wr_sink_print(sink, "  %*s%s%*s%s", before, "", cell, behind, "",
                  is_last ? "\n" : "");
}

void wr_table_write(const wr_table *table, wr_sink *sink)
{
    size_t columns = strlen(table->align);
    size_t whole = table->cell_count - table->cell_count % columns;
    for (size_t cell = 0; cell < whole; cell++) {
        size_t column = cell % columns;
        const char *text = table->cells[cell];
        size_t padding = column_width(table, column, columns) - wr_text_width(text);
        write_cell(sink, text, table->align[column], (int)padding, column + 1 == columns);
    }
}
