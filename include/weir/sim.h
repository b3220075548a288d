/* SPDX-License-Identifier: MIT */
/* The sim driver: a device without memory. It hands out addresses, completes work when
 * told, fails on demand and keeps a ledger of every call, so that tests, plans and
 * replays are exact. Opened as "sim", with a weir_sim_desc as driver_config. All
 * functions: any thread. */
#ifndef WEIR_SIM_H
#define WEIR_SIM_H

#include <weir/driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When the driver really lets go of what it was given back. */
typedef enum weir_sim_lets_go {
    WEIR_SIM_LETS_GO_AT_ONCE = 0,
    WEIR_SIM_LETS_GO_ON_PROGRESS = 1, /* when progress(wait) is called */
    WEIR_SIM_LETS_GO_NEVER = 2,
    WEIR_SIM_LETS_GO_AFTER_WORK = 3, /* at any progress, once no queued work is left */
} weir_sim_lets_go;

typedef struct weir_sim_desc {
    size_t size;
    uint64_t capacity_bytes; /* 0: 24 GiB */
    uint64_t context_bytes;  /* UINT64_MAX: 400 MiB (0 is a device without overhead) */
    uint64_t granule_bytes;  /* 0: pages whole */
    weir_sim_lets_go lets_go;
    uint64_t lag;         /* see weir_sim_step; 0: fences pass as work completes */
    uint64_t chunk_bytes; /* the most that one chunk has; 0: a granule */
} weir_sim_desc;

/* Defaults: 24 GiB, 400 MiB of context, granules of 2 MiB, lets go at once. */
WEIR_API weir_sim_desc weir_sim_defaults(void);

/* Kinds of driver calls, for failures and the ledger. */
#define WEIR_SIM_OP_LIST(X)                                                              \
    X(page_alloc)                                                                        \
    X(page_free)                                                                         \
    X(range_reserve)                                                                     \
    X(commit)                                                                            \
    X(decommit)                                                                          \
    X(move)                                                                              \
    X(memory_info)                                                                       \
    X(fence_record)                                                                      \
    X(fence_test)                                                                        \
    X(fence_wait)                                                                        \
    X(stream_test)                                                                       \
    X(stream_sync)                                                                       \
    X(stream_wait)

typedef enum weir_sim_op {
#define WEIR_SIM_OP_ENUM(name) WEIR_SIM_OP_##name,
    WEIR_SIM_OP_LIST(WEIR_SIM_OP_ENUM)
#undef WEIR_SIM_OP_ENUM
        WEIR_SIM_OP_COUNT
} weir_sim_op;

/* What the driver itself saw, apart from Weir's books. */
typedef struct weir_sim_ledger {
    uint64_t calls[WEIR_SIM_OP_COUNT]; /* attempted calls by kind */
    uint64_t handed_out_bytes;         /* pages and commits, in all */
    uint64_t handed_back_bytes;        /* frees and decommits, in all */
    uint64_t pending_bytes;            /* handed back, not let go */
    uint64_t context_bytes, outside_bytes, others_bytes;
    uint64_t device_syncs;   /* waits for the whole device */
    double modelled_seconds; /* what memory calls would have cost on a GPU */
} weir_sim_ledger;

WEIR_API void weir_sim_read_ledger(weir_driver *sim, weir_sim_ledger *ledger);

/* Queues one piece of work on a stream; it completes by finish, or by a host wait. */
WEIR_API weir_result weir_sim_queue(weir_driver *sim, weir_driver_stream stream);
/* Completes all work queued on a stream, or on all of them. */
WEIR_API void weir_sim_finish(weir_driver *sim, weir_driver_stream stream);
WEIR_API void weir_sim_finish_all(weir_driver *sim);
/* With lag N > 0 streams are never idle of themselves, and a fence passes once this was
 * called N times after it was recorded. */
WEIR_API void weir_sim_step(weir_driver *sim);

WEIR_API void weir_sim_set_others(weir_driver *sim, uint64_t bytes);
WEIR_API void weir_sim_set_outside(weir_driver *sim, uint64_t bytes);
/* After `after` more good calls the next `count` calls of that kind fail; 0 clears. */
WEIR_API void weir_sim_fail(weir_driver *sim, weir_sim_op op, uint64_t count,
                            uint64_t after);
/* The nth memory call from now on (page, range, commit, decommit, move, fence; all kinds
 * together, 1 is the next) fails; 0 clears. For fault sweeps. */
WEIR_API void weir_sim_fail_nth(weir_driver *sim, uint64_t nth);
WEIR_API void weir_sim_advance(weir_driver *sim, uint64_t ms);
/* The driver is gone: every later call fails with DEVICE_LOST, but is still counted. */
WEIR_API void weir_sim_shutdown(weir_driver *sim);

#ifdef __cplusplus
}
#endif
#endif
