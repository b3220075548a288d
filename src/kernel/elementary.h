/* SPDX-License-Identifier: MIT */
/* Elementary functions of one float without branches or calls, so that loops over them
 * become vector code. Sums and products are rounded one by one, so every processor gives
 * the same bits. No state, no lock.
 *
 *     function       largest error   polynomials
 *     exp            1 ulp           Cephes 2.2, expf.c (Moshier)
 *     log            1 ulp           Cephes 2.2, logf.c
 *     tanh           2 ulp           Cephes 2.2, tanhf.c
 *     sigmoid        1 ulp           Taylor, of exp in double
 *     gelu           1 ulp           Chebyshev, of log(erfc(z) / t) + z * z
 *     sin, cos       1 ulp           FreeBSD msun, k_sinf.c and k_cosf.c (Sun
 * Microsystems)
 *
 * An ulp is that of the exact result, of denormal ones 2^-149. NaN gives NaN, infinities
 * the limits. */
#ifndef WR_KERNEL_ELEMENTARY_H
#define WR_KERNEL_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t wr_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float wr_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float wr_with_sign_of(float size, float sign)
{
    return wr_float_of((wr_bits_of(size) & 0x7FFFFFFF) | (wr_bits_of(sign) & 0x80000000));
}

/* 2^n, n from -126 to 127, of a sum 1.5 * 2^23 + n, whose last bits are n. */
static inline float wr_power_of_two(uint32_t sum_bits)
{
    return wr_float_of((sum_bits + 127) << 23);
}

/* x = n * log(2) + r; e^x = 2^n * e^r. The power comes in two factors, so that the result
 * is rounded once where it is denormal. */
static inline float wr_exp(float x)
{
    const float magic = 0x1.8p23F;
    float kept = x > 89.0F ? 89.0F : x;
    kept = kept < -104.0F ? -104.0F : kept;
    float sum = kept * 1.44269504F + magic;
    float n = sum - magic;
    float r = kept - n * 0.693359375F;
    r = r - n * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    uint32_t whole = wr_bits_of(sum) - wr_bits_of(magic);
    uint32_t half = (whole + 256) / 2 - 128;
    return p * wr_power_of_two(half) * wr_power_of_two(whole - half);
}

/* x = 2^e * (1 + f), f from sqrt(1/2) - 1 to sqrt(2) - 1. */
static inline float wr_log(float x)
{
    float large = x < 0x1p-126F ? x * 0x1p23F : x;
    float shift = x < 0x1p-126F ? -23.0F : 0.0F;
    uint32_t bits = wr_bits_of(large) - 0x3F3504F3;
    float e = (float)((int32_t)bits >> 23) + shift;
    float f = wr_float_of((bits & 0x007FFFFF) + 0x3F3504F3) - 1.0F;
    float z = f * f;
    float p = 7.0376836292e-2F;
    p = p * f - 1.1514610310e-1F;
    p = p * f + 1.1676998740e-1F;
    p = p * f - 1.2420140846e-1F;
    p = p * f + 1.4249322787e-1F;
    p = p * f - 1.6668057665e-1F;
    p = p * f + 2.0000714765e-1F;
    p = p * f - 2.4999993993e-1F;
    p = p * f + 3.3333331174e-1F;
    p = p * f * z;
    p = p + e * -2.12194440e-4F;
    p = p - 0.5F * z;
    float result = f + p + e * 0.693359375F;
    result = x > 0.0F ? result : x == 0.0F ? -INFINITY : NAN;
    return x == INFINITY ? x : result;
}

static inline float wr_tanh(float x)
{
    float size = wr_with_sign_of(x, 0.0F);
    float z = size * size;
    float p = -5.70498872745e-3F;
    p = p * z + 2.06390887954e-2F;
    p = p * z - 5.37397155531e-2F;
    p = p * z + 1.33314422036e-1F;
    p = p * z - 3.33332819422e-1F;
    p = p * z * size + size;
    float large = 1.0F - 2.0F / (wr_exp(size + size) + 1.0F);
    return wr_with_sign_of(size < 0.625F ? p : large, x);
}

