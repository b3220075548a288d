/* SPDX-License-Identifier: MIT */
/* The steps of the two experiments. */
#define _GNU_SOURCE
#include "demo.h"

#include <weir/sim.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRY(call)                                                                        \
    do {                                                                                 \
        weir_result try_result_ = (call);                                                \
        if (try_result_ != WEIR_OK) {                                                    \
            return try_result_;                                                          \
        }                                                                                \
    } while (0)

/* ---- what steps do ---- */

/* A tensor and its sum with a scalar, both dropped again. */
static weir_result make_and_drop(wr_demo *demo, weir_shape shape)
{
    weir_tensor *left = NULL;
    weir_tensor *sum = NULL;
    weir_result result = weir_tensor_uniform(demo->stream, shape, 0.0F, 1.0F, 1, &left);
    if (result == WEIR_OK) {
        result = weir_tensor_add_scalar(left, 1.0F, &sum);
    }
    weir_tensor_drop(sum);
    weir_tensor_drop(left);
    return result;
}

static weir_result run_small_op(wr_demo *demo)
{
    TRY(weir_tag_push("activations"));
    weir_result result = make_and_drop(demo, WEIR_SHAPE(1));
    weir_tag_pop();
    return result;
}

static weir_result create_tensors(wr_demo *demo, const char *tag, weir_shape shape)
{
    TRY(weir_tag_push(tag));
    weir_result result = WEIR_OK;
    for (uint64_t i = 0; i < WR_DEMO_TENSORS && result == WEIR_OK; i++) {
        result =
            weir_tensor_uniform(demo->stream, shape, 0.0F, 1.0F, i, &demo->tensors[i]);
    }
    weir_tag_pop();
    return result;
}

static weir_result create_weights(wr_demo *demo)
{
    return create_tensors(demo, "weights", WEIR_SHAPE(4096, 4096));
}

static weir_result create_activations(wr_demo *demo)
{
    return create_tensors(demo, "activations", WEIR_SHAPE(256, 256));
}

static weir_result drop_tensors(wr_demo *demo)
{
    for (int i = 0; i < WR_DEMO_TENSORS; i++) {
        weir_tensor_drop(demo->tensors[i]);
        demo->tensors[i] = NULL;
    }
    return WEIR_OK;
}

