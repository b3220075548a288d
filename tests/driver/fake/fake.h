/* SPDX-License-Identifier: MIT */
/* What tests may ask of the fake libcuda, see cuda.c. */
#ifndef TESTS_DRIVER_FAKE_FAKE_H
#define TESTS_DRIVER_FAKE_FAKE_H

#include "driver/cuda/api.h"

#include <stdatomic.h>

typedef enum fake_entry {
#define FAKE_ENTRY(name, symbol, since, parameters) FAKE_##name,
    WR_CU_LIST(FAKE_ENTRY)
#undef FAKE_ENTRY
        FAKE_COUNT,
} fake_entry;

#ifndef FAKE_CAPACITY_BYTES
#define FAKE_CAPACITY_BYTES ((uint64_t)1 << 30)
#endif
#define FAKE_CONTEXT_BYTES ((uint64_t)64 << 20)
#define FAKE_DEVICES 2
#define FAKE_MULTIPROCESSORS 2

/* All of it may be read and set at any time between calls. */
typedef struct fake_control {
    _Atomic uint64_t calls[FAKE_COUNT];
    _Atomic uint64_t fail_nth[FAKE_COUNT]; /* 1: the next call fails, once; 0: none */
    _Atomic int fail_with;
    _Atomic bool hold; /* work queued now stays queued until a sync, or until cleared */
    _Atomic bool lacks_virtual_memory;
    _Atomic bool lacks_sharing;
    _Atomic int capability;         /* 0: 9.0, as 90 */
    _Atomic int process;            /* what NVML lists; 0: this process */
    _Atomic uint64_t process_bytes; /* 0: what the process really has */
    /* what exists */
    _Atomic int64_t contexts;
    _Atomic int64_t ranges;
    _Atomic int64_t chunks;
    _Atomic int64_t mappings;
    _Atomic int64_t pages;
    _Atomic int64_t host_pages;
    _Atomic int64_t host_bytes;
    _Atomic int64_t streams;
    _Atomic int64_t events;
    _Atomic int64_t graphs;
    _Atomic int64_t modules;
} fake_control;

/* Found with dlsym. */
typedef fake_control *(*fake_get_control)(void);

#endif
