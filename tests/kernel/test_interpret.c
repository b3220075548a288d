/* SPDX-License-Identifier: MIT */
/* Expressions run by hand-made launches, without devices. */
#include "kernel/cache.h"
#include "kernel/dtype.h"
#include "kernel/operation.h"
#include "support/operations.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 2 * WR_TILE + 77 };

static float one[COUNT];
static float other[COUNT];
static float out[COUNT];

static weir_binding binding_of(void *memory, uint64_t bytes, weir_access access)
{
    return (weir_binding){(uintptr_t)memory, bytes, access};
}

static void fill_inputs(void)
{
    for (int i = 0; i < COUNT; i++) {
        one[i] = (float)(i % 37) / 16.0F - 1.0F;
        other[i] = (float)(i % 11) / 4.0F - 1.0F;
    }
}

static weir_step step(weir_op op, weir_dtype dtype, uint8_t a, uint8_t b)
{
    return (weir_step){.op = (uint8_t)op, .dtype = (uint8_t)dtype, .operand = {a, b}};
}

/* out[i] = op(one[i], other[i]), operands cast from f32 to `dtype` and back. */
static void run_operation(weir_op op, weir_dtype dtype, weir_dtype result)
{
    bool has_two = wr_operation_arity(op) == 2;
    weir_expression expression = {
        .rank = 1,
        .view_count = 2,
        .binding_count = 3,
        .output_count = 1,
        .views = {{.binding = 0}, {.binding = 1}},
        .steps = {step(WEIR_OP_LOAD, WEIR_DTYPE_F32, 0, 0),
                  step(WEIR_OP_LOAD, WEIR_DTYPE_F32, 1, 0),
                  step(WEIR_OP_CAST, dtype, 0, 0), step(WEIR_OP_CAST, dtype, 1, 0),
                  step(op, result, 2, has_two ? 3 : 0),
                  step(WEIR_OP_CAST, WEIR_DTYPE_F32, 4, 0)},
        .step_count = 6,
        .outputs = {{.step = 5, .binding = 2}},
    };
    const int64_t words[7] = {COUNT, 1, COUNT, 0, 1, 0, 1};
    const weir_binding bindings[3] = {binding_of(one, sizeof one, WEIR_ACCESS_READ),
                                      binding_of(other, sizeof other, WEIR_ACCESS_READ),
                                      binding_of(out, sizeof out, WEIR_ACCESS_WRITE)};
    const weir_launch launch = {.kernel = wr_cache_find(&expression),
                                .bindings = bindings,
                                .binding_count = 3,
                                .arguments = words,
                                .argument_bytes = sizeof words,
                                .element_count = COUNT};
    assert_non_null(launch.kernel);
    assert_int_equal(weir_expression_words(&expression), 7);
    launch.kernel->host(&launch, 0, COUNT);
}

static void check_operation(weir_op op, weir_dtype dtype)
{
    weir_dtype result;
    if (!wr_operation_takes(op, dtype, &result)) {
        return;
    }
    run_operation(op, dtype, result);
    double tolerance = dtype == WEIR_DTYPE_BF16  ? 0x1p-7
                       : dtype == WEIR_DTYPE_F16 ? 0x1p-10
                                                 : 0x1p-21;
    for (int i = 0; i < COUNT; i++) {
        double expected =
            operation_reference_of(op, dtype, (double)one[i], (double)other[i]);
        double got = (double)out[i];
        bool same = isnan(expected) ? isnan(got)
                    : isinf(expected)
                        ? got == expected
                        : fabs(got - expected) <= tolerance * fmax(1, fabs(expected));
        if (!same) {
            fail_msg("%s(%g, %g) of %s: %g, not %g", wr_operation_name(op),
                     (double)one[i], (double)other[i], wr_dtype_name(dtype), got,
                     expected);
        }
    }
}

