/* SPDX-License-Identifier: MIT */
/* See nvml.h. NVML stays initialized as long as the process lives. No state, no lock. */
#define _GNU_SOURCE
#include "nvml.h"

#include "base/memory.h"

#include <weir/driver.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NVML_INSUFFICIENT_SIZE 7
#define FEW_PROCESSES 64
#define MOST_PROCESSES 65536

/* ---- loading ---- */

static bool find(void *library, const char *symbol, void *entry)
{
    void *found = dlsym(library, symbol);
    memcpy(entry, &found, sizeof found);
    return found != NULL;
}

/* $WEIR_NVML_LIBRARY, an absolute path, or the name that the driver's packages install.
 * Its absence is no failure. */
static void *open_library(void)
{
    const char *path = secure_getenv("WEIR_NVML_LIBRARY");
    if (path == NULL || path[0] == '\0') {
        path = "libnvidia-ml.so.1";
    } else if (path[0] != '/') {
        return NULL;
    }
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Loads what a footprint needs; the library, or NULL. */
static void *load(wr_nvml *nvml)
{
    int (*init)(void) = NULL;
    *nvml = (wr_nvml){0};
    void *library = open_library();
    if (library == NULL) {
        return NULL;
    }
    (void)(find(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", &nvml->graphics) ||
           find(library, "nvmlDeviceGetGraphicsRunningProcesses_v2", &nvml->graphics));
    bool is_usable =
        find(library, "nvmlInit_v2", &init) &&
        (find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->compute) ||
         find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->compute)) &&
        init() == 0;
    return is_usable ? library : NULL;
}

/* ---- which GPU ---- */

/* NVML knows MIG devices by other names, so that they are not found, and stay unknown. */
static void write_uuid(const unsigned char uuid[16], char text[48])
{
    size_t used = (size_t)snprintf(text, 48, "GPU");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used +=
            (size_t)snprintf(text + used, 48 - used, "%s%02x", dash ? "-" : "", uuid[i]);
    }
}

void wr_nvml_init(wr_nvml *nvml, const unsigned char uuid[16])
{
    int (*get)(const char *name, void **device) = NULL;
    char name[48];
    void *library = load(nvml);
    write_uuid(uuid, name);
    if (library == NULL || !find(library, "nvmlDeviceGetHandleByUUID", &get) ||
        get(name, &nvml->device) != 0) {
        nvml->device = NULL;
    }
}

void wr_nvml_init_kind(wr_nvml *nvml, uint32_t vendor_id, uint32_t device_id)
{
    int (*get_count)(unsigned *count) = NULL;
    int (*get)(unsigned index, void **device) = NULL;
    int (*get_pci)(void *device, wr_nvml_pci *pci) = NULL;
    unsigned count = 0;
    unsigned found_count = 0;
    void *library = load(nvml);
    if (library == NULL || !find(library, "nvmlDeviceGetCount_v2", &get_count) ||
        !find(library, "nvmlDeviceGetHandleByIndex_v2", &get) ||
        !find(library, "nvmlDeviceGetPciInfo_v3", &get_pci) || get_count(&count) != 0) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        void *device = NULL;
        wr_nvml_pci pci = {0};
        if (get(i, &device) == 0 && get_pci(device, &pci) == 0 &&
            pci.device_id == (device_id << 16 | vendor_id)) {
            nvml->device = device;
            found_count++;
        }
    }
    if (found_count != 1) {
        nvml->device = NULL;
    }
}

/* ---- footprints ---- */

static uint64_t find_own(const wr_nvml_process *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (processes[i].process == (unsigned)getpid()) {
            return processes[i].used_bytes;
        }
    }
    return WEIR_UNKNOWN_BYTES;
}

static uint64_t look_up(const wr_nvml *nvml, wr_nvml_list list)
{
    wr_nvml_process few[FEW_PROCESSES];
    unsigned count = FEW_PROCESSES;
    int status = list(nvml->device, &count, few);
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
    if (many != NULL && list(nvml->device, &count, many) == 0) {
        found = find_own(many, count < room ? count : room);
    }
    wr_host_free(many);
    return found;
}

/* A process that does both is in both lists, with all that it has. */
uint64_t wr_nvml_footprint(const wr_nvml *nvml)
{
    if (nvml->device == NULL) {
        return WEIR_UNKNOWN_BYTES;
    }
    uint64_t found = look_up(nvml, nvml->compute);
    return found == WEIR_UNKNOWN_BYTES && nvml->graphics != NULL
               ? look_up(nvml, nvml->graphics)
               : found;
}
