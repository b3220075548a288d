/* SPDX-License-Identifier: MIT */
/* Expressions as WGSL, against the host: the same calls on both devices, element by
 * element. Where the host's numbers are not exact either (functions of the C library, the
 * order of sums), the difference may be as large as WGSL allows. */
#include "driver/webgpu/webgpu.h"

#include "device.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1111 /* not a multiple of what an invocation or a workgroup makes */
#define MIB ((uint64_t)1 << 20)

enum { HOST = 0, WEBGPU = 1, DEVICES = 2 };

static weir_device *devices[DEVICES];
static char missing[1024];

static int open_both(void **state)
{
    (void)state;
    weir_device_desc desc = {.no_idle = true};
    missing[0] = '\0';
    assert_ok(weir_device_open("host", &desc, &devices[HOST]));
    weir_result result = weir_device_open("webgpu", &desc, &devices[WEBGPU]);
    if (result == WEIR_NOT_FOUND && getenv("WEIR_WEBGPU_LIBRARY") == NULL) {
        snprintf(missing, sizeof missing, "%s", weir_last_error());
        return 0;
    }
    if (result != WEIR_OK) {
        print_error("%s\n", weir_last_error());
    }
    return result == WEIR_OK ? 0 : -1;
}

static int close_both(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        if (devices[d] == NULL) {
            continue;
        }
        weir_result result =
            weir_device_memory_cleanup(devices[d], &(weir_cleanup_desc){.wait = true},
                                       NULL);
        if (result == WEIR_OK) {
            result = weir_device_close(devices[d]);
        }
        if (result != WEIR_OK) {
            print_error("%s\n", weir_last_error());
            return -1;
        }
        devices[d] = NULL;
    }
    return 0;
}

static void need_webgpu(void)
{
    if (missing[0] != '\0') {
        print_message("skipped: %s\n", missing);
        skip();
    }
}

static void check(weir_result result)
{
    if (result != WEIR_OK) {
        print_error("%s\n", weir_last_error());
    }
    assert_int_equal(result, WEIR_OK);
}

/* ---- data ---- */

/* From -4 to 4, with the special ones among them. */
static float sample_float(uint32_t i)
{
    static const float special[] = {0.0F, -0.0F, 1.0F, -1.0F, 0.5F, 2.0F, -2.5F, 3.0F};
    return i % 16 < 8 ? special[i % 8]
                      : (float)((i * 2654435761u) >> 8) * 0x1p-21F - 4.0F;
}

static int32_t sample_int(uint32_t i)
{
    return (int32_t)(i * 2654435761u) >> (i % 31);
}

/* A tensor of these numbers in a dtype, made there by a cast where they are no f32. */
static weir_tensor *make(int d, weir_dtype dtype, uint32_t shift, weir_shape shape)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape.rank; i++) {
        count *= shape.extent[i];
    }
    weir_stream *on = weir_device_default_stream(devices[d]);
    weir_tensor *made = NULL;
    weir_tensor *cast = NULL;
    uint32_t *data = malloc(count * sizeof *data);
    assert_non_null(data);
    for (uint32_t i = 0; i < count; i++) {
        float f = sample_float(i + shift);
        int32_t n = sample_int(i + shift);
        memcpy(&data[i], dtype == WEIR_DTYPE_I32 ? (void *)&n : (void *)&f, 4);
    }
    if (dtype == WEIR_DTYPE_I32) {
        check(weir_tensor_from_data(on, shape, dtype, data, &made));
    } else {
        check(weir_tensor_from_floats(on, shape, (const float *)(void *)data, &made));
        check(weir_tensor_cast(made, dtype, &cast));
        weir_tensor_drop(made);
        made = cast;
    }
    free(data);
    return made;
}

/* As floats, whatever they are. */
static float *numbers_of(weir_tensor *tensor, uint64_t *count)
{
    weir_tensor *cast = NULL;
    *count = weir_tensor_element_count(tensor);
    float *numbers = malloc(*count * sizeof *numbers);
    assert_non_null(numbers);
    check(weir_tensor_cast(tensor, WEIR_DTYPE_F32, &cast));
    check(weir_tensor_into_data(cast, numbers, *count));
    weir_tensor_drop(cast);
    return numbers;
}

static bool is_near(float one, float other, float relative)
{
    return (isnan(one) && isnan(other)) || one == other ||
           fabsf(one - other) <= relative * fmaxf(1.0F, fabsf(other));
}

