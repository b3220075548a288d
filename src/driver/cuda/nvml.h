/* SPDX-License-Identifier: MIT */
/* What NVML, the management library, says about processes on a GPU. It is loaded when a
 * device is opened; everything here is "unknown" where it is missing, where the device is
 * a part of a GPU (MIG), and where the figures cannot be this process's: in a container
 * process numbers may be others' or hidden. */
#ifndef WR_DRIVER_CUDA_NVML_H
#define WR_DRIVER_CUDA_NVML_H

#include "api.h"

/* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v2 and _v3. */
typedef struct wr_nvml_process {
    unsigned process;
    unsigned long long used_bytes; /* all ones: not available */
    unsigned gpu_instance;
    unsigned compute_instance;
} wr_nvml_process;

_Static_assert(sizeof(wr_nvml_process) == 24, "as in nvml.h");

/* Zeroed: nothing is known. Constant after init. */
typedef struct wr_nvml {
    void *device; /* nvmlDevice_t, or NULL */
    int (*processes)(void *device, unsigned *count, wr_nvml_process *processes);
} wr_nvml;

void wr_nvml_init(wr_nvml *nvml, const wr_cu_uuid *uuid);

/* The memory that this process uses on the device; WEIR_UNKNOWN_BYTES if NVML does not
 * say. */
uint64_t wr_nvml_footprint(const wr_nvml *nvml);

#endif
