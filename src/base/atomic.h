/* SPDX-License-Identifier: MIT */
/* Counters with one writer (whoever holds the guard) and readers that hold nothing.
 * Writers store with release, readers load with acquire, so that a sequence count around
 * the writes (Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?",
 * 2012) tells a reader whether all it read belongs together. Plain moves on x86. */
#ifndef WR_BASE_ATOMIC_H
#define WR_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t wr_counter;

#define WR_OWN(counter) atomic_load_explicit(&(counter), memory_order_relaxed)
#define WR_GET(counter) atomic_load_explicit(&(counter), memory_order_acquire)
#define WR_PUT(counter, value)                                                           \
    atomic_store_explicit(&(counter), (value), memory_order_release)
#define WR_ADD(counter, value) WR_PUT(counter, WR_OWN(counter) + (value))
#define WR_SUB(counter, value) WR_PUT(counter, WR_OWN(counter) - (value))

/* For counters that several threads write. */
#define WR_COUNT(counter) atomic_fetch_add_explicit(&(counter), 1, memory_order_relaxed)

static inline void wr_counter_raise(wr_counter *peak, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(peak, &seen, value,
                                                                  memory_order_acq_rel,
                                                                  memory_order_relaxed)) {
    }
}

#endif
