/* SPDX-License-Identifier: MIT */
/* Allocations that failed for memory: what the thread can ask about them, and the error
 * text. */
#ifndef WR_MANAGER_SHORTAGE_H
#define WR_MANAGER_SHORTAGE_H

#include "manager.h"

#include <weir/report.h>

/* What decided. */
typedef struct wr_shortage {
    weir_limit_kind limit;
    const wr_class *class; /* of a pool's limit */
    uint64_t wanted_bytes; /* what was asked of the driver, or the limit, at last */
    uint64_t taken_bytes;  /* of a tag's limit: what it held */
} wr_shortage;

/* What this thread has last asked of the driver or the limits of device and pools. */
void wr_shortage_note_wanted(uint64_t bytes);
uint64_t wr_shortage_wanted(void);

/* Counts the failure, keeps the report of it for the thread, writes the error text and
 * returns `result`. With no lock held. */
weir_result wr_shortage_explain(wr_manager *manager, const wr_request *request,
                                weir_result result, const wr_shortage *shortage);

#endif
