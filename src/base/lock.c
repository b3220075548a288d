/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void wr_lock_wait(wr_lock *lock)
{
    for (int spin = 0; spin < 100; spin++) {
        if (wr_lock_try(lock)) {
            return;
        }
    }
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0) {
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    }
}

void wr_lock_wake(wr_lock *lock)
{
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
