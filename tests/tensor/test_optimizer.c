/* SPDX-License-Identifier: MIT */
/* Steps against the same arithmetic in doubles; what they cost in kernels and memory. */
#include <string.h>

#include "count.h"

#include "kernel/memory.h"

#include <weir/autodiff.h>
#include <weir/optimizer.h>

#include <math.h>

enum { COUNT = 5000, STEPS = 20 };

static weir_tensor *parameters[2];
static weir_optimizer *optimizer;
static float start[COUNT];
static float found[COUNT];

static weir_tensor *make_parameter(weir_dtype dtype, uint64_t seed)
{
    weir_tensor *plain = NULL;
    weir_tensor *cast = NULL;
    weir_tensor *leaf = NULL;
    assert_ok(weir_tag_push("weights"));
    assert_ok(weir_tensor_uniform(stream, WEIR_SHAPE(COUNT), -1.0F, 1.0F, seed, &plain));
    assert_ok(weir_tensor_cast(plain, dtype, &cast));
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_tag_pop());
    assert_ok(weir_tensor_track(cast, &leaf));
    weir_tensor_drop(cast);
    weir_tensor_drop(plain);
    return leaf;
}

static void make_parameters(void)
{
    parameters[0] = make_parameter(WEIR_DTYPE_F32, 1);
    parameters[1] = NULL;
    assert_ok(weir_tensor_into_data(parameters[0], start, COUNT));
}

static void drop_all(void)
{
    weir_optimizer_destroy(optimizer);
    optimizer = NULL;
    weir_tensor_drop(parameters[0]);
    weir_tensor_drop(parameters[1]);
}

/* Of sum(w ** 2) / 2 the gradient is w. */
static void go_back(weir_tensor *w)
{
    weir_tensor *square = NULL;
    weir_tensor *half = NULL;
    weir_tensor *loss = NULL;
    assert_ok(weir_tensor_mul(w, w, &square));
    assert_ok(weir_tensor_mul_scalar(square, 0.5, &half));
    assert_ok(weir_tensor_reduce(WEIR_REDUCE_SUM, half, WEIR_ALL_AXES, false, &loss));
    weir_tensor_drop(square);
    weir_tensor_drop(half);
    assert_ok(weir_tensor_backward(loss, NULL));
    weir_tensor_drop(loss);
}

static void take_steps(int count, double rate)
{
    for (int i = 0; i < count; i++) {
        go_back(parameters[0]);
        assert_ok(weir_optimizer_step(optimizer, rate));
    }
}

/* ---- the same in doubles ---- */

static double sgd_by_hand(double w, const weir_sgd_desc *desc, double rate)
{
    double v = 0;
    for (int i = 0; i < STEPS; i++) {
        double g = w + desc->weight_decay * w;
        v = desc->momentum * v + g;
        w -= rate * (desc->nesterov ? g + desc->momentum * v : v);
    }
    return w;
}

static double adamw_by_hand(double w, const weir_adamw_desc *desc, double rate)
{
    double m = 0;
    double v = 0;
    for (int i = 1; i <= STEPS; i++) {
        double g = w;
        m = desc->beta1 * m + (1 - desc->beta1) * g;
        v = desc->beta2 * v + (1 - desc->beta2) * g * g;
        w -= rate * desc->weight_decay * w;
        w -= rate * (m / (1 - pow(desc->beta1, i))) /
             (sqrt(v / (1 - pow(desc->beta2, i))) + desc->epsilon);
    }
    return w;
}

static void assert_near(double expected, float value, double tolerance)
{
    if (!(fabs((double)value - expected) <= tolerance)) {
        fail_msg("%g is not %g", (double)value, expected);
    }
}

static void sgd__is_what_the_paper_says(void **state)
{
    (void)state;
    const weir_sgd_desc descs[4] = {
        {.momentum = 0},
        {.momentum = 0.9},
        {.momentum = 0.9, .nesterov = true},
        {.momentum = 0.5, .weight_decay = 0.1},
    };
    for (int d = 0; d < 4; d++) {
        make_parameters();
        assert_ok(weir_optimizer_create_sgd(parameters, 1, &descs[d], &optimizer));
        take_steps(STEPS, 0.05);
        assert_ok(weir_tensor_into_data(parameters[0], found, COUNT));
        for (int i = 0; i < COUNT; i++) {
            assert_near(sgd_by_hand((double)start[i], &descs[d], 0.05), found[i], 2e-6);
        }
        drop_all();
        assert_ok(weir_stream_sync(stream));
        assert_int_equal(in_use_bytes(), 0);
    }
}

