/* SPDX-License-Identifier: MIT */
/* A small mutex on a futex, after Drepper, "Futexes Are Tricky" (2011): 0 free, 1 held.
 * Zeroed is free. Taking it uncontended is one atomic instruction, leaving it none, which
 * is why it is here: a plain store, then a look at whether anybody sleeps. What orders
 * the two is the sleeper's part: it has all processors that run threads of this process
 * pass a barrier (membarrier, Linux 4.14) between saying that it will sleep and looking
 * at the lock for the last time. So either it sees the lock free, or the holder sees it.
 *
 * Whoever leaves a lock may find it freed by the next holder right after the store. So
 * sleepers are counted elsewhere, by where the lock lies; a wake that nobody waits for
 * does nothing. */
#ifndef WR_BASE_LOCK_H
#define WR_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wr_lock {
    _Atomic uint32_t state;
} wr_lock;

#define WR_LOCK_SLOT_BYTES 128u
#define WR_LOCK_SLOTS 64u

typedef struct wr_lock_slot {
    _Alignas(WR_LOCK_SLOT_BYTES) _Atomic uint32_t sleepers;
} wr_lock_slot;

extern wr_lock_slot wr_lock_slots[WR_LOCK_SLOTS] __attribute__((visibility("hidden")));

static inline _Atomic uint32_t *wr_lock_sleepers(const wr_lock *lock)
{
    size_t slot = (uintptr_t)lock / WR_LOCK_SLOT_BYTES % WR_LOCK_SLOTS;
    return &wr_lock_slots[slot].sleepers;
}

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
    const _Atomic uint32_t *sleepers = wr_lock_sleepers(lock);
    atomic_store_explicit(&lock->state, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(sleepers, memory_order_relaxed) != 0, 0)) {
        wr_lock_wake(lock);
    }
}

#endif
