/* SPDX-License-Identifier: MIT */
/* Recursive descent, bounded by WR_SCN_EXPR_DEPTH:
 *
 *   sum     = product { ("+" | "-") product }
 *   product = atom { ("*" | "/") atom }
 *   atom    = number [unit] | "$" variable | "(" sum ")" | field [ "@" mark ]
 */
#include "expression.h"

#include "array.h"

struct reader {
    wr_scn_line *line;
    wr_scn_ops *ops;
    wr_scn_expr_form form;
    int depth; /* of parentheses */
};

static bool push(struct reader *reader, wr_scn_op op)
{
    wr_scn_ops *ops = reader->ops;
    if (!wr_scn_array_grow((void **)&ops->at, &ops->capacity, ops->count + 1,
                           sizeof op)) {
        return wr_scn_line_refuse(reader->line, "the host has no memory");
    }
    ops->at[ops->count++] = op;
    return true;
}

/* Spaces end a tight expression unless parentheses are open. */
static void skip_spaces(struct reader *reader)
{
    if (reader->form != WR_SCN_EXPR_TIGHT || reader->depth > 0) {
        wr_scn_line_skip_spaces(reader->line);
    }
}

static bool is_next(const struct reader *reader, char c)
{
    return reader->line->at < reader->line->end && *reader->line->at == c;
}

/* ---- atoms ---- */

/* "" and "B" are 1; 0 if there is no such unit. */
static uint64_t unit_bytes(wr_scn_text unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (unit.bytes == 0) {
        return 1;
    }
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        if (wr_scn_text_is(unit, units[i])) {
            return UINT64_C(1) << (10 * i);
        }
    }
    return 0;
}

static wr_scn_text take_letters(wr_scn_line *line)
{
    wr_scn_text run = {line->at, 0};
    while (line->at < line->end &&
           (wr_scn_is_letter(*line->at) || wr_scn_is_digit(*line->at))) {
        line->at++;
        run.bytes++;
    }
    return run;
}

static bool take_digits(wr_scn_line *line, uint64_t *number)
{
    bool fits = true;
    *number = 0;
    for (; line->at < line->end && wr_scn_is_digit(*line->at); line->at++) {
        uint64_t digit = (uint64_t)(*line->at - '0');
        fits = fits && *number <= (UINT64_MAX - digit) / 10;
        *number = *number * 10 + digit;
    }
    return fits;
}

static bool parse_number(struct reader *reader)
{
    wr_scn_line *line = reader->line;
    wr_scn_text word = wr_scn_line_peek(line);
    uint64_t number;
    bool fits = take_digits(line, &number);
    uint64_t unit = unit_bytes(take_letters(line));

    if (unit == 0) {
        return wr_scn_line_refuse(line,
                                  "'%.*s' is not a number; units are B KiB MiB GiB TiB",
                                  WR_SCN_TEXT(word));
    }
    if (!fits || number > UINT64_MAX / unit) {
        return wr_scn_line_refuse(line, "'%.*s' does not fit into 64 bits",
                                  WR_SCN_TEXT(word));
    }
    if (is_next(reader, '.') && line->end - line->at > 1 &&
        wr_scn_is_digit(line->at[1])) {
        return wr_scn_line_refuse(line, "'%.*s' is not a whole number",
                                  WR_SCN_TEXT(word));
    }
    return push(reader, (wr_scn_op){.kind = WR_SCN_OP_NUMBER, .number = number * unit});
}

static bool parse_variable(struct reader *reader)
{
    wr_scn_op op = {.kind = WR_SCN_OP_VARIABLE};
    reader->line->at++;
    if (reader->line->at == reader->line->end || !wr_scn_is_letter(*reader->line->at)) {
        return wr_scn_line_refuse(reader->line,
                                  "expected a variable's name right behind '$'");
    }
    return wr_scn_line_variable(reader->line, "a variable's name", &op.name) &&
           push(reader, op);
}

/* A field's name: letters, and one dot after "last". */
static wr_scn_text take_field_name(wr_scn_line *line)
{
    wr_scn_text name = take_letters(line);
    if (wr_scn_text_is(name, "last") && line->at < line->end && *line->at == '.') {
        line->at++;
        name.bytes += 1 + take_letters(line).bytes;
    }
    return name;
}

