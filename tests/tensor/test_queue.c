/* SPDX-License-Identifier: MIT */
/* What the queue fuses, skips, takes over and keeps. */
#include <string.h>

#include "count.h"

#include "kernel/memory.h"

#include <math.h>

enum { COUNT = 5000 };

static float data[COUNT];

static weir_tensor *ramp(uint64_t seed)
{
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_uniform(stream, WEIR_SHAPE(COUNT), -1.0F, 1.0F, seed, &tensor));
    launch_count = 0;
    return tensor;
}

static weir_tensor_counters counters(void)
{
    weir_tensor_counters now = {.size = sizeof now};
    assert_ok(weir_stream_tensor_counters(stream, &now));
    return now;
}

static void values_of(weir_tensor *tensor, float *values)
{
    assert_ok(weir_tensor_into_data(tensor, values, COUNT));
}

/* A scalar step by step; each intermediate result is dropped at once. */
typedef weir_result (*scalar_fn)(weir_tensor *left, double right, weir_tensor **tensor);

static void apply(scalar_fn function, weir_tensor **tensor, double right)
{
    weir_tensor *next = NULL;
    assert_ok(function(*tensor, right, &next));
    weir_tensor_drop(*tensor);
    *tensor = next;
}

/* y = relu(a * x + b) * c - d with tensors all round. */
static weir_tensor *chain(weir_tensor *const in[5])
{
    weir_tensor *made[5] = {NULL};
    assert_ok(weir_tensor_mul(in[0], in[1], &made[0]));
    assert_ok(weir_tensor_add(made[0], in[2], &made[1]));
    assert_ok(weir_tensor_relu(made[1], &made[2]));
    assert_ok(weir_tensor_mul(made[2], in[3], &made[3]));
    assert_ok(weir_tensor_sub(made[3], in[4], &made[4]));
    for (int i = 0; i < 4; i++) {
        weir_tensor_drop(made[i]);
    }
    return made[4];
}

static void chain__is_one_kernel_and_one_buffer(void **state)
{
    (void)state;
    static float in_values[5][COUNT];
    weir_tensor *in[5];
    weir_usage before = {.size = sizeof before};
    weir_usage after = {.size = sizeof after};
    for (uint64_t i = 0; i < 5; i++) {
        in[i] = ramp(i);
        values_of(in[i], in_values[i]);
    }
    assert_ok(weir_device_memory_usage(device, &before));
    weir_tensor *y = chain(in);
    assert_int_equal(launch_count, 0);
    values_of(y, data);
    assert_int_equal(launch_count, 1);
    assert_ok(weir_device_memory_usage(device, &after));
    assert_int_equal(after.allocations - before.allocations, 1);
    assert_int_equal(counters().fused, 4);
    for (int i = 0; i < COUNT; i++) {
        float sum = in_values[0][i] * in_values[1][i] + in_values[2][i];
        float expected = (sum < 0 ? 0 : sum) * in_values[3][i] - in_values[4][i];
        assert_true(fabsf(data[i] - expected) <= 1e-6F);
    }
    weir_tensor_drop(y);
    for (int i = 0; i < 5; i++) {
        weir_tensor_drop(in[i]);
    }
}

static void chain__with_scalars_takes_over_the_operand_that_was_dropped(void **state)
{
    (void)state;
    static float before[COUNT];
    weir_tensor *x = ramp(3);
    weir_buffer buffer = weir_tensor_buffer(x);
    values_of(x, before);
    apply(weir_tensor_mul_scalar, &x, 2.0);
    apply(weir_tensor_add_scalar, &x, 1.0);
    apply(weir_tensor_max_scalar, &x, 0.0);
    values_of(x, data);
    assert_int_equal(launch_count, 1);
    assert_int_equal(last_binding_count, 1);
    assert_int_equal(counters().in_place, 1);
    weir_buffer after = weir_tensor_buffer(x);
    assert_memory_equal(&buffer, &after, sizeof buffer);
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabsf(data[i] - fmaxf(before[i] * 2.0F + 1.0F, 0.0F)) <= 1e-6F);
    }
    weir_tensor_drop(x);
}

