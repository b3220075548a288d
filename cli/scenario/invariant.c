/* SPDX-License-Identifier: MIT */
/* What is true after every statement, whatever the scenario says. That no two live
 * buffers overlap is checked where a buffer is added (buffer.c): addresses never change.
 */
#include "run.h"

#include <inttypes.h>

static bool check_equal(wr_scn_run *run, const char *left, uint64_t left_bytes,
                        const char *right, uint64_t right_bytes)
{
    return left_bytes == right_bytes ||
           wr_scn_fail(run, "expected %s == %s (%" PRIu64 "), got %" PRIu64, left, right,
                       right_bytes, left_bytes);
}

static bool check_peak(wr_scn_run *run, const char *name, uint64_t peak, uint64_t now)
{
    return peak >= now ||
           wr_scn_fail(run, "expected peak_%s >= %s (%" PRIu64 "), got %" PRIu64, name,
                       name, now, peak);
}

/* What the driver saw; only sim keeps a ledger. */
static bool check_ledger(wr_scn_run *run, const weir_usage *usage)
{
    weir_sim_ledger ledger;
    if (!run->sim) {
        return true;
    }
    weir_sim_read_ledger(run->sim, &ledger);
    return check_equal(run, "reserved", usage->reserved_bytes, "handed out - handed back",
                       ledger.handed_out_bytes - ledger.handed_back_bytes);
}

bool wr_scn_check_invariants(wr_scn_run *run)
{
    if (!run->device || run->is_child || run->is_gone) {
        return true;
    }
    weir_usage usage = {.size = sizeof usage};
    weir_result result = weir_device_memory_usage(run->device, &usage);
    if (result != WEIR_OK) {
        return wr_scn_fail(run, "expected usage, got %s: %s", weir_result_name(result),
                           weir_last_error());
    }
    uint64_t sum = usage.in_use_bytes + usage.padding_bytes + usage.deferred_bytes +
                   usage.releasable_bytes + usage.pinned_bytes;
    if (!check_equal(run, "in_use + padding + deferred + releasable + pinned", sum,
                     "reserved", usage.reserved_bytes) ||
        !check_equal(run, "in_use", usage.in_use_bytes, "the live buffers' bytes",
                     run->held_bytes) ||
        !check_ledger(run, &usage) ||
        !check_peak(run, "in_use", usage.peak_in_use_bytes, usage.in_use_bytes) ||
        !check_peak(run, "reserved", usage.peak_reserved_bytes, usage.reserved_bytes)) {
        return false;
    }
    result = weir_device_check(run->device);
    return result == WEIR_OK || wr_scn_fail(run, "expected sound structures, got %s: %s",
                                            weir_result_name(result), weir_last_error());
}
