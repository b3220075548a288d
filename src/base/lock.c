/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* About as long as a wait and a wake by the kernel; what locks are held for is shorter.
 */
#define SPINS 200
#define UNSURE_NS 1000000 /* a sleep's length where a wake can be missed */

wr_lock_slot wr_lock_slots[WR_LOCK_SLOTS];

/* Tells the processor that this is a loop that waits. */
static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Looks before it tries, so that the holder keeps the line until it is done. */
static bool spin(wr_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        bool free = atomic_load_explicit(&lock->state, memory_order_relaxed) == 0;
        if (free && wr_lock_try(lock)) {
            return true;
        }
        pause_briefly();
    }
    return false;
}

/* Has every thread of the process pass a barrier; false where the system cannot. */
static bool fence_all_threads(void)
{
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0) {
        return true;
    }
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0);
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0;
}

void wr_lock_wait(wr_lock *lock)
{
    if (spin(lock)) {
        return;
    }
    static const struct timespec unsure = {.tv_nsec = UNSURE_NS};
    _Atomic uint32_t *sleepers = wr_lock_sleepers(lock);
    atomic_fetch_add_explicit(sleepers, 1, memory_order_relaxed);
    const struct timespec *limit = fence_all_threads() ? NULL : &unsure;
    while (!wr_lock_try(lock)) {
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 1, limit, NULL, 0);
    }
    atomic_fetch_sub_explicit(sleepers, 1, memory_order_relaxed);
}

void wr_lock_wake(wr_lock *lock)
{
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
