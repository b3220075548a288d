/* SPDX-License-Identifier: MIT */
/* Uniform and normal numbers, made in blocks of 4 x WR_PHILOX_LANES elements:
 *
 *     element    0     1     2     3     4     5   ...
 *     counter    0     0     0     0     1     1   ...   = lane + block's first counter
 *     word       0     1     2     3     0     1   ...
 *
 * A number depends only on its element's index and the seed. Only add, subtract, multiply
 * and square root are used, each rounded as IEEE 754 says and none fused, instead of the
 * C library's log and cos, whose last bits differ between libraries: so that the numbers
 * are the same on every driver. */
#include "random.h"

#include "philox.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

enum {
    LANES = WR_PHILOX_LANES,
    BLOCK = 4 * LANES,
};

/* Turns the random words of a block into its numbers; both are [word][lane]. */
typedef void (*shape_fn)(const wr_random *random, uint32_t words[4][LANES],
                         float numbers[4][LANES]);

static void order_block(float numbers[4][LANES], float block[BLOCK])
{
    for (int lane = 0; lane < LANES; lane++) {
        for (int word = 0; word < 4; word++) {
            block[4 * lane + word] = numbers[word][lane];
        }
    }
}

/* Blocks are made whole; of the first and the last one only what was asked for is kept.
 */
static void generate(const wr_random *random, uint64_t first, float *output,
                     uint64_t count, shape_fn shape)
{
    uint32_t words[4][LANES];
    float numbers[4][LANES];
    float block[BLOCK];
    while (count > 0) {
        uint64_t skipped = first % BLOCK;
        uint64_t taken = count < BLOCK - skipped ? count : BLOCK - skipped;
        wr_philox_fill(words, (first - skipped) / 4, random->seed);
        shape(random, words, numbers);
        order_block(numbers, block);
        memcpy(output, block + skipped, taken * sizeof *output);
        first += taken;
        output += taken;
        count -= taken;
    }
}

/* ---- uniform ---- */

/* 24 bits make every multiple of 2^-24 in [0, 1). Rounding can still lift a product to
 * `high` itself, which does not belong to the range. */
static void shape_uniform(const wr_random *random, uint32_t words[4][LANES],
                          float numbers[4][LANES])
{
    float low = random->first;
    float width = random->second - random->first;
    float most = nextafterf(random->second, random->first);
    for (int word = 0; word < 4; word++) {
        for (int lane = 0; lane < LANES; lane++) {
            float unit = (float)(int32_t)(words[word][lane] >> 8) * 0x1p-24F;
            float number = low + width * unit;
            numbers[word][lane] = number > most ? most : number;
        }
    }
}

void wr_random_uniform(const wr_random *random, uint64_t first, float *output,
                       uint64_t count)
{
    generate(random, first, output, count, shape_uniform);
}

/* ---- normal: Box and Muller (1958), a pair of words to a pair of numbers ---- */

/* ln(x) for normal x > 0, to about one unit in the last place. x = m * 2^e with m in
 * [sqrt(1/2), sqrt(2)); the polynomial is that of Cephes (logf). */
static float natural_log(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t exponent = (bits - 0x3F3504F3) >> 23;
    bits -= exponent * (1 << 23);
    float m;
    memcpy(&m, &bits, sizeof m);
    m -= 1.0F;
    float square = m * m;
    float sum = 7.0376836292e-2F;
    sum = sum * m - 1.1514610310e-1F;
    sum = sum * m + 1.1676998740e-1F;
    sum = sum * m - 1.2420140846e-1F;
    sum = sum * m + 1.4249322787e-1F;
    sum = sum * m - 1.6668057665e-1F;
    sum = sum * m + 2.0000714765e-1F;
    sum = sum * m - 2.4999993993e-1F;
    sum = sum * m + 3.3333331174e-1F;
    sum = sum * m * square;
    sum = sum + -2.12194440e-4F * (float)exponent;
    sum = sum - 0.5F * square;
    return (m + sum) + 0.693359375F * (float)exponent;
}

/* Cosine and sine of `turn` whole turns, turn in [0, 1): the nearest quarter turn is
 * taken off exactly, the rest is within an eighth; polynomials of Cephes (sinf, cosf). */
static void cosine_and_sine(float turn, float *cosine, float *sine)
{
    int32_t quarter = (int32_t)(4.0F * turn + 0.5F);
    float x = (turn - 0.25F * (float)quarter) * 6.28318530718F;
    float z = x * x;
    float s =
        ((-1.9515295891e-4F * z + 8.3321608736e-3F) * z - 1.6666654611e-1F) * z * x + x;
    float c = ((2.443315711809948e-5F * z - 1.388731625493765e-3F) * z +
               4.166664568298827e-2F) *
                  z * z -
              0.5F * z + 1.0F;
    bool swap = (quarter & 1) != 0;
    float near = swap ? s : c;
    float far = swap ? c : s;
    *cosine = ((quarter + 1) & 2) != 0 ? -near : near;
    *sine = (quarter & 2) != 0 ? -far : far;
}

/* The first word gives the radius, from (0, 1]; the second gives the angle. */
static void normal_pair(uint32_t first, uint32_t second, float *one, float *other)
{
    float unit = (float)first * 0x1p-32F + 0x1p-33F;
    float radius = sqrtf(-2.0F * natural_log(unit));
    float cosine;
    float sine;
    cosine_and_sine((float)(int32_t)(second >> 8) * 0x1p-24F, &cosine, &sine);
    *one = radius * cosine;
    *other = radius * sine;
}

static void shape_normal(const wr_random *random, uint32_t words[4][LANES],
                         float numbers[4][LANES])
{
    float mean = random->first;
    float deviation = random->second;
    for (int word = 0; word < 4; word += 2) {
        for (int lane = 0; lane < LANES; lane++) {
            float one;
            float other;
            normal_pair(words[word][lane], words[word + 1][lane], &one, &other);
            numbers[word][lane] = mean + deviation * one;
            numbers[word + 1][lane] = mean + deviation * other;
        }
    }
}

void wr_random_normal(const wr_random *random, uint64_t first, float *output,
                      uint64_t count)
{
    generate(random, first, output, count, shape_normal);
}
