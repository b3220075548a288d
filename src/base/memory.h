/* SPDX-License-Identifier: MIT */
/* The one door for host memory, so that a test can fail the n-th call and count all of
 * them. */
#ifndef WR_BASE_MEMORY_H
#define WR_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed memory, or NULL. */
void *wr_host_alloc(size_t bytes);
/* The same, sharing no cache line, and no pair of them, with other memory: for what one
 * thread writes all the time. */
void *wr_host_alloc_apart(size_t bytes);
/* NULL is fine. */
void wr_host_free(void *memory);
/* Grows an array to hold at least `needed` elements, zeroing new ones; false and
 * unchanged when there is no memory. */
_Bool wr_host_grow(void **array, size_t *capacity, size_t needed, size_t element_bytes);

/* Addresses without memory (page-aligned), NULL when there are none. */
void *wr_host_reserve(size_t bytes);
/* Makes a part of a reservation readable and writable, zeroed; false when it cannot. */
_Bool wr_host_commit(void *memory, size_t bytes);
/* Both at once, for large tables: what is never touched takes no memory. NULL: none. */
void *wr_host_map(size_t bytes);
/* For both kinds. */
void wr_host_unreserve(void *memory, size_t bytes);

/* For tests: the nth call from now on (1 is the next) fails once; 0 clears. */
void wr_host_fail_nth(uint64_t nth);
/* For tests: calls that took memory so far, in the whole process. */
uint64_t wr_host_calls(void);

#endif
