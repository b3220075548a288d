/* SPDX-License-Identifier: MIT */
/* Pages of the CUDA driver that other processes can map: each is one chunk of virtual
 * memory, made with a handle type that CUDA can turn into a file descriptor, at addresses
 * of its own. Freeing a page ends this process's mapping and handle; the memory goes when
 * all other processes' have ended too.
 *
 * The region's data is such a page's record. What was imported is not counted as this
 * process's: whether NVML does is not said anywhere. */
#define _GNU_SOURCE
#include "cuda.h"

#include "base/memory.h"
#include "base/result.h"

#include <fcntl.h>
#include <inttypes.h>

typedef struct shared {
    wr_cu_handle handle;
    bool is_mapped; /* false only while it is ended, and after that failed half way */
    bool is_imported;
} shared;

static shared *shared_of(const wr_region *page)
{
    return page->data;
}

/* ---- making and ending, inside enter and leave ---- */

/* The parts of a page as they are made; zeroed: none. */
typedef struct parts {
    wr_cu_address address;
    wr_cu_handle handle;
    bool is_mapped;
} parts;

static void undo(const wr_cuda *cuda, const parts *p, uint64_t bytes)
{
    if (p->is_mapped) {
        (void)cuda->api.unmap(p->address, bytes);
    }
    if (p->address != 0) {
        (void)cuda->api.unreserve(p->address, bytes);
    }
    if (p->handle != 0) {
        (void)cuda->api.release(p->handle);
    }
}

static weir_result create(const wr_cuda *cuda, uint64_t bytes, wr_cu_handle *handle)
{
    wr_cu_allocation what = {.type = WR_CU_ALLOCATION_PINNED,
                             .handle_types = WR_CU_HANDLE_FILE,
                             .location = {WR_CU_LOCATION_DEVICE, cuda->device}};
    return wr_cuda_failed(cuda, cuda->api.create(handle, bytes, &what, 0), "share_alloc",
                          bytes, "cuMemCreate");
}

/* What is wrong with a descriptor CUDA says in several ways. */
static weir_result open_file(const wr_cuda *cuda, int file, uint64_t bytes,
                             wr_cu_handle *handle)
{
    void *name = (void *)(uintptr_t)(unsigned)file; // NOLINT(performance-no-int-to-ptr)
    wr_cu_result result = cuda->api.import_handle(handle, name, WR_CU_HANDLE_FILE);
    if (result == WR_CU_INVALID_VALUE || result == WR_CU_INVALID_HANDLE ||
        result == WR_CU_OPERATING_SYSTEM || result == WR_CU_UNKNOWN) {
        return wr_error(WEIR_INVALID,
                        "cuda: share_import: file descriptor %d is no memory of a GPU "
                        "(cuMemImportFromShareableHandle says %d)",
                        file, (int)result);
    }
    return wr_cuda_failed(cuda, result, "share_import", bytes,
                          "cuMemImportFromShareableHandle");
}

/* Gives the handle addresses. */
static weir_result map(const wr_cuda *cuda, const char *call, uint64_t bytes, parts *p)
{
    wr_cu_access access = {{WR_CU_LOCATION_DEVICE, cuda->device}, WR_CU_ACCESS_READWRITE};
    WR_TRY(wr_cuda_failed(
        cuda, cuda->api.reserve(&p->address, bytes, cuda->granule_bytes, 0, 0), call,
        bytes, "cuMemAddressReserve"));
    WR_TRY(wr_cuda_failed(cuda, cuda->api.map(p->address, bytes, 0, p->handle, 0), call,
                          bytes, "cuMemMap"));
    p->is_mapped = true;
    return wr_cuda_failed(cuda, cuda->api.set_access(p->address, bytes, &access, 1), call,
                          bytes, "cuMemSetAccess");
}

/* A new page (`file` negative) or another process's. */
static weir_result make_parts(const wr_cuda *cuda, int file, uint64_t bytes, parts *p)
{
    const char *call = file < 0 ? "share_alloc" : "share_import";
    WR_TRY(wr_cuda_enter(cuda, call));
    weir_result result = file < 0 ? create(cuda, bytes, &p->handle)
                                  : open_file(cuda, file, bytes, &p->handle);
    if (result == WEIR_OK) {
        result = map(cuda, call, bytes, p);
    }
    if (result != WEIR_OK) {
        undo(cuda, p, bytes);
    }
    wr_cuda_leave(cuda);
    return result;
}

