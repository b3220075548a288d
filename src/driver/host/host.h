/* SPDX-License-Identifier: MIT */
/* The host driver: memory of the process itself, work that is done when a call returns.
 *
 * Ranges are PROT_NONE mappings. A commit makes granules readable and writable, a
 * decommit tells the system to drop them, so that the footprint really falls, and closes
 * them again. Streams are always idle and every fence is 0, which has passed. */
#ifndef WR_DRIVER_HOST_HOST_H
#define WR_DRIVER_HOST_HOST_H

#include "base/lock.h"
#include "driver/drivers.h"
#include "driver/regions.h"
#include "system.h"
#include "workers.h"

#define WR_HOSTDRV_GRANULE_BYTES ((uint64_t)2 << 20)
#define WR_HOSTDRV_ALIGNMENT_BYTES 256

/* Work on one stream is done under its lock, so that calls from several threads keep an
 * order. */
typedef struct wr_hostdrv_stream {
    wr_lock lock;
    void *native;                   /* what the caller gave at open; only handed back */
    struct wr_hostdrv_stream *next; /* guard: the driver's lock */
    struct wr_hostdrv_stream *previous;
} wr_hostdrv_stream;

typedef struct wr_hostdrv {
    weir_driver base;
    uint64_t system_page_bytes; /* constant, as is `system` */
    wr_system system;
    uint64_t context_bytes;         /* footprint at open */
    _Atomic uint64_t charged_bytes; /* pages, in whole system pages, and commits */
    _Atomic uint64_t shared_count;  /* pages that are files (share.c) */
    wr_lock lock;                   /* never held across a system call */
    wr_regions book;                /* guard: lock */
    wr_hostdrv_stream *streams;     /* all open ones, for close; guard: lock */
    wr_workers workers;             /* guards itself */
} wr_hostdrv;

/* ---- memory.c: entries of the table ---- */
weir_result wr_hostdrv_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address);
weir_result wr_hostdrv_page_free(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_hostdrv_range_reserve(weir_driver *driver, uint64_t bytes,
                                     uint64_t *address);
weir_result wr_hostdrv_range_free(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_hostdrv_commit(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_hostdrv_decommit(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_hostdrv_memory_info(weir_driver *driver, weir_memory_info *info);
weir_result wr_hostdrv_untouched(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 uint64_t *untouched_bytes);
/* Unmaps all that is still there. */
void wr_hostdrv_unmap_all(wr_hostdrv *host);

/* Counts bytes against the capacity, all or none; and the reverse. */
weir_result wr_hostdrv_charge(wr_hostdrv *host, const char *call, uint64_t bytes);
void wr_hostdrv_uncharge(wr_hostdrv *host, uint64_t bytes);
/* Maps whole granules of a file, aligned to the granule; NULL with errno. */
void *wr_hostdrv_map_file(int file, uint64_t bytes);

/* ---- share.c: entries of the table ---- */
weir_result wr_hostdrv_share_alloc(weir_driver *driver, uint64_t bytes,
                                   uint64_t *address);
weir_result wr_hostdrv_share_export(weir_driver *driver, uint64_t address, uint64_t bytes,
                                    int *file);
weir_result wr_hostdrv_share_import(weir_driver *driver, int file, uint64_t bytes,
                                    uint64_t *address);
/* Closes the file of a page that has one and is unmapped. */
void wr_hostdrv_share_close(wr_hostdrv *host, const wr_region *page);

#endif