static bool parse_tag_field(struct reader *reader, wr_scn_op *op)
{
    wr_scn_line *line = reader->line;
    op->field = WR_SCN_FIELD_tag;
    if (!wr_scn_line_take(line, "(") || !wr_scn_line_tag(line, &op->name)) {
        return wr_scn_line_refuse(line, "a tag is checked as tag(TEXT).in_use");
    }
    if (!wr_scn_line_take(line, ").in_use")) {
        return wr_scn_line_expected(line, "').in_use'");
    }
    return true;
}

static bool parse_field(struct reader *reader)
{
    wr_scn_line *line = reader->line;
    wr_scn_op op = {.kind = WR_SCN_OP_FIELD};
    wr_scn_text name = take_field_name(line);

    if (reader->form != WR_SCN_EXPR_CHECK) {
        return wr_scn_line_refuse(
            line,
            "'%.*s' is not a number; variables are written $%.*s, fields are for checks",
            WR_SCN_TEXT(name), WR_SCN_TEXT(name));
    }
    if (wr_scn_text_is(name, "tag")) {
        if (!parse_tag_field(reader, &op)) {
            return false;
        }
    } else if (!wr_scn_field_find(name, &op.field)) {
        return wr_scn_line_refuse(line, "'%.*s' is not a field that can be checked",
                                  WR_SCN_TEXT(name));
    }
    if (is_next(reader, '@')) {
        line->at++;
        if (!wr_scn_line_mark(line, "a mark's name", &op.mark)) {
            return false;
        }
    }
    return push(reader, op);
}

static bool parse_sum(struct reader *reader);

static bool parse_parentheses(struct reader *reader)
{
    if (reader->depth == WR_SCN_EXPR_DEPTH) {
        return wr_scn_line_refuse(reader->line, "parentheses nest deeper than %d",
                                  WR_SCN_EXPR_DEPTH);
    }
    reader->line->at++;
    reader->depth++;
    if (!parse_sum(reader)) {
        return false;
    }
    if (!is_next(reader, ')')) {
        return wr_scn_line_expected(reader->line, "')'");
    }
    reader->line->at++;
    reader->depth--;
    return true;
}

static bool parse_atom(struct reader *reader)
{
    skip_spaces(reader);
    if (reader->line->at == reader->line->end) {
        return wr_scn_line_expected(reader->line, "a number");
    }
    char first = *reader->line->at;
    if (wr_scn_is_space(first)) {
        return wr_scn_line_refuse(reader->line,
                                  "a size has no spaces outside parentheses here");
    }
    if (wr_scn_is_digit(first)) {
        return parse_number(reader);
    }
    if (first == '$') {
        return parse_variable(reader);
    }
    if (first == '(') {
        return parse_parentheses(reader);
    }
    if (wr_scn_is_letter(first)) {
        return parse_field(reader);
    }
    return wr_scn_line_expected(reader->line, "a number");
}

/* ---- operators ---- */

/* Reads `operand { operator operand }`, left to right, for the operators of one rank: two
 * signs, of which the second one's kind follows the first one's. */
static bool parse_chain(struct reader *reader, bool (*operand)(struct reader *),
                        const char signs[2], wr_scn_op_kind first)
{
    if (!operand(reader)) {
        return false;
    }
    for (;;) {
        skip_spaces(reader);
        bool is_second = is_next(reader, signs[1]);
        if (!is_second && !is_next(reader, signs[0])) {
            return true;
        }
        reader->line->at++;
        if (!operand(reader) || !push(reader, (wr_scn_op){.kind = first + is_second})) {
            return false;
        }
    }
}

static bool parse_product(struct reader *reader)
{
    return parse_chain(reader, parse_atom, "*/", WR_SCN_OP_MULTIPLY);
}

static bool parse_sum(struct reader *reader)
{
    return parse_chain(reader, parse_product, "+-", WR_SCN_OP_ADD);
}

bool wr_scn_expr_parse(wr_scn_line *line, wr_scn_expr_form form, wr_scn_ops *ops,
                       wr_scn_expr *expr)
{
    wr_scn_line_skip_spaces(line);
    struct reader reader = {.line = line, .ops = ops, .form = form};
    const char *start = line->at;
    size_t first = ops->count;

    if (!parse_sum(&reader)) {
        return false;
    }
    size_t bytes = (size_t)(line->at - start);
    while (bytes > 0 && wr_scn_is_space(start[bytes - 1])) {
        bytes--;
    }
    *expr = (wr_scn_expr){first, ops->count - first, {start, bytes}};
    return true;
}