static weir_result cleanup(wr_demo *demo)
{
    const weir_cleanup_desc desc = {.wait = demo->is_waiting};
    return weir_device_memory_cleanup(demo->device, &desc, NULL);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static weir_result first_cleanup(wr_demo *demo)
{
    const weir_cleanup_desc desc = {.wait = demo->is_waiting};
    weir_cleanup_outcome outcome = {.size = sizeof outcome};
    double start = now_ms();
    TRY(weir_device_memory_cleanup(demo->device, &desc, &outcome));
    demo->cleanup_ms = now_ms() - start;
    demo->returned_bytes = outcome.returned_bytes;
    return WEIR_OK;
}

/* On a driver whose time is made the tick does what the reclaimer thread does elsewhere.
 */
static weir_result let_time_pass(wr_demo *demo, uint64_t ms)
{
    if (demo->has_made_time) {
        weir_sim_advance(weir_device_driver(demo->device), ms);
        return weir_device_tick(demo->device, 0);
    }
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    return WEIR_OK;
}

static weir_result wait_500_ms(wr_demo *demo)
{
    return let_time_pass(demo, 500);
}

static weir_result wait_2_s(wr_demo *demo)
{
    return let_time_pass(demo, 2000);
}

static uint64_t idle_wait_ms(const wr_demo *demo)
{
    return demo->idle_ms + 1000;
}

static weir_result wait_until_idle(wr_demo *demo)
{
    TRY(let_time_pass(demo, idle_wait_ms(demo)));
    weir_usage usage = {.size = sizeof usage};
    TRY(weir_device_memory_usage(demo->device, &usage));
    uint64_t before = demo->dropped.report.usage.reserved_bytes;
    demo->returned_bytes =
        before > usage.reserved_bytes ? before - usage.reserved_bytes : 0;
    return WEIR_OK;
}

/* ---- the experiments ---- */

static const wr_demo_step reference_steps[] = {
    {"start", run_small_op, false},
    {"4 x [4096,4096] f32", create_weights, false},
    {"dropped", drop_tensors, true},
    {"4 x [256,256] f32", create_activations, false},
    {"dropped", drop_tensors, false},
    {"memory_cleanup", first_cleanup, false},
    {"+500 ms", wait_500_ms, false},
    {"+1 small op", run_small_op, false},
    {"memory_cleanup again", cleanup, false},
    {"+2 s", wait_2_s, false},
};

static const wr_demo_step idle_steps[] = {
    {"start", run_small_op, false},
    {"4 x [4096,4096] f32", create_weights, false},
    {"dropped", drop_tensors, true},
    {NULL, wait_until_idle, false},
};

const wr_demo_step *wr_demo_steps(const wr_demo *demo, size_t *count)
{
    *count = demo->is_idle ? sizeof idle_steps / sizeof *idle_steps
                           : sizeof reference_steps / sizeof *reference_steps;
    return demo->is_idle ? idle_steps : reference_steps;
}

/* ---- rows ---- */

static void fill_row(wr_demo_row *row, const weir_device_report *report)
{
    row->in_use_bytes = report->usage.in_use_bytes;
    row->reserved_bytes = report->usage.reserved_bytes;
    row->footprint_bytes = report->footprint_bytes;
    row->padding_bytes = report->usage.padding_bytes;
    row->deferred_bytes = report->usage.deferred_bytes;
    row->releasable_bytes = report->usage.releasable_bytes;
    row->pinned_bytes = report->usage.pinned_bytes;
    row->driver_deferred_bytes = report->usage.driver_deferred_bytes;
    row->overhead_bytes = report->overhead_bytes;
    row->untouched_bytes = report->untouched_bytes;
    row->others_bytes = report->others_bytes;
}

static weir_result write_text(weir_device *device, char **text)
{
    char *words = NULL;
    size_t word_bytes;
    FILE *memory = open_memstream(&words, &word_bytes);
    if (memory == NULL) {
        return weir_driver_error(WEIR_OUT_OF_HOST_MEMORY,
                                 "no memory for the explanation");
    }
    weir_result result = weir_device_explain(device, weir_write_file, memory);
    if (fclose(memory) != 0 && result == WEIR_OK) {
        result =
            weir_driver_error(WEIR_OUT_OF_HOST_MEMORY, "no memory for the explanation");
    }
    free(*text);
    *text = words;
    return result;
}

static weir_result ask(wr_demo *demo, wr_demo_dropped *dropped)
{
    TRY(weir_device_explain_lines(demo->device, dropped->lines));
    return write_text(demo->device, &dropped->text);
}

weir_result wr_demo_warm_up(wr_demo *demo)
{
    weir_device_report report = {.size = sizeof report};
    TRY(make_and_drop(demo,
                      WEIR_SHAPE(128, 128))); /* enough elements for several threads */
    TRY(weir_device_sync(demo->device));
    TRY(weir_device_memory_report(demo->device, &report));
    TRY(ask(demo, &demo->dropped));
    return cleanup(demo);
}

weir_result wr_demo_run_step(wr_demo *demo, const wr_demo_step *step)
{
    weir_device_report report = {.size = sizeof report};
    TRY(step->run(demo));
    TRY(weir_device_sync(demo->device));
    TRY(weir_device_memory_report(demo->device, &report));
    if (step->is_asked_about) {
        demo->dropped.report = report;
        TRY(ask(demo, &demo->dropped));
    }
    wr_demo_row *row = &demo->rows[demo->row_count++];
    fill_row(row, &report);
    if (step->label != NULL) {
        snprintf(row->label, sizeof row->label, "%s", step->label);
    } else {
        snprintf(row->label, sizeof row->label, "+%g s, no call",
                 (double)idle_wait_ms(demo) / 1000.0);
    }
    return WEIR_OK;
}

void wr_demo_finish(wr_demo *demo)
{
    drop_tensors(demo);
    free(demo->dropped.text);
    demo->dropped.text = NULL;
    weir_device_close(demo->device);
    demo->device = NULL;
}
