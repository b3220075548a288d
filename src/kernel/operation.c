/* SPDX-License-Identifier: MIT */
#include "operation.h"

#include "dtype.h"
#include "elementary.h"

#include <math.h>

uint32_t wr_operation_arity(weir_op op)
{
    switch (op) {
#define ONE(name, number, function, domain) case WEIR_OP_##name:
#define TWO ONE
        WEIR_UNARY_LIST(ONE)
    case WEIR_OP_CAST:
        return 1;
        WEIR_BINARY_LIST(TWO)
        return 2;
    case WEIR_OP_SELECT:
        return 3;
#undef ONE
#undef TWO
    default:
        return 0;
    }
}

const char *wr_operation_name(weir_op op)
{
    switch (op) {
#define NAME(name, number, function, domain)                                             \
    case WEIR_OP_##name:                                                                 \
        return #function;
        WEIR_UNARY_LIST(NAME)
        WEIR_BINARY_LIST(NAME)
#undef NAME
    case WEIR_OP_CAST:
        return "cast";
    case WEIR_OP_SELECT:
        return "select";
    case WEIR_OP_UNIFORM:
        return "uniform";
    case WEIR_OP_NORMAL:
        return "normal";
    default:
        return "?";
    }
}

/* ---- domains ---- */

static bool takes_ANY(weir_dtype operand, weir_dtype *result)
{
    *result = operand;
    return operand != WEIR_DTYPE_BOOL;
}

static bool takes_FLOAT(weir_dtype operand, weir_dtype *result)
{
    *result = operand;
    return wr_dtype_is_float(operand);
}

static bool takes_LOGIC(weir_dtype operand, weir_dtype *result)
{
    *result = operand;
    return operand == WEIR_DTYPE_BOOL;
}

static bool takes_ORDER(weir_dtype operand, weir_dtype *result)
{
    *result = WEIR_DTYPE_BOOL;
    return operand != WEIR_DTYPE_BOOL;
}

static bool takes_EQUAL(weir_dtype operand, weir_dtype *result)
{
    (void)operand;
    *result = WEIR_DTYPE_BOOL;
    return true;
}

bool wr_operation_takes(weir_op op, weir_dtype operand, weir_dtype *result)
{
    switch (op) {
#define TAKES(name, number, function, domain)                                            \
    case WEIR_OP_##name:                                                                 \
        return takes_##domain(operand, result);
        WEIR_UNARY_LIST(TAKES)
        WEIR_BINARY_LIST(TAKES)
#undef TAKES
    default:
        return false;
    }
}

/* ---- loops ---- */

/* The loop itself; `is_same` is known where it is inlined. */
#define BODY(type, result_type, name, value)                                             \
    static inline void name##_body(void *out, const wr_operands *operands,               \
                                   uint64_t count, bool is_same)                         \
    {                                                                                    \
        result_type *to = out;                                                           \
        const type *one = operands->values[0];                                           \
        const type *other = operands->values[1];                                         \
        type same = is_same ? other[0] : 0;                                              \
        (void)other, (void)same;                                                         \
        WR_VECTORIZE for (uint64_t i = 0; i < count; i++)                                \
        {                                                                                \
            type a = one[i];                                                             \
            to[i] = (value);                                                             \
        }                                                                                \
    }

#define LOOP(type, result_type, name, value)                                             \
    BODY(type, result_type, name, value)                                                 \
    WR_CLONES static void name(void *out, const wr_operands *operands, uint64_t count)   \
    {                                                                                    \
        name##_body(out, operands, count, false);                                        \
    }

/* And one for a second operand whose values are all the same. */
#define PAIR(type, result_type, name, value)                                             \
    LOOP(type, result_type, name, value)                                                 \
    WR_CLONES static void name##_same(void *out, const wr_operands *operands,            \
                                      uint64_t count)                                    \
    {                                                                                    \
        name##_body(out, operands, count, true);                                         \
    }

#define b (is_same ? same : other[i])

LOOP(float, float, neg_float, -a)
LOOP(float, float, abs_float, fabsf(a))
LOOP(float, float, exp_float, wr_exp(a))
LOOP(float, float, log_float, wr_log(a))
LOOP(float, float, sqrt_float, sqrtf(a))
LOOP(float, float, rsqrt_float, 1.0F / sqrtf(a))
LOOP(float, float, recip_float, 1.0F / a)
LOOP(float, float, tanh_float, wr_tanh(a))
LOOP(float, float, sigmoid_float, wr_sigmoid(a))
LOOP(float, float, relu_float, a < 0 ? 0 : a)
LOOP(float, float, gelu_float, wr_gelu(a))
LOOP(float, float, sin_near, wr_sin(a))
LOOP(float, float, cos_near, wr_cos(a))
LOOP(float, float, sin_far, sinf(a))
LOOP(float, float, cos_far, cosf(a))
PAIR(float, float, add_float, a + b)
PAIR(float, float, sub_float, a - b)
PAIR(float, float, mul_float, a *b)
PAIR(float, float, div_float, a / b)
PAIR(float, float, min_float, (a < b) || a != a ? a : b)
PAIR(float, float, max_float, (a > b) || a != a ? a : b)
PAIR(float, float, pow_float, powf(a, b))
PAIR(float, int32_t, eq_float, a == b)
PAIR(float, int32_t, ne_float, a != b)
PAIR(float, int32_t, lt_float, a < b)
PAIR(float, int32_t, le_float, a <= b)
PAIR(float, int32_t, gt_float, a > b)
PAIR(float, int32_t, ge_float, a >= b)

