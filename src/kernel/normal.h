/* SPDX-License-Identifier: MIT */
/* Standard normal numbers from random words, by inversion: the word's lower 31 bits are a
 * probability q of the tail, the number is as far out as the tail of that size begins,
 * and the top bit is its sign. q = (2 k + 1) / 2^33 never is 0 nor 1/2, so numbers
 * reach 6.338.
 *
 * All in integers, for these do the same on every machine, while compilers of shaders may
 * contract, reorder and approximate what floats do:
 *
 *     x = 1 - log2(2 q)                   from leading zeros and a polynomial
 *     number = (1 - 2 q) * slope(x)       slope: a polynomial for each octave of x
 *
 * The factor 1 - 2 q is exact, so numbers near 0 are as good as others: relative to the
 * true quantile the error is within 2^-22.8, two units in the last place. The quantile is
 * that of Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution",
 * Applied Statistics 37 (1988); segments by leading zeros are those of Cheung, Lee, Luk
 * and Villasenor, "Hardware Generation of Arbitrary Random Number Distributions From
 * Uniform Distributions Via the Inversion Method", IEEE TVLSI 15 (2007).
 *
 * cuda_prelude.c and wgsl_library.h say the same for devices. */
#ifndef WR_KERNEL_NORMAL_H
#define WR_KERNEL_NORMAL_H

#include "philox.h"

/* The bits of the lanes' numbers, each an f32, from a random word each. */
void wr_normal_from_words(uint32_t bits[WR_PHILOX_LANES],
                          const uint32_t words[WR_PHILOX_LANES]);

#endif