static void adamw__is_what_the_paper_says(void **state)
{
    (void)state;
    const weir_adamw_desc descs[2] = {
        {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
        {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.2},
    };
    for (int d = 0; d < 2; d++) {
        make_parameters();
        assert_ok(weir_optimizer_create_adamw(parameters, 1, d == 0 ? NULL : &descs[d],
                                              &optimizer));
        take_steps(STEPS, 0.01);
        assert_ok(weir_tensor_into_data(parameters[0], found, COUNT));
        for (int i = 0; i < COUNT; i++) {
            assert_near(adamw_by_hand((double)start[i], &descs[d], 0.01), found[i], 2e-5);
        }
        drop_all();
        assert_ok(weir_stream_sync(stream));
        assert_int_equal(in_use_bytes(), 0);
    }
}

/* In bf16 alone 1 - 1e-3 would stay 1 for ever. */
static void small_floats__are_stepped_in_f32(void **state)
{
    (void)state;
    parameters[0] = make_parameter(WEIR_DTYPE_BF16, 1);
    assert_ok(weir_tensor_into_data(parameters[0], start, COUNT));
    assert_ok(weir_optimizer_create_adamw(parameters, 1, NULL, &optimizer));
    take_steps(1, 0.1);
    assert_int_equal(weir_tensor_dtype(parameters[0]), WEIR_DTYPE_BF16);
    assert_ok(weir_tensor_into_data(parameters[0], found, COUNT));
    for (int i = 0; i < COUNT; i++) {
        double way = start[i] > 0 ? -0.1 : start[i] < 0 ? 0.1 : 0;
        assert_near((double)start[i] + way, found[i], 0.005);
    }
    drop_all();
}

/* ---- what it costs ---- */

static weir_tensor_counters counters(void)
{
    weir_tensor_counters now = {.size = sizeof now};
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_stream_tensor_counters(stream, &now));
    return now;
}

static uint64_t tagged_bytes(const char *tag)
{
    weir_tag_usage usage = {0};
    assert_ok(weir_device_tag_usage(device, tag, &usage));
    return usage.in_use_bytes;
}

static void a_step__is_one_kernel_in_place(void **state)
{
    (void)state;
    make_parameters();
    assert_ok(weir_optimizer_create_adamw(
        parameters, 1, &(weir_adamw_desc){.weight_decay = 0.01}, &optimizer));
    take_steps(2, 0.01);
    go_back(parameters[0]);
    weir_tensor_counters before = counters();
    weir_buffer buffer = weir_tensor_buffer(parameters[0]);
    assert_ok(weir_optimizer_step(optimizer, 0.01));
    weir_tensor_counters after = counters();
    weir_buffer now = weir_tensor_buffer(parameters[0]);
    assert_int_equal(after.launches - before.launches, 1);
    assert_int_equal(after.buffers, before.buffers);
    assert_int_equal(after.in_place - before.in_place, 3);
    assert_memory_equal(&now, &buffer, sizeof now);
    drop_all();
}

static void tags__say_what_is_parameter_and_what_is_the_optimizers(void **state)
{
    (void)state;
    make_parameters();
    assert_ok(weir_optimizer_create_adamw(parameters, 1, NULL, &optimizer));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tagged_bytes("weights"), COUNT * sizeof(float));
        assert_int_equal(tagged_bytes("optimizer"), 2 * COUNT * sizeof(float));
        assert_int_equal(tagged_bytes("autodiff"), 0);
        take_steps(1, 0.01);
        assert_ok(weir_stream_sync(stream));
    }
    drop_all();
}

/* ---- which parameters ---- */

static void a_parameter_without_a_gradient__stays(void **state)
{
    (void)state;
    make_parameters();
    parameters[1] = make_parameter(WEIR_DTYPE_F32, 2);
    assert_ok(weir_optimizer_create_sgd(parameters, 2, NULL, &optimizer));
    const weir_tensor *before[2] = {parameters[0], parameters[1]};
    take_steps(1, 0.1);
    assert_ptr_not_equal(parameters[0], before[0]);
    assert_ptr_equal(parameters[1], before[1]);
    assert_int_equal(weir_optimizer_step(optimizer, 0.1), WEIR_INVALID);
    assert_string_equal(weir_last_error(),
                        "weir_optimizer_step: none of the 2 parameters has a gradient; "
                        "call weir_tensor_backward first");
    drop_all();
}

