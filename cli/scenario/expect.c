/* SPDX-License-Identifier: MIT */
/* Checks. */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static bool compare(wr_scn_comparison comparison, wr_scn_value left, wr_scn_value right)
{
    switch (comparison) {
    case WR_SCN_EQUAL:
        return left == right;
    case WR_SCN_UNEQUAL:
        return left != right;
    case WR_SCN_AT_MOST:
        return left <= right;
    case WR_SCN_AT_LEAST:
        return left >= right;
    case WR_SCN_BELOW:
        return left < right;
    default:
        return left > right;
    }
}

static bool expect_number(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_value left, right;
    if (!wr_scn_evaluate(run, &statement->number[0], &left) ||
        !wr_scn_evaluate(run, &statement->number[1], &right)) {
        return false;
    }
    if (compare((wr_scn_comparison)statement->choice, left, right)) {
        return true;
    }
    char left_text[24], right_text[24], wanted[32] = "";
    wr_scn_text source = statement->number[1].source;
    wr_scn_value_text(right, right_text);
    if (!wr_scn_text_is(source, right_text)) {
        snprintf(wanted, sizeof wanted, " (%s)", right_text);
    }
    return wr_scn_fail(run, "expected %.*s %s %.*s%s, got %s",
                       WR_SCN_TEXT(statement->number[0].source),
                       wr_scn_comparison_sign((wr_scn_comparison)statement->choice),
                       WR_SCN_TEXT(source), wanted, wr_scn_value_text(left, left_text));
}

/* ---- buffers ---- */

static bool share_bytes(const wr_scn_buffer *a, const wr_scn_buffer *b)
{
    return a->address <= b->address ? b->address - a->address < a->bytes
                                    : a->address - b->address < b->bytes;
}

static bool expect_placement(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_buffer *a, *b;
    if (!wr_scn_buffer_recall(run, statement->name, &a) ||
        !wr_scn_buffer_recall(run, statement->other, &b)) {
        return false;
    }
    bool is_shared = share_bytes(a, b);
    if (is_shared == (statement->kind == WR_SCN_EXPECT_OVERLAPS)) {
        return true;
    }
    return wr_scn_fail(run,
                       "expected %.*s %s %.*s, got %" PRIu64 " bytes at %" PRIu64
                       " and %" PRIu64 " bytes at %" PRIu64,
                       WR_SCN_TEXT(statement->name),
                       is_shared ? "apart from" : "overlapping",
                       WR_SCN_TEXT(statement->other), a->bytes, a->address, b->bytes,
                       b->address);
}

/* ---- texts ---- */

struct sink {
    char *text; /* terminated */
    size_t bytes;
};

static weir_result collect(void *context, const char *text, size_t text_bytes)
{
    struct sink *sink = context;
    char *grown = realloc(sink->text, sink->bytes + text_bytes + 1);
    if (!grown) {
        return WEIR_OUT_OF_HOST_MEMORY;
    }
    memcpy(grown + sink->bytes, text, text_bytes);
    sink->text = grown;
    sink->bytes += text_bytes;
    grown[sink->bytes] = '\0';
    return WEIR_OK;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool starts_with(const char *text, const char *start)
{
    while (*start && lower(*text) == lower(*start)) {
        text++;
        start++;
    }
    return *start == '\0';
}

static bool contains(const char *text, const char *part)
{
    for (; *text; text++) {
        if (starts_with(text, part)) {
            return true;
        }
    }
    return false;
}

static bool judge_text(wr_scn_run *run, const wr_scn_statement *statement,
                       const char *what, const char *text)
{
    char part[WR_SCN_NAME_BYTES];
    if (!wr_scn_expand(run, statement->name, part)) {
        return false;
    }
    bool is_silent = statement->kind == WR_SCN_EXPECT_SILENT;
    return contains(text, part) != is_silent ||
           wr_scn_fail(run, "expected %s %s \"%s\", got \"%.600s\"", what,
                       is_silent ? "not to say" : "to say", part, text);
}

static bool expect_explain(wr_scn_run *run, const wr_scn_statement *statement)
{
    if (run->is_child) {
        return wr_scn_wrong(run, "explain cannot be checked in a forked child");
    }
    struct sink sink = {NULL, 0};
    bool is_right = wr_scn_accept(run, "weir_device_explain",
                                  weir_device_explain(run->device, collect, &sink)) &&
                    judge_text(run, statement, "explain", sink.text ? sink.text : "");
    free(sink.text);
    return is_right;
}

bool wr_scn_run_check(wr_scn_run *run, const wr_scn_statement *statement)
{
    switch (statement->kind) {
    case WR_SCN_EXPECT_NUMBER:
        return expect_number(run, statement);
    case WR_SCN_EXPECT_OVERLAPS:
    case WR_SCN_EXPECT_APART:
        return expect_placement(run, statement);
    case WR_SCN_EXPECT_ERROR:
        return judge_text(run, statement, "the error", run->error);
    default:
        return expect_explain(run, statement);
    }
}
