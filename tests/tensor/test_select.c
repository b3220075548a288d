/* SPDX-License-Identifier: MIT */
#include "count.h"

#include <math.h>

static weir_tensor *make(weir_shape shape, const float *values)
{
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_from_floats(stream, shape, values, &tensor));
    return tensor;
}

static weir_tensor *numbers(weir_shape shape, const int32_t *values)
{
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_from_data(stream, shape, WEIR_DTYPE_I32, values, &tensor));
    return tensor;
}

static void assert_values(weir_tensor *tensor, const float *expected, uint64_t count)
{
    float values[64];
    assert_int_equal(weir_tensor_element_count(tensor), count);
    assert_ok(weir_tensor_into_data(tensor, values, 64));
    for (uint64_t i = 0; i < count; i++) {
        assert_float_equal(values[i], expected[i], 0);
    }
}

static const float ramp[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void index_select__takes_rows_and_columns(void **state)
{
    (void)state;
    const float rows[8] = {8, 9, 10, 11, 0, 1, 2, 3};
    const float columns[6] = {3, 0, 7, 4, 11, 8};
    weir_tensor *x = make(WEIR_SHAPE(3, 4), ramp);
    weir_tensor *which = numbers(WEIR_SHAPE(2), (const int32_t[2]){2, 0});
    weir_tensor *ends = numbers(WEIR_SHAPE(2), (const int32_t[2]){3, 0});
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_index_select(x, 0, which, &y));
    assert_shape(weir_tensor_shape(y), WEIR_SHAPE(2, 4));
    assert_values(y, rows, 8);
    weir_tensor_drop(y);
    assert_ok(weir_tensor_index_select(x, -1, ends, &y));
    assert_shape(weir_tensor_shape(y), WEIR_SHAPE(3, 2));
    assert_values(y, columns, 6);
    weir_tensor_drop(y);
    weir_tensor_drop(ends);
    weir_tensor_drop(which);
    weir_tensor_drop(x);
}

static void index_select__makes_nan_of_numbers_out_of_range(void **state)
{
    (void)state;
    float values[4];
    weir_tensor *x = make(WEIR_SHAPE(4), ramp);
    weir_tensor *which = numbers(WEIR_SHAPE(4), (const int32_t[4]){3, 4, -1, INT32_MIN});
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_index_select(x, 0, which, &y));
    assert_ok(weir_tensor_into_data(y, values, 4));
    assert_float_equal(values[0], 3, 0);
    assert_true(isnan(values[1]) && isnan(values[2]) && isnan(values[3]));
    weir_tensor_drop(y);
    weir_tensor_drop(which);
    weir_tensor_drop(x);
}

static void gather__follows_the_indices_coordinates(void **state)
{
    (void)state;
    const float expected[4] = {0, 9, 8, 1};
    weir_tensor *x = make(WEIR_SHAPE(3, 4), ramp);
    weir_tensor *which = numbers(WEIR_SHAPE(2, 2), (const int32_t[4]){0, 2, 2, 0});
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_gather(x, 0, which, &y));
    assert_values(y, expected, 4);
    weir_tensor_drop(y);
    weir_tensor_drop(which);
    weir_tensor_drop(x);
}

static void scatter_add__adds_to_equal_places_one_after_the_other(void **state)
{
    (void)state;
    weir_tensor *x = NULL;
    weir_tensor *which = numbers(WEIR_SHAPE(4), (const int32_t[4]){0, 3, 2, 0});
    weir_tensor *rows = make(WEIR_SHAPE(4, 2), ramp);
    weir_tensor *y = NULL;
    weir_tensor_counters before = {.size = sizeof before};
    weir_tensor_counters after = {.size = sizeof after};
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(3, 2), &x));
    assert_ok(weir_stream_tensor_counters(stream, &before));
    assert_ok(weir_tensor_scatter_add(x, 0, which, rows, &y));
    weir_tensor_drop(x);
    /* Rows 0 and 3 go to row 0, row 1 nowhere, row 2 to row 2. */
    assert_values(y, (const float[6]){0 + 6, 1 + 7, 0, 0, 4, 5}, 6);
    assert_ok(weir_stream_tensor_counters(stream, &after));
    assert_int_equal(after.in_place - before.in_place, 1);
    weir_tensor_drop(y);
    weir_tensor_drop(rows);
    weir_tensor_drop(which);
}

static void scatter_add__leaves_a_tensor_that_others_see_as_it_was(void **state)
{
    (void)state;
    weir_tensor *x = make(WEIR_SHAPE(4), ramp);
    weir_tensor *which = numbers(WEIR_SHAPE(2), (const int32_t[2]){1, 1});
    weir_tensor *source = make(WEIR_SHAPE(2), ramp + 4);
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_scatter_add(x, 0, which, source, &y));
    assert_values(y, (const float[4]){0, 10, 2, 3}, 4);
    assert_values(x, ramp, 4);
    weir_tensor_drop(y);
    weir_tensor_drop(source);
    weir_tensor_drop(which);
    weir_tensor_drop(x);
}

static void place__puts_a_part_where_slice_would_have_found_it(void **state)
{
    (void)state;
    weir_tensor *x = make(WEIR_SHAPE(2, 4), ramp);
    weir_tensor *part = make(WEIR_SHAPE(2, 2), ramp + 8);
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_place(x, 1, 3, -2, part, &y));
    assert_values(y, (const float[8]){0, 9, 2, 8, 4, 11, 6, 10}, 8);
    weir_tensor_drop(y);
    assert_int_equal(weir_tensor_place(x, 1, 3, 1, part, &y), WEIR_INVALID);
    weir_tensor_drop(part);
    weir_tensor_drop(x);
}

static void concat__puts_all_parts_into_one_buffer(void **state)
{
    (void)state;
    weir_tensor *x = make(WEIR_SHAPE(2, 2), ramp);
    weir_tensor *row = make(WEIR_SHAPE(1, 2), ramp + 4);
    weir_tensor *turned = NULL;
    weir_tensor *y = NULL;
    weir_usage before = {.size = sizeof before};
    weir_usage after = {.size = sizeof after};
    assert_ok(weir_tensor_transpose(x, 0, 1, &turned));
    assert_ok(weir_device_memory_usage(device, &before));
    assert_ok(weir_tensor_concat((weir_tensor *const[3]){x, row, turned}, 3, 0, &y));
    assert_values(y, (const float[10]){0, 1, 2, 3, 4, 5, 0, 2, 1, 3}, 10);
    assert_ok(weir_device_memory_usage(device, &after));
    assert_int_equal(after.allocations - before.allocations, 1);
    weir_tensor_drop(y);
    assert_ok(weir_tensor_concat((weir_tensor *const[2]){x, turned}, 2, -1, &y));
    assert_values(y, (const float[8]){0, 1, 0, 2, 2, 3, 1, 3}, 8);
    weir_tensor_drop(y);
    assert_int_equal(weir_tensor_concat((weir_tensor *const[2]){x, row}, 2, 1, &y),
                     WEIR_INVALID);
    weir_tensor_drop(turned);
    weir_tensor_drop(row);
    weir_tensor_drop(x);
    assert_int_equal(in_use_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(index_select__takes_rows_and_columns),
        WATCHED(index_select__makes_nan_of_numbers_out_of_range),
        WATCHED(gather__follows_the_indices_coordinates),
        WATCHED(scatter_add__adds_to_equal_places_one_after_the_other),
        WATCHED(scatter_add__leaves_a_tensor_that_others_see_as_it_was),
        WATCHED(place__puts_a_part_where_slice_would_have_found_it),
        WATCHED(concat__puts_all_parts_into_one_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
