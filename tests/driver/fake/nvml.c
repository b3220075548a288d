/* SPDX-License-Identifier: MIT */
/* NVML of the fake: it lists one process, this one if not told otherwise. */
#include "state.h"

#include <string.h>
#include <unistd.h>

/* As cuDeviceGetUuid has them. */
static const char *uuids[FAKE_DEVICES] = {
    "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf",
    "GPU-a1a2a3a4-a5a6-a7a8-a9aa-abacadaeafb0",
};

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    for (int i = 0; i < FAKE_DEVICES; i++) {
        if (strcmp(uuid, uuids[i]) == 0) {
            *device = &uuids[i];
            return 0;
        }
    }
    return 6; /* not found */
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            wr_nvml_process *processes)
{
    int number = (int)((const char **)device - uuids);
    int process = atomic_load(&fake_cuda_control()->process);
    uint64_t bytes = atomic_load(&fake_cuda_control()->process_bytes);
    if (*count < 1) {
        *count = 1;
        return 7; /* insufficient size */
    }
    *count = 1;
    processes[0] = (wr_nvml_process){
        .process = process != 0 ? (unsigned)process : (unsigned)getpid(),
        .used_bytes = bytes != 0 ? bytes : fake_used_bytes(number),
    };
    return 0;
}
