/* SPDX-License-Identifier: MIT */
/* Numbers of expressions and variables in names. Values stay within 64 bits and a sign,
 * so that sums and products of two of them fit into 128. */
#include "array.h"
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const wr_scn_value limit = UINT64_MAX;

static uint64_t magnitude(wr_scn_value value)
{
    return (uint64_t)(value < 0 ? -value : value);
}

char *wr_scn_value_text(wr_scn_value value, char text[24])
{
    snprintf(text, 24, "%s%" PRIu64, value < 0 ? "-" : "", magnitude(value));
    return text;
}

/* ---- variables ---- */

bool wr_scn_variable_set(wr_scn_run *run, wr_scn_text name, wr_scn_value value)
{
    char key[WR_SCN_NAME_BYTES];
    snprintf(key, sizeof key, "%.*s", WR_SCN_TEXT(name));
    size_t number = wr_scn_names_add(&run->variable_names, key);
    if (number == WR_SCN_NO_NAME ||
        !wr_scn_array_grow((void **)&run->variables, &run->variable_capacity, number + 1,
                           sizeof value)) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    run->variables[number] = value;
    return true;
}

static bool get_variable(wr_scn_run *run, wr_scn_text name, wr_scn_value *value)
{
    char key[WR_SCN_NAME_BYTES];
    snprintf(key, sizeof key, "%.*s", WR_SCN_TEXT(name));
    size_t number = wr_scn_names_find(&run->variable_names, key);
    if (number == WR_SCN_NO_NAME) {
        return wr_scn_wrong(run, "there is no variable '$%s'", key);
    }
    *value = run->variables[number];
    return true;
}

/* The variable's name behind a '$' at `at`; 0 bytes if the '$' stands for itself. */
static wr_scn_text variable_at(const char *at, const char *end)
{
    wr_scn_text name = {at + 1, 0};
    while (name.start + name.bytes < end) {
        char c = name.start[name.bytes];
        if (!wr_scn_is_letter(c) && (name.bytes == 0 || !wr_scn_is_digit(c))) {
            break;
        }
        name.bytes++;
    }
    return name;
}

bool wr_scn_expand(wr_scn_run *run, wr_scn_text text, char name[WR_SCN_NAME_BYTES])
{
    const char *end = text.start + text.bytes;
    size_t used = 0;
    for (const char *at = text.start; at < end;) {
        char number[24] = {*at};
        wr_scn_text variable = *at == '$' ? variable_at(at, end) : (wr_scn_text){0};
        wr_scn_value value = 0;
        if (variable.bytes > 0) {
            if (!get_variable(run, variable, &value)) {
                return false;
            }
            wr_scn_value_text(value, number);
        }
        size_t bytes = strlen(number);
        if (used + bytes >= WR_SCN_NAME_BYTES) {
            return wr_scn_wrong(
                run, "'%.*s' is longer than %d bytes with its variables put in",
                WR_SCN_TEXT(text), WR_SCN_NAME_BYTES - 1);
        }
        memcpy(name + used, number, bytes);
        used += bytes;
        at += 1 + variable.bytes;
    }
    name[used] = '\0';
    return true;
}

/* ---- expressions ---- */

static bool multiply(wr_scn_value left, wr_scn_value right, wr_scn_value *product)
{
    uint64_t a = magnitude(left), b = magnitude(right);
    if (a != 0 && b > UINT64_MAX / a) {
        return false;
    }
    wr_scn_value size = a;
    size *= b;
    *product = (left < 0) == (right < 0) ? size : -size;
    return true;
}

static bool combine(wr_scn_run *run, const wr_scn_expr *expr, const wr_scn_op *op,
                    wr_scn_value right, wr_scn_value *left)
{
    bool fits = true;
    switch (op->kind) {
    case WR_SCN_OP_ADD:
        *left += right;
        break;
    case WR_SCN_OP_SUBTRACT:
        *left -= right;
        break;
    case WR_SCN_OP_MULTIPLY:
        fits = multiply(*left, right, left);
        break;
    default:
        if (right == 0) {
            return wr_scn_wrong(run, "'%.*s' divides by zero", WR_SCN_TEXT(expr->source));
        }
        *left /= right;
        break;
    }
    return (fits && *left <= limit && *left >= -limit) ||
           wr_scn_wrong(run, "'%.*s' does not fit into 64 bits",
                        WR_SCN_TEXT(expr->source));
}

static bool load(wr_scn_run *run, const wr_scn_op *op, wr_scn_value *value)
{
    switch (op->kind) {
    case WR_SCN_OP_NUMBER:
        *value = op->number;
        return true;
    case WR_SCN_OP_VARIABLE:
        return get_variable(run, op->name, value);
    default:
        return wr_scn_field_read(run, op, value);
    }
}

bool wr_scn_evaluate(wr_scn_run *run, const wr_scn_expr *expr, wr_scn_value *value)
{
    wr_scn_value stack[WR_SCN_EXPR_STACK] = {0};
    size_t depth = 0;
    const wr_scn_op *ops = run->program->ops.at + expr->first;
    for (size_t i = 0; i < expr->count; i++) {
        if (ops[i].kind <= WR_SCN_OP_FIELD) {
            if (!load(run, &ops[i], &stack[depth])) {
                return false;
            }
            depth++;
        } else {
            depth--;
            if (!combine(run, expr, &ops[i], stack[depth], &stack[depth - 1])) {
                return false;
            }
        }
    }
    *value = stack[0];
    return true;
}

bool wr_scn_evaluate_size(wr_scn_run *run, const wr_scn_expr *expr, const char *what,
                          uint64_t *size)
{
    wr_scn_value value = 0;
    char text[24];
    if (expr->count > 0 && !wr_scn_evaluate(run, expr, &value)) {
        return false;
    }
    if (value < 0) {
        return wr_scn_wrong(run, "%s is negative: '%.*s' is %s", what,
                            WR_SCN_TEXT(expr->source), wr_scn_value_text(value, text));
    }
    *size = (uint64_t)value;
    return true;
}
