/* SPDX-License-Identifier: MIT */
/* The two ways in which programs with tensors grow, what Weir says of each, and the cure.
 *
 *   leak [DEVICE]      "host" if none is named
 *
 * A held tensor: results are kept in a list that nobody empties. They carry the tag of
 * the code that made them.
 *
 * A forward-only tape: a sum of losses that is only meant to be printed holds the way
 * back through every step that went into it. What the tape keeps of results carries the
 * tag "autodiff"; inputs that only the tape still holds keep their own. Taking the loss
 * off the tape (weir_tensor_detach), or pausing it, is all it takes. A tape that nobody
 * reaches goes by itself, so that a program which just goes forward does not grow.
 *
 * Ends with 1 if a growth is not where it should be, or not named. */
#include <weir/autodiff.h>
#include <weir/report.h>
#include <weir/tensor.h>
#include <weir/weir.h>

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 64, WIDTH = 65536 };

static weir_device *device;
static weir_stream *stream;
static weir_tensor *weights;

static void check(weir_result result)
{
    if (result != WEIR_OK) {
        errx(1, "%s", weir_last_error());
    }
}

/* ---- the program: y = sigmoid(weights * x), loss = sum(y) ---- */

typedef struct outcome {
    weir_tensor *y;
    weir_tensor *loss;
} outcome;

static outcome forward(uint64_t number)
{
    outcome made = {NULL, NULL};
    weir_tensor *x = NULL;
    weir_tensor *product = NULL;
    check(weir_tag_push("input"));
    check(weir_tensor_full(stream, WEIR_SHAPE(WIDTH), (float)number, &x));
    check(weir_tag_pop());
    check(weir_tensor_mul(weights, x, &product));
    check(weir_tensor_sigmoid(product, &made.y));
    check(weir_tensor_reduce(WEIR_REDUCE_SUM, made.y, WEIR_ALL_AXES, false, &made.loss));
    weir_tensor_drop(x);
    weir_tensor_drop(product);
    return made;
}

static void drop(outcome made)
{
    weir_tensor_drop(made.y);
    weir_tensor_drop(made.loss);
}

/* ---- what it does with each step ---- */

static weir_tensor *list[STEPS];
static weir_tensor *total;

static void keep_results(uint64_t number)
{
    check(weir_tag_push("history"));
    check(weir_tape_pause());
    outcome made = forward(number);
    check(weir_tape_resume());
    check(weir_tag_pop());
    list[number] = weir_tensor_clone(made.y);
    drop(made);
}

static void forget_results(uint64_t number)
{
    keep_results(number);
    weir_tensor_drop(list[number]);
    list[number] = NULL;
}

/* Takes the loss over. */
static void add_to_total(weir_tensor *loss)
{
    weir_tensor *sum = NULL;
    if (total == NULL) {
        total = loss;
        return;
    }
    check(weir_tensor_add(total, loss, &sum));
    weir_tensor_drop(total);
    weir_tensor_drop(loss);
    total = sum;
}

static void sum_losses(uint64_t number)
{
    outcome made = forward(number);
    add_to_total(weir_tensor_clone(made.loss));
    drop(made);
}

static void sum_detached_losses(uint64_t number)
{
    weir_tensor *plain = NULL;
    outcome made = forward(number);
    check(weir_tensor_detach(made.loss, &plain));
    add_to_total(plain);
    drop(made);
}

static void only_go_forward(uint64_t number)
{
    drop(forward(number));
}

static void let_go(void)
{
    for (int i = 0; i < STEPS; i++) {
        weir_tensor_drop(list[i]);
        list[i] = NULL;
    }
    weir_tensor_drop(total);
    total = NULL;
}

/* ---- looking at it ---- */

/* Without the arguments of launches, of which some drivers keep up to 64 in device
 * memory. */
static uint64_t in_use_bytes(void)
{
    weir_usage usage = {.size = sizeof usage};
    weir_tag_usage arguments = {.tag = ""};
    check(weir_stream_sync(stream));
    check(weir_device_memory_usage(device, &usage));
    check(weir_device_tag_usage(device, "arguments", &arguments));
    return usage.in_use_bytes - arguments.in_use_bytes;
}

/* The line of weir_device_explain that tells of held bytes. Whether it names the tag. */
static bool explain(const char *tag)
{
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    check(weir_device_explain_lines(device, lines));
    printf("    explain: %s\n    cure:    %s\n", lines[0].reason, lines[0].way_out);
    return strstr(lines[0].reason, tag) != NULL;
}

/* Whether the bytes in use grow as they should: by most of a result with each step, under
 * the tag, or, without a tag, not at all after the first. */
static bool watch(const char *what, void (*step)(uint64_t), const char *tag)
{
    char sizes[2][24];
    step(0);
    uint64_t early = in_use_bytes();
    for (uint64_t number = 1; number < STEPS; number++) {
        step(number);
    }
    uint64_t late = in_use_bytes();
    printf("%-34s %10s after step 1, %10s after %d\n", what,
           weir_format_bytes(early, sizes[0]), weir_format_bytes(late, sizes[1]), STEPS);
    bool is_right =
        tag != NULL ? late >= early + (STEPS - 1) * WIDTH * sizeof(float) : late == early;
    is_right &= tag == NULL || explain(tag);
    let_go();
    return is_right;
}

static void open_all(const char *name)
{
    weir_tensor *plain = NULL;
    check(weir_device_open(name, NULL, &device));
    stream = weir_device_default_stream(device);
    check(weir_tag_push("weights"));
    check(weir_tensor_full(stream, WEIR_SHAPE(WIDTH), 0.5F, &plain));
    check(weir_tag_pop());
    check(weir_tensor_track(plain, &weights));
    weir_tensor_drop(plain);
}

int main(int argc, char **argv)
{
    open_all(argc > 1 ? argv[1] : "host");
    bool is_right = watch("results kept in a list", keep_results, "history");
    is_right &= watch("the same, dropped", forget_results, NULL);
    is_right &= watch("losses summed up on the tape", sum_losses, "autodiff");
    is_right &= watch("the same, detached", sum_detached_losses, NULL);
    is_right &= watch("forward only", only_go_forward, NULL);
    weir_tensor_drop(weights);
    check(weir_device_close(device));
    printf("%s\n", is_right ? "every growth had its name" : "a growth was not as told");
    return is_right ? 0 : 1;
}