static void every_operation__agrees_with_double_on_every_dtype_it_takes(void **state)
{
    (void)state;
    fill_inputs();
#define CHECK(name, number, text, bytes)                                                 \
    for (int op = WEIR_OP_NEG; op <= WEIR_OP_OR; op++) {                                 \
        check_operation((weir_op)op, WEIR_DTYPE_##name);                                 \
    }
    WEIR_DTYPE_LIST(CHECK)
#undef CHECK
}

/* Sum over the middle of [3, 700, 2], from a transposed operand: strides 1, 3, 2100. */
static void a_reduction__walks_any_strides_and_every_output(void **state)
{
    (void)state;
    enum { OUTER = 3, MIDDLE = 700, INNER = 2 };
    static float cube[OUTER * MIDDLE * INNER];
    float sums[OUTER * INNER];
    weir_expression expression = {
        .rank = 3,
        .reduced_rank = 1,
        .reduce = WEIR_REDUCE_SUM,
        .view_count = 1,
        .binding_count = 2,
        .output_count = 1,
        .views = {{.binding = 0, .layout = WEIR_VIEW_STRIDED}},
        .steps = {step(WEIR_OP_LOAD, WEIR_DTYPE_F32, 0, 0)},
        .step_count = 1,
        .outputs = {{.step = 0, .binding = 1}},
    };
    const int64_t words[9] = {OUTER * INNER, MIDDLE, OUTER, INNER, MIDDLE, 0, 1, 2100, 3};
    const weir_binding bindings[2] = {binding_of(cube, sizeof cube, WEIR_ACCESS_READ),
                                      binding_of(sums, sizeof sums, WEIR_ACCESS_WRITE)};
    const weir_launch launch = {.kernel = wr_cache_find(&expression),
                                .bindings = bindings,
                                .binding_count = 2,
                                .arguments = words,
                                .argument_bytes = sizeof words,
                                .element_count = OUTER * INNER};
    for (int i = 0; i < OUTER * MIDDLE * INNER; i++) {
        cube[i] = (float)i;
    }
    launch.kernel->host(&launch, 0, 4);
    launch.kernel->host(&launch, 4, 6);
    for (int i = 0; i < OUTER; i++) {
        for (int k = 0; k < INNER; k++) {
            double sum = 0;
            for (int j = 0; j < MIDDLE; j++) {
                sum += i + 3 * j + 2100 * k;
            }
            assert_true(fabs((double)sums[i * INNER + k] - sum) <= 1e-6 * sum);
        }
    }
}

static void the_cache__gives_equal_structures_one_kernel(void **state)
{
    (void)state;
    weir_expression expression = {.step_count = 1};
    uint64_t ids[300];
    wr_cache_clear();
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 300; i++) {
            expression.scalar_count = (uint8_t)(i % 24);
            expression.rank = (uint8_t)(i / 24);
            const weir_kernel *kernel = wr_cache_find(&expression);
            assert_non_null(kernel);
            assert_true(round == 0 || kernel->id == ids[i]);
            ids[i] = kernel->id;
        }
    }
    assert_int_equal(wr_cache_count(), 300);
    wr_cache_clear();
    assert_true(wr_cache_find(&expression)->id > ids[299]);
    wr_cache_clear();
}

static void run_parts(const weir_expression *expression, const weir_binding *bindings,
                      const int64_t *words, uint64_t part)
{
    const weir_launch launch = {.kernel = wr_cache_find(expression),
                                .bindings = bindings,
                                .binding_count = expression->binding_count,
                                .arguments = words,
                                .element_count = (uint64_t)words[0]};
    assert_non_null(launch.kernel);
    for (uint64_t begin = 0; begin < launch.element_count; begin += part) {
        uint64_t left = launch.element_count - begin;
        launch.kernel->host(&launch, begin, begin + (left < part ? left : part));
    }
}

