/* SPDX-License-Identifier: MIT */
/* What NVML, the management library, says about processes on an NVIDIA GPU, for the
 * drivers that have one behind them. It is loaded when a device is opened; everything
 * here is "unknown" where it is missing, where the device is a part of a GPU (MIG), and
 * where the figures cannot be this process's: in a container process numbers may be
 * others' or hidden. */
#ifndef WR_DRIVER_NVML_H
#define WR_DRIVER_NVML_H

#include <weir/base.h>

/* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v2 and _v3. */
typedef struct wr_nvml_process {
    unsigned process;
    unsigned long long used_bytes; /* all ones: not available */
    unsigned gpu_instance;
    unsigned compute_instance;
} wr_nvml_process;

_Static_assert(sizeof(wr_nvml_process) == 24, "as in nvml.h");

/* nvmlPciInfo_t */
typedef struct wr_nvml_pci {
    char legacy_name[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned device_id; /* the device's number << 16 | the vendor's */
    unsigned subsystem_id;
    char name[32];
} wr_nvml_pci;

_Static_assert(sizeof(wr_nvml_pci) == 68, "as in nvml.h");

typedef int (*wr_nvml_list)(void *device, unsigned *count, wr_nvml_process *processes);

/* Zeroed: nothing is known. Constant after init. */
typedef struct wr_nvml {
    void *device;          /* nvmlDevice_t, or NULL */
    wr_nvml_list compute;  /* processes that compute */
    wr_nvml_list graphics; /* processes that draw, Vulkan's among them; or NULL */
} wr_nvml;

/* The GPU with this number, or the only one of this kind. Where there are several of a
 * kind, WebGPU does not tell which of them it has, and nothing is known. */
void wr_nvml_init(wr_nvml *nvml, const unsigned char uuid[16]);
void wr_nvml_init_kind(wr_nvml *nvml, uint32_t vendor_id, uint32_t device_id);

/* The memory that this process uses on the device; WEIR_UNKNOWN_BYTES if NVML does not
 * say. */
uint64_t wr_nvml_footprint(const wr_nvml *nvml);

#endif
