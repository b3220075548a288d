/* SPDX-License-Identifier: MIT */
#ifndef WR_KERNEL_GATHER_H
#define WR_KERNEL_GATHER_H

#include "dtype.h"

/* A strided view of a binding. */
typedef struct wr_gather {
    const char *memory;
    weir_dtype dtype;
    uint32_t rank;
    const int64_t *extents; /* of the iteration space */
    const int64_t *view;    /* offset, strides */
} wr_gather;

/* The values of iteration indices [first, first + count), run by run along the innermost
 * dimension. */
void wr_gather_run(const wr_gather *gather, uint64_t first, void *values, uint64_t count);

/* Those values where they lie, if that is side by side; else NULL. Only of dtypes whose
 * elements are values as they stand. */
const void *wr_gather_find(const wr_gather *gather, uint64_t first, uint64_t count);

#endif
