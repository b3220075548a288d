/* SPDX-License-Identifier: MIT */
/* Several threads on one queue, on queues of their own, and on each other's tensors. */
#include "device.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 60, COUNT = 3000 };

static weir_tensor *shared;

/* ((shared + 1) * 2) - 2 = 2 * shared, each operand dropped while it is queued. */
static weir_tensor *twice(weir_tensor *operand)
{
    weir_tensor *one = NULL;
    weir_tensor *two = NULL;
    weir_tensor *result = NULL;
    assert_ok(weir_tensor_add_scalar(operand, 1.0, &one));
    assert_ok(weir_tensor_mul_scalar(one, 2.0, &two));
    weir_tensor_drop(one);
    assert_ok(weir_tensor_sub_scalar(two, 2.0, &result));
    weir_tensor_drop(two);
    return result;
}

static void assert_all(weir_tensor *tensor, float expected)
{
    float values[COUNT];
    assert_ok(weir_tensor_into_data(tensor, values, COUNT));
    for (int i = 0; i < COUNT; i++) {
        assert_true(values[i] == expected);
    }
}

static void *compute_on_one_queue(void *argument)
{
    for (int round = 0; round < ROUNDS; round++) {
        weir_tensor *result = twice(shared);
        if (round % 3 == 0) {
            assert_ok(weir_stream_sync(stream));
        }
        assert_all(result, 6.0F);
        weir_tensor_drop(result);
    }
    return argument;
}

/* The shared tensor is still to be computed by another stream's queue. */
static void *compute_on_own_queue(void *argument)
{
    weir_stream *own = NULL;
    assert_ok(weir_stream_create(device, NULL, &own));
    for (int round = 0; round < ROUNDS; round++) {
        weir_tensor *base = NULL;
        weir_tensor *pending = NULL;
        weir_tensor *sum = NULL;
        assert_ok(weir_tensor_zeros(own, WEIR_SHAPE(COUNT), &base));
        pending = twice(shared);
        assert_ok(weir_tensor_add(base, pending, &sum));
        weir_tensor_drop(base);
        weir_tensor_drop(pending);
        assert_all(sum, 6.0F);
        assert_true(weir_tensor_stream(sum) == own);
        weir_tensor_drop(sum);
    }
    assert_ok(weir_stream_close(own));
    return argument;
}

static void run_threads(void *(*function)(void *))
{
    pthread_t threads[THREADS];
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(COUNT), 3.0F, &shared));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, function, NULL), 0);
    }
    for (int i = 0; i < 20; i++) {
        assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    weir_tensor_drop(shared);
    assert_ok(weir_device_sync(device));
    assert_int_equal(in_use_bytes(), 0);
}

static void threads__share_a_queue_while_others_clean_up(void **state)
{
    (void)state;
    run_threads(compute_on_one_queue);
}

static void threads__use_each_others_pending_results(void **state)
{
    (void)state;
    run_threads(compute_on_own_queue);
}

/* A dropped tensor makes room; anything else on the queue that is running is refused. */
static weir_tensor *spare;
static weir_result inside;

static bool drop_the_spare(void *context, weir_device *on, uint64_t needed_bytes)
{
    weir_tensor *more = NULL;
    (void)context;
    (void)on;
    (void)needed_bytes;
    if (spare == NULL) {
        return false;
    }
    inside = weir_tensor_add_scalar(spare, 1.0, &more);
    weir_tensor_drop(spare);
    spare = NULL;
    return true;
}

static void reclaim_callbacks__drop_tensors_while_the_queue_runs(void **state)
{
    (void)state;
    weir_tensor *x = NULL;
    weir_tensor *y = NULL;
    float *values = malloc((4 << 20) * sizeof *values);
    assert_non_null(values);
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(4 << 20), 1.0F, &x));
    assert_ok(weir_tensor_full(stream, WEIR_SHAPE(4 << 20), 2.0F, &spare));
    assert_ok(weir_device_limit(device, 33 << 20));
    assert_ok(weir_device_reclaim_add(device, drop_the_spare, NULL));
    assert_ok(weir_tensor_add_scalar(x, 1.0, &y));
    assert_ok(weir_tensor_into_data(y, values, 4 << 20));
    assert_true(values[0] == 2.0F && values[(4 << 20) - 1] == 2.0F);
    assert_null(spare);
    assert_int_equal(inside, WEIR_BUSY);
    assert_ok(weir_device_reclaim_remove(device, drop_the_spare, NULL));
    weir_tensor_drop(x);
    weir_tensor_drop(y);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(threads__share_a_queue_while_others_clean_up),
        ON_HOST(threads__use_each_others_pending_results),
        ON_HOST(reclaim_callbacks__drop_tensors_while_the_queue_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
