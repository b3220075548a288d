/* SPDX-License-Identifier: MIT */
#include "kernel/normal.h"
#include "kernel/philox.h"
#include "kernel/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    COUNT = 20000, /* not a multiple of a block */
};

static float whole[COUNT];
static float parts[COUNT + 64];

typedef void (*random_fn)(const wr_random *random, uint64_t first, float *output,
                          uint64_t count);

static const random_fn kinds[] = {wr_random_uniform, wr_random_normal};

/* Elements [begin, end) of a whole output. */
static void run(random_fn kind, float *output, float first, float second,
                const uint64_t range[2])
{
    const wr_random random = {.seed = 42, .first = first, .second = second};
    kind(&random, range[0], output + range[0], range[1] - range[0]);
}

static void random__does_not_depend_on_how_a_launch_is_cut(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        memset(parts, 0, sizeof parts);
        run(kinds[k], whole, 0.0F, 1.0F, (const uint64_t[2]){0, COUNT});
        run(kinds[k], parts, 0.0F, 1.0F, (const uint64_t[2]){8192, COUNT});
        run(kinds[k], parts, 0.0F, 1.0F, (const uint64_t[2]){0, 4096});
        run(kinds[k], parts, 0.0F, 1.0F, (const uint64_t[2]){4096, 5001});
        run(kinds[k], parts, 0.0F, 1.0F, (const uint64_t[2]){5001, 8192});
        assert_memory_equal(whole, parts, sizeof whole);
    }
}

static void random__writes_nothing_past_the_end(void **state)
{
    (void)state;
    memset(parts, 0, sizeof parts);
    run(wr_random_uniform, parts, 1.0F, 2.0F, (const uint64_t[2]){0, 4097});
    assert_true(parts[4096] >= 1.0F);
    for (size_t i = 4097; i < 4097 + 64; i++) {
        assert_true(parts[i] == 0.0F);
    }
}

static void uniform__is_the_top_24_bits_of_the_elements_word(void **state)
{
    (void)state;
    run(wr_random_uniform, whole, 0.0F, 1.0F, (const uint64_t[2]){0, COUNT});
    uint32_t words[4][WR_PHILOX_LANES];
    wr_philox_fill(words, 0, 42);
    for (int i = 0; i < 64; i++) {
        float unit = (float)(words[i % 4][i / 4] >> 8) / 16777216.0F;
        assert_true(whole[i] == unit);
    }
}

static void uniform__never_reaches_its_upper_bound(void **state)
{
    (void)state;
    float high = nextafterf(nextafterf(1.0F, 2.0F), 2.0F); /* two values in [1, high) */
    run(wr_random_uniform, whole, 1.0F, high, (const uint64_t[2]){0, COUNT});
    for (int i = 0; i < COUNT; i++) {
        assert_true(whole[i] >= 1.0F && whole[i] < high);
    }
}

static void normal__is_the_elements_own_word_moved_and_stretched(void **state)
{
    (void)state;
    run(wr_random_normal, whole, 3.0F, 0.7F, (const uint64_t[2]){0, COUNT});
    uint32_t words[4][WR_PHILOX_LANES];
    uint32_t bits[4][WR_PHILOX_LANES];
    wr_philox_fill(words, 0, 42);
    for (int word = 0; word < 4; word++) {
        wr_normal_from_words(bits[word], words[word]);
    }
    for (int i = 0; i < 64; i++) {
        float number;
        memcpy(&number, &bits[i % 4][i / 4], sizeof number);
        float stretched = (float)(0.7F * (double)number);
        assert_true(whole[i] == (float)(3.0 + (double)stretched));
    }
}

/* Bits, not values near them: what a change of compiler, flags or processor must not
 * move. The sums are those of a model in Python's integers and fractions. */
static void random__keeps_its_bits(void **state)
{
    (void)state;
    uint64_t sums[2] = {0};
    for (int k = 0; k < 2; k++) {
        run(kinds[k], whole, -1.0F, 3.0F, (const uint64_t[2]){0, COUNT});
        for (int i = 0; i < COUNT; i++) {
            uint32_t bits;
            memcpy(&bits, &whole[i], sizeof bits);
            sums[k] = (sums[k] ^ bits) * UINT64_C(0x100000001B3);
        }
    }
    assert_int_equal(sums[0], UINT64_C(0x9289b1d24858febe));
    assert_int_equal(sums[1], UINT64_C(0xbf4947d56dcf5bf5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random__does_not_depend_on_how_a_launch_is_cut),
        cmocka_unit_test(random__writes_nothing_past_the_end),
        cmocka_unit_test(uniform__is_the_top_24_bits_of_the_elements_word),
        cmocka_unit_test(uniform__never_reaches_its_upper_bound),
        cmocka_unit_test(normal__is_the_elements_own_word_moved_and_stretched),
        cmocka_unit_test(random__keeps_its_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