/* Whoever can still see the operand must not see it change. */
static void in_place__is_refused_while_anybody_else_sees_the_operand(void **state)
{
    (void)state;
    static float before[COUNT];
    weir_tensor *seen[3] = {NULL};
    weir_tensor *y = NULL;
    for (int how = 0; how < 3; how++) {
        weir_tensor *x = ramp(7);
        values_of(x, before);
        weir_buffer buffer = weir_tensor_buffer(x);
        if (how == 0) {
            seen[how] = weir_tensor_clone(x);
        } else if (how == 1) {
            assert_ok(weir_tensor_reshape(x, WEIR_SHAPE(COUNT / 10, 10), &seen[how]));
        } else {
            assert_ok(weir_buffer_retain(buffer));
        }
        assert_ok(weir_tensor_add_scalar(x, 1.0, &y));
        weir_tensor_drop(x);
        assert_ok(weir_stream_sync(stream));
        assert_ok(weir_buffer_read(buffer, 0, data, sizeof data));
        assert_memory_equal(data, before, sizeof data);
        weir_tensor_drop(y);
        weir_tensor_drop(seen[how]);
        assert_int_equal(weir_buffer_release(buffer), how == 2 ? WEIR_OK : WEIR_STALE);
    }
    assert_int_equal(counters().in_place, 0);
}

/* x + transpose(x) reads elements that it has written already, were it done in place. */
static void in_place__is_refused_for_an_operand_that_is_read_in_two_orders(void **state)
{
    (void)state;
    weir_tensor *x = NULL;
    weir_tensor *turned = NULL;
    weir_tensor *y = NULL;
    float values[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const float expected[9] = {2, 6, 10, 6, 10, 14, 10, 14, 18};
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(3, 3), values, &x));
    assert_ok(weir_tensor_transpose(x, 0, 1, &turned));
    assert_ok(weir_tensor_add(x, turned, &y));
    weir_tensor_drop(x);
    weir_tensor_drop(turned);
    assert_ok(weir_tensor_into_data(y, values, 9));
    assert_memory_equal(values, expected, sizeof values);
    assert_int_equal(counters().in_place, 0);
    weir_tensor_drop(y);
}

static void
an_intermediate_result_that_is_held__is_stored_by_the_same_kernel(void **state)
{
    (void)state;
    static float middle[COUNT];
    weir_tensor *x = ramp(1);
    weir_tensor *half = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_exp(x, &half));
    assert_ok(weir_tensor_mul(half, half, &y));
    values_of(y, data);
    assert_int_equal(launch_count, 1);
    assert_int_equal(last_expression.output_count, 2);
    values_of(half, middle);
    assert_int_equal(launch_count, 1);
    for (int i = 0; i < COUNT; i++) {
        assert_true(data[i] == middle[i] * middle[i]);
    }
    weir_tensor_drop(x);
    weir_tensor_drop(half);
    weir_tensor_drop(y);
}

static void a_chain_into_a_sum__is_one_kernel_without_buffers_between(void **state)
{
    (void)state;
    static float in[COUNT];
    weir_tensor *x = ramp(9);
    weir_tensor *square = NULL;
    weir_tensor *sum = NULL;
    double value = 0.0;
    double expected = 0.0;
    values_of(x, in);
    assert_ok(weir_tensor_mul(x, x, &square));
    assert_ok(weir_tensor_reduce(WEIR_REDUCE_SUM, square, WEIR_ALL_AXES, false, &sum));
    weir_tensor_drop(square);
    assert_ok(weir_tensor_item(sum, &value));
    assert_int_equal(launch_count, 1);
    assert_int_equal(counters().buffers, 2); /* x and the sum */
    for (int i = 0; i < COUNT; i++) {
        expected += (double)in[i] * (double)in[i];
    }
    assert_true(fabs(value - expected) < 1e-4 * expected);
    weir_tensor_drop(sum);
    weir_tensor_drop(x);
}

