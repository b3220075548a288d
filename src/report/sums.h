/* SPDX-License-Identifier: MIT */
/* What must add up in a report, and whether it does. Pure functions, any thread. */
#ifndef WR_REPORT_SUMS_H
#define WR_REPORT_SUMS_H

#include "sink.h"

#include <weir/report.h>

/* context + unattributed, where overhead is known at all. Negative when the system counts
 * less than Weir and the context took. */
int64_t wr_sums_overhead(const weir_device_report *report);

/* Two lines with this report's exact numbers:
 *     in_use + padding + deferred + releasable + pinned = reserved
 *     footprint = reserved - untouched + driver_deferred + overhead
 * "=" is "!=" where the sides differ; what is not known is "n/a". */
void wr_sums_write(wr_sink *sink, const weir_device_report *report);

#endif
