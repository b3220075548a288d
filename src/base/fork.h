/* SPDX-License-Identifier: MIT */
/* Knowing a forked child. A child has a copy of the books but neither the threads nor the
 * driver behind them, and of a lock that another thread held only the closed state. So in
 * a child of a process that had a device open nothing may be touched: every public
 * function asks here first.
 *
 * The words of wr_wiped lie on a page that the kernel hands to children zeroed
 * (MADV_WIPEONFORK; where it cannot, a handler of fork does the same). Two of them stand
 * in for tests that the hot paths make anyway, so that those notice a fork for free: with
 * slab_end 0 no handle is one that was handed out, with request_max 0 no size is
 * ordinary. */
#ifndef WR_BASE_FORK_H
#define WR_BASE_FORK_H

#include "hot.h"

#include <weir/base.h>

#include <stdatomic.h>

#define WR_WIPED_BYTES 4096

/* A whole page, so that nothing else is wiped with it. */
typedef struct wr_wiped_page {
    _Alignas(WR_WIPED_BYTES) _Atomic uint32_t here; /* 1 from the first device on */
    _Atomic uint32_t slab_end;    /* slice records below may be looked at (page/slab.c) */
    _Atomic uint64_t request_max; /* sizes above are mistakes (stream/buffer.c) */
} wr_wiped_page;

extern wr_wiped_page wr_wiped __attribute__((visibility("hidden")));

/* Before a device opens, and after it has closed or failed to open. Enter fails with
 * FORKED in a child, and with OUT_OF_HOST_MEMORY when forks cannot be noticed. */
weir_result wr_fork_enter(uint64_t request_max);
void wr_fork_leave(void);

/* Out of line, for when `here` is 0: FORKED with a text, or OK as no device was open at
 * the fork. */
WR_COLD weir_result wr_fork_refuse(void);

/* FORKED, with a text, in a forked child. */
static inline weir_result wr_fork_check(void)
{
    bool here = atomic_load_explicit(&wr_wiped.here, memory_order_relaxed) != 0;
    return WR_LIKELY(here) ? WEIR_OK : wr_fork_refuse();
}

/* For functions without a result. */
static inline bool wr_fork_is_child(void)
{
    return wr_fork_check() != WEIR_OK;
}

/* Has a handler of fork wipe the words; what enter falls back to. False: no memory. */
bool wr_fork_use_handler(void);

#endif
