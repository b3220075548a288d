/* SPDX-License-Identifier: MIT */
/* Kernels by structure. One table for the whole process: equal expressions give the same
 * kernel whatever device, shapes and scalars they come with. */
#ifndef WR_KERNEL_CACHE_H
#define WR_KERNEL_CACHE_H

#include <weir/kernel.h>

/* The kernel of an expression, made if need be; NULL without host memory. It stays until
 * wr_cache_clear(). Any thread. */
const weir_kernel *wr_cache_find(const weir_expression *expression);

/* Forgets all kernels; nobody may be launching one. */
void wr_cache_clear(void);

/* For tests and counters. */
uint64_t wr_cache_count(void);

#endif
