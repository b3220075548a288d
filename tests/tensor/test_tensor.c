/* SPDX-License-Identifier: MIT */
#include "device.h"

#include <pthread.h>
#include <string.h>

static void drop__returns_the_bytes_after_the_last_clone(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(1000), 2.0F, &tensor));
    weir_buffer buffer = weir_tensor_buffer(tensor);
    weir_tensor *clone = weir_tensor_clone(tensor);
    assert_int_equal(in_use_bytes(), 4000);
    weir_tensor_drop(tensor);
    assert_int_equal(in_use_bytes(), 4000);
    float values[1000];
    assert_ok(weir_tensor_into_data(clone, values, 1000));
    assert_true(values[999] == 2.0F);
    weir_tensor_drop(clone);
    assert_int_equal(in_use_bytes(), 0);
    assert_int_equal(weir_buffer_release(buffer), WEIR_STALE);
}

static void clone__and_drop_take_null(void **state)
{
    (void)state;
    assert_null(weir_tensor_clone(NULL));
    weir_tensor_drop(NULL);
    assert_int_equal(weir_tensor_element_count(NULL), 0);
    assert_int_equal(weir_tensor_shape(NULL).rank, 0);
    assert_int_equal(weir_tensor_buffer(NULL).generation, 0);
}

static void *clone_and_drop(void *tensor)
{
    for (int i = 0; i < 1000; i++) {
        weir_tensor_drop(weir_tensor_clone(tensor));
    }
    weir_tensor_drop(tensor);
    return NULL;
}

static void drop__works_from_any_thread(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(10), &tensor));
    for (int i = 0; i < THREADS; i++) {
        weir_tensor *clone = weir_tensor_clone(tensor);
        assert_int_equal(pthread_create(&threads[i], NULL, clone_and_drop, clone), 0);
    }
    weir_tensor_drop(tensor);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(in_use_bytes(), 0);
}

static void tensor__says_what_it_was_made_with(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    weir_shape given = WEIR_SHAPE(3, 5);
    given.extent[4] = 99; /* past the rank */
    assert_ok(weir_tensor_zeros(stream, given, &tensor));
    assert_shape(weir_tensor_shape(tensor), WEIR_SHAPE(3, 5));
    assert_int_equal(weir_tensor_dtype(tensor), WEIR_DTYPE_F32);
    assert_int_equal(weir_tensor_element_count(tensor), 15);
    assert_int_equal(weir_buffer_bytes(weir_tensor_buffer(tensor)), 60);
    weir_tensor_drop(tensor);
}

static void tensor__carries_the_threads_tag(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    weir_tag_usage usage = {0};
    assert_ok(weir_tag_push("weights"));
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(25), &tensor));
    assert_ok(weir_tag_pop());
    assert_ok(weir_device_tag_usage(device, "weights", &usage));
    assert_int_equal(usage.in_use_bytes, 100);
    assert_int_equal(usage.live_count, 1);
    weir_tensor_drop(tensor);
}

/* Of 64 tensors of 4 MiB the one in the middle stays. */
static void survivor__keeps_little_memory_and_is_named(void **state)
{
    (void)state;
    weir_tensor *tensors[64] = {NULL};
    weir_usage usage = {.size = sizeof usage};
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    for (int i = 0; i < 64; i++) {
        assert_ok(weir_tag_push(i == 31 ? "survivor" : "others"));
        assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(1 << 20), &tensors[i]));
        assert_ok(weir_tag_pop());
    }
    for (int i = 0; i < 64; i++) {
        weir_tensor_drop(i == 31 ? NULL : tensors[i]);
    }
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    assert_ok(weir_device_memory_usage(device, &usage));
    assert_int_equal(usage.in_use_bytes, 4 << 20);
    assert_true(usage.reserved_bytes <= 8 << 20);
    assert_ok(weir_device_explain_lines(device, lines));
    assert_non_null(strstr(lines[0].reason, "survivor"));
    assert_null(strstr(lines[0].reason, "others"));
    weir_tensor_drop(tensors[31]);
}

static void into_data__refuses_null_and_too_little_room(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    float values[4] = {9.0F, 9.0F, 9.0F, 9.0F};
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(4), &tensor));
    assert_int_equal(weir_tensor_into_data(tensor, values, 3), WEIR_INVALID);
    assert_string_equal(weir_last_error(),
                        "weir_tensor_into_data: room for 3 floats, but the tensor has 4");
    assert_int_equal(weir_tensor_into_data(tensor, NULL, 4), WEIR_INVALID);
    assert_int_equal(weir_tensor_into_data(NULL, values, 4), WEIR_INVALID);
    assert_true(values[0] == 9.0F);
    weir_tensor_drop(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(drop__returns_the_bytes_after_the_last_clone),
        ON_HOST(clone__and_drop_take_null),
        ON_HOST(drop__works_from_any_thread),
        ON_HOST(tensor__says_what_it_was_made_with),
        ON_HOST(tensor__carries_the_threads_tag),
        ON_HOST(survivor__keeps_little_memory_and_is_named),
        ON_HOST(into_data__refuses_null_and_too_little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
