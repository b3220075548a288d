/* SPDX-License-Identifier: MIT */
/* A small mutex on a futex, after Drepper, "Futexes Are Tricky" (2011), mutex 2: 0 free,
 * 1 held, 2 held with waiters. Taking and leaving it uncontended is one atomic
 * instruction each, which is why it is here: pthread_mutex costs five times as many.
 * Zeroed is free. */
#ifndef WR_BASE_LOCK_H
#define WR_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct wr_lock {
    _Atomic uint32_t state;
} wr_lock;

void wr_lock_wait(wr_lock *lock);
void wr_lock_wake(wr_lock *lock);

static inline bool wr_lock_try(wr_lock *lock)
{
    uint32_t free_state = 0;
    return atomic_compare_exchange_strong_explicit(
        &lock->state, &free_state, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void wr_lock_take(wr_lock *lock)
{
    if (__builtin_expect(!wr_lock_try(lock), 0)) {
        wr_lock_wait(lock);
    }
}

static inline void wr_lock_leave(wr_lock *lock)
{
    if (__builtin_expect(
            atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2, 0)) {
        wr_lock_wake(lock);
    }
}

#endif
