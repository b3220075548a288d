/* SPDX-License-Identifier: MIT */
/* Running statements in order, loops and forks included. */
#include "run.h"

#include <stdlib.h>

/* ---- loops ---- */

/* Begins the next round of a loop, or leaves it. */
static bool run_round(wr_scn_run *run, size_t loop, size_t *at)
{
    const wr_scn_statement *statement = &run->program->statements[loop];
    wr_scn_state *state = &run->states[loop];
    if (state->next > state->last) {
        *at = statement->partner + 1;
        return true;
    }
    if (run->iterations == WR_SCN_MAX_ITERATIONS) {
        return wr_scn_wrong(run, "loops run more than %llu times in all",
                            (unsigned long long)WR_SCN_MAX_ITERATIONS);
    }
    run->iterations++;
    *at = loop + 1;
    wr_scn_value value = state->next++;
    return statement->kind == WR_SCN_REPEAT ||
           wr_scn_variable_set(run, statement->name, value);
}

static bool begin_loop(wr_scn_run *run, size_t loop, size_t *at)
{
    const wr_scn_statement *statement = &run->program->statements[loop];
    wr_scn_state *state = &run->states[loop];
    if (statement->kind == WR_SCN_REPEAT) {
        uint64_t count;
        if (!wr_scn_evaluate_size(run, &statement->number[0], "a count", &count)) {
            return false;
        }
        state->next = 1;
        state->last = count;
    } else if (!wr_scn_evaluate(run, &statement->number[0], &state->next) ||
               !wr_scn_evaluate(run, &statement->number[1], &state->last)) {
        return false;
    }
    return run_round(run, loop, at);
}

/* ---- statements ---- */

static bool needs_device(wr_scn_kind kind)
{
    return kind != WR_SCN_LET && !wr_scn_kind_is_setting(kind);
}

static bool run_simple(wr_scn_run *run, const wr_scn_statement *statement)
{
    if (needs_device(statement->kind) && !run->device && !wr_scn_device_open(run)) {
        return false;
    }
    if (wr_scn_kind_is_setting(statement->kind)) {
        return wr_scn_run_setting(run, statement);
    }
    if (statement->kind < WR_SCN_EXPECT_NUMBER) {
        return wr_scn_run_action(run, statement);
    }
    return run->options.fail_call > 0 || wr_scn_run_check(run, statement);
}

/* Runs the statement at `*at` and moves on. */
static bool run_statement(wr_scn_run *run, size_t *at)
{
    const wr_scn_statement *statement = &run->program->statements[*at];
    run->result.line = statement->line;
    switch (statement->kind) {
    case WR_SCN_FOR:
    case WR_SCN_REPEAT:
        return begin_loop(run, *at, at);
    case WR_SCN_END:
        return run_round(run, statement->partner, at);
    case WR_SCN_FORK:
        if (run->options.device) {
            return wr_scn_skip(run, "fork");
        }
        if ((!run->device && !wr_scn_device_open(run)) ||
            !wr_scn_run_fork(run, *at, statement->partner)) {
            return false;
        }
        *at = statement->partner + 1;
        return true;
    default:
        (*at)++;
        return run_simple(run, statement);
    }
}

bool wr_scn_run_range(wr_scn_run *run, size_t from, size_t to)
{
    size_t at = from;
    while (at < to) {
        if (!run_statement(run, &at) || !wr_scn_check_invariants(run)) {
            return false;
        }
    }
    return true;
}

void wr_scn_run_program(wr_scn_run *run, const wr_scn_program *program,
                        const wr_scn_options *options)
{
    *run = (wr_scn_run){.program = program, .options = *options};
    run->sim_desc = weir_sim_defaults();
    run->states = calloc(program->count + 1, sizeof *run->states);
    if (!run->states) {
        wr_scn_wrong(run, "the host has no memory");
        return;
    }
    if (wr_scn_run_range(run, 0, program->count) && !run->device) {
        wr_scn_device_open(run);
    }
    wr_scn_device_close(run);
}

void wr_scn_run_finish(wr_scn_run *run)
{
    wr_scn_names_finish(&run->variable_names);
    wr_scn_names_finish(&run->mark_names);
    wr_scn_names_finish(&run->stream_names);
    wr_scn_names_finish(&run->buffer_names);
    wr_scn_names_finish(&run->graph_names);
    for (size_t i = 0; i < run->mark_capacity; i++) {
        wr_scn_snapshot_finish(&run->marks[i]);
    }
    free(run->variables);
    free(run->marks);
    free(run->streams);
    free(run->buffers);
    free(run->graphs);
    free(run->captures);
    free(run->held);
    free(run->states);
    *run = (wr_scn_run){0};
}
