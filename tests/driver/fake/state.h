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

/* Counts a call that needs a context; fails if it was asked to, or has none. */
wr_cu_result fake_enter(fake_entry entry);
/* Work was queued. */
void fake_queue(wr_cu_stream stream);
/* What the process has on the device, its context included. */
uint64_t fake_used_bytes(void);
wr_cu_graph fake_graph_create(bool is_exec);

#endif
