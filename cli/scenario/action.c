/* SPDX-License-Identifier: MIT */
/* Statements that act: each is one or two calls of the public API. */
#define _POSIX_C_SOURCE 200809L
#include "random.h"
#include "run.h"

#include <time.h>

typedef bool action_fn(wr_scn_run *run, const wr_scn_statement *statement);

/* The stream of a statement; NULL if it could not be opened and that is the scenario's
 * doing. */
static bool get_stream(wr_scn_run *run, const wr_scn_statement *statement,
                       wr_scn_stream **stream)
{
    weir_result result;
    return wr_scn_stream_get(run, statement->stream, stream, &result) &&
           (result == WEIR_OK || wr_scn_accept(run, "weir_stream_create", result));
}

static bool get_size(wr_scn_run *run, const wr_scn_statement *statement, const char *what,
                     uint64_t *size)
{
    return wr_scn_evaluate_size(run, &statement->number[0], what, size);
}

/* ---- streams ---- */

static bool run_use(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_buffer *buffer;
    wr_scn_stream *stream;
    if (!wr_scn_buffer_get(run, statement->name, &buffer) ||
        !get_stream(run, statement, &stream)) {
        return false;
    }
    if (!buffer || !stream) {
        return true;
    }
    weir_result result = weir_buffer_use(buffer->handle, stream->stream);
    if (result != WEIR_OK) {
        return wr_scn_accept(run, "weir_buffer_use", result);
    }
    return wr_scn_accept(run, "weir_sim_queue",
                         weir_sim_queue(run->sim, stream->driver_stream));
}

static bool run_finish(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_stream *stream;
    if (!statement->stream.start) {
        weir_sim_finish_all(run->sim);
        return true;
    }
    if (!get_stream(run, statement, &stream)) {
        return false;
    }
    if (stream) {
        weir_sim_finish(run->sim, stream->driver_stream);
    }
    return true;
}

static bool run_sync(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_stream *stream;
    if (!statement->stream.start) {
        return wr_scn_accept(run, "weir_device_sync", weir_device_sync(run->device));
    }
    return get_stream(run, statement, &stream) &&
           (!stream ||
            wr_scn_accept(run, "weir_stream_sync", weir_stream_sync(stream->stream)));
}

static bool run_close(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_stream *stream;
    if (!get_stream(run, statement, &stream)) {
        return false;
    }
    if (!stream) {
        return true;
    }
    weir_result result = weir_stream_close(stream->stream);
    if (result == WEIR_OK) {
        stream->stream = NULL;
    }
    return wr_scn_accept(run, "weir_stream_close", result);
}

/* ---- cleanup and time ---- */

/* All that the sim driver was handed back so far; elsewhere cleanups do not fail on the
 * way. */
static uint64_t handed_back(const wr_scn_run *run)
{
    weir_sim_ledger ledger = {.handed_back_bytes = 0};
    if (run->sim) {
        weir_sim_read_ledger(run->sim, &ledger);
    }
    return ledger.handed_back_bytes;
}

/* The outcome of a cleanup that failed on the way, from the books. */
static bool recover_outcome(wr_scn_run *run, uint64_t handed_back_before)
{
    weir_usage usage = {.size = sizeof usage};
    run->last = (weir_cleanup_outcome){
        .returned_bytes = handed_back(run) - handed_back_before,
    };
    if (run->is_child) {
        return true;
    }
    weir_result result = weir_device_memory_usage(run->device, &usage);
    run->last.deferred_bytes = usage.deferred_bytes;
    run->last.pinned_bytes = usage.pinned_bytes;
    run->last.driver_deferred_bytes = usage.driver_deferred_bytes;
    return wr_scn_accept(run, "weir_device_memory_usage", result);
}

static bool run_cleanup(wr_scn_run *run, const wr_scn_statement *statement)
{
    const wr_scn_expr *keep = &statement->number[0], *at_most = &statement->number[1];
    weir_cleanup_desc desc = {.size = sizeof desc, .wait = statement->choice == 1};
    if (!wr_scn_evaluate_size(run, keep, "keep", &desc.keep_bytes) ||
        !wr_scn_evaluate_size(run, at_most, "at_most", &desc.at_most_bytes)) {
        return false;
    }
    desc.keep_none = keep->count > 0 && desc.keep_bytes == 0;
    if (at_most->count > 0 && desc.at_most_bytes == 0) {
        desc.at_most_bytes =
            1; /* 0 is "all" to the API; nothing is as small as one byte */
    }
    uint64_t before = handed_back(run);
    weir_cleanup_outcome outcome = {.size = sizeof outcome};
    weir_result result = weir_device_memory_cleanup(run->device, &desc, &outcome);
    if (result == WEIR_BUSY && run->capture_count > 0) {
        wr_scn_keep_error(run);
        return recover_outcome(run, before);
    }
    if (!wr_scn_accept(run, "weir_device_memory_cleanup", result)) {
        return false;
    }
    run->last = outcome;
    return result == WEIR_OK || recover_outcome(run, before);
}