static void create__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    make_parameters();
    weir_tensor *plain = NULL;
    assert_ok(weir_tensor_detach(parameters[0], &plain));
    assert_int_equal(weir_optimizer_create_sgd(&plain, 1, NULL, &optimizer),
                     WEIR_INVALID);
    assert_string_equal(weir_last_error(), "weir_optimizer_create_sgd: parameter 0 is no "
                                           "leaf; weir_tensor_track makes leaves");
    assert_int_equal(weir_optimizer_create_sgd(NULL, 1, NULL, &optimizer), WEIR_INVALID);
    assert_int_equal(weir_optimizer_create_sgd(parameters, 0, NULL, &optimizer),
                     WEIR_INVALID);
    assert_int_equal(weir_optimizer_create_sgd(parameters, 2, NULL, &optimizer),
                     WEIR_INVALID);
    assert_int_equal(weir_optimizer_create_sgd(parameters, 1, NULL, NULL), WEIR_INVALID);
    assert_int_equal(weir_optimizer_create_sgd(
                         parameters, 1, &(weir_sgd_desc){.momentum = 1}, &optimizer),
                     WEIR_INVALID);
    assert_int_equal(weir_optimizer_create_sgd(
                         parameters, 1, &(weir_sgd_desc){.nesterov = true}, &optimizer),
                     WEIR_INVALID);
    assert_int_equal(weir_optimizer_create_adamw(
                         parameters, 1, &(weir_adamw_desc){.beta2 = 1.5}, &optimizer),
                     WEIR_INVALID);
    assert_null(optimizer);
    assert_int_equal(weir_optimizer_step(NULL, 1), WEIR_INVALID);
    weir_tensor_drop(plain);
    drop_all();
}

/* Host memory fails at the 1st, 2nd, 3rd... request; the step is then taken again. */
static void a_step_that_failed__goes_on_where_it_stopped(void **state)
{
    (void)state;
    bool done = false;
    make_parameters();
    parameters[1] = make_parameter(WEIR_DTYPE_F32, 1);
    assert_ok(weir_optimizer_create_adamw(parameters, 2, NULL, &optimizer));
    for (uint64_t nth = 1; !done; nth++) {
        static float other[COUNT];
        go_back(parameters[0]);
        go_back(parameters[1]);
        assert_ok(weir_stream_sync(stream));
        wr_memory_fail_nth(nth);
        weir_result result = weir_optimizer_step(optimizer, 0.01);
        wr_memory_fail_nth(0);
        done = result == WEIR_OK;
        assert_true(done || result == WEIR_OUT_OF_HOST_MEMORY);
        if (!done) {
            assert_ok(weir_optimizer_step(optimizer, 0.01));
        }
        assert_ok(weir_tensor_into_data(parameters[0], found, COUNT));
        assert_ok(weir_tensor_into_data(parameters[1], other, COUNT));
        assert_memory_equal(found, other, sizeof found);
        assert_true(nth < 300);
    }
    drop_all();
}

static void without_host_memory__no_optimizer_is_made_and_nothing_stays(void **state)
{
    (void)state;
    bool done = false;
    make_parameters();
    for (uint64_t nth = 1; !done; nth++) {
        assert_ok(weir_stream_sync(stream));
        uint64_t live = wr_memory_live();
        uint64_t bytes = in_use_bytes();
        wr_memory_fail_nth(nth);
        weir_result result = weir_optimizer_create_adamw(parameters, 1, NULL, &optimizer);
        wr_memory_fail_nth(0);
        done = result == WEIR_OK;
        assert_true(done || result == WEIR_OUT_OF_HOST_MEMORY);
        assert_ok(weir_stream_sync(stream));
        assert_true(done || in_use_bytes() == bytes);
        assert_true(done || wr_memory_live() <= live + 1); /* a kernel may stay */
        assert_true(nth < 100);
    }
    drop_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(sgd__is_what_the_paper_says),
        WATCHED(adamw__is_what_the_paper_says),
        WATCHED(small_floats__are_stepped_in_f32),
        WATCHED(a_step__is_one_kernel_in_place),
        WATCHED(tags__say_what_is_parameter_and_what_is_the_optimizers),
        WATCHED(a_parameter_without_a_gradient__stays),
        WATCHED(create__refuses_what_makes_no_sense),
        WATCHED(a_step_that_failed__goes_on_where_it_stopped),
        WATCHED(without_host_memory__no_optimizer_is_made_and_nothing_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
