/* SPDX-License-Identifier: MIT */
/* A cursor over one line of a scenario, its comment already cut off. What is read is
 * returned as a part of the file's own text. A function that returns false has said why
 * in the error. */
#ifndef WEIR_CLI_SCENARIO_LINE_H
#define WEIR_CLI_SCENARIO_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of the file's text, not terminated. Lives as long as the parsed file. */
typedef struct wr_scn_text {
    const char *start; /* NULL: absent */
    size_t bytes;
} wr_scn_text;

/* For printf's "%.*s". */
#define WR_SCN_TEXT(text) (int)(text).bytes, (text).start

typedef struct wr_scn_error {
    uint32_t line; /* 1 is the first; 0: no line is to blame */
    char text[320];
} wr_scn_error;

typedef struct wr_scn_line {
    const char *at, *end;
    uint32_t number;
    wr_scn_error *error;
} wr_scn_line;

/* Names and quoted texts, and what they become when variables are put in, are shorter. */
#define WR_SCN_NAME_BYTES 256

/* Takes the next line off `*rest` and cuts its comment; false at the end of the text. */
bool wr_scn_line_next(wr_scn_text *rest, wr_scn_line *line);

/* Says why the line is wrong; always false. */
bool wr_scn_line_refuse(wr_scn_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* "expected WHAT, found '...'"; always false. */
bool wr_scn_line_expected(wr_scn_line *line, const char *what);

void wr_scn_line_skip_spaces(wr_scn_line *line);

/* True when nothing but spaces is left. */
bool wr_scn_line_is_done(wr_scn_line *line);

/* Refuses what is left over. */
bool wr_scn_line_end(wr_scn_line *line);

/* The next word without moving: up to a space, "" at the end. */
wr_scn_text wr_scn_line_peek(wr_scn_line *line);

/* Moves behind `literal` if it comes next, after spaces. */
bool wr_scn_line_take(wr_scn_line *line, const char *literal);

/* The same for a whole word: a space or the end must follow. */
bool wr_scn_line_take_word(wr_scn_line *line, const char *word);

/* What may be read as a name. `what` names it in the reason. */
bool wr_scn_line_name(wr_scn_line *line, const char *what,
                      wr_scn_text *name); /* a-b.c$i */
bool wr_scn_line_mark(wr_scn_line *line, const char *what, wr_scn_text *name); /* a_b$i */
bool wr_scn_line_variable(wr_scn_line *line, const char *what,
                          wr_scn_text *name); /* a_1 */

/* "TEXT" in double quotes, without them. */
bool wr_scn_line_quoted(wr_scn_line *line, wr_scn_text *text);

/* A quoted text, or a run without spaces, quotes and closing parentheses. */
bool wr_scn_line_tag(wr_scn_line *line, wr_scn_text *text);

bool wr_scn_text_is(wr_scn_text text, const char *word);

bool wr_scn_is_space(char c);
bool wr_scn_is_digit(char c);
bool wr_scn_is_letter(char c); /* or underscore */

#endif
