/* SPDX-License-Identifier: MIT */
/* The rules of operations on elements. In the formulas dy is the gradient of the result
 * y, and the gradient of operand k is what each function returns. Where a function has a
 * corner, one of its sides is taken: relu' and abs' at 0, and of equal operands of min
 * and max the left one. */
#include "rule.h"

#include <math.h>

#define FORMULA wr_formula *f, const wr_entry *e, weir_tensor *dy, uint32_t k
#define X (e->inputs[0].saved)
#define Y (e->result)

/* ---- shorthands ---- */

static weir_tensor *one_of(wr_formula *f, weir_op op, weir_tensor *x)
{
    return wr_formula_unary(f, op, x);
}

static weir_tensor *add(wr_formula *f, weir_tensor *left, weir_tensor *right)
{
    return wr_formula_binary(f, WEIR_OP_ADD, left, right);
}

static weir_tensor *mul(wr_formula *f, weir_tensor *left, weir_tensor *right)
{
    return wr_formula_binary(f, WEIR_OP_MUL, left, right);
}

static weir_tensor *div_by(wr_formula *f, weir_tensor *left, weir_tensor *right)
{
    return wr_formula_binary(f, WEIR_OP_DIV, left, right);
}

static weir_tensor *scale(wr_formula *f, weir_tensor *left, double right)
{
    return wr_formula_scalar(f, WEIR_OP_MUL, left, right);
}

static weir_tensor *shift(wr_formula *f, weir_tensor *left, double right)
{
    return wr_formula_scalar(f, WEIR_OP_ADD, left, right);
}

static weir_tensor *negate(wr_formula *f, weir_tensor *x)
{
    return one_of(f, WEIR_OP_NEG, x);
}

/* dy where `op` holds between x and the number, elsewhere 0. */
static weir_tensor *pass_if(wr_formula *f, weir_tensor *x, weir_op op, double number,
                            weir_tensor *dy)
{
    return wr_formula_choose(f, wr_formula_scalar(f, op, x, number), dy, 0);
}

/* `op` with the second operand, tensor or scalar, on the right. */
static weir_tensor *with_second(wr_formula *f, weir_op op, weir_tensor *left,
                                const wr_entry *e)
{
    return e->attributes.has_scalar ? wr_formula_scalar(f, op, left, e->attributes.scalar)
                                    : wr_formula_binary(f, op, left, e->inputs[1].saved);
}

/* ---- one operand ---- */

static weir_tensor *of_neg(FORMULA)
{
    (void)e, (void)k;
    return negate(f, dy);
}

static weir_tensor *of_abs(FORMULA)
{
    (void)k;
    weir_tensor *is_negative = wr_formula_scalar(f, WEIR_OP_LT, X, 0);
    return wr_formula_where(f, is_negative, negate(f, dy), dy);
}

static weir_tensor *of_exp(FORMULA)
{
    (void)k;
    return mul(f, dy, Y);
}

static weir_tensor *of_log(FORMULA)
{
    (void)k;
    return div_by(f, dy, X);
}

static weir_tensor *of_sqrt(FORMULA)
{
    (void)k;
    return div_by(f, scale(f, dy, 0.5), Y);
}

static weir_tensor *of_rsqrt(FORMULA)
{
    (void)k;
    return mul(f, scale(f, dy, -0.5), mul(f, Y, mul(f, Y, Y)));
}

static weir_tensor *of_recip(FORMULA)
{
    (void)k;
    return mul(f, negate(f, dy), mul(f, Y, Y));
}

static weir_tensor *of_tanh(FORMULA)
{
    (void)k;
    return mul(f, dy, shift(f, negate(f, mul(f, Y, Y)), 1));
}

static weir_tensor *of_sigmoid(FORMULA)
{
    (void)k;
    return mul(f, dy, mul(f, Y, shift(f, negate(f, Y), 1)));
}

static weir_tensor *of_relu(FORMULA)
{
    (void)k;
    return pass_if(f, Y, WEIR_OP_GT, 0, dy);
}

/* gelu(x) = x * p(x) with p the normal distribution: p(x) + x * p'(x). p is gelu(x) / x,
 * and 1/2 at 0. */
static weir_tensor *of_gelu(FORMULA)
{
    (void)k;
    const double density_at_zero = 0.3989422804014327; /* 1 / sqrt(2 pi) */
    weir_tensor *is_not_zero = wr_formula_scalar(f, WEIR_OP_NE, X, 0);
    weir_tensor *p =
        wr_formula_choose(f, is_not_zero, div_by(f, one_of(f, WEIR_OP_GELU, X), X), 0.5);
    weir_tensor *density =
        scale(f, one_of(f, WEIR_OP_EXP, scale(f, mul(f, X, X), -0.5)), density_at_zero);
    return mul(f, dy, add(f, p, mul(f, X, density)));
}

static weir_tensor *of_sin(FORMULA)
{
    (void)k;
    return mul(f, dy, one_of(f, WEIR_OP_COS, X));
}

static weir_tensor *of_cos(FORMULA)
{
    (void)k;
    return mul(f, negate(f, dy), one_of(f, WEIR_OP_SIN, X));
}

static weir_tensor *of_cast(FORMULA)
{
    return wr_formula_cast(f, dy, e->inputs[k].dtype);
}

/* ---- two operands ---- */

static weir_tensor *of_add(FORMULA)
{
    (void)f, (void)e, (void)k;
    return dy;
}

