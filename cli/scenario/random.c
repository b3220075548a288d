/* SPDX-License-Identifier: MIT */
/* Bits come from SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014), lowest bit first. Each bit halves the range at its geometric mean
 * until one size is left: whole numbers only, so that every machine finds the same sizes.
 */
#include "random.h"

__extension__ typedef unsigned __int128 wide;

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* The largest root with root * root <= low * high; it lies in [low, high]. */
static uint64_t geometric_mean(uint64_t low, uint64_t high)
{
    wide product = (wide)low * high;
    while (low < high) {
        uint64_t root = low + (high - low) / 2 + (high - low) % 2;
        if ((wide)root * root <= product) {
            low = root;
        } else {
            high = root - 1;
        }
    }
    return low;
}

uint64_t wr_scn_random_size(uint64_t seed, uint64_t execution, uint64_t low,
                            uint64_t high)
{
    uint64_t state = mix(seed + (execution + 1) * GOLDEN);
    uint64_t word = 0;
    for (unsigned used = 0; low < high; used++) {
        if (used % 64 == 0) {
            state += GOLDEN;
            word = mix(state);
        }
        uint64_t middle = geometric_mean(low, high);
        if (word & 1) {
            low = middle + 1; /* middle < high: low * high < high * high */
        } else {
            high = middle;
        }
        word >>= 1;
    }
    return low;
}