/* Takes both. */
static void assert_same(weir_tensor *results[DEVICES], float relative, const char *what)
{
    uint64_t count;
    float *expected = numbers_of(results[HOST], &count);
    float *got = numbers_of(results[WEBGPU], &count);
    for (uint64_t i = 0; i < count; i++) {
        if (!is_near(got[i], expected[i], relative)) {
            fail_msg("%s: element %u is %.9g, on the host %.9g", what, (unsigned)i,
                     (double)got[i], (double)expected[i]);
        }
    }
    free(got);
    free(expected);
    weir_tensor_drop(results[HOST]);
    weir_tensor_drop(results[WEBGPU]);
}

/* How far apart f32 results may be; 16-bit results by one unit in their last place. */
static float tolerance(weir_dtype dtype, float of_f32)
{
    return dtype == WEIR_DTYPE_F16    ? 1.0F / 512
           : dtype == WEIR_DTYPE_BF16 ? 1.0F / 64
                                      : of_f32;
}

/* ---- operations ---- */

static void try_unary(weir_op op, weir_dtype dtype, const char *name)
{
    weir_tensor *results[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        weir_tensor *operand = make(d, dtype, 3, WEIR_SHAPE(COUNT));
        weir_result result = weir_tensor_unary(op, operand, &results[d]);
        weir_tensor_drop(operand);
        if (result != WEIR_OK) {
            assert_int_equal(result, WEIR_INVALID); /* not in its domain */
            assert_int_equal(d, HOST);
            return;
        }
    }
    assert_same(results, tolerance(dtype, 4e-6F), name);
}

static void try_binary(weir_op op, weir_dtype dtype, const char *name)
{
    weir_tensor *results[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        weir_tensor *left = make(d, dtype, 3, WEIR_SHAPE(COUNT));
        weir_tensor *right = make(d, dtype, 11, WEIR_SHAPE(COUNT));
        weir_result result = weir_tensor_binary(op, left, right, &results[d]);
        weir_tensor_drop(left);
        weir_tensor_drop(right);
        if (result != WEIR_OK) {
            assert_int_equal(result, WEIR_INVALID);
            assert_int_equal(d, HOST);
            return;
        }
    }
    assert_same(results, tolerance(dtype, 2e-5F), name);
}

static void webgpu__does_every_operation_as_the_host_does(void **state)
{
    (void)state;
    need_webgpu();
    static const weir_dtype dtypes[] = {WEIR_DTYPE_F32, WEIR_DTYPE_I32, WEIR_DTYPE_BOOL};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
#define UNARY(op, number, function, domain) try_unary(WEIR_OP_##op, dtypes[i], #function);
        WEIR_UNARY_LIST(UNARY)
#undef UNARY
#define BINARY(op, number, function, domain)                                             \
    try_binary(WEIR_OP_##op, dtypes[i], #function);
        WEIR_BINARY_LIST(BINARY)
#undef BINARY
    }
}

/* They are computed in f32: it is loading and storing that differs. */
static void webgpu__computes_with_16_bit_dtypes(void **state)
{
    (void)state;
    need_webgpu();
    for (int dtype = WEIR_DTYPE_F16; dtype <= WEIR_DTYPE_BF16; dtype++) {
        try_unary(WEIR_OP_EXP, (weir_dtype)dtype, "exp");
        try_binary(WEIR_OP_ADD, (weir_dtype)dtype, "add");
        try_binary(WEIR_OP_LT, (weir_dtype)dtype, "lt");
    }
}

static void webgpu__casts_every_dtype_to_every_other(void **state)
{
    (void)state;
    need_webgpu();
    for (int from = WEIR_DTYPE_F32; from <= WEIR_DTYPE_BOOL; from++) {
        for (int to = WEIR_DTYPE_F32; to <= WEIR_DTYPE_BOOL; to++) {
            weir_tensor *results[DEVICES];
            for (int d = 0; d < DEVICES; d++) {
                weir_tensor *operand = make(d, (weir_dtype)from, 5, WEIR_SHAPE(COUNT));
                check(weir_tensor_cast(operand, (weir_dtype)to, &results[d]));
                weir_tensor_drop(operand);
            }
            assert_same(results, 0.0F, "cast");
        }
    }
}

/* Broadcast, transposed and reversed operands, a chain, and a choice. */
static weir_tensor *run_chain(int d)
{
    weir_tensor *t[8] = {NULL};
    t[0] = make(d, WEIR_DTYPE_F32, 1, WEIR_SHAPE(37, 19));
    t[1] = make(d, WEIR_DTYPE_F32, 2, WEIR_SHAPE(19, 37));
    check(weir_tensor_transpose(t[1], 0, 1, &t[2]));
    t[3] = make(d, WEIR_DTYPE_F32, 3, WEIR_SHAPE(19));
    check(weir_tensor_slice(t[0], 0, 36, 37, -1, &t[4]));
    check(weir_tensor_binary(WEIR_OP_MUL, t[4], t[2], &t[5]));
    check(weir_tensor_binary(WEIR_OP_ADD, t[5], t[3], &t[6]));
    check(weir_tensor_binary(WEIR_OP_LT, t[6], t[0], &t[7]));
    weir_tensor *result = NULL;
    check(weir_tensor_where(t[7], t[6], t[2], &result));
    for (int i = 0; i < 8; i++) {
        weir_tensor_drop(t[i]);
    }
    return result;
}

