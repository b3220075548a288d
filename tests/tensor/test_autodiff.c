/* SPDX-License-Identifier: MIT */
/* What the tape keeps, for how long, and what backward does to it. */
#include <string.h>

#include "device.h"

#include "kernel/memory.h"

#include <weir/autodiff.h>

#include <pthread.h>

enum { COUNT = 4096 };

static float data[COUNT];

static uint64_t tagged_bytes(const char *tag)
{
    weir_tag_usage usage = {0};
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_device_tag_usage(device, tag, &usage));
    return usage.in_use_bytes;
}

static weir_tensor *make_leaf(float value)
{
    weir_tensor *plain = NULL;
    weir_tensor *leaf = NULL;
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(COUNT), value, &plain));
    assert_ok(weir_tensor_track(plain, &leaf));
    weir_tensor_drop(plain);
    return leaf;
}

static weir_tensor *sum_of(weir_tensor *x)
{
    weir_tensor *sum = NULL;
    assert_ok(weir_tensor_reduce(WEIR_REDUCE_SUM, x, WEIR_ALL_AXES, false, &sum));
    return sum;
}

/* sum(exp(x) ** 2) */
static weir_tensor *make_loss(weir_tensor *x)
{
    weir_tensor *e = NULL;
    weir_tensor *square = NULL;
    assert_ok(weir_tensor_exp(x, &e));
    assert_ok(weir_tensor_mul(e, e, &square));
    weir_tensor *loss = sum_of(square);
    weir_tensor_drop(e);
    weir_tensor_drop(square);
    return loss;
}

static void assert_gradient(const weir_tensor *leaf, float expected)
{
    weir_tensor *gradient = NULL;
    assert_ok(weir_tensor_gradient(leaf, &gradient));
    assert_ok(weir_tensor_into_data(gradient, data, COUNT));
    for (uint64_t i = 0; i < weir_tensor_element_count(gradient); i++) {
        assert_float_equal(data[i], expected, 1e-5F);
    }
    weir_tensor_drop(gradient);
}

/* ---- what is kept ---- */

static void forward_only__does_not_grow(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(0.0F);
    weir_usage before = {.size = sizeof before};
    weir_usage after = {.size = sizeof after};
    uint64_t live = 0;
    for (int step = 0; step < 10000; step++) {
        weir_tensor *loss = make_loss(x);
        double value;
        assert_true(step % 100 != 0 || weir_tensor_item(loss, &value) == WEIR_OK);
        weir_tensor_drop(loss);
        if (step == 110) {
            assert_ok(weir_stream_sync(stream));
            assert_ok(weir_device_memory_usage(device, &before));
            live = wr_memory_live();
        }
    }
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_device_memory_usage(device, &after));
    assert_int_equal(after.in_use_bytes, before.in_use_bytes);
    assert_int_equal(after.reserved_bytes, before.reserved_bytes);
    assert_int_equal(wr_memory_live(), live);
    weir_tensor_drop(x);
}

/* exp needs its result, and so does the product; a second copy would be waste. */
static void the_tape__keeps_what_backward_needs_once_and_under_its_tag(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(0.0F);
    weir_tensor *loss = make_loss(x);
    assert_int_equal(tagged_bytes("autodiff"), COUNT * sizeof(float));
    weir_tensor_drop(loss);
    assert_int_equal(tagged_bytes("autodiff"), 0);
    weir_tensor_drop(x);
}

static void sums_and_products_with_constants__keep_nothing_they_do_not_need(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(2.0F);
    weir_tensor *t[4] = {NULL};
    assert_ok(weir_tensor_add(x, x, &t[0]));
    assert_ok(weir_tensor_mul_scalar(t[0], 3.0, &t[1]));
    assert_ok(weir_tensor_sub_scalar(t[1], 1.0, &t[2]));
    assert_ok(weir_tensor_neg(t[2], &t[3]));
    weir_tensor *loss = sum_of(t[3]);
    for (int i = 0; i < 4; i++) {
        weir_tensor_drop(t[i]);
    }
    assert_int_equal(tagged_bytes("autodiff"), 0);
    assert_ok(weir_tensor_backward(loss, NULL));
    assert_gradient(x, -6.0F);
    weir_tensor_drop(loss);
    weir_tensor_drop(x);
}

static void leaves_and_constants__keep_their_tags(void **state)
{
    (void)state;
    assert_ok(weir_tag_push("weights"));
    weir_tensor *w = make_leaf(1.0F);
    assert_ok(weir_tag_pop());
    weir_tensor *x = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(COUNT), 2.0F, &x));
    assert_ok(weir_tensor_mul(w, x, &y));
    weir_tensor *loss = sum_of(y);
    weir_tensor_drop(y);
    assert_int_equal(tagged_bytes("weights"), COUNT * sizeof(float));
    assert_int_equal(tagged_bytes("autodiff"), 0);
    assert_ok(weir_tensor_backward(loss, NULL));
    weir_tensor_drop(loss);
    weir_tensor_drop(x);
    assert_int_equal(tagged_bytes("weights"), COUNT * sizeof(float));
    weir_tensor_drop(w);
}

