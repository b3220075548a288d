/* SPDX-License-Identifier: MIT */
#include "philox.h"

#include "dtype.h"

enum {
    ROUNDS = 10,
};

#define MULTIPLIER_0 UINT64_C(0xD2511F53)
#define MULTIPLIER_2 UINT64_C(0xCD9E8D57)
#define WEYL_0 UINT32_C(0x9E3779B9)
#define WEYL_1 UINT32_C(0xBB67AE85)

static inline void mix_once(uint32_t words[4][WR_PHILOX_LANES], uint32_t key_0,
                            uint32_t key_1)
{
    for (int lane = 0; lane < WR_PHILOX_LANES; lane++) {
        uint64_t product_0 = MULTIPLIER_0 * words[0][lane];
        uint64_t product_2 = MULTIPLIER_2 * words[2][lane];
        words[0][lane] = (uint32_t)(product_2 >> 32) ^ words[1][lane] ^ key_0;
        words[1][lane] = (uint32_t)product_2;
        words[2][lane] = (uint32_t)(product_0 >> 32) ^ words[3][lane] ^ key_1;
        words[3][lane] = (uint32_t)product_0;
    }
}

WR_CLONES void wr_philox_mix(uint32_t words[4][WR_PHILOX_LANES], uint64_t key)
{
    uint32_t key_0 = (uint32_t)key;
    uint32_t key_1 = (uint32_t)(key >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        mix_once(words, key_0, key_1);
        key_0 += WEYL_0;
        key_1 += WEYL_1;
    }
}

void wr_philox_fill(uint32_t words[4][WR_PHILOX_LANES], uint64_t first, uint64_t key)
{
    for (unsigned lane = 0; lane < WR_PHILOX_LANES; lane++) {
        words[0][lane] = (uint32_t)(first + lane);
        words[1][lane] = (uint32_t)((first + lane) >> 32);
        words[2][lane] = 0;
        words[3][lane] = 0;
    }
    wr_philox_mix(words, key);
}
