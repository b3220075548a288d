/* SPDX-License-Identifier: MIT */
/* Random numbers by element index. Element i comes from word i % 4 of Philox counter i /
 * 4 under the key `seed`. */
#ifndef WR_KERNEL_RANDOM_H
#define WR_KERNEL_RANDOM_H

#include <stdint.h>

typedef struct wr_random {
    uint64_t seed;
    float first;  /* uniform: low; normal: mean */
    float second; /* uniform: high; normal: deviation */
} wr_random;

/* The numbers of elements [first, first + count). */
void wr_random_uniform(const wr_random *random, uint64_t first, float *output,
                       uint64_t count);
void wr_random_normal(const wr_random *random, uint64_t first, float *output,
                      uint64_t count);

#endif
