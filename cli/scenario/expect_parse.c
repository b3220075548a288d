/* SPDX-License-Identifier: MIT */
/* Reading checks: `expect EXPR OP EXPR`, two buffers, or a text. */
#include "statement.h"

static const char *const signs[] = {
    [WR_SCN_EQUAL] = "==",    [WR_SCN_UNEQUAL] = "!=", [WR_SCN_AT_MOST] = "<=",
    [WR_SCN_AT_LEAST] = ">=", [WR_SCN_BELOW] = "<",    [WR_SCN_ABOVE] = ">",
};

const char *wr_scn_comparison_sign(wr_scn_comparison comparison)
{
    return signs[comparison];
}

/* Longer signs come first in the list. */
static bool parse_sign(wr_scn_line *line, wr_scn_statement *statement)
{
    for (int i = 0; i < (int)(sizeof signs / sizeof *signs); i++) {
        if (wr_scn_line_take(line, signs[i])) {
            statement->choice = i;
            return true;
        }
    }
    return wr_scn_line_expected(line, "one of == != < <= > >=");
}

/* NAME overlaps NAME2, NAME apart NAME2. Leaves the line as it was if it is neither. */
static bool parse_buffers(wr_scn_line *line, wr_scn_statement *statement, bool *is_parsed)
{
    wr_scn_line ahead = *line;
    wr_scn_error ignored;
    ahead.error = &ignored;
    *is_parsed = false;
    if (!wr_scn_line_name(&ahead, "a buffer", &statement->name)) {
        return true;
    }
    if (wr_scn_line_take_word(&ahead, "overlaps")) {
        statement->kind = WR_SCN_EXPECT_OVERLAPS;
    } else if (wr_scn_line_take_word(&ahead, "apart")) {
        statement->kind = WR_SCN_EXPECT_APART;
    } else {
        return true;
    }
    *is_parsed = true;
    line->at = ahead.at;
    return wr_scn_line_name(line, "a buffer", &statement->other);
}

static bool parse_comparison(wr_scn_line *line, wr_scn_ops *ops,
                             wr_scn_statement *statement)
{
    statement->kind = WR_SCN_EXPECT_NUMBER;
    return wr_scn_expr_parse(line, WR_SCN_EXPR_CHECK, ops, &statement->number[0]) &&
           parse_sign(line, statement) &&
           wr_scn_expr_parse(line, WR_SCN_EXPR_CHECK, ops, &statement->number[1]);
}

bool wr_scn_expect_parse(wr_scn_line *line, wr_scn_ops *ops, wr_scn_statement *statement)
{
    bool is_parsed;
    if (!parse_buffers(line, statement, &is_parsed)) {
        return false;
    }
    if (is_parsed) {
        return true;
    }
    if (wr_scn_line_take_word(line, "says")) {
        statement->kind = WR_SCN_EXPECT_SAYS;
    } else if (wr_scn_line_take_word(line, "silent")) {
        statement->kind = WR_SCN_EXPECT_SILENT;
    } else if (wr_scn_line_take_word(line, "error")) {
        statement->kind = WR_SCN_EXPECT_ERROR;
        if (!wr_scn_line_take_word(line, "says")) {
            return wr_scn_line_expected(line, "'says'");
        }
    } else {
        return parse_comparison(line, ops, statement);
    }
    return wr_scn_line_quoted(line, &statement->name);
}
