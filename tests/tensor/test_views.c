/* SPDX-License-Identifier: MIT */
#include "device.h"

/* 0, 1, 2... */
static weir_tensor *count_up(weir_shape shape)
{
    float values[64];
    weir_tensor *tensor = NULL;
    for (int i = 0; i < 64; i++) {
        values[i] = (float)i;
    }
    assert_ok(weir_tensor_from_floats(stream, shape, values, &tensor));
    return tensor;
}

static void assert_floats(weir_tensor *tensor, weir_shape shape, const float *expected)
{
    float values[64];
    uint64_t count = weir_tensor_element_count(tensor);
    assert_shape(weir_tensor_shape(tensor), shape);
    assert_ok(weir_tensor_into_data(tensor, values, 64));
    assert_memory_equal(values, expected, count * sizeof *values);
}

static void transpose__shows_the_same_elements_in_another_order(void **state)
{
    (void)state;
    const float expected[6] = {0, 3, 1, 4, 2, 5};
    weir_tensor *x = count_up(WEIR_SHAPE(2, 3));
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_transpose(x, -1, 0, &y));
    assert_true(weir_tensor_buffer(x).index == weir_tensor_buffer(y).index);
    assert_floats(y, WEIR_SHAPE(3, 2), expected);
    weir_tensor_drop(x);
    assert_floats(y, WEIR_SHAPE(3, 2), expected);
    weir_tensor_drop(y);
    assert_ok(weir_stream_sync(stream));
    assert_int_equal(in_use_bytes(), 0);
}

static void permute__moves_dimension_axes_i_to_i(void **state)
{
    (void)state;
    const uint32_t axes[3] = {2, 0, 1};
    const uint32_t twice[3] = {0, 0, 1};
    weir_tensor *x = count_up(WEIR_SHAPE(2, 3, 4));
    weir_tensor *y = NULL;
    float expected[24];
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 2; i++) {
            for (int j = 0; j < 3; j++) {
                expected[(k * 2 + i) * 3 + j] = (float)((i * 3 + j) * 4 + k);
            }
        }
    }
    assert_int_equal(weir_tensor_permute(x, twice, &y), WEIR_INVALID);
    assert_ok(weir_tensor_permute(x, axes, &y));
    assert_floats(y, WEIR_SHAPE(4, 2, 3), expected);
    weir_tensor_drop(x);
    weir_tensor_drop(y);
}

