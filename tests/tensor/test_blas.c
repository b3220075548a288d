/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
/* Matrix products where OpenBLAS is not there. In a program of its own: once loaded it
 * stays. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

static weir_result multiply(float values[4])
{
    const float ones[4] = {1, 2, 3, 4};
    weir_tensor *x = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(2, 2), ones, &x));
    assert_ok(weir_tensor_matmul(x, x, &y));
    weir_result result = weir_tensor_into_data(y, values, 4);
    weir_tensor_drop(y);
    weir_tensor_drop(x);
    return result;
}

static void matmul__says_what_is_missing_and_goes_on_when_it_is_there(void **state)
{
    (void)state;
    float values[4];
    assert_int_equal(setenv("WEIR_BLAS_LIBRARY", "/nowhere/libblas.so", 1), 0);
    assert_int_equal(multiply(values), WEIR_NOT_FOUND);
    assert_non_null(strstr(weir_last_error(), "matrix products need OpenBLAS"));
    assert_non_null(strstr(weir_last_error(), "/nowhere/libblas.so"));
    assert_int_equal(setenv("WEIR_BLAS_LIBRARY", "libblas.so", 1), 0);
    assert_int_equal(multiply(values), WEIR_INVALID);
    assert_non_null(strstr(weir_last_error(), "give an absolute path"));
    assert_int_equal(unsetenv("WEIR_BLAS_LIBRARY"), 0);
    assert_ok(multiply(values));
    assert_memory_equal(values, ((float[4]){7, 10, 15, 22}), sizeof values);
    assert_int_equal(in_use_bytes(), 0);
}

/* f16 needs no library. */
static void matmul__of_smaller_floats_needs_no_library(void **state)
{
    (void)state;
    float value;
    weir_tensor *ones = NULL;
    weir_tensor *halves = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(1, 300), 1, &ones));
    assert_ok(weir_tensor_cast(ones, WEIR_DTYPE_F16, &halves));
    weir_tensor_drop(ones);
    assert_ok(weir_tensor_transpose(halves, 0, 1, &ones));
    assert_ok(weir_tensor_matmul(halves, ones, &y));
    assert_ok(weir_tensor_into_data(y, &value, 1));
    assert_float_equal(value, 300, 0);
    weir_tensor_drop(y);
    weir_tensor_drop(ones);
    weir_tensor_drop(halves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(matmul__says_what_is_missing_and_goes_on_when_it_is_there),
        ON_HOST(matmul__of_smaller_floats_needs_no_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
