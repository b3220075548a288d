/* SPDX-License-Identifier: MIT */
/* One output element's reduction, value by value. Floats are summed in eight lanes by
 * tile, and the tiles' sums in double, so that the error does not grow with the count. */
#ifndef WR_KERNEL_REDUCE_H
#define WR_KERNEL_REDUCE_H

#include <weir/kernel.h>

typedef struct wr_reduction {
    weir_reduce reduce;
    bool is_float;
    uint64_t taken; /* values so far */
    double sum;
    float value; /* MAX, MIN, ARGMAX: the one found; of integers, `integer` */
    int32_t integer;
    uint64_t place; /* ARGMAX: the number of the one found */
} wr_reduction;

void wr_reduction_begin(wr_reduction *reduction, weir_reduce reduce, weir_dtype dtype);
/* At most a tile of values at a time. */
void wr_reduction_take(wr_reduction *reduction, const void *values, uint64_t count);
/* Stores the result as one element and begins anew. */
void wr_reduction_end(wr_reduction *reduction, weir_dtype dtype, void *element);

#endif
