/* SPDX-License-Identifier: MIT */
/* Expressions on the CUDA driver against the host's interpreter: the same launch, on the
 * same elements, with the results compared. With WEIR_FAKE_CUDA, on a fake GPU that has
 * the very text compiled for the host; else on a GPU, where there is one. */
#define _GNU_SOURCE
#include "kernel/cache.h"
#include "kernel/dtype.h"
#include "kernel/operation.h"

#include <weir/weir.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static weir_device *device;
static weir_stream *stream;

#define assert_ok(call)                                                                  \
    do {                                                                                 \
        weir_result got = (call);                                                        \
        if (got != WEIR_OK) {                                                            \
            fail_msg("%s: %s: %s", #call, weir_result_name(got), weir_last_error());     \
        }                                                                                \
    } while (0)

static int open_device(void **state)
{
    (void)state;
    const char *fake = getenv("WEIR_FAKE_CUDA");
    weir_device_desc desc = {.no_idle = true, .no_thread = true};
    if (fake != NULL) {
        setenv("WEIR_CUDA_LIBRARY", fake, 1);
        setenv("WEIR_NVML_LIBRARY", fake, 1);
        setenv("WEIR_NVRTC_LIBRARY", fake, 1);
    }
    weir_result result = weir_device_open("cuda", &desc, &device);
    if (result == WEIR_NOT_FOUND && fake == NULL) {
        print_message("skipped: %s\n", weir_last_error());
        exit(77);
    }
    if (result != WEIR_OK) {
        print_error("%s\n", weir_last_error());
        return -1;
    }
    stream = weir_device_default_stream(device);
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    wr_cache_clear();
    return weir_device_close(device) == WEIR_OK ? 0 : -1;
}

/* ---- a launch, on both ---- */

#define MOST_BINDINGS 12

typedef struct job {
    weir_expression expression;
    int64_t words[128];
    uint64_t elements[MOST_BINDINGS]; /* of each binding */
    void *host[MOST_BINDINGS];        /* made from the views' dtypes, or given */
    uint64_t count;
} job;

static uint8_t add_step(job *work, weir_op op, weir_dtype dtype, uint8_t a, uint8_t b,
                        uint8_t c)
{
    weir_step *made = &work->expression.steps[work->expression.step_count];
    *made = (weir_step){(uint8_t)op, (uint8_t)dtype, {a, b, c}};
    return work->expression.step_count++;
}

/* The number of its load's step. */
static uint8_t add_view(job *work, weir_dtype dtype, weir_view_layout layout,
                        uint64_t elements)
{
    weir_expression *expression = &work->expression;
    uint8_t v = expression->view_count++;
    uint8_t b = expression->binding_count++;
    expression->views[v] = (weir_view){b, (uint8_t)dtype, (uint8_t)layout};
    work->elements[b] = elements;
    return add_step(work, WEIR_OP_LOAD, wr_dtype_is_float(dtype) ? dtype : dtype, v, 0,
                    0);
}

static void add_output(job *work, uint8_t step, uint64_t elements)
{
    weir_expression *expression = &work->expression;
    uint8_t b = expression->binding_count++;
    expression->outputs[expression->output_count++] =
        (weir_output){step, b, expression->steps[step].dtype};
    work->elements[b] = elements;
}

/* Extents, and all words after them zero until set. */
static void set_space(job *work, uint8_t rank, uint8_t reduced_rank,
                      const int64_t *extents)
{
    work->expression.rank = rank;
    work->expression.reduced_rank = reduced_rank;
    work->words[0] = 1;
    work->words[1] = 1;
    for (uint8_t d = 0; d < rank; d++) {
        work->words[d < rank - reduced_rank ? 0 : 1] *= extents[d];
        work->words[2 + d] = extents[d];
    }
    work->count = (uint64_t)work->words[0];
}

static void set_view(job *work, uint32_t v, int64_t offset, const int64_t *strides)
{
    int64_t *words = work->words + weir_expression_view_word(&work->expression, v);
    words[0] = offset;
    for (uint32_t d = 0; strides != NULL && d < work->expression.rank; d++) {
        words[1 + d] = strides[d];
    }
}

static weir_dtype dtype_of(const job *work, uint32_t b)
{
    for (uint32_t v = 0; v < work->expression.view_count; v++) {
        if (work->expression.views[v].binding == b) {
            return work->expression.views[v].dtype;
        }
    }
    for (uint32_t k = 0; k < work->expression.output_count; k++) {
        if (work->expression.outputs[k].binding == b) {
            return work->expression.outputs[k].dtype;
        }
    }
    return WEIR_DTYPE_F32;
}

/* Small numbers of both signs, with some that are special. */
static float number_at(uint64_t i, uint32_t b)
{
    return i % 97 == 13   ? 0.0F
           : i % 89 == 88 ? NAN
                          : (float)((int)((i * 37 + b * 11) % 64) - 32) / 8.0F + 0.03125F;
}

static void *make_elements(weir_dtype dtype, uint64_t count, uint32_t b)
{
    char *elements = malloc(count * wr_dtype_bytes(dtype) + 16);
    for (uint64_t i = 0; i < count; i++) {
        float number = number_at(i, b);
        int32_t integer = isnan(number) ? INT32_MIN : (int32_t)(number * 8);
        int32_t logic = number > 0;
        const void *value = wr_dtype_is_float(dtype)   ? (const void *)&number
                            : dtype == WEIR_DTYPE_BOOL ? &logic
                                                       : &integer;
        wr_dtype_store(dtype, elements + i * wr_dtype_bytes(dtype), value, 1);
    }
    return elements;
}

static weir_launch launch_of(const job *work, weir_binding *bindings)
{
    uint64_t each = (uint64_t)work->words[1];
    return (weir_launch){
        .kernel = wr_cache_find(&work->expression),
        .bindings = bindings,
        .binding_count = work->expression.binding_count,
        .arguments = work->words,
        .argument_bytes = weir_expression_words(&work->expression) * sizeof(int64_t),
        .element_count = work->count,
        .element_work = each,
    };
}

static uint64_t bytes_of(const job *work, uint32_t b)
{
    return work->elements[b] * wr_dtype_bytes(dtype_of(work, b));
}

/* What the device makes, in buffers of its own, back in `results`. */
static void run_on_device(const job *work, void *results[MOST_BINDINGS])
{
    weir_buffer buffers[MOST_BINDINGS];
    weir_binding bindings[MOST_BINDINGS];
    for (uint32_t b = 0; b < work->expression.binding_count; b++) {
        assert_ok(weir_buffer_create(stream, bytes_of(work, b), NULL, &buffers[b]));
        assert_ok(weir_buffer_write(buffers[b], 0, work->host[b], bytes_of(work, b)));
        bindings[b] = (weir_binding){weir_buffer_address(buffers[b]), bytes_of(work, b),
                                     WEIR_ACCESS_READ_WRITE};
    }
    weir_launch launch = launch_of(work, bindings);
    assert_ok(weir_stream_launch(stream, &launch));
    for (uint32_t b = 0; b < work->expression.binding_count; b++) {
        results[b] = malloc(bytes_of(work, b));
        assert_ok(weir_buffer_read(buffers[b], 0, results[b], bytes_of(work, b)));
        assert_ok(weir_buffer_release(buffers[b]));
    }
}

static void run_on_host(const job *work)
{
    weir_binding bindings[MOST_BINDINGS];
    for (uint32_t b = 0; b < work->expression.binding_count; b++) {
        bindings[b] = (weir_binding){(uintptr_t)work->host[b], bytes_of(work, b),
                                     WEIR_ACCESS_READ_WRITE};
    }
    weir_launch launch = launch_of(work, bindings);
    launch.kernel->host(&launch, 0, work->count);
}

/* Within so many last places of f32 for values around 1 and above; 0 is equal bits, but
 * for a NaN's. */
static void compare(const job *work, uint32_t b, const void *got, double places)
{
    weir_dtype dtype = dtype_of(work, b);
    uint32_t size = wr_dtype_bytes(dtype);
    for (uint64_t i = 0; i < work->elements[b]; i++) {
        const char *one = (const char *)work->host[b] + i * size;
        const char *other = (const char *)got + i * size;
        float expected = 0;
        float found = 0;
        if (memcmp(one, other, size) == 0) {
            continue;
        }
        if (wr_dtype_is_float(dtype)) {
            wr_dtype_load(dtype, &expected, one, 1, 1);
            wr_dtype_load(dtype, &found, other, 1, 1);
        }
        double unit = dtype == WEIR_DTYPE_F16    ? 0x1p-10
                      : dtype == WEIR_DTYPE_BF16 ? 0x1p-7
                                                 : places * 0x1p-23;
        double allowed = places > 0 ? unit * fmax(1, fabs((double)expected)) : -1;
        bool close = wr_dtype_is_float(dtype) &&
                     ((isnan(expected) && isnan(found)) ||
                      fabs((double)found - (double)expected) <= allowed);
        if (!close) {
            fail_msg("binding %u, element %llu of %s: %.9g on the device, %.9g on the "
                     "host",
                     b, (unsigned long long)i, wr_dtype_name(dtype), (double)found,
                     (double)expected);
        }
    }
}

static void check(job *work, double places)
{
    void *results[MOST_BINDINGS];
    for (uint32_t b = 0; b < work->expression.binding_count; b++) {
        work->host[b] = make_elements(dtype_of(work, b), work->elements[b], b);
    }
    run_on_device(work, results);
    run_on_host(work);
    for (uint32_t b = 0; b < work->expression.binding_count; b++) {
        compare(work, b, results[b], places);
        free(results[b]);
        free(work->host[b]);
    }
}

/* ---- operations ---- */

enum { COUNT = 3000 };

/* Up to 6 operations of a dtype in one kernel, from `first` on; the next one. */
static int check_operations(int first, weir_dtype dtype)
{
    job work = {0};
    int op = first;
    const int64_t extents[1] = {COUNT};
    set_space(&work, 1, 0, extents);
    uint8_t a = add_view(&work, dtype, WEIR_VIEW_LINEAR, COUNT);
    uint8_t b = add_view(&work, dtype, WEIR_VIEW_LINEAR, COUNT);
    for (; op <= WEIR_OP_OR && work.expression.output_count < 6; op++) {
        weir_dtype result;
        if (wr_operation_takes((weir_op)op, dtype, &result)) {
            bool has_two = wr_operation_arity((weir_op)op) == 2;
            add_output(&work, add_step(&work, (weir_op)op, result, a, has_two ? b : 0, 0),
                       COUNT);
        }
    }
    if (work.expression.output_count > 0) {
        check(&work, 8);
    }
    return op;
}

static void every_operation__agrees_with_the_host_on_every_dtype(void **state)
{
    (void)state;
    for (int dtype = 0; dtype <= WEIR_DTYPE_BOOL; dtype++) {
        for (int op = WEIR_OP_NEG; op <= WEIR_OP_OR;) {
            op = check_operations(op, (weir_dtype)dtype);
        }
    }
}

/* Each dtype to all dtypes. */
static void every_cast__gives_the_hosts_bits(void **state)
{
    (void)state;
    for (int from = 0; from <= WEIR_DTYPE_BOOL; from++) {
        job work = {0};
        const int64_t extents[1] = {COUNT};
        set_space(&work, 1, 0, extents);
        uint8_t a = add_view(&work, (weir_dtype)from, WEIR_VIEW_LINEAR, COUNT);
        for (int to = 0; to <= WEIR_DTYPE_BOOL; to++) {
            add_output(&work, add_step(&work, WEIR_OP_CAST, (weir_dtype)to, a, 0, 0),
                       COUNT);
        }
        check(&work, 0);
    }
}

static void sums_and_products__are_not_contracted(void **state)
{
    (void)state;
    job work = {0};
    const int64_t extents[1] = {COUNT};
    set_space(&work, 1, 0, extents);
    work.expression.scalar_count = 1;
    uint8_t a = add_view(&work, WEIR_DTYPE_F32, WEIR_VIEW_LINEAR, COUNT);
    uint8_t b = add_view(&work, WEIR_DTYPE_F32, WEIR_VIEW_LINEAR, COUNT);
    float third = 1.0F / 3.0F;
    memcpy(&work.words[weir_expression_scalar_word(&work.expression, 0)], &third, 4);
    uint8_t c = add_step(&work, WEIR_OP_SCALAR, WEIR_DTYPE_F32, 0, 0, 0);
    uint8_t one = add_step(&work, WEIR_OP_MUL, WEIR_DTYPE_F32, a, c, 0);
    uint8_t other = add_step(&work, WEIR_OP_MUL, WEIR_DTYPE_F32, b, c, 0);
    add_output(&work, add_step(&work, WEIR_OP_SUB, WEIR_DTYPE_F32, one, other, 0), COUNT);
    check(&work, 0);
}

/* ---- places in memory ---- */

static void views__may_begin_and_end_anywhere(void **state)
{
    (void)state;
    static const weir_dtype dtypes[] = {WEIR_DTYPE_F32, WEIR_DTYPE_BF16, WEIR_DTYPE_BOOL};
    for (size_t d = 0; d < 3; d++) {
        for (int64_t count = 1; count < 5000; count = count * 5 / 2 + 1) {
            for (int64_t offset = 0; offset < 9; offset += 4 - offset % 3) {
                job work = {0};
                set_space(&work, 1, 0, &count);
                uint8_t a = add_view(&work, dtypes[d], WEIR_VIEW_LINEAR, 6000);
                uint8_t b = add_view(&work, dtypes[d], WEIR_VIEW_SCALAR, 6000);
                set_view(&work, 0, offset, NULL);
                set_view(&work, 1, 4000 + offset, NULL);
                add_output(&work, add_step(&work, WEIR_OP_EQ, WEIR_DTYPE_BOOL, a, b, 0),
                           6000);
                add_output(&work, a, 6000);
                check(&work, 0);
            }
        }
    }
}

/* [5, 7, 33] from a transposed operand, a row, a column and a slice. */
static void strided_views__find_their_elements(void **state)
{
    (void)state;
    static const int64_t strides[4][3] = {{1, 5, 35}, {0, 0, 1}, {0, 1, 0}, {700, 50, 1}};
    const int64_t extents[3] = {5, 7, 33};
    job work = {0};
    uint8_t sum = 0;
    set_space(&work, 3, 0, extents);
    work.expression.view_count = 4; /* the words of views lie behind each other */
    for (uint32_t v = 0; v < 4; v++) {
        set_view(&work, v, v * 3, strides[v]);
    }
    work.expression.view_count = 0;
    for (uint32_t v = 0; v < 4; v++) {
        uint8_t step = add_view(&work, WEIR_DTYPE_I32, WEIR_VIEW_STRIDED, 4000);
        sum = v == 0 ? step : add_step(&work, WEIR_OP_ADD, WEIR_DTYPE_I32, sum, step, 0);
    }
    add_output(&work, sum, 5 * 7 * 33);
    check(&work, 0);
}

static void an_operand__may_be_replaced_in_place(void **state)
{
    (void)state;
    job work = {0};
    const int64_t extents[1] = {COUNT};
    set_space(&work, 1, 0, extents);
    uint8_t a = add_view(&work, WEIR_DTYPE_F32, WEIR_VIEW_LINEAR, COUNT);
    uint8_t twice = add_step(&work, WEIR_OP_ADD, WEIR_DTYPE_F32, a, a, 0);
    work.expression.outputs[work.expression.output_count++] =
        (weir_output){twice, 0, WEIR_DTYPE_F32};
    check(&work, 0);
}

/* ---- random numbers ---- */

static void random_numbers__are_the_hosts_bit_by_bit(void **state)
{
    (void)state;
    for (weir_op op = WEIR_OP_UNIFORM; op <= WEIR_OP_NORMAL; op++) {
        for (int64_t count = 1; count < 100000; count = count * 41 + 2) {
            job work = {0};
            const float bounds[2] = {-1.5F, 2.25F};
            set_space(&work, 1, 0, &count);
            work.expression.scalar_count = 4;
            int64_t *words =
                work.words + weir_expression_scalar_word(&work.expression, 0);
            words[0] = 0xDEADBEEF;
            words[1] = 0xFFFFFFFE;
            memcpy(&words[2], &bounds[0], 4);
            memcpy(&words[3], &bounds[1], 4);
            add_output(&work, add_step(&work, op, WEIR_DTYPE_F32, 0, 0, 0),
                       (uint64_t)count);
            check(&work, 0);
        }
    }
}

/* ---- reductions ---- */

typedef struct reduction {
    uint8_t rank, reduced_rank;
    int64_t extents[3];
    int64_t strides[3]; /* all 0: linear */
} reduction;

static void check_reduction(const reduction *how, weir_reduce reduce, weir_dtype dtype)
{
    job work = {0};
    bool is_linear = how->strides[0] == 0;
    work.expression.reduce = (uint8_t)reduce;
    set_space(&work, how->rank, how->reduced_rank, how->extents);
    uint64_t all = (uint64_t)(work.words[0] * work.words[1]);
    uint8_t a =
        add_view(&work, dtype, is_linear ? WEIR_VIEW_LINEAR : WEIR_VIEW_STRIDED, all);
    set_view(&work, 0, 0, how->strides);
    uint8_t absolute = add_step(&work, WEIR_OP_ABS, dtype, a, 0, 0);
    add_output(&work, absolute, work.count);
    if (reduce == WEIR_REDUCE_ARGMAX) {
        work.expression.outputs[0].dtype = WEIR_DTYPE_I32;
    }
    bool is_float = wr_dtype_is_float(work.expression.outputs[0].dtype);
    /* What is summed up one by one on one side is summed up in a tree on the other. */
    check(&work, is_float ? 8 + sqrt((double)work.words[1]) : 0);
}

static const reduction reductions[] = {
    {1, 1, {100}, {0}},                  /* all of a few */
    {1, 1, {300001}, {0}},               /* all of many, in parts */
    {2, 1, {1000, 3}, {0}},              /* short rows */
    {2, 1, {37, 1000}, {0}},             /* rows, whole vectors */
    {2, 1, {9, 1001}, {0}},              /* rows that are not */
    {2, 1, {500, 64}, {1, 500}},         /* columns of a wide matrix */
    {2, 1, {3, 4097}, {1, 3}},           /* columns of a narrow one */
    {3, 1, {4, 60, 50}, {3000, 1, 60}},  /* the middle one */
    {3, 2, {20, 30, 70}, {70, 1400, 1}}, /* the outer and the inner one */
};

static void reductions__agree_in_every_direction(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        check_reduction(&reductions[i], WEIR_REDUCE_SUM, WEIR_DTYPE_F32);
        check_reduction(&reductions[i], WEIR_REDUCE_MAX, WEIR_DTYPE_BF16);
        check_reduction(&reductions[i], WEIR_REDUCE_SUM, WEIR_DTYPE_I32);
        check_reduction(&reductions[i], WEIR_REDUCE_MIN, WEIR_DTYPE_I32);
        check_reduction(&reductions[i], WEIR_REDUCE_MEAN, WEIR_DTYPE_F16);
        check_reduction(&reductions[i], WEIR_REDUCE_ARGMAX, WEIR_DTYPE_F32);
    }
}

