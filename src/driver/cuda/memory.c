/* SPDX-License-Identifier: MIT */
/* Whole pages of the CUDA driver, and what it says about memory.
 *
 * Every call goes the same way: check it against the book and mark it there under the
 * lock, call CUDA without the lock, undo the mark if that failed. */
#include "cuda.h"

#include "base/result.h"

#include <inttypes.h>

/* ---- pages ---- */

static weir_result alloc(wr_cuda *cuda, uint64_t bytes, wr_cu_address *address)
{
    WR_TRY(wr_cuda_enter(cuda, "page_alloc"));
    wr_cu_result result = cuda->is_pinned ? wr_cuda_pinned_alloc(cuda, bytes, address)
                                          : cuda->api.page_alloc(address, bytes);
    wr_cuda_leave(cuda);
    return wr_cuda_failed(cuda, result, "page_alloc", bytes,
                          cuda->is_pinned ? "cuMemHostAlloc" : "cuMemAlloc");
}

static weir_result check_page(const wr_cuda *cuda, uint64_t bytes)
{
    const char *driver = cuda->book.driver;
    if (bytes == 0) {
        return wr_error(WEIR_INVALID, "%s: page_alloc of 0 bytes", driver);
    }
    if (bytes > cuda->capacity_bytes) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "%s: page_alloc of %" PRIu64 " bytes: the device has %" PRIu64,
                        driver, bytes, cuda->capacity_bytes);
    }
    return WEIR_OK;
}

/* Pinned memory is bounded here, a GPU's by the GPU. Memory counts before it is there, so
 * that the bound is never passed, or, a GPU's, once it is, as wr_cuda_footprint wants it.
 */
static weir_result make_page(wr_cuda *cuda, uint64_t bytes, wr_cu_address *address)
{
    WR_TRY(cuda->is_pinned ? wr_cuda_pinned_charge(cuda, bytes) : WEIR_OK);
    weir_result result = alloc(cuda, bytes, address);
    if (result == WEIR_OK && !cuda->is_pinned) {
        atomic_fetch_add(&cuda->charged_bytes, bytes);
    } else if (result != WEIR_OK && cuda->is_pinned) {
        atomic_fetch_sub(&cuda->charged_bytes, bytes);
    }
    return result;
}

weir_result wr_cuda_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    WR_TRY(check_page(cuda, bytes));
    wr_region *page = wr_region_create_page(bytes);
    if (page == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "cuda: no memory to keep a page's record");
    }
    wr_cu_address made = 0;
    weir_result result = make_page(cuda, bytes, &made);
    if (result != WEIR_OK) {
        wr_region_destroy(page);
        return result;
    }
    page->address = made;
    wr_lock_take(&cuda->lock);
    wr_regions_add(&cuda->book, page);
    wr_lock_leave(&cuda->lock);
    *address = made;
    return WEIR_OK;
}

/* Gives a page's memory back, whatever it is, inside enter and leave; `*call` did it. */
static wr_cu_result free_memory(wr_cuda *cuda, wr_region *page, const char **call)
{
    if (page->data != NULL) {
        *call = "cuMemUnmap or cuMemRelease";
        return wr_cuda_share_free(cuda, page);
    }
    *call = cuda->is_pinned ? "cuMemFreeHost" : "cuMemFree";
    wr_cu_result result = cuda->is_pinned ? wr_cuda_pinned_free(cuda, page->address)
                                          : cuda->api.page_free(page->address);
    atomic_fetch_sub(&cuda->charged_bytes, result == WR_CU_SUCCESS ? page->bytes : 0);
    return result;
}

static weir_result free_page(wr_cuda *cuda, wr_region *page)
{
    const char *call;
    WR_TRY(wr_cuda_enter(cuda, "page_free"));
    wr_cu_result result = free_memory(cuda, page, &call);
    wr_cuda_leave(cuda);
    return wr_cuda_failed(cuda, result, "page_free", page->bytes, call);
}

/* cuMemFree waits for the whole device; so pages are for those who ask for them. */
weir_result wr_cuda_page_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_region *page = NULL;
    wr_lock_take(&cuda->lock);
    weir_result result =
        wr_regions_get_page(&cuda->book, "page_free", address, bytes, &page);
    if (result == WEIR_OK) {
        wr_regions_remove(&cuda->book, page);
    }
    wr_lock_leave(&cuda->lock);
    if (result != WEIR_OK) {
        return result;
    }
    result = free_page(cuda, page);
    if (result != WEIR_OK) {
        wr_lock_take(&cuda->lock);
        wr_regions_add(&cuda->book, page);
        wr_lock_leave(&cuda->lock);
        return result;
    }
    wr_region_destroy(page);
    return WEIR_OK;
}

void wr_cuda_free_all(wr_cuda *cuda)
{
    for (wr_region *region; (region = wr_regions_remove_any(&cuda->book)) != NULL;) {
        const char *call;
        if (region->is_range) {
            wr_cuda_range_destroy(cuda, region);
        } else {
            (void)free_memory(cuda, region, &call);
            wr_region_destroy(region);
        }
    }
}

/* ---- accounting ---- */

/* In a container NVML may know another process by our number: what it says is taken only
 * if it can be true. */
uint64_t wr_cuda_footprint(const wr_cuda *cuda)
{
    uint64_t footprint = wr_nvml_footprint(&cuda->nvml);
    uint64_t held = atomic_load(&cuda->charged_bytes);
    bool is_possible =
        footprint > 0 && footprint >= held && footprint <= cuda->capacity_bytes;
    return is_possible ? footprint : WEIR_UNKNOWN_BYTES;
}

/* What is taken on the device and not by this process is others', whether NVML shows them
 * or not. */
static uint64_t others(uint64_t taken, uint64_t footprint)
{
    if (footprint == WEIR_UNKNOWN_BYTES) {
        return WEIR_UNKNOWN_BYTES;
    }
    return taken > footprint ? taken - footprint : 0;
}

weir_result wr_cuda_memory_info(weir_driver *driver, weir_memory_info *info)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    WR_TRY(wr_cuda_enter(cuda, "memory_info"));
    wr_cu_result result = cuda->api.memory_info(&free_bytes, &total_bytes);
    wr_cuda_leave(cuda);
    WR_TRY(wr_cu_failed(&cuda->api, result, "memory_info", "cuMemGetInfo"));
    uint64_t footprint = wr_cuda_footprint(cuda);
    *info = (weir_memory_info){
        .capacity_bytes = cuda->capacity_bytes,
        .footprint_bytes = footprint,
        .others_bytes = others(total_bytes - free_bytes, footprint),
    };
    return WEIR_OK;
}
