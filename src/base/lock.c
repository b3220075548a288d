/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About as long as a wait and a wake by the kernel; what locks are held for is shorter.
 */
#define SPINS 200

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
void wr_lock_wait(wr_lock *lock)
{
    for (int spin = 0; spin < SPINS; spin++) {
        bool free = atomic_load_explicit(&lock->state, memory_order_relaxed) == 0;
        if (free && wr_lock_try(lock)) {
            return;
        }
        pause_briefly();
    }
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0) {
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    }
}

void wr_lock_wake(wr_lock *lock)
{
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
