/* SPDX-License-Identifier: MIT */
/* From a group to a launch. Under the queue's lock. */
#ifndef WR_TENSOR_DISPATCH_H
#define WR_TENSOR_DISPATCH_H

#include "group.h"
#include "queue.h"

/* Whether the group has few enough results and buffers for one launch. */
bool wr_dispatch_fits(const wr_queue *queue, const wr_group *group);

/* Launches the group. Then those results that are wanted are READY; on failure nothing
 * has changed. The nodes stay the caller's. */
weir_result wr_dispatch_run(wr_queue *queue, wr_group *group);

#endif
