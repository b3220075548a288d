/* SPDX-License-Identifier: MIT */
/* The one door for host memory of the tensor layer, so that a test can fail the n-th
 * call. (The core has its own, behind the public headers.) */
#ifndef WR_KERNEL_MEMORY_H
#define WR_KERNEL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory, or NULL. */
void *wr_memory_alloc(size_t bytes);
/* NULL is fine. */
void wr_memory_free(void *memory);

/* For tests: the nth call from now on (1 is the next) fails once; 0 clears. */
void wr_memory_fail_nth(uint64_t nth);
/* For tests: what was taken and not freed yet. */
uint64_t wr_memory_live(void);

#endif
