/* SPDX-License-Identifier: MIT */
/* The driver "pinned": host memory that is page-locked for a GPU, in whole pages from
 * cuMemHostAlloc. It is the CUDA driver over another kind of memory: context, streams,
 * fences and copies are those of the GPU, since what may still use such memory is work on
 * its streams. CUDA's addresses are unified, so a page is known to the GPU by its host
 * address.
 *
 * cuMemFreeHost may wait for the whole device, like cuMemFree. */
#include "cuda.h"

#include "base/result.h"

#include <weir/pinned.h>

#include <inttypes.h>
#include <stdio.h>

weir_result wr_cuda_pinned_charge(wr_cuda *cuda, uint64_t bytes)
{
    uint64_t capacity = cuda->capacity_bytes;
    uint64_t charged = atomic_load(&cuda->charged_bytes);
    do {
        if (charged > capacity - bytes) {
            return wr_error(WEIR_OUT_OF_MEMORY,
                            "pinned: page_alloc of %" PRIu64 " bytes: %" PRIu64
                            " of the %" PRIu64 " that may be pinned are taken; "
                            "weir_pinned_desc.capacity_bytes says how much may be",
                            bytes, charged, capacity);
        }
    } while (
        !atomic_compare_exchange_weak(&cuda->charged_bytes, &charged, charged + bytes));
    return WEIR_OK;
}

wr_cu_result wr_cuda_pinned_alloc(const wr_cuda *cuda, uint64_t bytes,
                                  wr_cu_address *address)
{
    void *memory = NULL;
    wr_cu_result result = cuda->api.host_alloc(&memory, bytes, WR_CU_HOST_PORTABLE);
    *address = (wr_cu_address)(uintptr_t)memory;
    return result;
}

wr_cu_result wr_cuda_pinned_free(const wr_cuda *cuda, wr_cu_address address)
{
    void *memory = (void *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
    return cuda->api.host_free(memory);
}

/* Half of what the host driver says that this process can have: locked pages are taken
 * from everybody else. */
static weir_result read_capacity(uint64_t *bytes)
{
    weir_driver *host = NULL;
    weir_driver_properties properties;
    WR_TRY(wr_driver_host.open("", NULL, &host));
    wr_driver_host.properties(host, &properties);
    wr_driver_host.close(host);
    *bytes = properties.capacity_bytes / 2;
    return WEIR_OK;
}

static weir_result pinned_open(const char *argument, const void *config,
                               weir_driver **driver)
{
    const weir_pinned_desc *desc = config;
    uint64_t capacity = desc == NULL ? 0 : desc->capacity_bytes;
    wr_cuda *cuda = NULL;
    if (desc != NULL && desc->size != 0 && desc->size != sizeof *desc) {
        return wr_error(WEIR_INVALID, "pinned: options of another size");
    }
    if (capacity == 0) {
        WR_TRY(read_capacity(&capacity));
    }
    WR_TRY(wr_cuda_open(&wr_driver_pinned, true, argument, &cuda));
    cuda->capacity_bytes = capacity;
    *driver = &cuda->base;
    return WEIR_OK;
}

static void pinned_properties(weir_driver *driver, weir_driver_properties *properties)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    *properties = (weir_driver_properties){
        .capacity_bytes = cuda->capacity_bytes,
        .alignment_bytes = WR_CUDA_ALIGNMENT_BYTES,
        .host_visible = true,
    };
    snprintf(properties->name, sizeof properties->name, "pinned for %.80s", cuda->name);
}

/* Nobody counts locked memory by process. */
static weir_result pinned_memory_info(weir_driver *driver, weir_memory_info *info)
{
    *info = (weir_memory_info){.capacity_bytes = wr_cuda_of(driver)->capacity_bytes,
                               .footprint_bytes = WEIR_UNKNOWN_BYTES,
                               .others_bytes = WEIR_UNKNOWN_BYTES};
    return WEIR_OK;
}

const weir_driver_table wr_driver_pinned = {
    .size = sizeof(weir_driver_table),
    .name = "pinned",
    .open = pinned_open,
    .close = wr_cuda_close,
    .properties = pinned_properties,
    .page_alloc = wr_cuda_page_alloc,
    .page_free = wr_cuda_page_free,
    .write = wr_cuda_write,
    .read = wr_cuda_read,
    .copy = wr_cuda_copy,
    .stream_open = wr_cuda_stream_open,
    .stream_close = wr_cuda_stream_close,
    .stream_test = wr_cuda_stream_test,
    .stream_sync = wr_cuda_stream_sync,
    .stream_wait = wr_cuda_stream_wait,
    .fence_record = wr_cuda_fence_record,
    .fence_test = wr_cuda_fence_test,
    .fence_wait = wr_cuda_fence_wait,
    .fence_release = wr_cuda_fence_release,
    .memory_info = pinned_memory_info,
    .stream_native = wr_cuda_stream_native,
};
