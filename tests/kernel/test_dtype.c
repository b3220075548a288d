/* SPDX-License-Identifier: MIT */
#include "kernel/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What a f16's bits mean, by the definition. */
static double meaning(uint16_t half)
{
    int exponent = half >> 10 & 0x1F;
    int fraction = half & 0x3FF;
    double size =
        exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return (half & 0x8000) != 0 ? -size : size;
}

static void f16__of_all_bits_means_what_it_should_and_comes_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint16_t half = (uint16_t)bits;
        float value = wr_f32_from_f16(half);
        if ((half & 0x7C00) != 0x7C00) {
            assert_true((double)value == meaning(half));
        } else if ((half & 0x3FF) != 0) {
            assert_true(isnan(value) && isnan(wr_f32_from_f16(wr_f16_from_f32(value))));
            continue;
        } else {
            assert_true(isinf(value));
        }
        assert_int_equal(wr_f16_from_f32(value), half);
    }
}

/* Halfway between neighbours goes to the even one, a bit to either side to the nearer. */
static void f16__rounds_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint16_t half = 0; half < 0x7BFF; half++) {
        float below = wr_f32_from_f16(half);
        float above = wr_f32_from_f16((uint16_t)(half + 1));
        float middle = below + (above - below) / 2;
        assert_int_equal(wr_f16_from_f32(middle), half + (half & 1));
        assert_int_equal(wr_f16_from_f32(nextafterf(middle, 0.0F)), half);
        assert_int_equal(wr_f16_from_f32(nextafterf(middle, 1e9F)), half + 1);
        assert_int_equal(wr_f16_from_f32(-nextafterf(middle, 1e9F)), 0x8000 + half + 1);
    }
    assert_int_equal(wr_f16_from_f32(65519.0F), 0x7BFF);
    assert_int_equal(wr_f16_from_f32(65520.0F), 0x7C00);
}

static void bf16__rounds_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint16_t bits = 1; bits < 0x7F7F; bits++) {
        float below = wr_f32_from_bf16(bits);
        float above = wr_f32_from_bf16((uint16_t)(bits + 1));
        float middle = below + (above - below) / 2;
        assert_int_equal(wr_bf16_from_f32(below), bits);
        assert_int_equal(wr_bf16_from_f32(middle), bits + (bits & 1));
        assert_int_equal(wr_bf16_from_f32(nextafterf(middle, 0.0F)), bits);
        assert_int_equal(wr_bf16_from_f32(nextafterf(middle, INFINITY)), bits + 1);
    }
    assert_true(isnan(wr_f32_from_bf16(wr_bf16_from_f32(NAN))));
    assert_int_equal(wr_bf16_from_f32(INFINITY), 0x7F80);
}

static void cast__to_integers_cuts_off_and_keeps_to_the_range(void **state)
{
    (void)state;
    const float from[7] = {1.9F, -1.9F, 3e9F, -3e9F, NAN, 2147483520.0F, 0.0F};
    const int32_t expected[7] = {1, -1, INT32_MAX, INT32_MIN, 0, 2147483520, 0};
    const int32_t truth[7] = {1, 1, 1, 1, 1, 1, 0};
    int32_t to[7];
    wr_dtype_cast(WEIR_DTYPE_I32, to, WEIR_DTYPE_F32, from, 7);
    assert_memory_equal(to, expected, sizeof expected);
    wr_dtype_cast(WEIR_DTYPE_BOOL, to, WEIR_DTYPE_F32, from, 7);
    assert_memory_equal(to, truth, sizeof truth);
}

static void load__and_store_undo_each_other_at_any_stride(void **state)
{
    (void)state;
    const uint8_t bytes[6] = {1, 0, 0, 1, 1, 0};
    uint8_t stored[3];
    int32_t values[3];
    wr_dtype_load(WEIR_DTYPE_BOOL, values, bytes, 2, 3);
    assert_true(values[0] == 1 && values[1] == 0 && values[2] == 1);
    wr_dtype_load(WEIR_DTYPE_BOOL, values, bytes + 4, -2, 3);
    wr_dtype_store(WEIR_DTYPE_BOOL, stored, values, 3);
    assert_true(stored[0] == 1 && stored[1] == 0 && stored[2] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16__of_all_bits_means_what_it_should_and_comes_back),
        cmocka_unit_test(f16__rounds_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(bf16__rounds_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(cast__to_integers_cuts_off_and_keeps_to_the_range),
        cmocka_unit_test(load__and_store_undo_each_other_at_any_stride),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
