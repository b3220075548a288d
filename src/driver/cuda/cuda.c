/* SPDX-License-Identifier: MIT */
/* Opening and closing a GPU, the context around calls, and the table. */
#include "cuda.h"

#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- around calls ---- */

/* How this thread's calls are held against captures, while it is inside enter. */
static _Thread_local int outer_capture_mode;

weir_result wr_cuda_enter(const wr_cuda *cuda, const char *what)
{
    WR_TRY(wr_cu_failed(&cuda->api, cuda->api.context_push(cuda->context), what,
                        "cuCtxPushCurrent"));
    outer_capture_mode = WR_CU_CAPTURE_RELAXED;
    (void)cuda->api.capture_mode(&outer_capture_mode); /* exchanges the two */
    return WEIR_OK;
}

void wr_cuda_leave(const wr_cuda *cuda)
{
    wr_cu_context ours;
    (void)cuda->api.capture_mode(&outer_capture_mode);
    (void)cuda->api.context_pop(&ours);
}

weir_result wr_cuda_failed(const wr_cuda *cuda, wr_cu_result result, const char *entry,
                           uint64_t bytes, const char *call)
{
    char what[96] = "";
    if (result != WR_CU_SUCCESS && result != WR_CU_NOT_READY) {
        snprintf(what, sizeof what, "%s of %" PRIu64 " bytes", entry, bytes);
    }
    return wr_cu_failed(&cuda->api, result, what, call);
}

/* ---- open and close ---- */

#define TRY_CU(call, name) WR_TRY(wr_cu_failed(&cuda->api, (call), "open", name))

/* "" is 0; else a number without sign or space; -1 for anything else. */
static int read_ordinal(const char *argument)
{
    int ordinal = 0;
    for (const char *c = argument; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || ordinal > 100000) {
            return -1;
        }
        ordinal = ordinal * 10 + (*c - '0');
    }
    return ordinal;
}

static weir_result find_device(wr_cuda *cuda, const char *argument)
{
    int count = 0;
    int ordinal = read_ordinal(argument);
    TRY_CU(cuda->api.device_count(&count), "cuDeviceGetCount");
    if (ordinal < 0 || ordinal >= count) {
        return wr_error(WEIR_NOT_FOUND,
                        "cuda: there is no device \"%s\"; CUDA sees %d, named \"cuda:0\" "
                        "and on; \"cuda\" is the first",
                        argument, count);
    }
    cuda->ordinal = ordinal;
    TRY_CU(cuda->api.device_get(&cuda->device, ordinal), "cuDeviceGet");
    TRY_CU(cuda->api.device_name(cuda->name, sizeof cuda->name, cuda->device),
           "cuDeviceGetName");
    cuda->name[sizeof cuda->name - 1] = '\0';
    return WEIR_OK;
}

/* The unit that CUDA recommends, but at least ours, as a power of two. */
static weir_result read_granule(wr_cuda *cuda)
{
    int has_virtual_memory = 0;
    TRY_CU(cuda->api.device_attribute(&has_virtual_memory, WR_CU_ATTRIBUTE_VIRTUAL_MEMORY,
                                      cuda->device),
           "cuDeviceGetAttribute");
    if (!has_virtual_memory) {
        return WEIR_OK;
    }
    size_t recommended = 0;
    wr_cu_allocation what = {.type = WR_CU_ALLOCATION_PINNED,
                             .location = {WR_CU_LOCATION_DEVICE, cuda->device}};
    TRY_CU(cuda->api.granularity(&recommended, &what, WR_CU_GRANULARITY_RECOMMENDED),
           "cuMemGetAllocationGranularity");
    cuda->granule_bytes = WR_CUDA_GRANULE_BYTES;
    while (cuda->granule_bytes < recommended) {
        cuda->granule_bytes *= 2;
    }
    return WEIR_OK;
}

/* Inside enter and leave. */
static weir_result read_memory(wr_cuda *cuda)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    TRY_CU(cuda->api.memory_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    cuda->capacity_bytes = total_bytes;
    wr_cu_uuid uuid;
    if (cuda->api.device_uuid(&uuid, cuda->device) == WR_CU_SUCCESS) {
        wr_nvml_init(&cuda->nvml, uuid.bytes);
    }
    uint64_t footprint = wr_cuda_footprint(cuda);
    cuda->context_bytes = footprint == WEIR_UNKNOWN_BYTES ? 0 : footprint;
    return WEIR_OK;
}

