/* SPDX-License-Identifier: MIT */
/* Training as a steady loop: after its first steps it asks nothing more of the driver,
 * reserves nothing more, and holds as much after a step as after the one before. With
 * WEIR_SOAK=1 10,000 steps, else a few hundred. */
#include <stdlib.h>
#include <string.h>

#include "device.h"

#include "kernel/memory.h"

#include <weir/autodiff.h>
#include <weir/optimizer.h>

enum { ROWS = 32, INPUTS = 48, HIDDEN = 96, CLASSES = 10, WARM_UP = 10 };

static weir_tensor *parameters[4];

static int step_count(void)
{
    const char *soak = getenv("WEIR_SOAK");
    return soak != NULL && strcmp(soak, "1") == 0 ? 10000 : 300;
}

static weir_tensor *make_leaf(weir_shape shape, uint64_t seed)
{
    weir_tensor *plain = NULL;
    weir_tensor *leaf = NULL;
    assert_ok(weir_tensor_normal(stream, shape, 0.0F, 0.1F, seed, &plain));
    assert_ok(weir_tensor_track(plain, &leaf));
    weir_tensor_drop(plain);
    return leaf;
}

static void make_net(void)
{
    assert_ok(weir_tag_push("weights"));
    parameters[0] = make_leaf(WEIR_SHAPE(INPUTS, HIDDEN), 1);
    parameters[1] = make_leaf(WEIR_SHAPE(HIDDEN), 2);
    parameters[2] = make_leaf(WEIR_SHAPE(HIDDEN, CLASSES), 3);
    parameters[3] = make_leaf(WEIR_SHAPE(CLASSES), 4);
    assert_ok(weir_tag_pop());
}

/* The input is taken over. */
static weir_tensor *layer(weir_tensor *input, weir_tensor *weights, weir_tensor *bias)
{
    weir_tensor *product = NULL;
    weir_tensor *sum = NULL;
    assert_ok(weir_tensor_matmul(input, weights, &product));
    assert_ok(weir_tensor_add(product, bias, &sum));
    weir_tensor_drop(input);
    weir_tensor_drop(product);
    return sum;
}

static weir_tensor *find_loss(uint64_t seed)
{
    int32_t classes[ROWS];
    weir_tensor *input = NULL;
    weir_tensor *targets = NULL;
    weir_tensor *hidden = NULL;
    weir_tensor *loss = NULL;
    for (int i = 0; i < ROWS; i++) {
        classes[i] = i % CLASSES;
    }
    assert_ok(
        weir_tensor_normal(stream, WEIR_SHAPE(ROWS, INPUTS), 0.0F, 1.0F, seed, &input));
    assert_ok(weir_tensor_from_data(stream, WEIR_SHAPE(ROWS), WEIR_DTYPE_I32, classes,
                                    &targets));
    weir_tensor *sum = layer(input, parameters[0], parameters[1]);
    assert_ok(weir_tensor_gelu(sum, &hidden));
    weir_tensor_drop(sum);
    weir_tensor *logits = layer(hidden, parameters[2], parameters[3]);
    assert_ok(weir_tensor_cross_entropy(logits, targets, &loss));
    weir_tensor_drop(logits);
    weir_tensor_drop(targets);
    return loss;
}

static weir_usage look(void)
{
    weir_usage usage = {.size = sizeof usage};
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_device_memory_usage(device, &usage));
    return usage;
}

static uint64_t driver_calls(const weir_usage *usage)
{
    return usage->page_allocs + usage->page_frees + usage->commits + usage->decommits +
           usage->moves;
}

static void assert_steady(const weir_usage *warm, uint64_t live)
{
    weir_usage now = look();
    assert_int_equal(now.in_use_bytes, warm->in_use_bytes);
    assert_int_equal(now.reserved_bytes, warm->reserved_bytes);
    assert_int_equal(now.peak_reserved_bytes, warm->peak_reserved_bytes);
    assert_int_equal(driver_calls(&now), driver_calls(warm));
    assert_int_equal(wr_memory_live(), live);
}

static void drop_net(void)
{
    for (int i = 0; i < 4; i++) {
        weir_tensor_drop(parameters[i]);
    }
}

static void training__reserves_nothing_after_its_first_steps(void **state)
{
    (void)state;
    weir_optimizer *optimizer = NULL;
    weir_usage warm = {0};
    uint64_t live = 0;
    make_net();
    assert_ok(weir_optimizer_create_adamw(parameters, 4, NULL, &optimizer));
    for (int number = 1; number <= step_count(); number++) {
        weir_tensor *loss = find_loss((uint64_t)number);
        assert_ok(weir_tensor_backward(loss, NULL));
        weir_tensor_drop(loss);
        assert_ok(weir_optimizer_step(optimizer, 1e-3));
        if (number == WARM_UP) {
            warm = look();
            live = wr_memory_live();
        }
    }
    assert_steady(&warm, live);
    weir_optimizer_destroy(optimizer);
    drop_net();
}

static void forward_only__with_tracked_parameters_holds_no_more(void **state)
{
    (void)state;
    weir_usage warm = {0};
    uint64_t live = 0;
    make_net();
    for (int number = 1; number <= step_count(); number++) {
        weir_tensor *loss = find_loss((uint64_t)number);
        assert_true(weir_tensor_is_tracked(loss));
        double value = 0;
        assert_ok(weir_tensor_item(loss, &value));
        weir_tensor_drop(loss);
        if (number == WARM_UP) {
            warm = look();
            live = wr_memory_live();
        }
    }
    assert_steady(&warm, live);
    drop_net();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_HOST(training__reserves_nothing_after_its_first_steps),
        ON_HOST(forward_only__with_tracked_parameters_holds_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
