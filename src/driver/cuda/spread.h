/* SPDX-License-Identifier: MIT */
/* How a launch is spread over the device: blocks, and for reductions who works on which
 * output. Arithmetic only; no state, no lock. */
#ifndef WR_DRIVER_CUDA_SPREAD_H
#define WR_DRIVER_CUDA_SPREAD_H

#include <weir/kernel.h>

typedef struct wr_spread {
    uint32_t blocks;       /* in x */
    weir_cuda_split split; /* reductions only; parts are the blocks in y; no memory yet */
} wr_spread;

bool wr_spread_is_reduction(const weir_launch *launch);

/* For so many multiprocessors. */
wr_spread wr_spread_of(const weir_launch *launch, uint32_t multiprocessors);

/* The launch that makes outputs of parts; it has one block in y whatever the parts. */
wr_spread wr_spread_of_end(const weir_launch *launch, const wr_spread *spread,
                           uint32_t multiprocessors);

/* What the parts of a reduction take; 0 with one part. */
uint64_t wr_spread_workspace(const weir_launch *launch, const wr_spread *spread);

#endif
