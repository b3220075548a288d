/* SPDX-License-Identifier: MIT */
/* Counts and times the memory calls to a driver. */
#ifndef WEIR_CLI_REPLAY_METER_H
#define WEIR_CLI_REPLAY_METER_H

#include <weir/weir.h>

typedef struct wr_meter_reading {
    uint64_t calls; /* page_alloc, page_free, range_reserve, commit, decommit, move */
    double ns;      /* in them, of all threads together */
} wr_meter_reading;

/* A table that does what the driver's own does and meters its memory calls; lives until
 * the next call. NULL if no built-in driver has the name before the colon of `device`;
 * `*argument` is what stands behind it. One at a time, from one thread. */
const weir_driver_table *wr_meter_table(const char *device, const char **argument);

/* What it has counted since it was made. Any thread. */
wr_meter_reading wr_meter_read(void);

#endif
