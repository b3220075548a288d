/* SPDX-License-Identifier: MIT */
#include "kernel/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct vector {
    uint32_t counter[4];
    uint64_t key;
    uint32_t words[4];
} vector;

/* The known answers for philox4x32-10 that the authors publish with their Random123
 * library. */
static const vector published[] = {
    {{0x00000000, 0x00000000, 0x00000000, 0x00000000},
     0x0000000000000000,
     {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     0xffffffffffffffff,
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     0x299f31d0a4093822,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox__gives_the_published_answers_in_every_lane(void **state)
{
    (void)state;
    for (size_t v = 0; v < sizeof published / sizeof *published; v++) {
        uint32_t words[4][WR_PHILOX_LANES];
        for (int word = 0; word < 4; word++) {
            for (int lane = 0; lane < WR_PHILOX_LANES; lane++) {
                words[word][lane] = published[v].counter[word];
            }
        }
        wr_philox_mix(words, published[v].key);
        for (int word = 0; word < 4; word++) {
            for (int lane = 0; lane < WR_PHILOX_LANES; lane++) {
                assert_int_equal(words[word][lane], published[v].words[word]);
            }
        }
    }
}

static void philox__fill_counts_up_over_the_low_word(void **state)
{
    (void)state;
    uint64_t first = UINT64_C(0xfffffffa);
    uint32_t filled[4][WR_PHILOX_LANES];
    wr_philox_fill(filled, first, 7);
    for (unsigned lane = 0; lane < WR_PHILOX_LANES; lane++) {
        uint32_t words[4][WR_PHILOX_LANES];
        memset(words, 0, sizeof words);
        words[0][0] = (uint32_t)(first + lane);
        words[1][0] = (uint32_t)((first + lane) >> 32);
        wr_philox_mix(words, 7);
        for (int word = 0; word < 4; word++) {
            assert_int_equal(filled[word][lane], words[word][0]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox__gives_the_published_answers_in_every_lane),
        cmocka_unit_test(philox__fill_counts_up_over_the_low_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
