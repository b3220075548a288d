/* SPDX-License-Identifier: MIT */
/* See fork.h. `devices` is ordinary memory: a child finds it as it was at the fork. */
#define _GNU_SOURCE
#include "fork.h"

#include "result.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(wr_wiped_page) == WR_WIPED_BYTES, "one page");

wr_wiped_page wr_wiped;

static _Atomic uint32_t devices; /* open, opening or closing */
static pthread_once_t protected_once = PTHREAD_ONCE_INIT;
static bool is_protected;

static void wipe(void)
{
    atomic_store_explicit(&wr_wiped.here, 0, memory_order_relaxed);
    atomic_store_explicit(&wr_wiped.slab_end, 0, memory_order_relaxed);
    atomic_store_explicit(&wr_wiped.request_max, 0, memory_order_relaxed);
}

bool wr_fork_use_handler(void)
{
    return pthread_atfork(NULL, NULL, wipe) == 0;
}

/* A system page that is larger holds other variables too, which must not be wiped. */
static void protect(void)
{
    bool wiped = sysconf(_SC_PAGESIZE) == WR_WIPED_BYTES &&
                 madvise(&wr_wiped, sizeof wr_wiped, MADV_WIPEONFORK) == 0;
    is_protected = wiped || wr_fork_use_handler();
}

weir_result wr_fork_enter(uint64_t request_max)
{
    WR_TRY(wr_fork_check());
    pthread_once(&protected_once, protect);
    if (!is_protected) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a handler of fork");
    }
    /* In this order: no other thread may take this process for a child meanwhile. */
    atomic_store_explicit(&wr_wiped.request_max, request_max, memory_order_relaxed);
    atomic_store(&wr_wiped.here, 1);
    atomic_fetch_add(&devices, 1);
    return WEIR_OK;
}

void wr_fork_leave(void)
{
    atomic_fetch_sub(&devices, 1);
}

weir_result wr_fork_refuse(void)
{
    if (atomic_load(&devices) == 0) {
        return WEIR_OK;
    }
    return wr_error(WEIR_FORKED,
                    "this process was forked while a device was open, which stays its "
                    "parent's; call exec, or fork before the first device is opened");
}
