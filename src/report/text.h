/* SPDX-License-Identifier: MIT */
/* Words and numbers for people: sizes, names from outside made printable, and bounded
 * texts that are never cut in the middle of a fact. Pure functions, any thread.
 * weir_format_bytes() is here too. */
#ifndef WR_REPORT_TEXT_H
#define WR_REPORT_TEXT_H

#include <weir/report.h>

#define WR_BYTES_TEXT 24

/* Like weir_format_bytes(), with a minus sign where there is one. */
char *wr_format_signed_bytes(int64_t bytes, char text[WR_BYTES_TEXT]);

/* Length of the UTF-8 sequence that `text` starts with; 0 if it is not a valid one.
 * `text` ends with a zero byte and is not empty. */
size_t wr_utf8_length(const char *text);

/* Copies a name, with '?' for each control character and invalid byte, cut to whole
 * characters where it does not fit; returns `to`. */
char *wr_text_printable(const char *from, char *to, size_t to_bytes);

/* Characters in a printable text. */
size_t wr_text_width(const char *printable);

/* A text of limited size that grows by whole pieces. */
typedef struct wr_text {
    char *text; /* always terminated */
    size_t capacity_bytes;
    size_t used_bytes; /* without the terminator */
} wr_text;

void wr_text_init(wr_text *text, char *memory, size_t capacity_bytes);
/* Appends a piece if it fits with `spare_bytes` left over; otherwise changes nothing and
 * says false. */
bool wr_text_add(wr_text *text, size_t spare_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
