/* SPDX-License-Identifier: MIT */
/* What the files of the fake share. */
#ifndef TESTS_DRIVER_FAKE_STATE_H
#define TESTS_DRIVER_FAKE_STATE_H

#include "fake.h"

#include "driver/nvml.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(name, symbol, since, parameters) EXPORT wr_cu_result symbol parameters;
WR_CU_LIST(DECLARE)
#undef DECLARE

EXPORT fake_control *fake_cuda_control(void);
EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   wr_nvml_process *processes);

struct wr_cu_graph_opaque {
    bool is_exec;
};

/* Counts the call, and fails if it was asked to. */
#define ENTER(name)                                                                      \
    do {                                                                                 \
        wr_cu_result asked = fake_count(FAKE_##name);                                    \
        if (asked != WR_CU_SUCCESS) {                                                    \
            return asked;                                                                \
        }                                                                                \
    } while (0)

/* The same for calls that need a context. */
#define ENTER_CURRENT(name)                                                              \
    do {                                                                                 \
        wr_cu_result asked = fake_enter(FAKE_##name);                                    \
        if (asked != WR_CU_SUCCESS) {                                                    \
            return asked;                                                                \
        }                                                                                \
    } while (0)

extern fake_control fake_control_block;

/* Counts a call; fails if it was asked to. */
wr_cu_result fake_count(fake_entry entry);
/* The ordinal of the thread's current device; -1: there is none. */
int fake_device(void);
/* Lets go of chunks whose last descriptor has been closed. */
void fake_sweep_exports(void);
/* Counts a call that needs a context; fails if it was asked to, or has none. */
wr_cu_result fake_enter(fake_entry entry);
/* Work was queued. */
void fake_queue(wr_cu_stream stream);
/* What the process has on a device, its context included. */
uint64_t fake_used_bytes(int device);
wr_cu_graph fake_graph_create(bool is_exec);

#endif
