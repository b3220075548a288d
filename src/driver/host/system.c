/* SPDX-License-Identifier: MIT */
/* The figures of /proc. Reads only; no state but what init found; no lock.
 *
 * RssAnon of /proc/self/status costs some 40 us and is exact since Linux 6.17. Before
 * that each thread or processor kept a share of the count to itself, so that the sum
 * lagged by up to megabytes; there the page tables are asked through
 * /proc/self/smaps_rollup, which costs some 8 ms for each GiB in pages of 4 KiB. */
#define _GNU_SOURCE
#include "system.h"

#include <weir/driver.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FILE_BYTES 8192
#define EXACT_MAJOR 6
#define EXACT_MINOR 17

bool wr_system_read(const char *path, char *text, size_t text_bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    size_t length = 0;
    ssize_t got;
    do {
        got = read(file, text + length, text_bytes - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    } while (got > 0);
    close(file);
    text[length] = '\0';
    return length > 0;
}

bool wr_system_number(const char *text, const char *key, uint64_t *number)
{
    size_t key_length = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_length) == 0 &&
            sscanf(line + key_length, " %" SCNu64, number) == 1) {
            return true;
        }
    }
    return false;
}

/* The sum of two figures in KiB of one file, in bytes. */
static bool read_sum(const char *path, const char *key, const char *other,
                     uint64_t *bytes)
{
    char text[FILE_BYTES];
    uint64_t first;
    uint64_t second;
    if (!wr_system_read(path, text, sizeof text) ||
        !wr_system_number(text, key, &first) || !wr_system_number(text, other, &second)) {
        return false;
    }
    *bytes = (first + second) * 1024;
    return true;
}

static bool kernel_counts_exactly(void)
{
    struct utsname name;
    int major;
    int minor;
    return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
           (major > EXACT_MAJOR || (major == EXACT_MAJOR && minor >= EXACT_MINOR));
}

void wr_system_init(wr_system *system)
{
    char listing[FILE_BYTES];
    *system = (wr_system){.counts_exactly = kernel_counts_exactly()};
    if (!wr_system_read("/proc/self/cgroup", listing, sizeof listing)) {
        listing[0] = '\0';
    }
    wr_group_find("/sys/fs/cgroup", listing, &system->group);
    uint64_t physical_bytes =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    system->is_grouped = system->group.limit_bytes < physical_bytes;
    system->capacity_bytes =
        system->is_grouped ? system->group.limit_bytes : physical_bytes;
}

uint64_t wr_system_footprint(const wr_system *system)
{
    uint64_t bytes;
    if (!system->counts_exactly &&
        read_sum("/proc/self/smaps_rollup", "Anonymous:", "Swap:", &bytes)) {
        return bytes;
    }
    bool known = read_sum("/proc/self/status", "RssAnon:", "VmSwap:", &bytes);
    return known ? bytes : WEIR_UNKNOWN_BYTES;
}

uint64_t wr_system_shared(void)
{
    char text[FILE_BYTES];
    uint64_t kib = 0;
    return wr_system_read("/proc/self/status", text, sizeof text) &&
                   wr_system_number(text, "RssShmem:", &kib)
               ? kib * 1024
               : 0;
}

uint64_t wr_system_others(const wr_system *system, uint64_t footprint_bytes)
{
    uint64_t bytes;
    char text[FILE_BYTES];
    if (footprint_bytes == WEIR_UNKNOWN_BYTES) {
        return WEIR_UNKNOWN_BYTES;
    }
    if (system->is_grouped) {
        if (!wr_group_anonymous(&system->group, &bytes)) {
            return WEIR_UNKNOWN_BYTES;
        }
    } else {
        if (!wr_system_read("/proc/meminfo", text, sizeof text) ||
            !wr_system_number(text, "AnonPages:", &bytes)) {
            return WEIR_UNKNOWN_BYTES;
        }
        bytes *= 1024;
    }
    return bytes > footprint_bytes ? bytes - footprint_bytes : 0;
}
