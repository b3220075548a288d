/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t countdown;
static _Atomic uint64_t live;

/* Whether this is the call that is to fail. */
static bool is_due(void)
{
    uint64_t left = atomic_load_explicit(&countdown, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
    }
    return left == 1;
}

/* glibc's calloc does not look into the thread's own store of freed blocks, malloc does;
 * the compiler must not make one of the other and memset. */
void *wr_memory_alloc(size_t bytes)
{
    void *memory = is_due() ? NULL : malloc(bytes);
    __asm__("" : "+r"(memory));
    if (memory != NULL) {
        memset(memory, 0, bytes);
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    return memory;
}

void wr_memory_free(void *memory)
{
    if (memory != NULL) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        free(memory);
    }
}

void wr_memory_fail_nth(uint64_t nth)
{
    atomic_store(&countdown, nth);
}

uint64_t wr_memory_live(void)
{
    return atomic_load(&live);
}