/* Where time goes by itself, it is now what `advance` says, or later. */
static uint64_t move_clock(wr_scn_run *run, uint64_t step_ms)
{
    if (run->sim) {
        weir_sim_advance(run->sim, step_ms);
        return 0; /* the device's own */
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    run->now_ms = (run->now_ms > now_ms ? run->now_ms : now_ms) + step_ms;
    return run->now_ms;
}

/* In steps that are small beside any idle time, each with the tick of a reclaimer. */
static bool run_advance(wr_scn_run *run, const wr_scn_statement *statement)
{
    const uint64_t longest_step = 500;
    uint64_t left;
    if (!get_size(run, statement, "a time", &left)) {
        return false;
    }
    if (left > WR_SCN_MAX_ADVANCE_MS) {
        return wr_scn_wrong(run, "one advance is at most a day, %llu ms",
                            (unsigned long long)WR_SCN_MAX_ADVANCE_MS);
    }
    while (left > 0) {
        uint64_t step = left < longest_step ? left : longest_step;
        uint64_t now_ms = move_clock(run, step);
        if (!wr_scn_accept(run, "weir_device_tick",
                           weir_device_tick(run->device, now_ms))) {
            return false;
        }
        left -= step;
    }
    return true;
}

/* ---- the world around ---- */

static bool run_other(wr_scn_run *run, const wr_scn_statement *statement)
{
    uint64_t bytes;
    if (!get_size(run, statement, "other processes' use", &bytes)) {
        return false;
    }
    weir_sim_set_others(run->sim, bytes);
    return true;
}

static bool run_outside(wr_scn_run *run, const wr_scn_statement *statement)
{
    uint64_t bytes;
    if (!get_size(run, statement, "the use outside", &bytes)) {
        return false;
    }
    weir_sim_set_outside(run->sim, bytes);
    return true;
}

static bool run_fail(wr_scn_run *run, const wr_scn_statement *statement)
{
    uint64_t count, after;
    if (!get_size(run, statement, "a count", &count) ||
        !wr_scn_evaluate_size(run, &statement->number[1], "a count", &after)) {
        return false;
    }
    weir_sim_fail(run->sim, (weir_sim_op)statement->choice, count, after);
    run->is_armed[statement->choice] = count > 0;
    return true;
}

static bool run_shutdown(wr_scn_run *run, const wr_scn_statement *statement)
{
    (void)statement;
    weir_sim_shutdown(run->sim);
    run->is_gone = true;
    return true;
}

static bool run_window_begin(wr_scn_run *run, const wr_scn_statement *statement)
{
    (void)statement;
    run->window_depth++;
    return true;
}

static bool run_window_end(wr_scn_run *run, const wr_scn_statement *statement)
{
    (void)statement;
    if (run->window_depth == 0) {
        return wr_scn_wrong(run, "there is no window to end");
    }
    run->window_depth--;
    return true;
}

/* ---- variables ---- */

static bool run_let(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_value value;
    return wr_scn_evaluate(run, &statement->number[0], &value) &&
           wr_scn_variable_set(run, statement->name, value);
}

static bool run_random(wr_scn_run *run, const wr_scn_statement *statement)
{
    uint64_t seed, low, high;
    if (!get_size(run, statement, "a seed", &seed) ||
        !wr_scn_evaluate_size(run, &statement->number[1], "the lowest size", &low) ||
        !wr_scn_evaluate_size(run, &statement->number[2], "the highest size", &high)) {
        return false;
    }
    if (low == 0 || low > high) {
        return wr_scn_wrong(run, "random needs 1 <= LO <= HI");
    }
    wr_scn_state *state = &run->states[statement - run->program->statements];
    uint64_t size = wr_scn_random_size(seed, state->executions++, low, high);
    return wr_scn_variable_set(run, statement->name, size);
}

static action_fn *const actions[WR_SCN_KIND_COUNT] = {
    [WR_SCN_ALLOC] = wr_scn_run_alloc,
    [WR_SCN_FREE] = wr_scn_run_free,
    [WR_SCN_USE] = run_use,
    [WR_SCN_FINISH] = run_finish,
    [WR_SCN_SYNC] = run_sync,
    [WR_SCN_CLEANUP] = run_cleanup,
    [WR_SCN_ADVANCE] = run_advance,
    [WR_SCN_CLOSE] = run_close,
    [WR_SCN_OTHER] = run_other,
    [WR_SCN_OUTSIDE] = run_outside,
    [WR_SCN_FAIL] = run_fail,
    [WR_SCN_CAPTURE_BEGIN] = wr_scn_run_capture,
    [WR_SCN_CAPTURE_END] = wr_scn_run_capture,
    [WR_SCN_CAPTURE_ABORT] = wr_scn_run_capture,
    [WR_SCN_DESTROY] = wr_scn_run_capture,
    [WR_SCN_WINDOW_BEGIN] = run_window_begin,
    [WR_SCN_WINDOW_END] = run_window_end,
    [WR_SCN_SHUTDOWN] = run_shutdown,
    [WR_SCN_MARK] = wr_scn_run_mark,
    [WR_SCN_RANDOM] = run_random,
    [WR_SCN_LET] = run_let,
};

/* Work that waits until it is told to end, failures, and what others do. */
static const char *const needs_sim[WR_SCN_KIND_COUNT] = {
    [WR_SCN_USE] = "use",     [WR_SCN_FINISH] = "finish",
    [WR_SCN_OTHER] = "other", [WR_SCN_OUTSIDE] = "outside",
    [WR_SCN_FAIL] = "fail",   [WR_SCN_SHUTDOWN] = "shutdown",
};

bool wr_scn_run_action(wr_scn_run *run, const wr_scn_statement *statement)
{
    if (!run->sim && needs_sim[statement->kind]) {
        return wr_scn_skip(run, needs_sim[statement->kind]);
    }
    return actions[statement->kind](run, statement);
}
