/* SPDX-License-Identifier: MIT */
/* Host memory. Counters are atomics, no lock. */
#define _GNU_SOURCE
#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define APART_BYTES                                                                      \
    ((size_t)128) /* two cache lines: some processors fetch them in pairs */

static _Atomic uint64_t calls;
static _Atomic uint64_t fail_countdown;

/* Counts a call; true if a test wants this one to fail. */
static _Bool must_fail(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) == 0) {
        return 0;
    }
    return atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) == 1;
}

void wr_host_fail_nth(uint64_t nth)
{
    atomic_store(&fail_countdown, nth);
}

uint64_t wr_host_calls(void)
{
    return atomic_load(&calls);
}

void *wr_host_alloc(size_t bytes)
{
    return must_fail() ? NULL : calloc(1, bytes);
}

void *wr_host_alloc_apart(size_t bytes)
{
    if (bytes > SIZE_MAX - APART_BYTES || must_fail()) {
        return NULL;
    }
    size_t whole = (bytes + APART_BYTES - 1) / APART_BYTES * APART_BYTES;
    void *memory = aligned_alloc(APART_BYTES, whole);
    return memory == NULL ? NULL : memset(memory, 0, whole);
}

void wr_host_free(void *memory)
{
    free(memory);
}

_Bool wr_host_grow(void **array, size_t *capacity, size_t needed, size_t element_bytes)
{
    if (needed <= *capacity) {
        return 1;
    }
    size_t grown = *capacity < 8 ? 8 : *capacity * 2;
    if (grown < needed) {
        grown = needed;
    }
    if (grown > SIZE_MAX / element_bytes || must_fail()) {
        return 0;
    }
    char *bigger = realloc(*array, grown * element_bytes);
    if (bigger == NULL) {
        return 0;
    }
    memset(bigger + *capacity * element_bytes, 0, (grown - *capacity) * element_bytes);
    *array = bigger;
    *capacity = grown;
    return 1;
}

void *wr_host_reserve(size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    void *memory =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

_Bool wr_host_commit(void *memory, size_t bytes)
{
    return !must_fail() && mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0;
}

void *wr_host_map(size_t bytes)
{
    void *memory = wr_host_reserve(bytes);
    if (memory != NULL && !wr_host_commit(memory, bytes)) {
        wr_host_unreserve(memory, bytes);
        return NULL;
    }
    return memory;
}

void wr_host_unreserve(void *memory, size_t bytes)
{
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}
