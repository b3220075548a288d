/* SPDX-License-Identifier: MIT */
/* Sums wrap like their parts, so that a negative overhead adds up. No state, no lock. */
#include "sums.h"

#include <inttypes.h>
#include <stdio.h>

int64_t wr_sums_overhead(const weir_device_report *report)
{
    return (int64_t)(report->context_bytes + (uint64_t)report->unattributed_bytes);
}

static void write_reserved(wr_sink *sink, const weir_usage *usage)
{
    uint64_t sum = usage->in_use_bytes + usage->padding_bytes + usage->deferred_bytes +
                   usage->releasable_bytes + usage->pinned_bytes;
    wr_sink_print(sink,
                  "in_use %" PRIu64 " + padding %" PRIu64 " + deferred %" PRIu64
                  " + releasable %" PRIu64 " + pinned %" PRIu64 " %s reserved %" PRIu64
                  " bytes\n",
                  usage->in_use_bytes, usage->padding_bytes, usage->deferred_bytes,
                  usage->releasable_bytes, usage->pinned_bytes,
                  sum == usage->reserved_bytes ? "=" : "!=", usage->reserved_bytes);
}

static const char *exact(uint64_t bytes, char text[24])
{
    if (bytes == WEIR_UNKNOWN_BYTES) {
        return "n/a";
    }
    snprintf(text, 24, "%" PRIu64, bytes);
    return text;
}

static void write_footprint(wr_sink *sink, const weir_device_report *report)
{
    const weir_usage *usage = &report->usage;
    bool is_known = report->footprint_bytes != WEIR_UNKNOWN_BYTES &&
                    report->untouched_bytes != WEIR_UNKNOWN_BYTES &&
                    report->overhead_bytes != WEIR_UNKNOWN_BYTES;
    int64_t overhead = wr_sums_overhead(report);
    uint64_t sum = usage->reserved_bytes - report->untouched_bytes +
                   usage->driver_deferred_bytes + (uint64_t)overhead;
    char footprint_text[24];
    char untouched_text[24];
    char overhead_text[24] = "n/a";
    if (report->overhead_bytes != WEIR_UNKNOWN_BYTES) {
        snprintf(overhead_text, sizeof overhead_text, "%" PRId64, overhead);
    }
    wr_sink_print(sink,
                  "footprint %s %s reserved %" PRIu64
                  " - untouched %s + driver_deferred %" PRIu64 " + overhead %s bytes\n",
                  exact(report->footprint_bytes, footprint_text),
                  !is_known || sum == report->footprint_bytes ? "=" : "!=",
                  usage->reserved_bytes, exact(report->untouched_bytes, untouched_text),
                  usage->driver_deferred_bytes, overhead_text);
}

void wr_sums_write(wr_sink *sink, const weir_device_report *report)
{
    write_reserved(sink, &report->usage);
    write_footprint(sink, report);
}
