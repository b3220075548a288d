/* SPDX-License-Identifier: MIT */
/* What the memory calls of a GPU driver take, modelled. Pure arithmetic. */
#ifndef WR_DRIVER_SIM_COST_H
#define WR_DRIVER_SIM_COST_H

#include <stdint.h>

/* Seconds of one call for a page, or for one chunk. */
double wr_sim_cost_page_alloc(uint64_t bytes);
double wr_sim_cost_page_free(uint64_t bytes);
double wr_sim_cost_commit(uint64_t chunk_bytes);
double wr_sim_cost_decommit(uint64_t chunk_bytes);
double wr_sim_cost_move(uint64_t chunk_bytes);

#endif
