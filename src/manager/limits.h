/* SPDX-License-Identifier: MIT */
/* Limits that may change while the device is in use. Device and pools: of `reserved`,
 * checked where memory is asked of the driver (range.h). Tags: of what their buffers
 * take, checked here, before a request of the tag is served at all. */
#ifndef WR_MANAGER_LIMITS_H
#define WR_MANAGER_LIMITS_H

#include "manager.h"

#include "base/hot.h"

/* wr_manager_reserve for a request with a tag that has a limit, or had one just now.
 * LIMIT when the tag holds too much, even after what other threads released has been
 * counted and the reclaim callbacks have been called. With no lock held. */
WR_COLD weir_result wr_limits_reserve(wr_manager *manager, const wr_request *request,
                                      wr_slice **slice);

/* The limit of all pools with this name. NOT_FOUND names those there are. */
weir_result wr_limits_set_pool(wr_bank *bank, const char *name, uint64_t limit_bytes);

#endif
