/* SPDX-License-Identifier: MIT */
/* Pages and granules of the host driver.
 *
 * Every call goes the same way: check it against the book and mark it there under the
 * lock, do the system call without the lock, undo the mark if that failed. Bytes are
 * charged against the capacity before memory is made and uncharged after it is gone, so
 * that the sum of all that exists never exceeds the capacity. */
#define _GNU_SOURCE
#include "host.h"

#include "base/result.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

/* Mappings are made without a reservation of swap: the capacity is what bounds them. */
#define MAP_KIND (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static wr_hostdrv *host_of(weir_driver *driver)
{
    return (wr_hostdrv *)driver;
}

static void *pointer_to(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* All or none. */
weir_result wr_hostdrv_charge(wr_hostdrv *host, const char *call, uint64_t bytes)
{
    uint64_t capacity = host->system.capacity_bytes;
    uint64_t charged = atomic_load(&host->charged_bytes);
    do {
        if (bytes > capacity || charged > capacity - bytes) {
            return wr_error(WEIR_OUT_OF_MEMORY,
                            "host: %s of %" PRIu64 " bytes: %" PRIu64
                            " of the capacity of"
                            " %" PRIu64 " bytes (%s) are taken",
                            call, bytes, charged, capacity,
                            host->system.is_grouped ? "the control group's limit"
                                                    : "the physical memory");
        }
    } while (
        !atomic_compare_exchange_weak(&host->charged_bytes, &charged, charged + bytes));
    return WEIR_OK;
}

void wr_hostdrv_uncharge(wr_hostdrv *host, uint64_t bytes)
{
    atomic_fetch_sub(&host->charged_bytes, bytes);
}

/* The result of a system call that failed. */
static weir_result refused(const char *call, uint64_t bytes)
{
    int reason = errno;
    return wr_error(reason == ENOMEM ? WEIR_OUT_OF_MEMORY : WEIR_DRIVER,
                    "host: %s of %" PRIu64 " bytes: the system refuses: %s%s", call,
                    bytes, strerror(reason),
                    reason == ENOMEM ? " (its count of mappings, vm.max_map_count, or an"
                                       " address space limit may be the reason)"
                                     : "");
}

/* ---- pages ---- */

weir_result wr_hostdrv_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_hostdrv *host = host_of(driver);
    if (bytes == 0) {
        return wr_error(WEIR_INVALID, "host: page_alloc of 0 bytes");
    }
    uint64_t whole_bytes = bytes > UINT64_MAX - host->system_page_bytes
                               ? UINT64_MAX
                               : round_up(bytes, host->system_page_bytes);
    WR_TRY(wr_hostdrv_charge(host, "page_alloc", whole_bytes));
    weir_result result;
    wr_region *page = wr_region_create_page(bytes);
    if (page == NULL) {
        result =
            wr_error(WEIR_OUT_OF_HOST_MEMORY, "host: no memory to keep a page's record");
        goto undo_charge;
    }
    void *memory = mmap(NULL, whole_bytes, PROT_READ | PROT_WRITE, MAP_KIND, -1, 0);
    if (memory == MAP_FAILED) {
        result = refused("page_alloc", bytes);
        goto undo_page;
    }
    page->address = (uint64_t)(uintptr_t)memory;
    wr_lock_take(&host->lock);
    wr_regions_add(&host->book, page);
    wr_lock_leave(&host->lock);
    *address = page->address;
    return WEIR_OK;

undo_page:
    wr_region_destroy(page);
undo_charge:
    wr_hostdrv_uncharge(host, whole_bytes);
    return result;
}