static void slice__takes_every_nth_element_either_way(void **state)
{
    (void)state;
    const float forward[4] = {1, 3, 6, 8};
    const float backward[2] = {4, 9};
    weir_tensor *x = count_up(WEIR_SHAPE(2, 5));
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_slice(x, 1, 1, 2, 2, &y));
    assert_floats(y, WEIR_SHAPE(2, 2), forward);
    weir_tensor_drop(y);
    assert_ok(weir_tensor_slice(x, -1, 4, 1, -3, &y));
    assert_floats(y, WEIR_SHAPE(2, 1), backward);
    weir_tensor_drop(y);
    assert_int_equal(weir_tensor_slice(x, 1, 1, 3, 2, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_slice(x, 1, 1, 3, -1, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_slice(x, 1, 5, 1, 1, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_slice(x, 1, 0, 0, 1, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_slice(x, 2, 0, 1, 1, &y), WEIR_INVALID);
    weir_tensor_drop(x);
}

static void reshape__shares_where_it_can_and_copies_where_it_must(void **state)
{
    (void)state;
    const float turned[6] = {0, 3, 1, 4, 2, 5};
    const float straight[6] = {0, 1, 2, 3, 4, 5};
    weir_tensor *x = count_up(WEIR_SHAPE(2, 3));
    weir_tensor *t = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_reshape(x, WEIR_SHAPE(6), &y));
    assert_true(weir_tensor_buffer(x).index == weir_tensor_buffer(y).index);
    assert_floats(y, WEIR_SHAPE(6), straight);
    weir_tensor_drop(y);
    assert_ok(weir_tensor_transpose(x, 0, 1, &t));
    assert_ok(weir_tensor_reshape(t, WEIR_SHAPE(6), &y));
    assert_true(weir_tensor_buffer(x).index != weir_tensor_buffer(y).index);
    assert_floats(y, WEIR_SHAPE(6), turned);
    weir_tensor_drop(y);
    assert_int_equal(weir_tensor_reshape(x, WEIR_SHAPE(7), &y), WEIR_INVALID);
    weir_tensor_drop(t);
    weir_tensor_drop(x);
}

static void expand__repeats_extents_of_one(void **state)
{
    (void)state;
    const float expected[6] = {0, 0, 0, 1, 1, 1};
    weir_tensor *x = count_up(WEIR_SHAPE(2, 1));
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_expand(x, WEIR_SHAPE(2, 3), &y));
    assert_floats(y, WEIR_SHAPE(2, 3), expected);
    weir_tensor_drop(y);
    assert_int_equal(weir_tensor_expand(x, WEIR_SHAPE(3, 3), &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_expand(x, WEIR_SHAPE(2), &y), WEIR_INVALID);
    weir_tensor_drop(x);
}

/* A view of what is still to be computed. */
static void views__of_pending_results_are_computed_first(void **state)
{
    (void)state;
    weir_tensor *x = count_up(WEIR_SHAPE(2, 3));
    weir_tensor *t = NULL;
    weir_tensor *y = NULL;
    weir_tensor *z = NULL;
    assert_ok(weir_tensor_add_scalar(x, 1.0, &y));
    assert_ok(weir_tensor_transpose(y, 0, 1, &t));
    weir_tensor_drop(y);
    assert_ok(weir_tensor_mul(t, t, &z));
    weir_tensor_drop(t);
    float values[6];
    assert_ok(weir_tensor_into_data(z, values, 6));
    for (int i = 0; i < 6; i++) {
        float element = (float)((i % 2) * 3 + i / 2) + 1.0F;
        assert_true(values[i] == element * element);
    }
    weir_tensor_drop(z);
    weir_tensor_drop(x);
}

static void reduce__sums_any_axis_of_any_view(void **state)
{
    (void)state;
    weir_tensor *x = count_up(WEIR_SHAPE(2, 3, 4));
    weir_tensor *t = NULL;
    weir_tensor *y = NULL;
    const float middle[8] = {12, 15, 18, 21, 48, 51, 54, 57};
    const float largest[3] = {15, 19, 23};
    const float all[1] = {276};
    assert_ok(weir_tensor_reduce(WEIR_REDUCE_SUM, x, 1, true, &y));
    assert_floats(y, WEIR_SHAPE(2, 1, 4), middle);
    weir_tensor_drop(y);
    assert_ok(weir_tensor_reduce(WEIR_REDUCE_SUM, x, WEIR_ALL_AXES, false, &y));
    assert_floats(y, (weir_shape){0}, all);
    weir_tensor_drop(y);
    assert_ok(weir_tensor_reduce(WEIR_REDUCE_MAX, x, -1, false, &t));
    assert_ok(weir_tensor_reduce(WEIR_REDUCE_MAX, t, 0, false, &y));
    assert_floats(y, WEIR_SHAPE(3), largest);
    weir_tensor_drop(t);
    weir_tensor_drop(y);
    weir_tensor_drop(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(transpose__shows_the_same_elements_in_another_order),
        ON_HOST(permute__moves_dimension_axes_i_to_i),
        ON_HOST(slice__takes_every_nth_element_either_way),
        ON_HOST(reshape__shares_where_it_can_and_copies_where_it_must),
        ON_HOST(expand__repeats_extents_of_one),
        ON_HOST(views__of_pending_results_are_computed_first),
        ON_HOST(reduce__sums_any_axis_of_any_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
