/* SPDX-License-Identifier: MIT */
/* Normal numbers against their quantiles in double, found by Newton's method from the C
 * library's erf and erfc: nothing of what makes the numbers. */
#include "kernel/normal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    LANES = WR_PHILOX_LANES,
    DRAWS = 1 << 16,
};

static float number_of(uint32_t word)
{
    uint32_t words[LANES] = {word};
    uint32_t bits[LANES];
    float number;
    wr_normal_from_words(bits, words);
    memcpy(&number, bits, sizeof number);
    return number;
}

static double density(double x)
{
    return 0.3989422804014327 * exp(-x * x / 2);
}

/* How far out a tail of (2 k + 1) / 2^33 begins. */
static double tail_begin(uint32_t k)
{
    double q = ldexp(2.0 * k + 1, -33);
    double x = q > 0.1 ? 2.5 * (0.5 - q) : sqrt(-2 * log(q)) - 0.5;
    for (int step = 0; step < 30; step++) {
        double here = erfc(x * 0.7071067811865476) / 2;
        x += q > 0.1 ? (0.5 - q - erf(x * 0.7071067811865476) / 2) / density(x)
                     : here * log(here / q) / density(x);
    }
    return x;
}

static void check_word(uint32_t k)
{
    double expected = tail_begin(k);
    float number = number_of(k);
    if (fabs(number - expected) > expected * 0x1p-22) {
        fail_msg("word %u: %.9g, not %.9g", k, (double)number, expected);
    }
    assert_true(number_of(k | 0x80000000) == -number);
}

static void normal__is_the_quantile_of_its_word(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 300; k++) {
        check_word(k);
        check_word(0x7FFFFFFF - k);
    }
    /* Every octave of either end, some 200 numbers in each. */
    for (uint32_t k = 300; k < 0x40000000; k += k / 200) {
        check_word(k);
        check_word(0x7FFFFFFF - k);
    }
}

static void normal__reaches_beyond_six_deviations(void **state)
{
    (void)state;
    assert_true(number_of(0) > 6.33F);
    assert_true(number_of(0x7FFFFFFF) > 0.0F);
    assert_true(number_of(0x7FFFFFFF) < 1e-9F);
}

/* Where one polynomial ends and the next begins. A last bit may be the wrong way round.
 */
static void normal__falls_as_its_word_rises(void **state)
{
    (void)state;
    for (int joint = 1; joint < 31; joint++) {
        uint32_t begin = (UINT32_C(1) << joint) - 1;
        for (uint32_t k = begin < 500 ? 0 : begin - 500; k < begin + 500; k++) {
            float next = number_of(k + 1);
            assert_true(next <= nextafterf(number_of(k), 7.0F));
        }
    }
}

static int by_value(const void *one, const void *other)
{
    float a = *(const float *)one;
    float b = *(const float *)other;
    return (a > b) - (a < b);
}

/* Kolmogorov and Smirnov: the largest distance from the bell's distribution function; one
 * sample in a hundred would have more than 1.63 / sqrt(n). */
static void normal__draws_follow_the_bell(void **state)
{
    (void)state;
    static float drawn[DRAWS];
    uint32_t words[4][WR_PHILOX_LANES];
    uint32_t bits[LANES];
    for (size_t k = 0; k < DRAWS / LANES; k++) {
        if (k % 4 == 0) {
            wr_philox_fill(words, k / 4 * LANES, 20261130);
        }
        wr_normal_from_words(bits, words[k % 4]);
        memcpy(drawn + k * LANES, bits, sizeof bits);
    }
    qsort(drawn, DRAWS, sizeof *drawn, by_value);
    double most = 0;
    for (int i = 0; i < DRAWS; i++) {
        double share = erfc(-drawn[i] * 0.7071067811865476) / 2;
        most = fmax(most, fabs(share - (double)i / DRAWS));
        most = fmax(most, fabs(share - (double)(i + 1) / DRAWS));
    }
    assert_true(most < 1.63 / sqrt(DRAWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal__is_the_quantile_of_its_word),
        cmocka_unit_test(normal__reaches_beyond_six_deviations),
        cmocka_unit_test(normal__falls_as_its_word_rises),
        cmocka_unit_test(normal__draws_follow_the_bell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
