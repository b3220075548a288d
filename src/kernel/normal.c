/* SPDX-License-Identifier: MIT */
/* One loop a step over the lanes, so that compilers use vector registers for all but the
 * leading zeros. */
#include "normal.h"

#include "dtype.h"
#include "normal_rows.h"

enum {
    LANES = WR_PHILOX_LANES,
    TERMS = 8,
};

/* x as a multiple of 2^-26 is below 2^32. */
#define ONE (UINT32_C(1) << 26)

#define ENTRY(number, ...) {__VA_ARGS__},
static const int32_t log_row[TERMS] = {WR_NORMAL_LOG};
static const int32_t slope_rows[6][TERMS] = {WR_NORMAL_ROWS(ENTRY)};
#undef ENTRY

static inline uint32_t leading_zeros(uint32_t word)
{
    return (uint32_t)__builtin_clz(word);
}

static inline uint32_t high_of(uint32_t one, uint32_t other)
{
    return (uint32_t)((uint64_t)one * other >> 32);
}

/* At t / 2^32. What is gathered may be negative, as two's complement; cut off downwards.
 */
static inline uint32_t polynomial(const int32_t row[TERMS], uint32_t t)
{
    uint32_t sum = (uint32_t)row[TERMS - 1];
    for (int k = TERMS - 2; k >= 0; k--) {
        uint32_t minus = t & (0 - (sum >> 31));
        sum = (uint32_t)row[k] + high_of(sum, t) - minus;
    }
    return sum;
}

/* 2^33 q: odd. */
static inline uint32_t tail_of(uint32_t word)
{
    return word << 1 | 1;
}

static inline void find_slopes(uint32_t slopes[LANES], const uint32_t words[LANES])
{
    uint32_t x[LANES];
    uint32_t t[LANES];
    uint32_t row[LANES];
    for (int k = 0; k < LANES; k++) {
        uint32_t zeros = leading_zeros(tail_of(words[k]));
        t[k] = tail_of(words[k]) << zeros << 1;
        x[k] = (zeros + 2) * ONE;
    }
    for (int k = 0; k < LANES; k++) {
        x[k] -= polynomial(log_row, t[k]) >> 2;
        x[k] = x[k] < ONE ? ONE : x[k]; /* the logarithm may be a little too large */
    }
    for (int k = 0; k < LANES; k++) {
        uint32_t zeros = leading_zeros(x[k]);
        t[k] = x[k] << zeros << 1;
        row[k] = 5 - zeros;
    }
    for (int k = 0; k < LANES; k++) {
        slopes[k] = polynomial(slope_rows[row[k]], t[k]);
    }
}

WR_CLONES void wr_normal_from_words(uint32_t bits[LANES], const uint32_t words[LANES])
{
    uint32_t slopes[LANES];
    find_slopes(slopes, words);
    for (int k = 0; k < LANES; k++) {
        uint32_t centre = 0 - tail_of(words[k]); /* 2^32 (1 - 2 q) */
        uint32_t zeros = leading_zeros(centre);
        uint32_t number = high_of(centre << zeros, slopes[k]);
        uint32_t more = leading_zeros(number);
        number <<= more;
        uint32_t up = (number & 0xFF) + (number >> 8 & 1) > 0x80; /* to nearest, even */
        bits[k] = ((129 - zeros - more) << 23) + (number >> 8) + up;
        bits[k] |= words[k] & 0x80000000;
    }
}
