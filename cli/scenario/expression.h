/* SPDX-License-Identifier: MIT */
/* Expressions, parsed into postfix operations: `1GiB - $i * 4` is 1GiB, $i, 4, *, -. */
#ifndef WEIR_CLI_SCENARIO_EXPRESSION_H
#define WEIR_CLI_SCENARIO_EXPRESSION_H

#include "field.h"

typedef enum wr_scn_op_kind {
    WR_SCN_OP_NUMBER = 0,
    WR_SCN_OP_VARIABLE = 1,
    WR_SCN_OP_FIELD = 2,
    WR_SCN_OP_ADD = 3,
    WR_SCN_OP_SUBTRACT = 4,
    WR_SCN_OP_MULTIPLY = 5,
    WR_SCN_OP_DIVIDE = 6,
} wr_scn_op_kind;

typedef struct wr_scn_op {
    wr_scn_op_kind kind;
    wr_scn_field field;
    uint64_t number;
    wr_scn_text name; /* of the variable; the tag of tag(TEXT).in_use */
    wr_scn_text mark; /* of FIELD@MARK, else absent */
} wr_scn_op;

/* All expressions of a file share one array. */
typedef struct wr_scn_ops {
    wr_scn_op *at;
    size_t count, capacity;
} wr_scn_ops;

typedef struct wr_scn_expr {
    size_t first, count; /* in wr_scn_ops; count 0: absent */
    wr_scn_text source;
} wr_scn_expr;

/* Parentheses nest so deep... */
#define WR_SCN_EXPR_DEPTH 64
/* ...and each level has at most a sum's and a product's left side waiting. */
#define WR_SCN_EXPR_STACK (2 * WR_SCN_EXPR_DEPTH + 4)

typedef enum wr_scn_expr_form {
    WR_SCN_EXPR_WIDE = 0,  /* spaces anywhere */
    WR_SCN_EXPR_TIGHT = 1, /* ends at the first space outside parentheses */
    WR_SCN_EXPR_CHECK = 2, /* spaces anywhere, fields allowed */
} wr_scn_expr_form;

/* Reads one expression, as long as it goes. */
bool wr_scn_expr_parse(wr_scn_line *line, wr_scn_expr_form form, wr_scn_ops *ops,
                       wr_scn_expr *expr);

#endif
