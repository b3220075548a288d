/* SPDX-License-Identifier: MIT */
/* What a run comes to, and which failures of calls belong to the scenario. */
#include "run.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 0))) static void set_verdict(wr_scn_run *run,
                                                              wr_scn_verdict verdict,
                                                              const char *format,
                                                              va_list arguments)
{
    run->result.verdict = verdict;
    vsnprintf(run->result.message, sizeof run->result.message, format, arguments);
    for (char *c = run->result.message; *c; c++) {
        *c = *c == '\n' ? ' ' : *c < ' ' || *c > '~' ? '?' : *c;
    }
}

bool wr_scn_fail(wr_scn_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_verdict(run, WR_SCN_FAILED, format, arguments);
    va_end(arguments);
    return false;
}

bool wr_scn_wrong(wr_scn_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_verdict(run, WR_SCN_WRONG, format, arguments);
    va_end(arguments);
    return false;
}

bool wr_scn_skip(wr_scn_run *run, const char *what)
{
    run->result.verdict = WR_SCN_SKIPPED;
    snprintf(run->result.message, sizeof run->result.message, "needs --device sim: %s",
             what);
    return false;
}

void wr_scn_keep_error(wr_scn_run *run)
{
    snprintf(run->error, sizeof run->error, "%s", weir_last_error());
}

bool wr_scn_is_faulty(const wr_scn_run *run)
{
    for (int op = 0; op < WEIR_SIM_OP_COUNT; op++) {
        if (run->is_armed[op]) {
            return true;
        }
    }
    return run->options.fail_call > 0;
}

/* The scenario itself has brought this failure about. */
static bool is_own_doing(const wr_scn_run *run, weir_result result)
{
    switch (result) {
    case WEIR_DEVICE_LOST:
        return run->is_gone;
    case WEIR_DRIVER:
    case WEIR_OUT_OF_MEMORY:
        return wr_scn_is_faulty(run);
    default:
        return false;
    }
}

bool wr_scn_accept(wr_scn_run *run, const char *call, weir_result result)
{
    if (result != WEIR_OK) {
        wr_scn_keep_error(run);
    }
    if (run->is_child) {
        return result == WEIR_FORKED ||
               wr_scn_fail(run, "expected FORKED from %s in the child, got %s", call,
                           weir_result_name(result));
    }
    return result == WEIR_OK || is_own_doing(run, result) ||
           wr_scn_fail(run, "expected OK from %s, got %s: %s", call,
                       weir_result_name(result), run->error);
}
