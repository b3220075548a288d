/* SPDX-License-Identifier: MIT */
/* The allocators that are measured beside each other, behind one table, so that the loop
 * around them is the same for all. One of them is open at a time in a process. */
#ifndef WEIR_BENCH_PEER_H
#define WEIR_BENCH_PEER_H

#include <weir/weir.h>

/* A live buffer, as its allocator names it. */
typedef union wr_bench_slot {
    weir_buffer buffer;
    void *pointer;
} wr_bench_slot;

typedef struct wr_bench_peer {
    const char *name;
    /* Gets ready for so many streams; false with a line on standard error if it cannot.
     */
    bool (*open)(uint32_t stream_count);
    bool (*alloc)(wr_bench_slot *slot, uint64_t bytes, uint32_t stream);
    void (*free)(wr_bench_slot *slot);
    /* Calls to the driver so far; NULL: it has none. */
    uint64_t (*driver_calls)(void);
} wr_bench_peer;

/* "weir", on sim with default settings; the same with limits on device and pool
 * ("limits"), also with a tag by scope ("scope"), with one in each call as looked up
 * before ("tag") or as a text ("call"), or four by turns ("calls"); "pointer", through
 * weir_malloc and weir_free; "jemalloc" and "mimalloc", loaded from the system, sizes
 * capped at 1 MiB; "null" does nothing. NULL for other names. */
const wr_bench_peer *wr_bench_peer_find(const char *name);

#endif