static weir_tensor *of_sub(FORMULA)
{
    (void)e;
    return k == 0 ? dy : negate(f, dy);
}

static weir_tensor *of_mul(FORMULA)
{
    return k == 0 ? with_second(f, WEIR_OP_MUL, dy, e) : mul(f, dy, X);
}

static weir_tensor *of_div(FORMULA)
{
    weir_tensor *quotient = with_second(f, WEIR_OP_DIV, dy, e);
    return k == 0 ? quotient : mul(f, negate(f, quotient), Y);
}

static weir_tensor *of_choice(wr_formula *f, const wr_entry *e, weir_tensor *dy,
                              weir_op op)
{
    return wr_formula_choose(f, with_second(f, op, X, e), dy, 0);
}

static weir_tensor *of_min(FORMULA)
{
    return of_choice(f, e, dy, k == 0 ? WEIR_OP_LE : WEIR_OP_GT);
}

static weir_tensor *of_max(FORMULA)
{
    return of_choice(f, e, dy, k == 0 ? WEIR_OP_GE : WEIR_OP_LT);
}

/* b * a ** (b - 1). */
static weir_tensor *of_pow_base(wr_formula *f, const wr_entry *e, weir_tensor *dy)
{
    double exponent = e->attributes.scalar;
    weir_tensor *b = e->inputs[e->input_count - 1].saved;
    weir_tensor *power = e->attributes.has_scalar
                             ? wr_formula_scalar(f, WEIR_OP_POW, X, exponent - 1)
                             : wr_formula_binary(f, WEIR_OP_POW, X, shift(f, b, -1));
    return mul(f, dy, with_second(f, WEIR_OP_MUL, power, e));
}

/* a ** b * log(a); of a = 0, where that is 0 * -infinity, 0. */
static weir_tensor *of_pow(FORMULA)
{
    if (k == 0) {
        return of_pow_base(f, e, dy);
    }
    weir_tensor *slope = mul(f, Y, one_of(f, WEIR_OP_LOG, X));
    weir_tensor *is_not_zero = wr_formula_scalar(f, WEIR_OP_NE, X, 0);
    return mul(f, dy, wr_formula_choose(f, is_not_zero, slope, 0));
}

/* Operand 0 is the condition. */
static weir_tensor *of_select(FORMULA)
{
    weir_tensor *is_other = k == 1 ? X : one_of(f, WEIR_OP_NOT, X);
    return wr_formula_choose(f, is_other, dy, 0);
}

/* ---- the list ---- */

#define A WR_NEEDS_OPERAND(0)
#define B WR_NEEDS_OPERAND(1)
#define R WR_NEEDS_RESULT
#define NOTHING 0

/* What the gradients of operands 0 and 1 are made from; the function. */
#define RULE_NEG of_neg, NOTHING, NOTHING
#define RULE_ABS of_abs, A, NOTHING
#define RULE_EXP of_exp, R, NOTHING
#define RULE_LOG of_log, A, NOTHING
#define RULE_SQRT of_sqrt, R, NOTHING
#define RULE_RSQRT of_rsqrt, R, NOTHING
#define RULE_RECIP of_recip, R, NOTHING
#define RULE_TANH of_tanh, R, NOTHING
#define RULE_SIGMOID of_sigmoid, R, NOTHING
#define RULE_RELU of_relu, R, NOTHING
#define RULE_GELU of_gelu, A, NOTHING
#define RULE_SIN of_sin, A, NOTHING
#define RULE_COS of_cos, A, NOTHING
#define RULE_ADD of_add, NOTHING, NOTHING
#define RULE_SUB of_sub, NOTHING, NOTHING
#define RULE_MUL of_mul, B, A
#define RULE_DIV of_div, B, B | R
#define RULE_MIN of_min, A | B, A | B
#define RULE_MAX of_max, A | B, A | B
#define RULE_POW of_pow, A | B, A | R
/* Bools do not change, or only in steps. */
#define RULE_NOT NULL, NOTHING, NOTHING
#define RULE_EQ NULL, NOTHING, NOTHING
#define RULE_NE NULL, NOTHING, NOTHING
#define RULE_LT NULL, NOTHING, NOTHING
#define RULE_LE NULL, NOTHING, NOTHING
#define RULE_GT NULL, NOTHING, NOTHING
#define RULE_GE NULL, NOTHING, NOTHING
#define RULE_AND NULL, NOTHING, NOTHING
#define RULE_OR NULL, NOTHING, NOTHING

#define MAKE_RULE(function, first, second)                                               \
    {                                                                                    \
        .gradient = (function), .needs = { first, second }                               \
    }
#define MAKE(...) MAKE_RULE(__VA_ARGS__)

const wr_rule *wr_rule_of_op(weir_op op)
{
    static const wr_rule select = {.gradient = of_select, .needs = {NOTHING, A, A}};
    static const wr_rule cast = {.gradient = of_cast};
    switch (op) {
#define FIND(name, number, function, domain)                                             \
    case WEIR_OP_##name: {                                                               \
        static const wr_rule rule = MAKE(RULE_##name);                                   \
        return &rule;                                                                    \
    }
        WEIR_UNARY_LIST(FIND)
        WEIR_BINARY_LIST(FIND)
#undef FIND
    case WEIR_OP_SELECT:
        return &select;
    case WEIR_OP_CAST:
        return &cast;
    default:
        return &wr_rule_missing; /* no leaf is asked for: it has no operands */
    }
}
