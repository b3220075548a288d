/* SPDX-License-Identifier: MIT */
/* Reading words off one line. Characters are compared as bytes, whatever the locale. */
#include "line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool wr_scn_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool wr_scn_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool wr_scn_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool wr_scn_text_is(wr_scn_text text, const char *word)
{
    return text.bytes == strlen(word) && memcmp(text.start, word, text.bytes) == 0;
}

/* Where the comment begins: the first # outside quotes. */
static const char *comment_start(const char *at, const char *end)
{
    bool is_quoted = false;
    for (; at < end; at++) {
        if (*at == '"') {
            is_quoted = !is_quoted;
        } else if (*at == '#' && !is_quoted) {
            break;
        }
    }
    return at;
}

bool wr_scn_line_next(wr_scn_text *rest, wr_scn_line *line)
{
    if (rest->bytes == 0) {
        return false;
    }
    const char *newline = memchr(rest->start, '\n', rest->bytes);
    size_t bytes = newline ? (size_t)(newline - rest->start) : rest->bytes;
    size_t used = newline ? bytes + 1 : bytes;

    line->at = rest->start;
    line->end = comment_start(rest->start, rest->start + bytes);
    line->number++;
    rest->start += used;
    rest->bytes -= used;
    return true;
}

bool wr_scn_line_refuse(wr_scn_line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line->error->text, sizeof line->error->text, format, arguments);
    va_end(arguments);
    for (char *c = line->error->text; *c; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    line->error->line = line->number;
    return false;
}

bool wr_scn_line_expected(wr_scn_line *line, const char *what)
{
    wr_scn_text found = wr_scn_line_peek(line);
    if (found.bytes == 0) {
        return wr_scn_line_refuse(line, "expected %s at the end of the line", what);
    }
    return wr_scn_line_refuse(line, "expected %s, found '%.*s'", what,
                              WR_SCN_TEXT(found));
}

void wr_scn_line_skip_spaces(wr_scn_line *line)
{
    while (line->at < line->end && wr_scn_is_space(*line->at)) {
        line->at++;
    }
}

bool wr_scn_line_is_done(wr_scn_line *line)
{
    wr_scn_line_skip_spaces(line);
    return line->at == line->end;
}

wr_scn_text wr_scn_line_peek(wr_scn_line *line)
{
    wr_scn_line_skip_spaces(line);
    const char *end = line->at;
    while (end < line->end && !wr_scn_is_space(*end)) {
        end++;
    }
    size_t bytes = (size_t)(end - line->at);
    return (wr_scn_text){line->at,
                         bytes < WR_SCN_NAME_BYTES ? bytes : WR_SCN_NAME_BYTES - 1};
}

bool wr_scn_line_end(wr_scn_line *line)
{
    wr_scn_text left = wr_scn_line_peek(line);
    return left.bytes == 0 ||
           wr_scn_line_refuse(line, "unexpected '%.*s'", WR_SCN_TEXT(left));
}

bool wr_scn_line_take(wr_scn_line *line, const char *literal)
{
    wr_scn_line_skip_spaces(line);
    size_t bytes = strlen(literal);
    if ((size_t)(line->end - line->at) < bytes || memcmp(line->at, literal, bytes) != 0) {
        return false;
    }
    line->at += bytes;
    return true;
}

bool wr_scn_line_take_word(wr_scn_line *line, const char *word)
{
    wr_scn_text next = wr_scn_line_peek(line);
    return wr_scn_text_is(next, word) && wr_scn_line_take(line, word);
}

/* ---- runs of characters ---- */

static bool is_variable_char(char c)
{
    return wr_scn_is_letter(c) || wr_scn_is_digit(c);
}

static bool is_mark_char(char c)
{
    return is_variable_char(c) || c == '$';
}

static bool is_name_char(char c)
{
    return is_mark_char(c) || c == '-' || c == '.' || c == ':';
}

static bool is_tag_char(char c)
{
    return !wr_scn_is_space(c) && c != '"' && c != ')' && c != '\0';
}

static bool take_run(wr_scn_line *line, bool (*belongs)(char), const char *what,
                     wr_scn_text *run)
{
    wr_scn_line_skip_spaces(line);
    const char *start = line->at;
    while (line->at < line->end && belongs(*line->at)) {
        line->at++;
    }
    size_t bytes = (size_t)(line->at - start);
    if (bytes == 0) {
        return wr_scn_line_expected(line, what);
    }
    if (bytes >= WR_SCN_NAME_BYTES) {
        return wr_scn_line_refuse(line, "%s is longer than %d bytes", what,
                                  WR_SCN_NAME_BYTES - 1);
    }
    *run = (wr_scn_text){start, bytes};
    return true;
}

bool wr_scn_line_name(wr_scn_line *line, const char *what, wr_scn_text *name)
{
    return take_run(line, is_name_char, what, name);
}

bool wr_scn_line_mark(wr_scn_line *line, const char *what, wr_scn_text *name)
{
    return take_run(line, is_mark_char, what, name);
}

bool wr_scn_line_variable(wr_scn_line *line, const char *what, wr_scn_text *name)
{
    wr_scn_text next = wr_scn_line_peek(line);
    if (next.bytes > 0 && wr_scn_is_digit(next.start[0])) {
        return wr_scn_line_expected(line, what);
    }
    return take_run(line, is_variable_char, what, name);
}

bool wr_scn_line_quoted(wr_scn_line *line, wr_scn_text *text)
{
    if (!wr_scn_line_take(line, "\"")) {
        return wr_scn_line_refuse(line, "expected a text in double quotes");
    }
    const char *start = line->at;
    const char *quote = memchr(start, '"', (size_t)(line->end - start));
    if (!quote) {
        return wr_scn_line_refuse(line, "the text has no closing quote");
    }
    size_t bytes = (size_t)(quote - start);
    if (bytes == 0 || bytes >= WR_SCN_NAME_BYTES) {
        return wr_scn_line_refuse(line, "a text has 1 to %d bytes",
                                  WR_SCN_NAME_BYTES - 1);
    }
    *text = (wr_scn_text){start, bytes};
    line->at = quote + 1;
    return true;
}

bool wr_scn_line_tag(wr_scn_line *line, wr_scn_text *text)
{
    wr_scn_text next = wr_scn_line_peek(line);
    if (next.bytes > 0 && next.start[0] == '"') {
        return wr_scn_line_quoted(line, text);
    }
    return take_run(line, is_tag_char, "a tag", text);
}
