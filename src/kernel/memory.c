/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

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

void *wr_memory_alloc(size_t bytes)
{
    void *memory = is_due() ? NULL : calloc(1, bytes);
    if (memory != NULL) {
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
