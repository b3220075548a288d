/* SPDX-License-Identifier: MIT */
/* What this process has on the device, as the system counts it. A device in software has
 * its memory in the process: there it is the resident size, shared mappings included,
 * since that is what such drivers use. On an NVIDIA GPU it is what NVML says, if that can
 * be true. No state, no lock. */
#define _GNU_SOURCE
#include "webgpu.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Resident bytes, from the second number of /proc/self/statm. */
static uint64_t resident(void)
{
    char text[128];
    uint64_t pages;
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return WEIR_UNKNOWN_BYTES;
    }
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return sscanf(text, "%*u %" SCNu64, &pages) == 1
               ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
               : WEIR_UNKNOWN_BYTES;
}

uint64_t wr_webgpu_footprint(const wr_webgpu *webgpu)
{
    if (webgpu->is_cpu) {
        return resident();
    }
    uint64_t footprint = wr_nvml_footprint(&webgpu->nvml);
    bool is_possible = footprint > 0 && footprint <= webgpu->capacity_bytes;
    return is_possible ? footprint : WEIR_UNKNOWN_BYTES;
}