/* Unsigned, so that they wrap around. */
LOOP(uint32_t, uint32_t, neg_integer, 0 - a)
PAIR(uint32_t, uint32_t, add_integer, a + b)
PAIR(uint32_t, uint32_t, sub_integer, a - b)
PAIR(uint32_t, uint32_t, mul_integer, a *b)
LOOP(int32_t, int32_t, abs_integer, a < 0 ? (int32_t)(0 - (uint32_t)a) : a)
LOOP(int32_t, int32_t, relu_integer, a < 0 ? 0 : a)
PAIR(int32_t, int32_t, div_integer,
     b == 0    ? 0
     : b == -1 ? (int32_t)(0 - (uint32_t)a)
               : a / b)
PAIR(int32_t, int32_t, min_integer, a < b ? a : b)
PAIR(int32_t, int32_t, max_integer, a > b ? a : b)
PAIR(int32_t, int32_t, eq_integer, a == b)
PAIR(int32_t, int32_t, ne_integer, a != b)
PAIR(int32_t, int32_t, lt_integer, a < b)
PAIR(int32_t, int32_t, le_integer, a <= b)
PAIR(int32_t, int32_t, gt_integer, a > b)
PAIR(int32_t, int32_t, ge_integer, a >= b)

LOOP(int32_t, int32_t, not_logic, !a)
PAIR(int32_t, int32_t, and_logic, a &b)
PAIR(int32_t, int32_t, or_logic, a | b)

#undef b

/* ---- angles ---- */

WR_CLONES static bool are_near(const float *angles, uint64_t count)
{
    uint32_t far = 0;
    for (uint64_t i = 0; i < count; i++) {
        far |= !(fabsf(angles[i]) <= WR_ANGLE_MOST);
    }
    return far == 0;
}

static void sin_float(void *out, const wr_operands *operands, uint64_t count)
{
    (are_near(operands->values[0], count) ? sin_near : sin_far)(out, operands, count);
}

static void cos_float(void *out, const wr_operands *operands, uint64_t count)
{
    (are_near(operands->values[0], count) ? cos_near : cos_far)(out, operands, count);
}

/* ---- choice ---- */

typedef void (*loop_fn)(void *to, const wr_operands *operands, uint64_t count);

/* What the domains say about dtypes decides which loops there are. */
#define LOOPS_ANY(function, form) function##_float##form, function##_integer##form
#define LOOPS_FLOAT(function, form) function##_float##form, NULL
#define LOOPS_LOGIC(function, form) NULL, function##_logic##form
#define LOOPS_ORDER LOOPS_ANY
#define LOOPS_EQUAL LOOPS_ANY

static loop_fn find_loop(weir_op op, bool is_same, bool is_float)
{
    switch (op) {
#define FIND_LOOP(name, number, function, domain)                                        \
    case WEIR_OP_##name: {                                                               \
        static const loop_fn loops[2] = {LOOPS_##domain(function, )};                    \
        return loops[!is_float];                                                         \
    }
#define FIND_PAIR(name, number, function, domain)                                        \
    case WEIR_OP_##name: {                                                               \
        static const loop_fn loops[2][2] = {{LOOPS_##domain(function, )},                \
                                            {LOOPS_##domain(function, _same)}};          \
        return loops[is_same][!is_float];                                                \
    }
        WEIR_UNARY_LIST(FIND_LOOP)
        WEIR_BINARY_LIST(FIND_PAIR)
#undef FIND_LOOP
#undef FIND_PAIR
    default:
        return NULL;
    }
}

void wr_operation_run(weir_op op, weir_dtype dtype, void *to, const wr_operands *operands,
                      uint64_t count)
{
    loop_fn loop = find_loop(op, operands->is_same, wr_dtype_is_float(dtype));
    if (loop != NULL) {
        loop(to, operands, count);
    }
}

WR_CLONES void wr_operation_select(void *to, const void *condition, const void *one,
                                   const void *other, uint64_t count)
{
    uint32_t *result = to;
    const int32_t *is_one = condition;
    const uint32_t *left = one;
    const uint32_t *right = other;
    WR_VECTORIZE for (uint64_t i = 0; i < count; i++)
    {
        result[i] = is_one[i] != 0 ? left[i] : right[i];
    }
}