static void broadcast_operands__are_read_in_place_by_the_fused_kernel(void **state)
{
    (void)state;
    weir_tensor *x = NULL;
    weir_tensor *row = NULL;
    weir_tensor *column = NULL;
    weir_tensor *t = NULL;
    weir_tensor *y = NULL;
    const float in[6] = {1, 2, 3, 4, 5, 6};
    float out[6];
    const float rows[3] = {10, 20, 30};
    const float columns[2] = {1, 2};
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(2, 3), in, &x));
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(3), rows, &row));
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(2, 1), columns, &column));
    launch_count = 0;
    assert_ok(weir_tensor_add(x, row, &t));
    assert_ok(weir_tensor_mul(t, column, &y));
    weir_tensor_drop(t);
    assert_ok(weir_tensor_into_data(y, out, 6));
    assert_int_equal(launch_count, 1);
    for (int i = 0; i < 6; i++) {
        assert_true(out[i] == (in[i] + rows[i % 3]) * columns[i / 3]);
    }
    weir_tensor_drop(x);
    weir_tensor_drop(row);
    weir_tensor_drop(column);
    weir_tensor_drop(y);
}

static void what_is_dropped_before_anybody_needs_it__is_not_computed(void **state)
{
    (void)state;
    weir_tensor *x = ramp(2);
    weir_tensor *one = NULL;
    weir_tensor *other = NULL;
    assert_ok(weir_tensor_exp(x, &one));
    assert_ok(weir_tensor_sin(one, &other));
    weir_tensor_drop(one);
    weir_tensor_drop(other);
    assert_ok(weir_stream_sync(stream));
    assert_int_equal(launch_count, 0);
    assert_int_equal(counters().skipped, 2);
    weir_tensor_drop(x);
    assert_int_equal(in_use_bytes(), 0);
}

/* Its drop would otherwise wait in the queue, and its bytes with it. */
static void cleanup_after_a_drop__gives_the_bytes_back_without_a_sync(void **state)
{
    (void)state;
    weir_usage usage = {.size = sizeof usage};
    weir_tensor *x = ramp(2);
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_exp(x, &y));
    weir_tensor_drop(x);
    weir_tensor_drop(y);
    assert_true(in_use_bytes() > 0);
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    assert_ok(weir_device_memory_usage(device, &usage));
    assert_int_equal(usage.in_use_bytes, 0);
    assert_int_equal(usage.reserved_bytes, 0);
}

static void a_full_queue__runs_and_goes_on(void **state)
{
    (void)state;
    weir_tensor *x = NULL;
    double value = 0.0;
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(1), &x));
    for (int i = 0; i < 1000; i++) {
        apply(weir_tensor_add_scalar, &x, 1.0);
        assert_true(counters().queued <= 128);
    }
    assert_ok(weir_tensor_item(x, &value));
    assert_true(value == 1000.0);
    weir_tensor_drop(x);
}

static void kernels__are_known_by_structure_and_not_by_shape_or_scalars(void **state)
{
    (void)state;
    weir_expression first = {0};
    const weir_shape shapes[3] = {WEIR_SHAPE(7), WEIR_SHAPE(40, 50), WEIR_SHAPE(2, 3, 4)};
    for (int i = 0; i < 3; i++) {
        weir_tensor *x = NULL;
        assert_ok(weir_tensor_full(stream, shapes[i], 1.0F, &x));
        apply(weir_tensor_mul_scalar, &x, 1.5 * i);
        assert_ok(weir_stream_sync(stream));
        if (i == 0) {
            first = last_expression;
        }
        assert_memory_equal(&last_expression, &first, sizeof first);
        weir_tensor_drop(x);
    }
}

