/* SPDX-License-Identifier: MIT */
/* See nvml.h. NVML stays initialized as long as the process lives. No state, no lock. */
#include "nvml.h"

#include "base/memory.h"
#include "base/result.h"

#include <weir/driver.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NVML_INSUFFICIENT_SIZE 7
#define FEW_PROCESSES 64
#define MOST_PROCESSES 65536

static bool find(void *library, const char *symbol, void *entry)
{
    void *found = dlsym(library, symbol);
    memcpy(entry, &found, sizeof found);
    return found != NULL;
}

/* NVML knows MIG devices by other names, so that they are not found, and stay unknown. */
static void write_uuid(const wr_cu_uuid *uuid, char text[48])
{
    size_t used = (size_t)snprintf(text, 48, "GPU");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, 48 - used, "%s%02x", dash ? "-" : "",
                                 uuid->bytes[i]);
    }
}

void wr_nvml_init(wr_nvml *nvml, const wr_cu_uuid *uuid)
{
    int (*init)(void) = NULL;
    int (*get_device)(const char *name, void **device) = NULL;
    weir_result unused;
    char name[48];
    char text[WR_ERROR_BYTES];
    *nvml = (wr_nvml){0};
    wr_error_save(text); /* its absence is no failure */
    void *library = wr_cu_open_library("WEIR_NVML_LIBRARY", "libnvidia-ml.so.1", &unused);
    wr_error_restore(text);
    if (library == NULL) {
        return;
    }
    write_uuid(uuid, name);
    bool is_usable =
        find(library, "nvmlInit_v2", &init) &&
        find(library, "nvmlDeviceGetHandleByUUID", &get_device) &&
        (find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes) ||
         find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->processes)) &&
        init() == 0;
    if (!is_usable || get_device(name, &nvml->device) != 0) {
        nvml->device = NULL;
    }
}

static uint64_t find_own(const wr_nvml_process *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (processes[i].process == (unsigned)getpid()) {
            return processes[i].used_bytes;
        }
    }
    return WEIR_UNKNOWN_BYTES;
}

uint64_t wr_nvml_footprint(const wr_nvml *nvml)
{
    wr_nvml_process few[FEW_PROCESSES];
    unsigned count = FEW_PROCESSES;
    if (nvml->device == NULL) {
        return WEIR_UNKNOWN_BYTES;
    }
    int status = nvml->processes(nvml->device, &count, few);
    if (status == 0) {
        return find_own(few, count < FEW_PROCESSES ? count : FEW_PROCESSES);
    }
    if (status != NVML_INSUFFICIENT_SIZE || count > MOST_PROCESSES) {
        return WEIR_UNKNOWN_BYTES;
    }
    unsigned room = count + FEW_PROCESSES; /* more may have come meanwhile */
    wr_nvml_process *many = wr_host_alloc(room * sizeof *many);
    uint64_t found = WEIR_UNKNOWN_BYTES;
    count = room;
    if (many != NULL && nvml->processes(nvml->device, &count, many) == 0) {
        found = find_own(many, count < room ? count : room);
    }
    wr_host_free(many);
    return found;
}
