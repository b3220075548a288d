/* SPDX-License-Identifier: MIT */
/* What an out-of-memory error says. */
#ifndef WR_MANAGER_SHORTAGE_H
#define WR_MANAGER_SHORTAGE_H

#include "manager.h"

/* Counts the failure, writes the error text (request, limit, in_use, deferred, pinned,
 * largest hole, largest holders) and returns `result`. With no lock held. */
weir_result wr_shortage_explain(wr_manager *manager, const wr_request *request,
                                weir_result result);

#endif