/* Unmaps a region that is struck out already; enters it again if that fails. */
static weir_result unmap(wr_hostdrv *host, const char *call, wr_region *region)
{
    uint64_t whole_bytes = round_up(region->bytes, host->system_page_bytes);
    if (munmap(pointer_to(region->address), whole_bytes) != 0) {
        weir_result result = refused(call, region->bytes);
        wr_lock_take(&host->lock);
        wr_regions_add(&host->book, region);
        wr_lock_leave(&host->lock);
        return result;
    }
    if (!region->is_range) {
        wr_hostdrv_uncharge(host, whole_bytes);
    }
    wr_hostdrv_share_close(host, region);
    wr_region_destroy(region);
    return WEIR_OK;
}

weir_result wr_hostdrv_page_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_hostdrv *host = host_of(driver);
    wr_region *page;
    wr_lock_take(&host->lock);
    weir_result result =
        wr_regions_get_page(&host->book, "page_free", address, bytes, &page);
    if (result == WEIR_OK) {
        wr_regions_remove(&host->book, page);
    }
    wr_lock_leave(&host->lock);
    return result == WEIR_OK ? unmap(host, "page_free", page) : result;
}

/* ---- ranges ---- */

/* Addresses without memory, aligned to the granule: maps one granule more and cuts it
 * off. */
static void *map_aligned(uint64_t bytes)
{
    uint64_t slack = WR_HOSTDRV_GRANULE_BYTES;
    char *mapped = mmap(NULL, bytes + slack, PROT_NONE, MAP_KIND, -1, 0);
    if (mapped == MAP_FAILED) {
        return NULL;
    }
    uint64_t head =
        round_up((uint64_t)(uintptr_t)mapped, slack) - (uint64_t)(uintptr_t)mapped;
    if (head > 0) {
        munmap(mapped, head);
    }
    munmap(mapped + head + bytes, slack - head);
    return mapped + head;
}

void *wr_hostdrv_map_file(int file, uint64_t bytes)
{
    void *place = map_aligned(bytes);
    void *memory = place == NULL ? NULL
                                 : mmap(place, bytes, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_FIXED, file, 0);
    if (memory == MAP_FAILED) {
        int reason = errno;
        munmap(place, bytes);
        errno = reason;
        return NULL;
    }
    return memory;
}

weir_result wr_hostdrv_range_reserve(weir_driver *driver, uint64_t bytes,
                                     uint64_t *address)
{
    wr_hostdrv *host = host_of(driver);
    WR_TRY(wr_regions_check_size(&host->book, "range_reserve", bytes));
    if (bytes > INT64_MAX) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "host: range_reserve of %" PRIu64
                        " bytes: more than there are addresses",
                        bytes);
    }
    wr_region *range = wr_region_create_range(bytes, WR_HOSTDRV_GRANULE_BYTES);
    if (range == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "host: no memory to keep a range's record");
    }
    void *memory = map_aligned(bytes);
    if (memory == NULL) {
        weir_result result = refused("range_reserve", bytes);
        wr_region_destroy(range);
        return result;
    }
    range->address = (uint64_t)(uintptr_t)memory;
    wr_lock_take(&host->lock);
    wr_regions_add(&host->book, range);
    wr_lock_leave(&host->lock);
    *address = range->address;
    return WEIR_OK;
}

weir_result wr_hostdrv_range_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_hostdrv *host = host_of(driver);
    wr_region *range;
    wr_lock_take(&host->lock);
    weir_result result =
        wr_regions_get_range(&host->book, "range_free", address, bytes, &range);
    if (result == WEIR_OK) {
        wr_regions_remove(&host->book, range);
    }
    wr_lock_leave(&host->lock);
    return result == WEIR_OK ? unmap(host, "range_free", range) : result;
}

/* Marks granules that all have the other state. */
static weir_result mark(wr_hostdrv *host, const char *call, uint64_t address,
                        uint64_t bytes, bool committed)
{
    wr_region *range;
    wr_lock_take(&host->lock);
    weir_result result =
        committed ? wr_regions_get_bare(&host->book, call, address, bytes, &range)
                  : wr_regions_get_committed(&host->book, call, address, bytes, &range);
    if (result == WEIR_OK) {
        wr_regions_mark(&host->book, range, address, bytes, committed);
    }
    wr_lock_leave(&host->lock);
    return result;
}

