/* SPDX-License-Identifier: MIT */
/* What the threads of the storm share: the table of buffers, chance, and the first fault
 * that one of them found, which the main thread asserts. */
#ifndef TESTS_CORE_STORM_H
#define TESTS_CORE_STORM_H

#include "support.h"

#include <stdatomic.h>

#define THREADS 8
#define SLOTS 192
#define GRAPHS 12

/* What is counted, for the line at the end. */
#define COUNT_LIST(X)                                                                    \
    X(creates)                                                                           \
    X(shortages)                                                                         \
    X(releases)                                                                          \
    X(retains)                                                                           \
    X(stale)                                                                             \
    X(uses)                                                                              \
    X(finishes)                                                                          \
    X(syncs)                                                                             \
    X(limits)                                                                            \
    X(captures)                                                                          \
    X(graphs)                                                                            \
    X(aborts)                                                                            \
    X(launches)                                                                          \
    X(destroys)                                                                          \
    X(windows)                                                                           \
    X(callbacks)                                                                         \
    X(reclaims)                                                                          \
    X(hooks)                                                                             \
    X(cleanups)                                                                          \
    X(busy)                                                                              \
    X(ticks)                                                                             \
    X(snapshots)                                                                         \
    X(reports)                                                                           \
    X(checks)                                                                            \
    X(streams)                                                                           \
    X(forks)

typedef struct counts {
#define COUNT_FIELD(name) _Atomic uint64_t name;
    COUNT_LIST(COUNT_FIELD)
#undef COUNT_FIELD
} counts;

typedef struct sailor {
    uint64_t random;
    weir_stream *stream; /* its own: captured and opened windows on by it alone */
    weir_stream *extra;  /* known to nobody else; or NULL */
    unsigned capturing;  /* operations until its capture ends; 0: captures nothing */
    unsigned windows, tags;
    _Atomic bool reclaims; /* its callback is registered */
} sailor;

typedef struct storm {
    rig r;
    uint64_t seed, end_ms;
    weir_stream *streams[THREADS];
    sailor crew[THREADS];
    char pools[32][32];
    size_t pool_count;
    _Atomic uint64_t slots[SLOTS]; /* a handle, or 0 */
    _Atomic(weir_graph *) graphs[GRAPHS];
    _Atomic uint64_t fork_ms; /* when the next fork is due */
    _Atomic bool is_wrong;
    char wrong[512];
    counts counts;
} storm;

extern storm sea;

/* ---- finding fault ---- */

void note(const char *what, const char *detail);
/* The result is OK or another that the header names; whether it is OK. */
bool expect(weir_result result, weir_result other, const char *what);
void expect_true(bool holds, const char *what);
/* None of the parts is more than `reserved`, and together they are that. */
void check_sum(const uint64_t parts[5], uint64_t reserved, const char *what);
void check_usage(const weir_usage *usage, const char *what);

/* For everything that has the five parts and `reserved`. */
#define CHECK_SUM(object, what)                                                          \
    check_sum((const uint64_t[]){(object)->in_use_bytes, (object)->padding_bytes,        \
                                 (object)->deferred_bytes, (object)->releasable_bytes,   \
                                 (object)->pinned_bytes},                                \
              (object)->reserved_bytes, what)

void assert_nothing_wrong(void);
void print_counts(const char *name);

/* ---- chance ---- */

uint64_t next_random(sailor *me);
uint64_t below(sailor *me, uint64_t count);
bool one_in(sailor *me, uint64_t count);
/* 256 B to 64 MiB, each order of magnitude as often as the next. */
uint64_t some_bytes(sailor *me);

/* ---- the shared table ---- */

/* The handle in a slot, which stays there. */
weir_buffer see_slot(uint64_t slot);
weir_buffer take_slot(uint64_t slot);
/* What was in the slot is released. */
void put_slot(uint64_t slot, weir_buffer buffer);
/* Releases a reference; no buffer is fine. */
void give_back(weir_buffer buffer);

#endif
