/* SPDX-License-Identifier: MIT */
/* Routes: which pool serves a request of which size. A pool serves sizes up to its
 * largest slice and, if it has room to spare for them, those near a whole page; the first
 * pool of the preset that serves a size gets it. */
#ifndef WR_MANAGER_ROUTE_H
#define WR_MANAGER_ROUTE_H

#include "manager.h"

/* Where requests go that no pool serves. Stays empty. */
extern wr_pool wr_pool_none;

/* Makes a manager's pools and routes from the bank's classes. OUT_OF_HOST_MEMORY leaves
 * nothing. */
weir_result wr_routes_open(wr_manager *manager);
void wr_routes_close(wr_manager *manager);

/* Fills the routes anew for pools that the manager has. */
void wr_routes_fill(wr_manager *manager);
/* Pools for the given classes, not in use yet; NULL: no host memory. */
wr_pool *wr_routes_make_pools(wr_manager *manager, const wr_class *classes,
                              uint32_t count);

/* The first pool, from number `first` on, that serves the request and whose pages have
 * room for its run; NULL: none. */
wr_pool *wr_route_find(wr_manager *manager, uint32_t first, const wr_request *request,
                       uint64_t run_bytes);

#endif
