/* SPDX-License-Identifier: MIT */
/* NVML of the fake: it lists one process, this one if not told otherwise. */
#include "state.h"

#include <string.h>
#include <unistd.h>

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    if (strcmp(uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf") != 0) {
        return 6; /* not found */
    }
    *device = fake_cuda_control(); /* any address */
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            wr_nvml_process *processes)
{
    (void)device;
    int process = atomic_load(&fake_cuda_control()->process);
    uint64_t bytes = atomic_load(&fake_cuda_control()->process_bytes);
    if (*count < 1) {
        *count = 1;
        return 7; /* insufficient size */
    }
    *count = 1;
    processes[0] = (wr_nvml_process){
        .process = process != 0 ? (unsigned)process : (unsigned)getpid(),
        .used_bytes = bytes != 0 ? bytes : fake_used_bytes(),
    };
    return 0;
}