/* ---- in double ---- */

static inline uint64_t wr_bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* e^x, x from -600 to 600, to 1e-9. */
static inline double wr_exp_double(double x)
{
    const double magic = 0x1.8p52;
    double sum = x * 0x1.71547652b82fep0 + magic;
    double r = x - (sum - magic) * 0x1.62e42fefa39efp-1;
    double p = 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t power_bits = (wr_bits_of_double(sum) + 1023) << 52;
    double power;
    memcpy(&power, &power_bits, sizeof power);
    return p * power;
}

static inline float wr_sigmoid(float x)
{
    double size = (double)wr_with_sign_of(x, 0.0F);
    double e = wr_exp_double(-(size > 110.0 ? 110.0 : size));
    return (float)((x < 0.0F ? e : 1.0) / (1.0 + e));
}

/* x * Phi(x); Phi(-s) = erfc(s / sqrt(2)) / 2, and with t = 2 / (2 + z) the logarithm of
 * erfc(z) / t is a polynomial less z * z. */
static inline float wr_gelu(float x)
{
    double size = (double)wr_with_sign_of(x, 0.0F);
    double kept = size > 32.0 ? 32.0 : size; /* on the left nothing is left there */
    double z = kept * 0x1.6a09e667f3bcdp-1;
    double t = 2.0 / (2.0 + z);
    double u = t * 2.3773584905660377 - 1.3773584905660377;
    double p = -5.8700219892671158e-06;
    p = p * u - 2.4236419776570983e-05;
    p = p * u + 7.7773483389478309e-05;
    p = p * u + 0.00013295761752658565;
    p = p * u - 0.00059654536098094021;
    p = p * u - 0.0002525581597778626;
    p = p * u + 0.0039093276988607078;
    p = p * u - 0.001270157292140297;
    p = p * u - 0.030277064780468273;
    p = p * u + 0.016903968474919026;
    p = p * u + 0.57542779931555266;
    p = p * u - 0.5640253971650413;
    double tail = 0.5 * t * wr_exp_double(p - z * z);
    return (float)(x < 0.0F ? -kept * tail : (double)x * (1.0 - tail));
}

/* Larger ones have to be done with as many bits of pi as C's functions have. */
#define WR_ANGLE_MOST 1e8F

/* The sine of x + quarters * pi / 2; r = x - n * pi / 2 with pi / 2 in two parts, of
 * which the first has 25 bits, so that its product with n is exact. */
static inline float wr_sine(float x, uint64_t quarters)
{
    const double magic = 0x1.8p52;
    double sum = (double)x * 6.36619772367581382433e-01 + magic;
    double n = sum - magic;
    double r = (double)x - n * 1.57079631090164184570e+00;
    r = r - n * 1.58932547735281966916e-08;
    uint64_t quadrant = wr_bits_of_double(sum) + quarters;
    double z = r * r;
    double w = z * z;
    double sine = (r + z * r * (-0x15555554cbac77.0p-55 + z * 0x111110896efbb2.0p-59)) +
                  z * r * w * (-0x1a00f9e2cae774.0p-65 + z * 0x16cd878c3b46a7.0p-71);
    double cosine = 1.0 - z * 0x1ffffffd0c5e81.0p-54 + w * 0x155553e1053a42.0p-57 +
                    w * z * (-0x16c087e80f1e27.0p-62 + z * 0x199342e0ee5069.0p-68);
    double size = (quadrant & 1) != 0 ? cosine : sine;
    return (float)((quadrant & 2) != 0 ? -size : size);
}

static inline float wr_sin(float x)
{
    return wr_with_sign_of(x, 0.0F) < 0x1p-12F ? x : wr_sine(x, 0);
}

static inline float wr_cos(float x)
{
    return wr_sine(x, 1);
}

#endif