static void webgpu__runs_chains_over_views(void **state)
{
    (void)state;
    need_webgpu();
    weir_tensor *results[DEVICES] = {run_chain(HOST), run_chain(WEBGPU)};
    assert_same(results, 2e-6F, "chain");
}

static void try_reduction(weir_reduce reduce, weir_dtype dtype, weir_shape shape,
                          int32_t axis)
{
    weir_tensor *results[DEVICES];
    char what[64];
    snprintf(what, sizeof what, "reduction %d of dtype %d, axis %d", (int)reduce,
             (int)dtype, (int)axis);
    for (int d = 0; d < DEVICES; d++) {
        weir_tensor *operand = make(d, dtype, 7, shape);
        check(weir_tensor_reduce(reduce, operand, axis, false, &results[d]));
        weir_tensor_drop(operand);
    }
    bool is_sum = reduce == WEIR_REDUCE_SUM || reduce == WEIR_REDUCE_MEAN;
    assert_same(results, is_sum ? tolerance(dtype, 1e-4F) : 0.0F, what);
}

static void webgpu__reduces_rows_columns_and_all(void **state)
{
    (void)state;
    need_webgpu();
    static const weir_dtype dtypes[] = {WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16,
                                        WEIR_DTYPE_I32};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        for (int reduce = WEIR_REDUCE_SUM; reduce <= WEIR_REDUCE_ARGMAX; reduce++) {
            if (reduce == WEIR_REDUCE_MEAN && dtypes[i] == WEIR_DTYPE_I32) {
                continue;
            }
            try_reduction((weir_reduce)reduce, dtypes[i], WEIR_SHAPE(7, 601), 1);
            try_reduction((weir_reduce)reduce, dtypes[i], WEIR_SHAPE(601, 7), 0);
            try_reduction((weir_reduce)reduce, dtypes[i], WEIR_SHAPE(1), 0);
            try_reduction((weir_reduce)reduce, dtypes[i], WEIR_SHAPE(3, 5, 70), 1);
        }
    }
}

/* Of more elements than a workgroup makes, in odd rows, so that words of the smaller ones
 * are several invocations'; some of the indices are not there. */
enum { ROWS = 50, COLUMNS = 1503, PICKED = 70 };

static weir_tensor *make_indices(int d)
{
    int32_t numbers[PICKED];
    weir_tensor *made = NULL;
    for (int32_t i = 0; i < PICKED; i++) {
        numbers[i] = i * 37 % (ROWS + 4) - 2;
    }
    check(weir_tensor_from_data(weir_device_default_stream(devices[d]),
                                WEIR_SHAPE(PICKED), WEIR_DTYPE_I32, numbers, &made));
    return made;
}

/* Rows picked, added to rows, and put beside others. */
static weir_result move(int kind, weir_tensor *table, weir_tensor *rows,
                        weir_tensor *which, weir_tensor **result)
{
    switch (kind) {
    case 0:
        return weir_tensor_index_select(table, 0, which, result);
    case 1:
        return weir_tensor_scatter_add(table, 0, which, rows, result);
    default:
        return weir_tensor_concat((weir_tensor *const[]){table, rows, table}, 3, 0,
                                  result);
    }
}

static void webgpu__moves_elements_as_the_host_does(void **state)
{
    (void)state;
    need_webgpu();
    static const weir_dtype dtypes[] = {WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16,
                                        WEIR_DTYPE_I32, WEIR_DTYPE_BOOL};
    for (int k = 0; k < 15; k++) {
        weir_dtype dtype = dtypes[k / 3];
        weir_tensor *results[DEVICES];
        char what[64];
        if (dtype == WEIR_DTYPE_BOOL && k % 3 == 1) {
            continue; /* bools are not added */
        }
        snprintf(what, sizeof what, "move %d of dtype %d", k % 3, (int)dtype);
        for (int d = 0; d < DEVICES; d++) {
            weir_tensor *table = make(d, dtype, 3, WEIR_SHAPE(ROWS, COLUMNS));
            weir_tensor *rows = make(d, dtype, 8, WEIR_SHAPE(PICKED, COLUMNS));
            weir_tensor *which = make_indices(d);
            check(move(k % 3, table, rows, which, &results[d]));
            weir_tensor_drop(which);
            weir_tensor_drop(rows);
            weir_tensor_drop(table);
        }
        assert_same(results, 0.0F, what);
    }
}