static weir_result open_context(wr_cuda *cuda)
{
    TRY_CU(cuda->api.context_retain(&cuda->context, cuda->device),
           "cuDevicePrimaryCtxRetain");
    weir_result result = wr_cuda_enter(cuda, "open");
    if (result == WEIR_OK) {
        result = read_memory(cuda);
        wr_cuda_leave(cuda);
    }
    if (result != WEIR_OK) {
        (void)cuda->api.context_release(cuda->device);
    }
    return result;
}

static weir_result open_device(wr_cuda *cuda, const char *argument)
{
    WR_TRY(wr_cu_load(&cuda->api));
    WR_TRY(find_device(cuda, argument));
    if (!cuda->is_pinned) {
        WR_TRY(read_granule(cuda));
    }
    WR_TRY(wr_cuda_kernels_init(cuda));
    WR_TRY(open_context(cuda));
    cuda->book = (wr_regions){.driver = cuda->base.table->name,
                              .granule_bytes = cuda->granule_bytes};
    return WEIR_OK;
}

weir_result wr_cuda_open(const weir_driver_table *table, bool is_pinned,
                         const char *argument, wr_cuda **cuda_out)
{
    wr_cuda *cuda = wr_host_alloc(sizeof *cuda);
    if (cuda == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory for the driver itself");
    }
    cuda->base.table = table;
    cuda->is_pinned = is_pinned;
    weir_result result = open_device(cuda, argument != NULL ? argument : "");
    if (result != WEIR_OK) {
        wr_host_free(cuda);
        return result;
    }
    *cuda_out = cuda;
    return WEIR_OK;
}

static weir_result cuda_open(const char *argument, const void *config,
                             weir_driver **driver)
{
    wr_cuda *cuda = NULL;
    if (config != NULL) {
        return wr_error(WEIR_INVALID,
                        "cuda: this driver takes no configuration, pass NULL");
    }
    WR_TRY(wr_cuda_open(&wr_driver_cuda, false, argument, &cuda));
    *driver = &cuda->base;
    return WEIR_OK;
}

/* After an abandoned device memory, streams and fences may still be there, and queued
 * work may still use them. */
void wr_cuda_close(weir_driver *driver)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    bool is_inside = wr_cuda_enter(cuda, "close") == WEIR_OK;
    if ((cuda->book.root != NULL || cuda->kernels.count > 0 ||
         cuda->kernels.cublas.handle != NULL) &&
        is_inside) {
        (void)cuda->api.context_sync();
    }
    wr_cuda_free_all(cuda);
    wr_cuda_end_all(cuda);
    wr_cuda_kernels_finish(cuda);
    if (is_inside) {
        wr_cuda_leave(cuda);
    }
    (void)cuda->api.context_release(cuda->device);
    wr_host_free(cuda);
}

/* The most of one chunk, in whole granules; 0: there are none. */
static uint64_t chunk_bytes(const wr_cuda *cuda)
{
    uint64_t granule = cuda->granule_bytes;
    return granule == 0 ? 0 : WR_CUDA_CHUNK_BYTES / granule * granule;
}

static void cuda_properties(weir_driver *driver, weir_driver_properties *properties)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    *properties = (weir_driver_properties){
        .capacity_bytes = cuda->capacity_bytes,
        .granule_bytes = cuda->granule_bytes,
        .alignment_bytes = WR_CUDA_ALIGNMENT_BYTES,
        .context_bytes = cuda->context_bytes,
        .chunk_bytes = chunk_bytes(cuda),
    };
    snprintf(properties->name, sizeof properties->name, "%s", cuda->name);
    snprintf(properties->pinned, sizeof properties->pinned, "pinned:%d", cuda->ordinal);
}

const weir_driver_table wr_driver_cuda = {
    .size = sizeof(weir_driver_table),
    .name = "cuda",
    .open = cuda_open,
    .close = wr_cuda_close,
    .properties = cuda_properties,
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
    .range_reserve = wr_cuda_range_reserve,
    .range_free = wr_cuda_range_free,
    .commit = wr_cuda_commit,
    .decommit = wr_cuda_decommit,
    .move = wr_cuda_move,
    .commit_chunks = wr_cuda_commit_chunks,
    .share_alloc = wr_cuda_share_alloc,
    .share_export = wr_cuda_share_export,
    .share_import = wr_cuda_share_import,
    .memory_info = wr_cuda_memory_info,
    .launch = wr_cuda_launch,
    .workspace = wr_cuda_workspace,
    .stream_native = wr_cuda_stream_native,
    .capture_begin = wr_cuda_capture_begin,
    .capture_end = wr_cuda_capture_end,
    .capture_abort = wr_cuda_capture_abort,
    .graph_launch = wr_cuda_graph_launch,
    .graph_destroy = wr_cuda_graph_destroy,
};
