/* SPDX-License-Identifier: MIT */
/* The replay loop. It is timed in segments, so that progress and the reading at the peak
 * stay out of the time, and run once more without its calls, so that the loop itself can
 * be taken off. */
#define _POSIX_C_SOURCE 200809L
#include "run.h"

#include "meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEGMENT_OPS (1U << 19)

typedef struct replay {
    const wr_trace *trace;
    const wr_replay_desc *desc;
    weir_device *device;
    weir_driver *sim; /* NULL on other drivers */
    weir_stream *
        *streams; /* trace->stream_count of them; those from 1 on are ours to close */
    weir_buffer *buffers; /* by slot */
    double loop_ns;       /* of one pass without its calls */
    wr_replay_error *error;
} replay;

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static bool fail(replay *run, const char *what)
{
    snprintf(run->error->reason, sizeof run->error->reason, "%s%s", what,
             weir_last_error());
    return false;
}

static weir_result mark(const replay *run)
{
    if (run->desc->step_ms == 0) {
        return WEIR_OK;
    }
    weir_sim_advance(run->sim, run->desc->step_ms);
    return weir_device_tick(run->device, 0);
}

static inline weir_result play_one(replay *run, const wr_trace_op *op)
{
    switch ((wr_trace_kind)op->kind) {
    case WR_TRACE_KIND_ALLOC:
        return weir_buffer_create(run->streams[op->stream], op->bytes, NULL,
                                  &run->buffers[op->slot]);
    case WR_TRACE_KIND_FREE:
        return weir_buffer_release(run->buffers[op->slot]);
    case WR_TRACE_KIND_MARK:
        return mark(run);
    case WR_TRACE_KIND_NOTHING:
        break;
    }
    return WEIR_OK;
}

/* Plays [begin, end) of the operations; the index of the one that failed, or `end`. */
static size_t play(replay *run, size_t begin, size_t end)
{
    const wr_trace_op *ops = run->trace->ops;
    bool has_lag = run->desc->lag > 0;
    for (size_t i = begin; i < end; i++) {
        if (play_one(run, &ops[i]) != WEIR_OK) {
            return i;
        }
        if (has_lag && ops[i].kind != WR_TRACE_KIND_MARK) {
            weir_stream *stream = run->streams[ops[i].stream];
            weir_sim_queue(run->sim, weir_stream_driver_stream(stream));
            weir_sim_step(run->sim);
        }
    }
    return end;
}

/* What the loop costs without the calls: it reads each operation and writes its slot. */
static double measure_loop_ns(replay *run)
{
    const wr_trace_op *ops = run->trace->ops;
    double start = now_ns();
    for (size_t i = 0; i < run->trace->op_count; i++) {
        if (ops[i].kind == WR_TRACE_KIND_ALLOC) {
            run->buffers[ops[i].slot] =
                (weir_buffer){ops[i].stream, (uint32_t)ops[i].bytes};
        } else if (ops[i].kind == WR_TRACE_KIND_FREE) {
            run->buffers[ops[i].slot] = WEIR_NO_BUFFER;
        }
    }
    return now_ns() - start;
}

static bool fail_at(replay *run, size_t at)
{
    const wr_trace *trace = run->trace;
    run->error->operation = 1;
    for (size_t i = 0; i < at; i++) {
        run->error->operation += trace->ops[i].kind != WR_TRACE_KIND_MARK;
    }
    run->error->bytes = trace->ops[at].bytes;
    run->error->stream = trace->ops[at].stream;
    return fail(run, "");
}

static bool read_padding(replay *run, wr_replay_result *result)
{
    weir_usage usage = {.size = sizeof usage};
    if (weir_device_memory_usage(run->device, &usage) != WEIR_OK) {
        return fail(run, "the usage cannot be read: ");
    }
    result->padding_bytes = usage.padding_bytes;
    return true;
}

/* Plays the trace to its end. The peak is looked at in the first pass only. */
static bool play_once(replay *run, bool is_first, double *spent_ns,
                      wr_replay_result *result)
{
    const wr_trace *trace = run->trace;
    size_t peak = is_first ? trace->peak_op : SIZE_MAX - 1;
    for (size_t begin = 0, end; begin < trace->op_count; begin = end) {
        end =
            trace->op_count - begin > SEGMENT_OPS ? begin + SEGMENT_OPS : trace->op_count;
        end = begin <= peak && peak + 1 < end ? peak + 1 : end;
        double start = now_ns();
        size_t reached = play(run, begin, end);
        *spent_ns += now_ns() - start;
        if (reached < end) {
            return fail_at(run, reached);
        }
        if (end == peak + 1 && !read_padding(run, result)) {
            return false;
        }
        if (run->desc->progress != NULL) {
            run->desc->progress((double)end / (double)trace->op_count);
        }
    }
    return true;
}

/* What the trace left live goes back. */
static bool drop_rest(replay *run)
{
    size_t end = run->trace->op_count + run->trace->tail_count;
    return play(run, run->trace->op_count, end) == end ||
           fail(run, "what is live at the end cannot be dropped: ");
}

static double per_operation(const replay *run, double ns, uint64_t passes)
{
    double count = (double)run->trace->operation_count * (double)passes;
    return ns > 0 && count > 0 ? ns / count : 0;
}