/* Bit by bit, wherever the product or the sum rounds, cancels or leaves the normal
 * floats. */
static void webgpu__makes_the_same_random_numbers(void **state)
{
    (void)state;
    need_webgpu();
    static const float pairs[][2] = {
        {0, 1},
        {-3, 5},
        {1, 2},
        {-0.1F, 0.7F},
        {1e-3F, 1e5F},
        {-1e9F, 1.5F},
        {1e38F, 1.7e38F},
        {-1, -0.9999999F},
        {0, 1e-38F},
        {1e-38F, 3e-38F},
        {0, 3e-42F},
        {-2e-45F, 1.1e-44F},
        {-1e-30F, 1e6F},
        {16777215, 33554432},
        {-3e-5F, 3.1e-5F},
        {0.3333333F, 0.6666667F},
    };
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        weir_tensor *uniform[DEVICES];
        weir_tensor *normal[DEVICES];
        float deviation = fabsf(pairs[p][1]);
        for (int d = 0; d < DEVICES; d++) {
            weir_stream *on = weir_device_default_stream(devices[d]);
            uint64_t seed = UINT64_C(0x123456789ABCDEF0) + p;
            check(weir_tensor_uniform(on, WEIR_SHAPE(COUNT), pairs[p][0], pairs[p][1],
                                      seed, &uniform[d]));
            check(weir_tensor_normal(on, WEIR_SHAPE(COUNT), pairs[p][0], deviation, seed,
                                     &normal[d]));
        }
        assert_same(uniform, 0.0F, "uniform");
        assert_same(normal, 0.0F, "normal");
    }
}

/* ---- sizes ---- */

/* Larger than what the device binds at once. Reads are copies, which know nothing of
 * windows. */
static void webgpu__runs_in_windows_where_a_binding_is_too_large(void **state)
{
    (void)state;
    need_webgpu();
    wr_webgpu *driver = (wr_webgpu *)(void *)weir_device_driver(devices[WEBGPU]);
    driver->limits.storage_binding_bytes = MIB; /* in place of a tensor of gigabytes */
    uint64_t count = 5 * MIB / sizeof(float) / 2 + 77;
    weir_stream *on = weir_device_default_stream(devices[WEBGPU]);
    weir_tensor *large = NULL;
    weir_tensor *sum = NULL;
    check(weir_tensor_uniform(on, WEIR_SHAPE(count), 0, 1, 5, &large));
    check(weir_tensor_binary_scalar(WEIR_OP_ADD, large, 2, &sum));
    float *got = malloc(count * sizeof *got);
    float *was = malloc(count * sizeof *was);
    assert_non_null(got);
    assert_non_null(was);
    check(weir_tensor_into_data(sum, got, count));
    check(weir_tensor_into_data(large, was, count));
    weir_tensor *expected = NULL;
    check(weir_tensor_uniform(weir_device_default_stream(devices[HOST]),
                              WEIR_SHAPE(count), 0, 1, 5, &expected));
    float *numbers = malloc(count * sizeof *numbers);
    assert_non_null(numbers);
    check(weir_tensor_into_data(expected, numbers, count));
    for (uint64_t i = 0; i < count; i++) {
        if (was[i] != numbers[i] || got[i] != numbers[i] + 2.0F) {
            fail_msg("element %llu: %g and %g, not %g", (unsigned long long)i,
                     (double)was[i], (double)got[i], (double)numbers[i]);
        }
    }
    free(numbers);
    free(was);
    free(got);
    weir_tensor_drop(expected);
    weir_tensor_drop(sum);
    weir_tensor_drop(large);
}

#define ON_BOTH(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(webgpu__does_every_operation_as_the_host_does),
        ON_BOTH(webgpu__computes_with_16_bit_dtypes),
        ON_BOTH(webgpu__casts_every_dtype_to_every_other),
        ON_BOTH(webgpu__runs_chains_over_views),
        ON_BOTH(webgpu__reduces_rows_columns_and_all),
        ON_BOTH(webgpu__moves_elements_as_the_host_does),
        ON_BOTH(webgpu__makes_the_same_random_numbers),
        ON_BOTH(webgpu__runs_in_windows_where_a_binding_is_too_large),
    };
    return cmocka_run_group_tests_name("tensors on webgpu", tests, NULL, NULL);
}
