/* SPDX-License-Identifier: MIT */
/* Uniform and normal numbers, made in blocks of 4 x WR_PHILOX_LANES elements:
 *
 *     element    0     1     2     3     4     5   ...
 *     counter    0     0     0     0     1     1   ...   = lane + block's first counter
 *     word       0     1     2     3     0     1   ...
 *
 * A number depends only on its element's index and the seed, bit by bit and on every
 * driver. What makes it from the word is done in integers; then come a product and a sum,
 * each rounded as IEEE 754 says and never fused. */
#include "random.h"

#include "normal.h"

#include <math.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "Compile this file without -ffast-math: the numbers' last bits depend on it."
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

/* ---- normal ---- */

static void shape_normal(const wr_random *random, uint32_t words[4][LANES],
                         float numbers[4][LANES])
{
    float mean = random->first;
    float deviation = random->second;
    uint32_t bits[LANES];
    for (int word = 0; word < 4; word++) {
        wr_normal_from_words(bits, words[word]);
        memcpy(numbers[word], bits, sizeof bits);
        for (int lane = 0; lane < LANES; lane++) {
            numbers[word][lane] = mean + deviation * numbers[word][lane];
        }
    }
}

void wr_random_normal(const wr_random *random, uint64_t first, float *output,
                      uint64_t count)
{
    generate(random, first, output, count, shape_normal);
}
