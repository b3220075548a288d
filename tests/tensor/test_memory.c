/* SPDX-License-Identifier: MIT */
/* What tensors do to memory over time. */
#include "device.h"

#include <stdlib.h>

enum { BATCH = 32, INPUTS = 64, HIDDEN = 128, CLASSES = 10, WARM = 10 };

static weir_usage usage_now(void)
{
    weir_usage usage = {.size = sizeof usage};
    assert_ok(weir_device_memory_usage(device, &usage));
    return usage;
}

static uint64_t driver_calls(const weir_usage *usage)
{
    return usage->page_allocs + usage->page_frees + usage->commits + usage->decommits +
           usage->moves;
}

static weir_tensor *uniform(weir_shape shape, uint64_t seed)
{
    weir_tensor *made = NULL;
    assert_ok(weir_tensor_uniform(stream, shape, -1, 1, seed, &made));
    return made;
}

/* The number of the largest class of each row, by softmax(relu(x w) v). */
static void forward(weir_tensor *const net[3], float best[BATCH])
{
    weir_tensor *made[5] = {NULL};
    assert_ok(weir_tensor_matmul(net[0], net[1], &made[0]));
    assert_ok(weir_tensor_relu(made[0], &made[1]));
    assert_ok(weir_tensor_matmul(made[1], net[2], &made[2]));
    assert_ok(weir_tensor_softmax(made[2], 1, &made[3]));
    assert_ok(weir_tensor_reduce_argmax(made[3], 1, false, &made[4]));
    assert_ok(weir_tensor_into_data(made[4], best, BATCH));
    for (int i = 0; i < 5; i++) {
        weir_tensor_drop(made[i]);
    }
}

static void steps__keep_what_is_reserved_and_do_not_call_the_driver(void **state)
{
    (void)state;
    int steps = getenv("WEIR_SOAK") != NULL ? 10000 : 500;
    weir_tensor *net[3] = {uniform(WEIR_SHAPE(BATCH, INPUTS), 1),
                           uniform(WEIR_SHAPE(INPUTS, HIDDEN), 2),
                           uniform(WEIR_SHAPE(HIDDEN, CLASSES), 3)};
    float first[BATCH];
    float best[BATCH];
    for (int i = 0; i < WARM; i++) {
        forward(net, first);
    }
    weir_usage warm = usage_now();
    for (int i = WARM; i < steps; i++) {
        forward(net, best);
        weir_usage now = usage_now();
        assert_int_equal(now.reserved_bytes, warm.reserved_bytes);
        assert_int_equal(now.in_use_bytes, warm.in_use_bytes);
        assert_int_equal(driver_calls(&now), driver_calls(&warm));
    }
    assert_memory_equal(best, first, sizeof best);
    for (int i = 0; i < 3; i++) {
        weir_tensor_drop(net[i]);
    }
}

/* Nothing has run when the cleanup comes: the queue still holds what was dropped. */
static void cleanup__returns_what_was_dropped_without_a_sync(void **state)
{
    (void)state;
    weir_tensor *x = uniform(WEIR_SHAPE(1024, 1024), 1);
    weir_tensor *product = NULL;
    weir_tensor *y = NULL;
    weir_cleanup_outcome outcome = {.size = sizeof outcome};
    assert_ok(weir_tensor_add_scalar(x, 1, &y));
    assert_ok(weir_tensor_matmul(y, x, &product));
    uint64_t reserved = usage_now().reserved_bytes;
    weir_tensor_drop(x);
    weir_tensor_drop(y);
    weir_tensor_drop(product);
    assert_true(reserved >= 4 << 20);
    assert_int_equal(usage_now().in_use_bytes, 4 << 20);
    assert_ok(weir_device_memory_cleanup(device, NULL, &outcome));
    assert_int_equal(outcome.returned_bytes, reserved);
    assert_int_equal(usage_now().reserved_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(steps__keep_what_is_reserved_and_do_not_call_the_driver),
        ON_HOST(cleanup__returns_what_was_dropped_without_a_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