static void what_the_tape_keeps__is_not_changed_in_place(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(1.0F);
    weir_tensor *e = NULL;
    weir_tensor *y = NULL;
    assert_ok(weir_tensor_exp(x, &e));
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_tensor_mul_scalar(e, 2.0, &y));
    weir_tensor_drop(e);
    weir_tensor *loss = sum_of(y);
    weir_tensor_drop(y);
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_tensor_backward(loss, NULL));
    assert_gradient(x, 2.0F * 2.7182818F);
    weir_tensor_drop(loss);
    weir_tensor_drop(x);
}

/* A chain's entries hold each other; freeing them must not recurse. */
static void a_long_chain__is_freed_and_gone_back_through(void **state)
{
    (void)state;
    uint64_t live = wr_memory_live();
    for (int how = 0; how < 2; how++) {
        weir_tensor *plain = NULL;
        weir_tensor *x = NULL;
        assert_ok(weir_tensor_full(stream, WEIR_SHAPE(1), 1.0F, &plain));
        assert_ok(weir_tensor_track(plain, &x));
        weir_tensor *y = weir_tensor_clone(x);
        for (int i = 0; i < 100000; i++) {
            weir_tensor *next = NULL;
            assert_ok(weir_tensor_neg(y, &next));
            weir_tensor_drop(y);
            y = next;
        }
        if (how == 0) {
            assert_ok(weir_tensor_backward(y, NULL));
            assert_gradient(x, 1.0F);
        }
        weir_tensor_drop(y);
        weir_tensor_drop(x);
        weir_tensor_drop(plain);
        assert_ok(weir_stream_sync(stream));
    }
    assert_true(wr_memory_live() <= live + 16); /* the queue and its kernels stay */
}

/* ---- backward ---- */

static void backward__frees_the_tape_and_leaves_gradients(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(0.5F);
    weir_tensor *loss = make_loss(x);
    assert_ok(weir_tensor_backward(loss, NULL));
    assert_gradient(x, 2.0F * 2.7182818F);
    /* The leaf's gradient, and the loss. */
    assert_int_equal(tagged_bytes("autodiff"), COUNT * sizeof(float));
    assert_int_equal(weir_tensor_backward(loss, NULL), WEIR_INVALID);
    assert_non_null(strstr(weir_last_error(), "used up"));
    weir_tensor_drop(loss);
    assert_ok(weir_tensor_gradient_clear(x));
    assert_int_equal(tagged_bytes("autodiff"), 0);
    weir_tensor_drop(x);
}

static void backward__adds_to_what_is_there(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(0.0F);
    weir_tensor *gradient = NULL;
    weir_tensor *loss = make_loss(x);
    const weir_backward_desc again = {.keep_tape = true};
    assert_int_equal(weir_tensor_gradient(x, &gradient), WEIR_NOT_FOUND);
    assert_ok(weir_tensor_backward(loss, &again));
    assert_gradient(x, 2.0F);
    assert_ok(weir_tensor_backward(loss, &again));
    assert_gradient(x, 4.0F);
    assert_ok(weir_tensor_gradient_clear(x));
    assert_int_equal(weir_tensor_gradient(x, &gradient), WEIR_NOT_FOUND);
    assert_ok(weir_tensor_backward(loss, NULL));
    assert_gradient(x, 2.0F);
    assert_null(gradient);
    weir_tensor_drop(loss);
    weir_tensor_drop(x);
}

/* Both ways from the result to the leaf count, and each entry is gone through once: 2^60
 * ways would not end. */
static void values_used_twice__count_twice(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(1.0F);
    weir_tensor *y = weir_tensor_clone(x);
    for (int i = 0; i < 60; i++) {
        weir_tensor *twice = NULL;
        weir_tensor *half = NULL;
        assert_ok(weir_tensor_add(y, y, &twice));
        assert_ok(weir_tensor_mul_scalar(twice, 0.5, &half));
        weir_tensor_drop(twice);
        weir_tensor_drop(y);
        y = half;
    }
    weir_tensor *loss = sum_of(y);
    assert_ok(weir_tensor_backward(loss, NULL));
    assert_gradient(x, 1.0F);
    weir_tensor_drop(y);
    weir_tensor_drop(loss);
    weir_tensor_drop(x);
}