static void another_stream__runs_only_what_it_needs(void **state)
{
    (void)state;
    weir_stream *side = NULL;
    weir_tensor *made[4] = {NULL};
    assert_ok(weir_stream_create(device, NULL, &side));
    weir_tensor *x = ramp(4);
    assert_ok(weir_tensor_full(side, WEIR_SHAPE(COUNT), 2.0F, &made[0]));
    assert_ok(weir_tensor_exp(x, &made[1]));
    assert_ok(weir_tensor_neg(x, &made[2]));
    launch_count = 0;
    assert_ok(weir_tensor_add(made[0], made[1], &made[3]));
    assert_int_equal(launch_count, 1);
    assert_int_equal(counters().queued, 1); /* neg */
    assert_true(weir_tensor_stream(made[3]) == side);
    values_of(made[3], data);
    static float in[COUNT];
    values_of(x, in);
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabsf(data[i] - (2.0F + expf(in[i]))) < 1e-5F);
    }
    weir_tensor_drop(x);
    for (int i = 0; i < 4; i++) {
        weir_tensor_drop(made[i]);
    }
    assert_ok(weir_device_sync(device));
    assert_ok(weir_stream_close(side));
}

static void a_shortage__leaves_the_queue_as_it_was(void **state)
{
    (void)state;
    weir_tensor *x = ramp(4);
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_add_scalar(x, 1.0, &y));
    assert_ok(weir_device_limit(device, 1));
    refuse_with = WEIR_OUT_OF_MEMORY;
    assert_int_equal(weir_tensor_into_data(y, data, COUNT), WEIR_OUT_OF_MEMORY);
    assert_int_equal(counters().queued, 1);
    refuse_with = WEIR_OK;
    assert_ok(weir_device_limit(device, 0));
    values_of(y, data);
    assert_int_equal(launch_count, 1);
    weir_tensor_drop(x);
    weir_tensor_drop(y);
}

static void
a_kernel_that_the_driver_refuses__fails_its_results_and_their_users(void **state)
{
    (void)state;
    weir_tensor *x = ramp(4);
    weir_tensor *y = NULL;
    weir_tensor *z = NULL;
    assert_ok(weir_tensor_add_scalar(x, 1.0, &y));
    refuse_with = WEIR_UNSUPPORTED;
    assert_int_equal(weir_stream_sync(stream), WEIR_UNSUPPORTED);
    refuse_with = WEIR_OK;
    assert_int_equal(weir_tensor_into_data(y, data, COUNT), WEIR_UNSUPPORTED);
    assert_string_equal(weir_last_error(), "refused by the test");
    assert_int_equal(weir_tensor_exp(y, &z), WEIR_UNSUPPORTED);
    assert_null(z);
    assert_ok(weir_stream_sync(stream));
    weir_tensor_drop(y);
    weir_tensor_drop(x);
}

static void arguments_in_device_memory__are_kept_and_go_with_a_cleanup(void **state)
{
    (void)state;
    weir_tag_usage usage = {0};
    weir_tensor *x = ramp(4);
    for (int i = 0; i < 10; i++) {
        weir_tensor *y = NULL;
        assert_ok(weir_tensor_add_scalar(x, i % 2, &y));
        values_of(y, data);
        assert_int_not_equal(last_argument_address, 0);
        weir_tensor_drop(y);
    }
    assert_int_equal(counters().argument_writes, 3); /* random, + 0, + 1 */
    for (int i = 0; i < 200; i++) {
        weir_tensor *y = NULL;
        assert_ok(weir_tensor_add_scalar(x, i, &y));
        values_of(y, data);
        weir_tensor_drop(y);
    }
    assert_ok(weir_device_tag_usage(device, "arguments", &usage));
    assert_int_equal(usage.live_count, 64);
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    assert_ok(weir_device_tag_usage(device, "arguments", &usage));
    assert_int_equal(usage.live_count, 0);
    weir_tensor_drop(x);
}

