/* SPDX-License-Identifier: MIT */
#include "operations.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

double operation_reference(weir_op op, double a, double b)
{
    switch (op) {
    case WEIR_OP_NEG:
        return -a;
    case WEIR_OP_ABS:
        return fabs(a);
    case WEIR_OP_EXP:
        return exp(a);
    case WEIR_OP_LOG:
        return log(a);
    case WEIR_OP_SQRT:
        return sqrt(a);
    case WEIR_OP_RSQRT:
        return 1 / sqrt(a);
    case WEIR_OP_RECIP:
        return 1 / a;
    case WEIR_OP_TANH:
        return tanh(a);
    case WEIR_OP_SIGMOID:
        return 1 / (1 + exp(-a));
    case WEIR_OP_RELU:
        return fmax(a, 0);
    case WEIR_OP_GELU:
        return a / 2 * (1 + erf(a / sqrt(2)));
    case WEIR_OP_SIN:
        return sin(a);
    case WEIR_OP_COS:
        return cos(a);
    case WEIR_OP_NOT:
        return a == 0;
    case WEIR_OP_ADD:
        return a + b;
    case WEIR_OP_SUB:
        return a - b;
    case WEIR_OP_MUL:
        return a * b;
    case WEIR_OP_DIV:
        return a / b;
    case WEIR_OP_MIN:
        return fmin(a, b);
    case WEIR_OP_MAX:
        return fmax(a, b);
    case WEIR_OP_POW:
        return pow(a, b);
    case WEIR_OP_EQ:
        return a == b;
    case WEIR_OP_NE:
        return a != b;
    case WEIR_OP_LT:
        return a < b;
    case WEIR_OP_LE:
        return a <= b;
    case WEIR_OP_GT:
        return a > b;
    case WEIR_OP_GE:
        return a >= b;
    case WEIR_OP_AND:
        return a != 0 && b != 0;
    case WEIR_OP_OR:
        return a != 0 || b != 0;
    default:
        fail_msg("operation %d has no reference", (int)op);
        return 0;
    }
}

/* Integer division cuts off, and by 0 it gives 0. */
double operation_reference_of(weir_op op, weir_dtype dtype, double a, double b)
{
    if (dtype == WEIR_DTYPE_I32) {
        double left = trunc(a);
        double right = trunc(b);
        return op == WEIR_OP_DIV && right == 0
                   ? 0
                   : trunc(operation_reference(op, left, right));
    }
    return dtype == WEIR_DTYPE_BOOL ? operation_reference(op, a != 0, b != 0)
                                    : operation_reference(op, a, b);
}