static void backward_of_a_leaf__is_the_given_gradient(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(1.0F);
    weir_tensor *seed = NULL;
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(COUNT), 3.0F, &seed));
    assert_ok(weir_tensor_backward(x, &(weir_backward_desc){.gradient = seed}));
    assert_gradient(x, 3.0F);
    weir_tensor_drop(seed);
    weir_tensor_drop(x);
}

static void backward__refuses_what_has_no_way_back(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(1.0F);
    weir_tensor *y = NULL;
    weir_tensor *small = NULL;
    assert_int_equal(weir_tensor_backward(NULL, NULL), WEIR_INVALID);
    assert_int_equal(weir_tensor_backward(x, NULL), WEIR_INVALID);
    assert_string_equal(weir_last_error(),
                        "weir_tensor_backward: the tensor has shape [4096]; reduce it to "
                        "one element, or give the gradient of what you want in that "
                        "shape");
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(1), &small));
    assert_int_equal(weir_tensor_backward(x, &(weir_backward_desc){.gradient = small}),
                     WEIR_INVALID);
    assert_int_equal(weir_tensor_backward(small, NULL), WEIR_INVALID);
    assert_int_equal(weir_tensor_gradient(small, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_gradient(NULL, &y), WEIR_INVALID);
    assert_int_equal(weir_tensor_gradient(x, NULL), WEIR_INVALID);
    assert_ok(weir_tensor_exp(x, &y));
    assert_int_equal(weir_tensor_gradient_clear(y), WEIR_INVALID);
    assert_null(strstr(weir_last_error(), "NULL"));
    weir_tensor_drop(y);
    weir_tensor_drop(small);
    weir_tensor_drop(x);
}

/* ---- what is tracked ---- */

static void tracked__is_what_comes_from_leaves(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(1.0F);
    weir_tensor *plain = NULL;
    weir_tensor *y = NULL;
    weir_tensor *detached = NULL;
    assert_ok(weir_tensor_detach(x, &plain));
    assert_true(weir_tensor_is_tracked(x));
    assert_false(weir_tensor_is_tracked(plain));
    assert_false(weir_tensor_is_tracked(NULL));
    assert_ok(weir_tensor_mul(plain, x, &y));
    assert_true(weir_tensor_is_tracked(y));
    assert_ok(weir_tensor_detach(y, &detached));
    assert_false(weir_tensor_is_tracked(detached));
    weir_tensor_drop(y);
    assert_ok(weir_tensor_exp(plain, &y));
    assert_false(weir_tensor_is_tracked(y));
    weir_tensor_drop(y);
    assert_ok(weir_tensor_cast(x, WEIR_DTYPE_I32, &y));
    assert_true(!weir_tensor_is_tracked(y));
    assert_int_equal(weir_tensor_track(y, &detached), WEIR_INVALID);
    assert_int_equal(weir_tensor_track(NULL, &detached), WEIR_INVALID);
    assert_int_equal(weir_tensor_track(x, NULL), WEIR_INVALID);
    weir_tensor_drop(y);
    weir_tensor_drop(plain);
    weir_tensor_drop(detached);
    weir_tensor_drop(x);
}

static void nothing__is_tracked_while_the_tape_is_paused(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(1.0F);
    weir_tensor *y = NULL;
    assert_ok(weir_tape_pause());
    assert_ok(weir_tape_pause());
    assert_ok(weir_tape_resume());
    assert_ok(weir_tensor_exp(x, &y));
    assert_false(weir_tensor_is_tracked(y));
    weir_tensor_drop(y);
    assert_ok(weir_tape_resume());
    assert_ok(weir_tensor_exp(x, &y));
    assert_true(weir_tensor_is_tracked(y));
    weir_tensor_drop(y);
    assert_int_equal(weir_tape_resume(), WEIR_INVALID);
    weir_tensor_drop(x);
}

/* ---- failures ---- */

/* Host memory fails at the 1st, 2nd, 3rd... request. What is left is dropped without a
 * trace, and a tape that was kept can be tried again. */
static void without_host_memory__no_gradient_changes(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(0.0F);
    bool done = false;
    weir_tensor *warm = make_loss(x);
    assert_ok(weir_tensor_backward(warm, NULL));
    assert_gradient(x, 2.0F);
    weir_tensor_drop(warm);
    for (uint64_t nth = 1; !done; nth++) {
        weir_tensor *loss = make_loss(x);
        wr_memory_fail_nth(nth);
        weir_result result =
            weir_tensor_backward(loss, &(weir_backward_desc){.keep_tape = true});
        wr_memory_fail_nth(0);
        done = result == WEIR_OK;
        assert_true(done || result == WEIR_OUT_OF_HOST_MEMORY);
        assert_gradient(x, done ? 4.0F : 2.0F);
        if (!done) {
            assert_ok(weir_tensor_backward(loss, NULL));
            assert_gradient(x, 4.0F);
            assert_ok(weir_tensor_gradient_clear(x));
            weir_tensor *once = make_loss(x);
            assert_ok(weir_tensor_backward(once, NULL));
            weir_tensor_drop(once);
        }
        weir_tensor_drop(loss);
        assert_true(nth < 200);
    }
    weir_tensor_drop(x);
}