weir_result wr_hostdrv_commit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_hostdrv *host = host_of(driver);
    WR_TRY(mark(host, "commit", address, bytes, true));
    weir_result result = wr_hostdrv_charge(host, "commit", bytes);
    if (result != WEIR_OK) {
        goto undo_mark;
    }
    if (mprotect(pointer_to(address), bytes, PROT_READ | PROT_WRITE) != 0) {
        result = refused("commit", bytes);
        (void)mprotect(pointer_to(address), bytes,
                       PROT_NONE); /* part may have been opened */
        goto undo_charge;
    }
    return WEIR_OK;

undo_charge:
    wr_hostdrv_uncharge(host, bytes);
undo_mark:
    mark(host, "commit", address, bytes, false);
    return result;
}

weir_result wr_hostdrv_decommit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_hostdrv *host = host_of(driver);
    WR_TRY(mark(host, "decommit", address, bytes, false));
    if (madvise(pointer_to(address), bytes, MADV_DONTNEED) != 0) {
        weir_result result = refused("decommit", bytes);
        mark(host, "decommit", address, bytes, true);
        return result;
    }
    /* The memory is gone. Closing the addresses, so that stale use faults, may fail for
     * want of mappings; then they stay open and a later commit finds them so. */
    (void)mprotect(pointer_to(address), bytes, PROT_NONE);
    wr_hostdrv_uncharge(host, bytes);
    return WEIR_OK;
}

void wr_hostdrv_unmap_all(wr_hostdrv *host)
{
    for (wr_region *region; (region = wr_regions_remove_any(&host->book)) != NULL;) {
        munmap(pointer_to(region->address),
               round_up(region->bytes, host->system_page_bytes));
        wr_hostdrv_share_close(host, region);
        wr_region_destroy(region);
    }
}

/* ---- accounting ---- */

weir_result wr_hostdrv_memory_info(weir_driver *driver, weir_memory_info *info)
{
    wr_hostdrv *host = host_of(driver);
    uint64_t footprint = wr_system_footprint(&host->system);
    uint64_t shared = atomic_load(&host->shared_count) > 0 ? wr_system_shared() : 0;
    *info = (weir_memory_info){
        .capacity_bytes = host->system.capacity_bytes,
        .footprint_bytes =
            footprint == WEIR_UNKNOWN_BYTES ? footprint : footprint + shared,
        .others_bytes = wr_system_others(&host->system, footprint),
    };
    return WEIR_OK;
}

/* The run of equal state from `address`, cut at `end`; not under the lock any more when
 * the system is asked about it. */
static weir_result find_run(wr_hostdrv *host, uint64_t address, uint64_t end,
                            uint64_t *run_end, bool *backed)
{
    weir_result result = WEIR_OK;
    wr_lock_take(&host->lock);
    const wr_region *region = wr_regions_find(&host->book, address);
    if (region == NULL) {
        result = wr_error(WEIR_INVALID,
                          "host: untouched: 0x%" PRIx64 " is in no page and no range",
                          address);
    } else {
        uint64_t found = wr_regions_run_end(&host->book, region, address, end, backed);
        *run_end = found < end ? found : end;
    }
    wr_lock_leave(&host->lock);
    return result;
}

weir_result wr_hostdrv_untouched(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 uint64_t *untouched_bytes)
{
    uint64_t untouched = 0;
    uint64_t end = address + bytes;
    for (uint64_t at = address; at < end;) {
        bool committed = false;
        uint64_t run_end = end;
        WR_TRY(find_run(host_of(driver), at, end, &run_end, &committed));
        if (committed) {
            untouched += run_end - at - wr_system_backed(at, run_end - at);
        }
        at = run_end;
    }
    *untouched_bytes = untouched;
    return WEIR_OK;
}
