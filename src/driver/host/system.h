/* SPDX-License-Identifier: MIT */
/* What the operating system says about memory: how much there is, what this process and
 * the others use, and which bytes of a mapping it has backed.
 *
 * Counted is anonymous memory, in memory or swapped out: what programs allocate, not the
 * files they map. */
#ifndef WR_DRIVER_HOST_SYSTEM_H
#define WR_DRIVER_HOST_SYSTEM_H

#include "group.h"

#include <stddef.h>

typedef struct wr_system {
    uint64_t capacity_bytes; /* the smaller of physical memory and the group's limit */
    bool is_grouped;         /* the group's limit is the smaller one */
    bool counts_exactly;     /* /proc/self/status does not lag */
    wr_group group;
} wr_system;

void wr_system_init(wr_system *system);

/* This process's anonymous memory, exact; WEIR_UNKNOWN_BYTES if it cannot be read. */
uint64_t wr_system_footprint(const wr_system *system);
/* All anonymous memory that capacity_bytes has room for, less `footprint_bytes`;
 * WEIR_UNKNOWN_BYTES if it cannot be read. */
uint64_t wr_system_others(const wr_system *system, uint64_t footprint_bytes);

/* Memory of this process that others can map too, 0 if it cannot be read. */
uint64_t wr_system_shared(void);

/* Bytes of [address, address + bytes), all of them mapped, that the system has backed. */
uint64_t wr_system_backed(uint64_t address, uint64_t bytes);
/* The same on kernels before 6.7, which do not tell: pages that were only ever read count
 * as backed, swapped ones do not. */
uint64_t wr_system_resident(uint64_t address, uint64_t bytes);

/* Reads a small text file whole, terminated, or its first bytes; false if it cannot. */
bool wr_system_read(const char *path, char *text, size_t text_bytes);
/* The number behind `key` at the start of a line of `text`. */
bool wr_system_number(const char *text, const char *key, uint64_t *number);

#endif