static void without_host_memory__operations_on_leaves_leave_nothing(void **state)
{
    (void)state;
    weir_tensor *x = make_leaf(0.0F);
    bool done = false;
    for (uint64_t nth = 1; !done; nth++) {
        uint64_t live = wr_memory_live();
        weir_tensor *y = NULL;
        weir_tensor *z = NULL;
        weir_tensor *leaf = NULL;
        wr_memory_fail_nth(nth);
        weir_result result = weir_tensor_track(x, &leaf);
        result = result == WEIR_OK ? weir_tensor_mul(x, leaf, &y) : result;
        result = result == WEIR_OK ? weir_tensor_transpose(y, 0, 0, &z) : result;
        wr_memory_fail_nth(0);
        done = result == WEIR_OK;
        assert_true(done || result == WEIR_OUT_OF_HOST_MEMORY);
        assert_true(done || z == NULL);
        weir_tensor_drop(y);
        weir_tensor_drop(z);
        weir_tensor_drop(leaf);
        assert_ok(weir_stream_sync(stream));
        assert_true(done || wr_memory_live() == live);
        assert_true(nth < 100);
    }
    weir_tensor_drop(x);
}

/* ---- threads ---- */

/* Each goes back from a loss of its own to the one leaf. */
static void *go_back_many_times(void *context)
{
    weir_tensor *x = context;
    weir_result result = WEIR_OK;
    for (int i = 0; result == WEIR_OK && i < 50; i++) {
        weir_tensor *loss = NULL;
        result = weir_tensor_reduce(WEIR_REDUCE_SUM, x, WEIR_ALL_AXES, false, &loss);
        result = result == WEIR_OK ? weir_tensor_backward(loss, NULL) : result;
        weir_tensor_drop(loss);
    }
    return result == WEIR_OK ? NULL : x;
}

static void backwards_of_several_threads__all_count(void **state)
{
    (void)state;
    pthread_t threads[4];
    weir_tensor *x = make_leaf(0.0F);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, go_back_many_times, x), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_gradient(x, 200.0F);
    weir_tensor_drop(x);
}

/* Of several backwards through one tape exactly one goes through. */
static void *go_back_once(void *loss)
{
    weir_result result = weir_tensor_backward(loss, NULL);
    return result == WEIR_OK                               ? loss
           : result == WEIR_BUSY || result == WEIR_INVALID ? NULL
                                                           : &data;
}

static void backwards_through_one_tape__go_through_once(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        pthread_t threads[4];
        int passed = 0;
        weir_tensor *x = make_leaf(0.0F);
        weir_tensor *loss = make_loss(x);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, go_back_once, loss), 0);
        }
        for (int i = 0; i < 4; i++) {
            void *outcome = NULL;
            assert_int_equal(pthread_join(threads[i], &outcome), 0);
            assert_true(outcome == NULL || outcome == loss);
            passed += outcome == loss;
        }
        assert_int_equal(passed, 1);
        assert_gradient(x, 2.0F);
        weir_tensor_drop(loss);
        weir_tensor_drop(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(forward_only__does_not_grow),
        ON_HOST(the_tape__keeps_what_backward_needs_once_and_under_its_tag),
        ON_HOST(sums_and_products_with_constants__keep_nothing_they_do_not_need),
        ON_HOST(leaves_and_constants__keep_their_tags),
        ON_HOST(what_the_tape_keeps__is_not_changed_in_place),
        ON_HOST(a_long_chain__is_freed_and_gone_back_through),
        ON_HOST(backward__frees_the_tape_and_leaves_gradients),
        ON_HOST(backward__adds_to_what_is_there),
        ON_HOST(values_used_twice__count_twice),
        ON_HOST(backward_of_a_leaf__is_the_given_gradient),
        ON_HOST(backward__refuses_what_has_no_way_back),
        ON_HOST(tracked__is_what_comes_from_leaves),
        ON_HOST(nothing__is_tracked_while_the_tape_is_paused),
        ON_HOST(without_host_memory__no_gradient_changes),
        ON_HOST(without_host_memory__operations_on_leaves_leave_nothing),
        ON_HOST(backwards_of_several_threads__all_count),
        ON_HOST(backwards_through_one_tape__go_through_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
