/* SPDX-License-Identifier: MIT */
/* The numbers that a check can name, by where they are read. X(id, text, member). */
#ifndef WEIR_CLI_SCENARIO_FIELD_H
#define WEIR_CLI_SCENARIO_FIELD_H

#include "line.h"

/* weir_device_memory_usage */
#define WR_SCN_USAGE_FIELDS(X)                                                           \
    X(requested, "requested", in_use_bytes)                                              \
    X(in_use, "in_use", in_use_bytes)                                                    \
    X(padding, "padding", padding_bytes)                                                 \
    X(deferred, "deferred", deferred_bytes)                                              \
    X(releasable, "releasable", releasable_bytes)                                        \
    X(pinned, "pinned", pinned_bytes)                                                    \
    X(reserved, "reserved", reserved_bytes)                                              \
    X(driver_deferred, "driver_deferred", driver_deferred_bytes)                         \
    X(peak_in_use, "peak_in_use", peak_in_use_bytes)                                     \
    X(peak_reserved, "peak_reserved", peak_reserved_bytes)                               \
    X(live, "live", live_count)                                                          \
    X(retries, "retries", retries)                                                       \
    X(ooms, "ooms", ooms)                                                                \
    X(stalls, "stalls", stalls)                                                          \
    X(callbacks, "callbacks", callbacks)

/* weir_device_memory_report */
#define WR_SCN_REPORT_FIELDS(X)                                                          \
    X(overhead, "overhead", overhead_bytes)                                              \
    X(footprint, "footprint", footprint_bytes)                                           \
    X(largest_hole, "largest_hole", largest_hole_bytes)

/* weir_sim_read_ledger: what the driver saw, readable in a forked child too */
#define WR_SCN_LEDGER_FIELDS(X)                                                          \
    X(driver_allocs, "driver_allocs", calls[WEIR_SIM_OP_page_alloc])                     \
    X(driver_frees, "driver_frees", calls[WEIR_SIM_OP_page_free])                        \
    X(commits, "commits", calls[WEIR_SIM_OP_commit])                                     \
    X(decommits, "decommits", calls[WEIR_SIM_OP_decommit])                               \
    X(fence_waits, "fence_waits", calls[WEIR_SIM_OP_fence_wait])                         \
    X(device_syncs, "device_syncs", device_syncs)

/* the outcome of the last cleanup */
#define WR_SCN_LAST_FIELDS(X)                                                            \
    X(last_returned, "last.returned", returned_bytes)                                    \
    X(last_deferred, "last.deferred", deferred_bytes)                                    \
    X(last_pinned, "last.pinned", pinned_bytes)                                          \
    X(last_kept, "last.kept", kept_bytes)                                                \
    X(last_driver_deferred, "last.driver_deferred", driver_deferred_bytes)

typedef enum wr_scn_field {
#define WR_SCN_FIELD_ENUM(id, text, member) WR_SCN_FIELD_##id,
    WR_SCN_USAGE_FIELDS(WR_SCN_FIELD_ENUM) WR_SCN_REPORT_FIELDS(WR_SCN_FIELD_ENUM)
        WR_SCN_LEDGER_FIELDS(WR_SCN_FIELD_ENUM) WR_SCN_LAST_FIELDS(WR_SCN_FIELD_ENUM)
#undef WR_SCN_FIELD_ENUM
            WR_SCN_FIELD_COUNT,
    WR_SCN_FIELD_tag = WR_SCN_FIELD_COUNT /* tag(TEXT).in_use: needs its text */
} wr_scn_field;

/* "last.kept"; static text. */
const char *wr_scn_field_name(wr_scn_field field);

/* False if there is no such field. */
bool wr_scn_field_find(wr_scn_text name, wr_scn_field *field);

#endif