/* Nine operands on a device that binds four buffers at a time. */
static void a_group_with_too_many_buffers__is_split(void **state)
{
    (void)state;
    weir_tensor *in[9];
    float expected = 0.0F;
    for (uint64_t i = 0; i < 9; i++) {
        in[i] = ramp(i);
        values_of(in[i], data);
        expected += data[17];
    }
    weir_tensor *sum = weir_tensor_clone(in[0]);
    for (int i = 1; i < 9; i++) {
        weir_tensor *more = NULL;
        assert_ok(weir_tensor_add(sum, in[i], &more));
        weir_tensor_drop(sum);
        sum = more;
    }
    launch_count = 0;
    values_of(sum, data);
    assert_true(most_bindings <= 4);
    assert_true(launch_count >= 3 && launch_count <= 8);
    assert_true(fabsf(data[17] - expected) < 1e-5F);
    weir_tensor_drop(sum);
    for (int i = 0; i < 9; i++) {
        weir_tensor_drop(in[i]);
    }
}

static void results__carry_the_tag_of_who_recorded_them(void **state)
{
    (void)state;
    weir_tag_usage usage = {0};
    weir_tensor *x = ramp(0);
    weir_tensor *y = NULL;
    weir_tensor *z = NULL;
    assert_ok(weir_tag_push("loss"));
    assert_ok(weir_tensor_exp(x, &y));
    assert_ok(weir_tag_pop());
    assert_ok(weir_tensor_sin(x, &z));
    assert_ok(weir_tag_push("not this"));
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_tag_pop());
    assert_ok(weir_device_tag_usage(device, "loss", &usage));
    assert_int_equal(usage.live_count, 1);
    assert_ok(weir_device_tag_usage(device, "not this", &usage));
    assert_int_equal(usage.live_count, 0);
    weir_tensor_drop(x);
    weir_tensor_drop(y);
    weir_tensor_drop(z);
}

/* Host memory fails at the 1st, 2nd, 3rd... request, until all goes well. */
static void without_host_memory__everything_fails_cleanly(void **state)
{
    (void)state;
    weir_tensor *x = ramp(0);
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        uint64_t live = wr_memory_live();
        weir_tensor *y = NULL;
        weir_tensor *z = NULL;
        wr_memory_fail_nth(nth);
        weir_result result = weir_tensor_cos(x, &y);
        result = result == WEIR_OK ? weir_tensor_add(x, y, &z) : result;
        result = result == WEIR_OK ? weir_tensor_into_data(z, data, COUNT) : result;
        wr_memory_fail_nth(0);
        assert_true(result == WEIR_OK || result == WEIR_OUT_OF_HOST_MEMORY);
        done = result == WEIR_OK;
        weir_tensor_drop(y);
        weir_tensor_drop(z);
        assert_ok(weir_stream_sync(stream));
        assert_true(done || wr_memory_live() == live);
    }
    weir_tensor_drop(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHED(chain__is_one_kernel_and_one_buffer),
        WATCHED(chain__with_scalars_takes_over_the_operand_that_was_dropped),
        WATCHED(in_place__is_refused_while_anybody_else_sees_the_operand),
        WATCHED(in_place__is_refused_for_an_operand_that_is_read_in_two_orders),
        WATCHED(an_intermediate_result_that_is_held__is_stored_by_the_same_kernel),
        WATCHED(a_chain_into_a_sum__is_one_kernel_without_buffers_between),
        WATCHED(broadcast_operands__are_read_in_place_by_the_fused_kernel),
        WATCHED(what_is_dropped_before_anybody_needs_it__is_not_computed),
        WATCHED(cleanup_after_a_drop__gives_the_bytes_back_without_a_sync),
        WATCHED(a_full_queue__runs_and_goes_on),
        WATCHED(kernels__are_known_by_structure_and_not_by_shape_or_scalars),
        WATCHED(another_stream__runs_only_what_it_needs),
        WATCHED(a_shortage__leaves_the_queue_as_it_was),
        WATCHED(a_kernel_that_the_driver_refuses__fails_its_results_and_their_users),
        WATCHED_WITH(argument_buffers,
                     arguments_in_device_memory__are_kept_and_go_with_a_cleanup),
        WATCHED_WITH(four_bindings, a_group_with_too_many_buffers__is_split),
        WATCHED(results__carry_the_tag_of_who_recorded_them),
        WATCHED(without_host_memory__everything_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
