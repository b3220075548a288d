/* SPDX-License-Identifier: MIT */
/* Elementary functions over all of f32 (every 19,937th number; WEIR_SOAK=1: every 101st)
 * beside those of the C library in double. */
#define _GNU_SOURCE
#include "kernel/dtype.h"
#include "kernel/elementary.h"
#include "kernel/operation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double gelu(double x)
{
    return x * erfc(-x / sqrt(2.0)) / 2;
}

/* In ulps of the exact result. */
static double error_of(float got, double exact)
{
    int exponent;
    frexp(exact, &exponent);
    exponent = exponent < -125 ? -125 : exponent;
    return fabs((double)got - exact) / ldexp(1, exponent - 24);
}

/* Beyond the largest float both sides of the rounding will do. */
static bool is_right(float got, double exact, double ulps)
{
    if (isnan(exact)) {
        return isnan(got);
    }
    if (fabs(exact) > 0x1.fffffep127) {
        return (double)got == exact ||
               (fabs((double)got) >= 0x1.fffffep127 && signbit(got) == signbit(exact));
    }
    return error_of(got, exact) <= ulps;
}

typedef struct function {
    weir_op op;
    double ulps;
    double (*exact)(double x);
} function;

static void check_tile(const function *what, const float *in, uint64_t count)
{
    static float out[WR_TILE];
    const wr_operands operands = {.values = {in, in}};
    wr_operation_run(what->op, WEIR_DTYPE_F32, out, &operands, count);
    for (uint64_t i = 0; i < count; i++) {
        double exact = what->exact((double)in[i]);
        if (!is_right(out[i], exact, what->ulps)) {
            fail_msg("%s(%a) is %a, not %a", wr_operation_name(what->op), (double)in[i],
                     (double)out[i], exact);
        }
    }
}

static void check_function(const function *what)
{
    static float in[WR_TILE];
    uint32_t stride = getenv("WEIR_SOAK") != NULL ? 101 : 19937;
    uint64_t bits = 0;
    while (bits <= UINT32_MAX) {
        uint64_t count = 0;
        for (; count < WR_TILE && bits <= UINT32_MAX; bits += stride) {
            in[count++] = wr_float_of((uint32_t)bits);
        }
        check_tile(what, in, count);
    }
}

static void elementary_functions__are_within_their_errors_on_all_of_f32(void **state)
{
    (void)state;
    static const function functions[] = {
        {WEIR_OP_EXP, 1, exp},         {WEIR_OP_LOG, 1, log}, {WEIR_OP_TANH, 2, tanh},
        {WEIR_OP_SIGMOID, 1, sigmoid}, {WEIR_OP_SIN, 1, sin}, {WEIR_OP_COS, 1, cos},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        check_function(&functions[i]);
    }
}

static void gelu__is_within_its_error_down_to_where_it_ends(void **state)
{
    (void)state;
    const function what = {WEIR_OP_GELU, 1, gelu};
    static float in[WR_TILE];
    for (int i = -20000; i < 20000; i += (int)WR_TILE) {
        for (int k = 0; k < (int)WR_TILE; k++) {
            in[k] = (float)(i + k) / 1000.0F;
        }
        check_tile(&what, in, WR_TILE);
    }
    const float ends[5] = {0x1p-140F, -0x1p-140F, 1e30F, -1e30F, INFINITY};
    check_tile(&what, ends, 5);
}

static void zeros_infinities_and_nans__are_as_in_c(void **state)
{
    (void)state;
    const float in[5] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN};
    float out[5];
    const wr_operands operands = {.values = {in, in}};
#define EXPECT(op, ...)                                                                  \
    do {                                                                                 \
        const float expected[5] = {__VA_ARGS__};                                         \
        wr_operation_run(op, WEIR_DTYPE_F32, out, &operands, 5);                         \
        for (int i = 0; i < 5; i++) {                                                    \
            assert_true(isnan(expected[i])                                               \
                            ? isnan(out[i])                                              \
                            : wr_bits_of(out[i]) == wr_bits_of(expected[i]));            \
        }                                                                                \
    } while (0)
    EXPECT(WEIR_OP_EXP, 1, 1, INFINITY, 0, NAN);
    EXPECT(WEIR_OP_LOG, -INFINITY, -INFINITY, INFINITY, NAN, NAN);
    EXPECT(WEIR_OP_TANH, 0, -0.0F, 1, -1, NAN);
    EXPECT(WEIR_OP_SIGMOID, 0.5F, 0.5F, 1, 0, NAN);
    EXPECT(WEIR_OP_SIN, 0, -0.0F, NAN, NAN, NAN);
    EXPECT(WEIR_OP_COS, 1, 1, NAN, NAN, NAN);
    EXPECT(WEIR_OP_GELU, 0, -0.0F, INFINITY, -0.0F, NAN);
#undef EXPECT
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementary_functions__are_within_their_errors_on_all_of_f32),
        cmocka_unit_test(gelu__is_within_its_error_down_to_where_it_ends),
        cmocka_unit_test(zeros_infinities_and_nans__are_as_in_c),
    };
    return cmocka_run_group_tests_name("kernel, elementary", tests, NULL, NULL);
}
