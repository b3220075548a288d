/* SPDX-License-Identifier: MIT */
#include "device.h"

#include "kernel/random.h"

#include <math.h>
#include <stdlib.h>

enum {
    COUNT = 300007, /* odd, and enough for several threads */
};

static float data[COUNT];

static void read_and_drop(weir_tensor *tensor)
{
    assert_ok(weir_tensor_into_data(tensor, data, COUNT));
    weir_tensor_drop(tensor);
}

static void zeros__are_zero_even_in_memory_that_was_used(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(COUNT), 3.5F, &tensor));
    read_and_drop(tensor);
    for (int i = 0; i < COUNT; i++) {
        assert_true(data[i] == 3.5F);
    }
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(COUNT), &tensor));
    read_and_drop(tensor);
    for (int i = 0; i < COUNT; i++) {
        assert_true(data[i] == 0.0F);
    }
}

static void from_floats__keeps_every_bit(void **state)
{
    (void)state;
    const float given[6] = {1.0F, -2.5F, 3e-39F, INFINITY, 0.0F, -0.0F};
    float taken[6] = {0};
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(2, 3), given, &tensor));
    assert_ok(weir_tensor_into_data(tensor, taken, 6));
    assert_memory_equal(given, taken, sizeof given);
    weir_tensor_drop(tensor);
}

static void scalar__of_rank_zero_works(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    float value = 0;
    assert_ok(weir_tensor_full(stream, (weir_shape){0}, -7.0F, &tensor));
    assert_ok(weir_tensor_into_data(tensor, &value, 1));
    assert_true(value == -7.0F);
    assert_int_equal(weir_tensor_element_count(tensor), 1);
    weir_tensor_drop(tensor);
}

/* All numbers in one piece on one thread are the reference. */
static void random__is_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    float *expected = malloc(sizeof data);
    assert_non_null(expected);
    const wr_random random = {.seed = 11, .first = -1.0F, .second = 2.0F};
    weir_tensor *tensor = NULL;

    wr_random_uniform(&random, 0, expected, COUNT);
    assert_ok(weir_tensor_uniform(stream, WEIR_SHAPE(COUNT), -1.0F, 2.0F, 11, &tensor));
    read_and_drop(tensor);
    assert_memory_equal(expected, data, sizeof data);

    wr_random_normal(&random, 0, expected, COUNT);
    assert_ok(weir_tensor_normal(stream, WEIR_SHAPE(COUNT), -1.0F, 2.0F, 11, &tensor));
    read_and_drop(tensor);
    assert_memory_equal(expected, data, sizeof data);
    free(expected);
}

static void random__depends_on_the_seed_and_not_on_the_shape(void **state)
{
    (void)state;
    float one[12];
    float other[12];
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_normal(stream, WEIR_SHAPE(3, 4), 0.0F, 1.0F, 1, &tensor));
    assert_ok(weir_tensor_into_data(tensor, one, 12));
    weir_tensor_drop(tensor);
    assert_ok(weir_tensor_normal(stream, WEIR_SHAPE(2, 6), 0.0F, 1.0F, 1, &tensor));
    assert_ok(weir_tensor_into_data(tensor, other, 12));
    weir_tensor_drop(tensor);
    assert_memory_equal(one, other, sizeof one);
    assert_ok(weir_tensor_normal(stream, WEIR_SHAPE(12), 0.0F, 1.0F, 2, &tensor));
    assert_ok(weir_tensor_into_data(tensor, other, 12));
    weir_tensor_drop(tensor);
    assert_memory_not_equal(one, other, sizeof one);
}

/* The k-th moment of the data around `center`. */
static double moment(double center, int k)
{
    double sum = 0.0;
    for (int i = 0; i < COUNT; i++) {
        sum += pow(data[i] - center, k);
    }
    return sum / COUNT;
}

static void uniform__has_the_moments_of_its_range(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_uniform(stream, WEIR_SHAPE(COUNT), -2.0F, 4.0F, 5, &tensor));
    read_and_drop(tensor);
    for (int i = 0; i < COUNT; i++) {
        assert_true(data[i] >= -2.0F && data[i] < 4.0F);
    }
    assert_true(fabs(moment(0.0, 1) - 1.0) < 0.02);
    assert_true(fabs(moment(1.0, 2) - 3.0) < 0.03); /* 6^2 / 12 */
}

