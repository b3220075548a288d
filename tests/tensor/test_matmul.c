/* SPDX-License-Identifier: MIT */
#include "count.h"

static weir_tensor *make(weir_shape shape, const float *values)
{
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_from_floats(stream, shape, values, &tensor));
    return tensor;
}

static void assert_values(weir_tensor *tensor, const float *expected, uint64_t count)
{
    float values[64];
    assert_int_equal(weir_tensor_element_count(tensor), count);
    assert_ok(weir_tensor_into_data(tensor, values, 64));
    assert_memory_equal(values, expected, count * sizeof *expected);
}

static const float ramp[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void matmul__multiplies_transposed_matrices_without_copying_them(void **state)
{
    (void)state;
    const float product[4] = {14, 38, 38, 126};
    weir_tensor *a = make(WEIR_SHAPE(2, 4), ramp);
    weir_tensor *t = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_transpose(a, 0, 1, &t));
    launch_count = 0;
    assert_ok(weir_tensor_matmul(a, t, &y));
    assert_values(y, product, 4);
    assert_int_equal(launch_count, 1);
    assert_int_equal(last_binding_count, 3);
    weir_tensor_drop(y);
    weir_tensor_drop(t);
    weir_tensor_drop(a);
}

static void matmul__copies_an_operand_where_no_buffer_may_be_bound_twice(void **state)
{
    (void)state;
    const float product[4] = {14, 38, 38, 126};
    weir_tensor *a = make(WEIR_SHAPE(2, 4), ramp);
    weir_tensor *t = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_transpose(a, 0, 1, &t));
    launch_count = 0;
    assert_ok(weir_tensor_matmul(a, t, &y));
    assert_values(y, product, 4);
    assert_int_equal(launch_count, 2);
    weir_tensor_drop(y);
    weir_tensor_drop(t);
    weir_tensor_drop(a);
    assert_int_equal(in_use_bytes(), 0);
}

/* [2, 2, 3] times one [3, 2]: rows that follow each other. */
static void matmul__makes_one_product_of_many_with_one_right_operand(void **state)
{
    (void)state;
    const float expected[8] = {10, 13, 28, 40, 46, 67, 64, 94};
    weir_tensor *a = make(WEIR_SHAPE(2, 2, 3), ramp);
    weir_tensor *b = make(WEIR_SHAPE(3, 2), ramp);
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_matmul(a, b, &y));
    assert_shape(weir_tensor_shape(y), WEIR_SHAPE(2, 2, 2));
    assert_values(y, expected, 8);
    assert_int_equal(last_words.matmul.batch_count, 1);
    assert_int_equal(last_words.matmul.rows, 4);
    weir_tensor_drop(y);
    weir_tensor_drop(b);
    weir_tensor_drop(a);
}

/* Every second column is no matrix that BLAS knows. */
static void matmul__copies_what_has_strides_both_ways(void **state)
{
    (void)state;
    const float expected[4] = {8, 12, 24,
                               44}; /* [0 2; 4 6] [0 2; 4 6] is [8 12; 24 44] */
    weir_tensor *a = make(WEIR_SHAPE(2, 4), ramp);
    weir_tensor *even = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_slice(a, 1, 0, 2, 2, &even));
    assert_ok(weir_tensor_matmul(even, even, &y));
    assert_values(y, expected, 4);
    weir_tensor_drop(y);
    weir_tensor_drop(even);
    weir_tensor_drop(a);
}

static void matmul__joins_what_is_pending_on_both_sides(void **state)
{
    (void)state;
    const float expected[4] = {15, 39, 39, 127};
    weir_tensor *a = make(WEIR_SHAPE(2, 4), ramp);
    weir_tensor *twice = NULL;
    weir_tensor *half = NULL;
    weir_tensor *product = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_mul_scalar(a, 2, &twice));
    assert_ok(weir_tensor_transpose(a, 0, 1, &half));
    assert_ok(weir_tensor_matmul(twice, half, &product));
    assert_ok(weir_tensor_mul_scalar(product, 0.5, &y));
    weir_tensor_drop(product);
    assert_ok(weir_tensor_add_scalar(y, 1, &product));
    weir_tensor_drop(y);
    launch_count = 0;
    assert_values(product, expected, 4);
    assert_int_equal(launch_count, 3);
    weir_tensor_drop(product);
    weir_tensor_drop(half);
    weir_tensor_drop(twice);
    weir_tensor_drop(a);
}

static void matmul__refuses_shapes_and_dtypes_that_do_not_fit(void **state)
{
    (void)state;
    weir_tensor *a = make(WEIR_SHAPE(2, 4), ramp);
    weir_tensor *vector = make(WEIR_SHAPE(4), ramp);
    weir_tensor *integers = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_cast(a, WEIR_DTYPE_I32, &integers));
    assert_int_equal(weir_tensor_matmul(a, a, &y), WEIR_INVALID);
    assert_string_equal(weir_last_error(),
                        "weir_tensor_matmul: shapes [2, 4] and [2, 4]; the last two "
                        "dimensions must be [m, k] and [k, n], none over 2147483647");
    assert_int_equal(weir_tensor_matmul(a, vector, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_matmul(a, integers, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_matmul(integers, integers, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_matmul(NULL, a, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_matmul(a, NULL, &y), WEIR_INVALID);
    assert_null(y);
    weir_tensor_drop(integers);
    weir_tensor_drop(vector);
    weir_tensor_drop(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(matmul__multiplies_transposed_matrices_without_copying_them),
        WATCHED_WITH(exclusive_bindings,
                     matmul__copies_an_operand_where_no_buffer_may_be_bound_twice),
        WATCHED(matmul__makes_one_product_of_many_with_one_right_operand),
        WATCHED(matmul__copies_what_has_strides_both_ways),
        WATCHED(matmul__joins_what_is_pending_on_both_sides),
        WATCHED(matmul__refuses_shapes_and_dtypes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
