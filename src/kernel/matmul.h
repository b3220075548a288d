/* SPDX-License-Identifier: MIT */
/* Matrix products on the host: OpenBLAS for f32; for f16 and bf16, which it does not
 * know, blocks converted to f32. */
#ifndef WR_KERNEL_MATMUL_H
#define WR_KERNEL_MATMUL_H

#include <weir/kernel.h>

/* A launch's elements are the rows of all products, or there is one element: all of them.
 * The latter leaves it to OpenBLAS to share large products among threads. */
uint64_t wr_matmul_elements(const weir_matmul_words *words, weir_dtype dtype);

/* Host forms. */
weir_result wr_matmul_ready(const weir_kernel *kernel);
void wr_matmul_run(const weir_launch *launch, uint64_t begin, uint64_t end);

#endif