/* ---- text ---- */

static weir_result write_nothing(void *context, const char *text, size_t bytes)
{
    (void)text;
    *(size_t *)context += bytes;
    return *(size_t *)context > 1000 ? WEIR_IO : WEIR_OK;
}

static void a_text_that_cannot_be_written__stops_with_the_reason(void **state)
{
    (void)state;
    weir_expression expression = {.step_count = 1};
    expression.steps[0].op = WEIR_OP_SCALAR;
    size_t written = 0;
    const weir_kernel *kernel = wr_cache_find(&expression);
    assert_int_equal(kernel->source(kernel, WEIR_LANGUAGE_CUDA, write_nothing, &written),
                     WEIR_IO);
    assert_int_equal(kernel->source(kernel, (weir_language)99, write_nothing, &written),
                     WEIR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation__agrees_with_the_host_on_every_dtype),
        cmocka_unit_test(every_cast__gives_the_hosts_bits),
        cmocka_unit_test(sums_and_products__are_not_contracted),
        cmocka_unit_test(views__may_begin_and_end_anywhere),
        cmocka_unit_test(strided_views__find_their_elements),
        cmocka_unit_test(an_operand__may_be_replaced_in_place),
        cmocka_unit_test(random_numbers__are_the_hosts_bit_by_bit),
        cmocka_unit_test(reductions__agree_in_every_direction),
        cmocka_unit_test(a_text_that_cannot_be_written__stops_with_the_reason),
    };
    return cmocka_run_group_tests_name("kernels on cuda", tests, open_device,
                                       close_device);
}
