/* SPDX-License-Identifier: MIT */
#include "device.h"

static weir_tensor *make(weir_stream *on, const float *values, uint64_t count)
{
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_from_floats(on, WEIR_SHAPE(count), values, &tensor));
    return tensor;
}

static void assert_values(weir_tensor *tensor, const float *expected, uint64_t count)
{
    float values[8] = {0};
    assert_int_equal(weir_tensor_element_count(tensor), count);
    assert_ok(weir_tensor_into_data(tensor, values, 8));
    assert_memory_equal(values, expected, count * sizeof *expected);
}

static void add_scalar__adds_to_every_element_of_a_new_tensor(void **state)
{
    (void)state;
    const float before[3] = {1.0F, -2.0F, 0.5F};
    const float after[3] = {2.5F, -0.5F, 2.0F};
    weir_tensor *left = make(stream, before, 3);
    weir_tensor *sum = NULL;
    assert_ok(weir_tensor_add_scalar(left, 1.5F, &sum));
    assert_values(sum, after, 3);
    assert_values(left, before, 3);
    weir_tensor_drop(sum);
    weir_tensor_drop(left);
    assert_int_equal(in_use_bytes(), 0);
}

static void add__adds_element_by_element(void **state)
{
    (void)state;
    const float one[4] = {1.0F, 2.0F, 3.0F, 4.0F};
    const float other[4] = {10.0F, -20.0F, 30.0F, 0.25F};
    const float expected[4] = {11.0F, -18.0F, 33.0F, 4.25F};
    const float twice[4] = {2.0F, 4.0F, 6.0F, 8.0F};
    weir_tensor *left = make(stream, one, 4);
    weir_tensor *right = make(stream, other, 4);
    weir_tensor *sum = NULL;
    assert_ok(weir_tensor_add(left, right, &sum));
    assert_values(sum, expected, 4);
    weir_tensor_drop(sum);
    assert_ok(weir_tensor_add(left, left, &sum));
    assert_values(sum, twice, 4);
    weir_tensor_drop(sum);
    weir_tensor_drop(left);
    weir_tensor_drop(right);
    assert_int_equal(in_use_bytes(), 0);
}

static void add__keeps_the_shape(void **state)
{
    (void)state;
    weir_tensor *left = NULL;
    weir_tensor *sum = NULL;
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(300, 2, 70), 1.0F, &left));
    assert_ok(weir_tensor_add(left, left, &sum));
    assert_shape(weir_tensor_shape(sum), WEIR_SHAPE(300, 2, 70));
    weir_tensor_drop(sum);
    weir_tensor_drop(left);
}

static void add__takes_an_operand_from_another_stream(void **state)
{
    (void)state;
    const float one[2] = {1.0F, 2.0F};
    const float other[2] = {3.0F, 5.0F};
    const float expected[2] = {4.0F, 7.0F};
    weir_stream *side = NULL;
    assert_ok(weir_stream_create(device, NULL, &side));
    weir_tensor *left = make(stream, one, 2);
    weir_tensor *right = make(side, other, 2);
    weir_tensor *sum = NULL;
    assert_ok(weir_tensor_add(left, right, &sum));
    weir_tensor_drop(right);
    assert_true(weir_buffer_stream(weir_tensor_buffer(sum)) == stream);
    assert_values(sum, expected, 2);
    weir_tensor_drop(sum);
    weir_tensor_drop(left);
    assert_ok(weir_device_sync(device));
    assert_int_equal(in_use_bytes(), 0);
    assert_ok(weir_stream_close(side));
}

/* On sim the work of the other stream stays queued, so its room must not be free. */
static void
add__keeps_a_dropped_operand_of_another_stream_until_the_work_is_done(void **state)
{
    (void)state;
    weir_stream *side = NULL;
    weir_tensor *left = NULL;
    weir_tensor *right = NULL;
    weir_tensor *sum = NULL;
    weir_usage usage = {.size = sizeof usage};
    assert_ok(weir_stream_create(device, NULL, &side));
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(1 << 20), &left));
    assert_ok(weir_tensor_zeros(side, WEIR_SHAPE(1 << 20), &right));
    assert_ok(weir_tensor_add(left, right, &sum));
    weir_tensor_drop(right);
    assert_int_not_equal(weir_tensor_buffer(sum).generation, 0); /* runs it */
    assert_ok(weir_device_memory_usage(device, &usage));
    assert_true(usage.deferred_bytes >= 4 << 20);
    assert_ok(weir_device_sync(device));
    weir_tensor_drop(sum);
    weir_tensor_drop(left);
    assert_ok(weir_stream_close(side));
}

static void add__refuses_null_other_shapes_and_other_devices(void **state)
{
    (void)state;
    weir_device *second = NULL;
    weir_tensor *left = NULL;
    weir_tensor *right = NULL;
    weir_tensor *sum = NULL;
    assert_ok(weir_device_open("host", &(weir_device_desc){.no_thread = true}, &second));
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(2, 3), &left));
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(3, 2), &right));
    assert_int_equal(weir_tensor_add(left, right, &sum), WEIR_INVALID);
    assert_string_equal(
        weir_last_error(),
        "weir_tensor_add: shapes [2, 3] and [3, 2] differ, and neither is 1 "
        "where they do");
    weir_tensor_drop(right);
    assert_ok(
        weir_tensor_zeros(weir_device_default_stream(second), WEIR_SHAPE(2, 3), &right));
    assert_int_equal(weir_tensor_add(left, right, &sum), WEIR_INVALID);
    assert_int_equal(weir_tensor_add(left, NULL, &sum), WEIR_INVALID);
    assert_int_equal(weir_tensor_add(NULL, left, &sum), WEIR_INVALID);
    assert_int_equal(weir_tensor_add(left, left, NULL), WEIR_INVALID);
    assert_int_equal(weir_tensor_add_scalar(NULL, 1.0F, &sum), WEIR_INVALID);
    assert_int_equal(weir_tensor_add_scalar(left, 1.0F, NULL), WEIR_INVALID);
    assert_null(sum);
    weir_tensor_drop(left);
    weir_tensor_drop(right);
    assert_int_equal(in_use_bytes(), 0);
    assert_ok(weir_device_close(second));
}

static void add__is_stale_after_the_device_was_abandoned(void **state)
{
    (void)state;
    weir_device *second = NULL;
    weir_tensor *left = NULL;
    weir_tensor *sum = NULL;
    float value;
    assert_ok(weir_device_open("host", &(weir_device_desc){.no_thread = true}, &second));
    assert_ok(
        weir_tensor_zeros(weir_device_default_stream(second), WEIR_SHAPE(1), &left));
    weir_device_abandon(second);
    assert_int_equal(weir_tensor_add(left, left, &sum), WEIR_STALE);
    assert_int_equal(weir_tensor_add_scalar(left, 1.0F, &sum), WEIR_STALE);
    assert_int_equal(weir_tensor_into_data(left, &value, 1), WEIR_STALE);
    weir_tensor_drop(left);
    assert_null(sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(add_scalar__adds_to_every_element_of_a_new_tensor),
        ON_HOST(add__adds_element_by_element),
        ON_HOST(add__keeps_the_shape),
        ON_HOST(add__takes_an_operand_from_another_stream),
        ON_SIM(add__keeps_a_dropped_operand_of_another_stream_until_the_work_is_done),
        ON_HOST(add__refuses_null_other_shapes_and_other_devices),
        ON_HOST(add__is_stale_after_the_device_was_abandoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