/* (row - x) * row, rows of 128 and of 100, in parts that begin rows and that do not. */
static void a_row__goes_with_every_row_of_the_space(void **state)
{
    (void)state;
    fill_inputs();
    const weir_expression expression = {
        .rank = 2,
        .view_count = 2,
        .binding_count = 3,
        .output_count = 1,
        .views = {{.binding = 0}, {.binding = 1, .layout = WEIR_VIEW_STRIDED}},
        .steps = {step(WEIR_OP_LOAD, WEIR_DTYPE_F32, 0, 0),
                  step(WEIR_OP_LOAD, WEIR_DTYPE_F32, 1, 0),
                  step(WEIR_OP_SUB, WEIR_DTYPE_F32, 1, 0),
                  step(WEIR_OP_MUL, WEIR_DTYPE_F32, 2, 1)},
        .step_count = 4,
        .outputs = {{.step = 3, .binding = 2}},
    };
    const weir_binding bindings[3] = {binding_of(one, sizeof one, WEIR_ACCESS_READ),
                                      binding_of(other, sizeof other, WEIR_ACCESS_READ),
                                      binding_of(out, sizeof out, WEIR_ACCESS_WRITE)};
    for (int64_t row = 100; row <= 128; row += 28) {
        int64_t rows = COUNT / row;
        const int64_t words[10] = {rows * row, 1, rows, row, 0, row, 1, 3, 0, 1};
        for (uint64_t part = 256; part <= 1024; part += 192) {
            memset(out, 0, sizeof out);
            run_parts(&expression, bindings, words, part);
            for (int64_t i = 0; i < rows * row; i++) {
                float b = other[3 + i % row];
                assert_true(out[i] == (b - one[i]) * b);
            }
        }
    }
}

/* a = x * 2 takes x's place, b = -(x + a) needs x and a, c = exp(a) needs a. */
static void an_output__waits_until_its_memory_is_read_no_more(void **state)
{
    (void)state;
    static float b[COUNT], c[COUNT];
    const weir_expression expression = {
        .rank = 1,
        .view_count = 1,
        .binding_count = 3,
        .output_count = 3,
        .scalar_count = 1,
        .views = {{.binding = 0}},
        .steps = {step(WEIR_OP_LOAD, WEIR_DTYPE_F32, 0, 0),
                  step(WEIR_OP_SCALAR, WEIR_DTYPE_F32, 0, 0),
                  step(WEIR_OP_MUL, WEIR_DTYPE_F32, 0, 1),
                  step(WEIR_OP_ADD, WEIR_DTYPE_F32, 0, 2),
                  step(WEIR_OP_NEG, WEIR_DTYPE_F32, 3, 0),
                  step(WEIR_OP_EXP, WEIR_DTYPE_F32, 2, 0)},
        .step_count = 6,
        .outputs = {{.step = 2, .binding = 0},
                    {.step = 4, .binding = 1},
                    {.step = 5, .binding = 2}},
    };
    const weir_binding bindings[3] = {binding_of(out, sizeof out,
                                                 WEIR_ACCESS_READ | WEIR_ACCESS_WRITE),
                                      binding_of(b, sizeof b, WEIR_ACCESS_WRITE),
                                      binding_of(c, sizeof c, WEIR_ACCESS_WRITE)};
    const int64_t words[6] = {COUNT, 1, COUNT, 0, 1, 0x40000000}; /* 2.0F */
    fill_inputs();
    memcpy(out, one, sizeof out);
    run_parts(&expression, bindings, words, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_true(out[i] == 2 * one[i]);
        assert_true(b[i] == -(one[i] + 2 * one[i]));
        assert_true(fabs((double)c[i] - exp(2 * (double)one[i])) <= 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation__agrees_with_double_on_every_dtype_it_takes),
        cmocka_unit_test(a_row__goes_with_every_row_of_the_space),
        cmocka_unit_test(an_output__waits_until_its_memory_is_read_no_more),
        cmocka_unit_test(a_reduction__walks_any_strides_and_every_output),
        cmocka_unit_test(the_cache__gives_equal_structures_one_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
