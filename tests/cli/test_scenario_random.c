/* SPDX-License-Identifier: MIT */
#include "scenario/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void random__gives_the_documented_sizes(void **state)
{
    (void)state;
    assert_int_equal(wr_scn_random_size(1, 0, 1, 1000), 26);
    assert_int_equal(wr_scn_random_size(1, 1, 1, 1000), 2);
    assert_int_equal(wr_scn_random_size(2, 0, 1, 1000), 3);
    assert_int_equal(wr_scn_random_size(7, 0, 512, 2 * GIB), 8163523);
    assert_int_equal(wr_scn_random_size(7, 0, 1, UINT64_MAX), UINT64_C(1681771813100));
}

static void random__depends_on_nothing_but_its_arguments(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 100; k++) {
        uint64_t size = wr_scn_random_size(42, k, 512, GIB);
        assert_int_equal(wr_scn_random_size(42, k, 512, GIB), size);
    }
}

static void random__stays_between_its_ends_and_reaches_them(void **state)
{
    (void)state;
    unsigned seen[9] = {0};
    for (uint64_t k = 0; k < 1000; k++) {
        uint64_t size = wr_scn_random_size(3, k, 5, 8);
        assert_in_range(size, 5, 8);
        seen[size]++;
        assert_int_equal(wr_scn_random_size(3, k, 6, 6), 6);
    }
    for (int size = 5; size <= 8; size++) {
        assert_true(seen[size] > 0);
    }
    assert_int_equal(wr_scn_random_size(0, 0, UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

/* Ten doublings get a tenth of the sizes each: 1000 of 10000, with a deviation of 30. */
static void random__is_uniform_in_the_logarithm(void **state)
{
    (void)state;
    unsigned counts[10] = {0};
    for (uint64_t k = 0; k < 10000; k++) {
        uint64_t size = wr_scn_random_size(11, k, MIB, GIB - 1);
        int doubling = 0;
        while (size >= 2 * MIB) {
            size /= 2;
            doubling++;
        }
        counts[doubling]++;
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(counts[i], 850, 1150);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random__gives_the_documented_sizes),
        cmocka_unit_test(random__depends_on_nothing_but_its_arguments),
        cmocka_unit_test(random__stays_between_its_ends_and_reaches_them),
        cmocka_unit_test(random__is_uniform_in_the_logarithm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