static void normal__has_the_moments_of_its_bell(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_normal(stream, WEIR_SHAPE(COUNT), 3.0F, 2.0F, 5, &tensor));
    read_and_drop(tensor);
    assert_true(fabs(moment(0.0, 1) - 3.0) < 0.02);
    assert_true(fabs(moment(3.0, 2) - 4.0) < 0.06);
    assert_true(fabs(moment(3.0, 3)) < 0.3);
    assert_true(fabs(moment(3.0, 4) - 48.0) < 2.5); /* 3 sigma^4 */
}

static void make__refuses_ranges_that_are_none(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    weir_shape shape = WEIR_SHAPE(4);
    assert_int_equal(weir_tensor_uniform(stream, shape, 1.0F, 1.0F, 0, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_uniform(stream, shape, 2.0F, 1.0F, 0, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_uniform(stream, shape, NAN, 1.0F, 0, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_uniform(stream, shape, -3e38F, 3e38F, 0, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_normal(stream, shape, NAN, 1.0F, 0, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_normal(stream, shape, 0.0F, -1.0F, 0, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_normal(stream, shape, 0.0F, INFINITY, 0, &tensor),
                     WEIR_INVALID);
    assert_null(tensor);
    assert_int_equal(in_use_bytes(), 0);
}

static void make__refuses_null_and_empty_shapes(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    float one = 1.0F;
    assert_int_equal(weir_tensor_zeros(NULL, WEIR_SHAPE(4), &tensor), WEIR_INVALID);
    assert_int_equal(weir_tensor_zeros(stream, WEIR_SHAPE(4), NULL), WEIR_INVALID);
    assert_int_equal(weir_tensor_zeros(stream, WEIR_SHAPE(4, 0), &tensor), WEIR_INVALID);
    assert_int_equal(weir_tensor_full(stream, (weir_shape){.rank = 9}, 1.0F, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_from_floats(stream, WEIR_SHAPE(1), NULL, &tensor),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_from_floats(stream, WEIR_SHAPE(1), &one, NULL),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_zeros(stream,
                                       WEIR_SHAPE(UINT64_C(1) << 40, UINT64_C(1) << 40),
                                       &tensor),
                     WEIR_INVALID);
    assert_null(tensor);
    assert_int_equal(in_use_bytes(), 0);
}

static void make__works_without_data_on_sim(void **state)
{
    (void)state;
    weir_tensor *made[3] = {NULL};
    const float given[4] = {0};
    float taken[4];
    assert_ok(
        weir_tensor_uniform(stream, WEIR_SHAPE(4096, 4096), 0.0F, 1.0F, 0, &made[0]));
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(4), given, &made[1]));
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(2, 2), &made[2]));
    assert_ok(weir_tensor_into_data(made[1], taken, 4));
    assert_int_equal(in_use_bytes(), (64 << 20) + 16 + 16);
    for (int i = 0; i < 3; i++) {
        weir_tensor_drop(made[i]);
    }
    assert_int_equal(in_use_bytes(), 0);
}

static void make__leaves_nothing_behind_when_the_device_is_full(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    assert_int_equal(weir_tensor_zeros(stream, WEIR_SHAPE(64, 1024, 1024, 1024), &tensor),
                     WEIR_OUT_OF_MEMORY); /* 256 GiB of sim's 24 */
    assert_null(tensor);
    assert_int_equal(in_use_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(zeros__are_zero_even_in_memory_that_was_used),
        ON_HOST(from_floats__keeps_every_bit),
        ON_HOST(scalar__of_rank_zero_works),
        ON_HOST(random__is_the_same_for_any_number_of_threads),
        ON_HOST(random__depends_on_the_seed_and_not_on_the_shape),
        ON_HOST(uniform__has_the_moments_of_its_range),
        ON_HOST(normal__has_the_moments_of_its_bell),
        ON_HOST(make__refuses_ranges_that_are_none),
        ON_HOST(make__refuses_null_and_empty_shapes),
        ON_SIM(make__works_without_data_on_sim),
        ON_SIM(make__leaves_nothing_behind_when_the_device_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
