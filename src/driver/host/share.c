/* SPDX-License-Identifier: MIT */
/* Pages of the host driver that other processes can map: each is a memory file of its own
 * (memfd_create), sealed so that no process can shrink it under another's feet. The file
 * stays open while the page is mapped, and is the descriptor that is exported. */
#define _GNU_SOURCE
#include "host.h"

#include "base/result.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static weir_result refused(const char *call, uint64_t bytes)
{
    int reason = errno;
    return wr_error(reason == ENOMEM || reason == ENOSPC ? WEIR_OUT_OF_MEMORY
                                                         : WEIR_DRIVER,
                    "host: %s of %" PRIu64 " bytes: the system refuses: %s", call, bytes,
                    strerror(reason));
}

/* Its pages are made when they are touched, as the others of this driver. */
static weir_result make_file(uint64_t bytes, int *file)
{
    int made = memfd_create("weir", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0 || ftruncate(made, (off_t)bytes) != 0 ||
        fcntl(made, F_ADD_SEALS, SEALS) != 0) {
        weir_result result = refused("share_alloc", bytes);
        if (made >= 0) {
            close(made);
        }
        return result;
    }
    *file = made;
    return WEIR_OK;
}

/* A region for a file, which it owns from then on; `bytes` are charged. */
static weir_result enter(wr_hostdrv *host, const char *call, int file, uint64_t bytes,
                         uint64_t *address)
{
    wr_region *page = wr_region_create_page(bytes);
    if (page == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "host: no memory to keep a page's record");
    }
    void *memory = wr_hostdrv_map_file(file, bytes);
    if (memory == NULL) {
        weir_result result = refused(call, bytes);
        wr_region_destroy(page);
        return result;
    }
    page->address = (uint64_t)(uintptr_t)memory;
    page->data =
        (void *)(uintptr_t)(unsigned)(file + 1); // NOLINT(performance-no-int-to-ptr)
    atomic_fetch_add(&host->shared_count, 1);
    wr_lock_take(&host->lock);
    wr_regions_add(&host->book, page);
    wr_lock_leave(&host->lock);
    *address = page->address;
    return WEIR_OK;
}

weir_result wr_hostdrv_share_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_hostdrv *host = (wr_hostdrv *)driver;
    int file = -1;
    WR_TRY(wr_regions_check_size(&host->book, "share_alloc", bytes));
    WR_TRY(wr_hostdrv_charge(host, "share_alloc", bytes));
    weir_result result = make_file(bytes, &file);
    if (result != WEIR_OK) {
        goto undo_charge;
    }
    result = enter(host, "share_alloc", file, bytes, address);
    if (result != WEIR_OK) {
        goto undo_file;
    }
    return WEIR_OK;

undo_file:
    close(file);
undo_charge:
    wr_hostdrv_uncharge(host, bytes);
    return result;
}

static int file_of(const wr_region *page)
{
    return (int)(uintptr_t)page->data - 1;
}

void wr_hostdrv_share_close(wr_hostdrv *host, const wr_region *page)
{
    if (!page->is_range && page->data != NULL) {
        close(file_of(page));
        atomic_fetch_sub(&host->shared_count, 1);
    }
}

weir_result wr_hostdrv_share_export(weir_driver *driver, uint64_t address, uint64_t bytes,
                                    int *file)
{
    wr_hostdrv *host = (wr_hostdrv *)driver;
    wr_region *page = NULL;
    int copy = -1;
    wr_lock_take(&host->lock);
    weir_result result =
        wr_regions_get_page(&host->book, "share_export", address, bytes, &page);
    if (result == WEIR_OK && page->data == NULL) {
        result = wr_error(WEIR_INVALID,
                          "host: share_export: the page at 0x%" PRIx64
                          " was made by page_alloc, not by share_alloc",
                          address);
    } else if (result == WEIR_OK) {
        copy = fcntl(file_of(page), F_DUPFD_CLOEXEC, 0);
    }
    wr_lock_leave(&host->lock);
    if (result == WEIR_OK && copy < 0) {
        result = refused("share_export", bytes);
    }
    *file = result == WEIR_OK ? copy : *file;
    return result;
}

/* A file that somebody could shrink would kill whoever touches what is gone. */
static weir_result check_file(int file, uint64_t bytes)
{
    struct stat what;
    int seals = fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, &what) != 0) {
        return wr_error(WEIR_INVALID,
                        "host: share_import: file descriptor %d is no memory of a host "
                        "device",
                        file);
    }
    if ((uint64_t)what.st_size != bytes) {
        return wr_error(WEIR_INVALID,
                        "host: share_import of %" PRIu64
                        " bytes: the memory has %" PRIu64,
                        bytes, (uint64_t)what.st_size);
    }
    return WEIR_OK;
}

weir_result wr_hostdrv_share_import(weir_driver *driver, int file, uint64_t bytes,
                                    uint64_t *address)
{
    wr_hostdrv *host = (wr_hostdrv *)driver;
    WR_TRY(wr_regions_check_size(&host->book, "share_import", bytes));
    WR_TRY(check_file(file, bytes));
    WR_TRY(wr_hostdrv_charge(host, "share_import", bytes));
    int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
    weir_result result = copy >= 0 ? enter(host, "share_import", copy, bytes, address)
                                   : refused("share_import", bytes);
    if (result != WEIR_OK) {
        if (copy >= 0) {
            close(copy);
        }
        wr_hostdrv_uncharge(host, bytes);
    }
    return result;
}