wr_cu_result wr_cuda_share_free(wr_cuda *cuda, wr_region *page)
{
    shared *record = shared_of(page);
    if (record->is_mapped) {
        wr_cu_result result = cuda->api.unmap(page->address, page->bytes);
        if (result != WR_CU_SUCCESS) {
            return result;
        }
        record->is_mapped = false;
    }
    wr_cu_result result = cuda->api.release(record->handle);
    if (result != WR_CU_SUCCESS) {
        return result;
    }
    (void)cuda->api.unreserve(page->address, page->bytes);
    if (!record->is_imported) {
        atomic_fetch_sub(&cuda->charged_bytes, page->bytes);
    }
    wr_host_free(record);
    page->data = NULL;
    return WR_CU_SUCCESS;
}

/* ---- entries of the table ---- */

static weir_result check(const wr_cuda *cuda, const char *call, uint64_t bytes)
{
    int can_share = 0;
    if (cuda->granule_bytes != 0) {
        WR_TRY(wr_cu_failed(&cuda->api,
                            cuda->api.device_attribute(
                                &can_share, WR_CU_ATTRIBUTE_HANDLE_FILE, cuda->device),
                            call, "cuDeviceGetAttribute"));
    }
    if (!can_share) {
        return wr_error(WEIR_UNSUPPORTED,
                        "cuda: %s: this device cannot share memory by file descriptors",
                        call);
    }
    WR_TRY(wr_regions_check_size(&cuda->book, call, bytes));
    if (bytes > cuda->capacity_bytes) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "cuda: %s of %" PRIu64 " bytes: the device has %" PRIu64, call,
                        bytes, cuda->capacity_bytes);
    }
    return WEIR_OK;
}

static weir_result make(wr_cuda *cuda, int file, uint64_t bytes, uint64_t *address)
{
    wr_region *page = wr_region_create_page(bytes);
    shared *record = wr_host_alloc(sizeof *record);
    parts p = {0};
    weir_result result =
        page == NULL || record == NULL
            ? wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory to keep a page's record")
            : make_parts(cuda, file, bytes, &p);
    if (result != WEIR_OK) {
        wr_region_destroy(page);
        wr_host_free(record);
        return result;
    }
    *record = (shared){.handle = p.handle, .is_mapped = true, .is_imported = file >= 0};
    page->address = p.address;
    page->data = record;
    atomic_fetch_add(&cuda->charged_bytes, record->is_imported ? 0 : bytes);
    wr_lock_take(&cuda->lock);
    wr_regions_add(&cuda->book, page);
    wr_lock_leave(&cuda->lock);
    *address = p.address;
    return WEIR_OK;
}

weir_result wr_cuda_share_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    WR_TRY(check(cuda, "share_alloc", bytes));
    return make(cuda, -1, bytes, address);
}

weir_result wr_cuda_share_import(weir_driver *driver, int file, uint64_t bytes,
                                 uint64_t *address)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    WR_TRY(check(cuda, "share_import", bytes));
    if (file < 0 || fcntl(file, F_GETFD) < 0) {
        return wr_error(WEIR_INVALID,
                        "cuda: share_import: file descriptor %d is not open", file);
    }
    return make(cuda, file, bytes, address);
}

static weir_result export(const wr_cuda *cuda, wr_cu_handle handle, uint64_t bytes,
                          int *file)
{
    int made = -1;
    WR_TRY(wr_cuda_enter(cuda, "share_export"));
    wr_cu_result result = cuda->api.export_handle(&made, handle, WR_CU_HANDLE_FILE, 0);
    wr_cuda_leave(cuda);
    WR_TRY(wr_cuda_failed(cuda, result, "share_export", bytes,
                          "cuMemExportToShareableHandle"));
    (void)fcntl(made, F_SETFD, FD_CLOEXEC); /* CUDA does not say whether it is */
    *file = made;
    return WEIR_OK;
}

weir_result wr_cuda_share_export(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 int *file)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_region *page = NULL;
    wr_cu_handle handle = 0;
    wr_lock_take(&cuda->lock);
    weir_result result =
        wr_regions_get_page(&cuda->book, "share_export", address, bytes, &page);
    if (result == WEIR_OK && page->data == NULL) {
        result = wr_error(WEIR_INVALID,
                          "cuda: share_export: the page at 0x%" PRIx64
                          " was made by page_alloc, not by share_alloc",
                          address);
    } else if (result == WEIR_OK) {
        handle = shared_of(page)->handle;
    }
    wr_lock_leave(&cuda->lock);
    return result == WEIR_OK ? export(cuda, handle, bytes, file) : result;
}