static bool play_passes(replay *run, uint64_t count, bool is_first, wr_replay_pass *pass,
                        wr_replay_result *result)
{
    double spent_ns = -run->loop_ns * (double)count;
    wr_meter_reading before = wr_meter_read();
    double outside_ns = 0; /* memory calls between the passes */
    for (uint64_t i = 0; i < count; i++) {
        double between = wr_meter_read().ns;
        if (!is_first && !drop_rest(run)) {
            return false;
        }
        outside_ns += wr_meter_read().ns - between;
        if (!play_once(run, is_first, &spent_ns, result)) {
            return false;
        }
    }
    wr_meter_reading after = wr_meter_read();
    double memory_ns = after.ns - before.ns - outside_ns;
    pass->driver_calls = after.calls - before.calls;
    pass->ns_per_operation = per_operation(run, spent_ns, count);
    pass->host_ns_per_operation = per_operation(run, spent_ns - memory_ns, count);
    return true;
}

/* Drops what the trace left live, cleans up, and sees what stays. */
static bool drop_all(replay *run, wr_replay_result *result)
{
    if (!drop_rest(run)) {
        return false;
    }
    weir_usage usage = {.size = sizeof usage};
    if (weir_device_memory_cleanup(run->device, &(weir_cleanup_desc){.wait = true},
                                   NULL) != WEIR_OK ||
        weir_device_memory_usage(run->device, &usage) != WEIR_OK) {
        return fail(run, "the cleanup at the end failed: ");
    }
    result->kept_bytes = usage.reserved_bytes;
    return true;
}

static void read_model(const replay *run, wr_replay_result *result)
{
    weir_sim_ledger ledger;
    result->has_modelled_seconds = run->sim != NULL;
    if (run->sim != NULL) {
        weir_sim_read_ledger(run->sim, &ledger);
        result->modelled_seconds = ledger.modelled_seconds;
    }
}

static bool measure(replay *run, wr_replay_result *result)
{
    weir_usage usage = {.size = sizeof usage};
    run->loop_ns = measure_loop_ns(run); /* first, as it fills the slots */
    if (!play_passes(run, 1, true, &result->first, result)) {
        return false;
    }
    read_model(run, result);
    if (run->desc->passes > 1 &&
        !play_passes(run, run->desc->passes - 1, false, &result->later, result)) {
        return false;
    }
    if (weir_device_memory_usage(run->device, &usage) != WEIR_OK) {
        return fail(run, "the usage cannot be read: ");
    }
    result->peak_reserved_bytes = usage.peak_reserved_bytes;
    return drop_all(run, result);
}

static bool open_device(replay *run)
{
    const wr_replay_desc *desc = run->desc;
    bool is_sim = strcmp(desc->device, "sim") == 0;
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = desc->capacity_bytes;
    sim.context_bytes = 0;
    sim.granule_bytes = desc->granule_bytes;
    sim.chunk_bytes = desc->chunk_bytes;
    sim.lag = desc->lag;
    weir_device_desc options = {
        .size = sizeof options,
        .preset = desc->preset,
        .no_thread = is_sim,
        .driver_config = is_sim ? &sim : NULL,
    };
    const char *argument = NULL;
    const weir_driver_table *table = wr_meter_table(desc->device, &argument);
    weir_result result =
        table != NULL
            ? weir_device_open_driver(table, argument, &options, &run->device)
            : weir_device_open(desc->device, &options, &run->device); /* for its text */
    if (result != WEIR_OK) {
        return fail(run, "");
    }
    run->sim = is_sim ? weir_device_driver(run->device) : NULL;
    return true;
}

static bool open_streams(replay *run)
{
    uint32_t count = run->trace->stream_count;
    run->streams = calloc(count, sizeof(weir_stream *));
    run->buffers = calloc((size_t)run->trace->slot_count + 1, sizeof *run->buffers);
    if (run->streams == NULL || run->buffers == NULL) {
        snprintf(run->error->reason, sizeof run->error->reason,
                 "the host has no memory for the replay");
        return false;
    }
    run->streams[0] = weir_device_default_stream(run->device);
    for (uint32_t i = 1; i < count; i++) {
        if (weir_stream_create(run->device, NULL, &run->streams[i]) != WEIR_OK) {
            return fail(run, "a stream cannot be made: ");
        }
    }
    return true;
}

static bool close_all(replay *run)
{
    for (uint32_t i = 1; i < run->trace->stream_count; i++) {
        if (weir_stream_close(run->streams[i]) != WEIR_OK) {
            return fail(run, "a stream cannot be closed: ");
        }
    }
    if (weir_device_close(run->device) != WEIR_OK) {
        return fail(run, "the device cannot be closed: ");
    }
    run->device = NULL;
    return true;
}

bool wr_replay_run(const wr_trace *trace, const wr_replay_desc *desc,
                   wr_replay_result *result, wr_replay_error *error)
{
    replay run = {.trace = trace, .desc = desc, .error = error};
    wr_replay_result found = {0};
    *error = (wr_replay_error){0};
    bool ok = open_device(&run) && open_streams(&run);
    error->is_setup = !ok;
    if (ok) {
        snprintf(found.preset, sizeof found.preset, "%s", weir_device_preset(run.device));
        ok = measure(&run, &found) && close_all(&run);
    }
    weir_device_abandon(run.device);
    free(run.streams);
    free(run.buffers);
    if (ok) {
        *result = found;
    }
    return ok;
}
