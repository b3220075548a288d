/* SPDX-License-Identifier: MIT */
/* Opening and closing, and the table. */
#include "webgpu.h"

#include "base/memory.h"
#include "base/result.h"

#include <stdio.h>

static weir_result webgpu_open(const char *argument, const void *config,
                               weir_driver **driver)
{
    if (config != NULL) {
        return wr_error(WEIR_INVALID,
                        "webgpu: this driver takes no configuration, pass NULL");
    }
    wr_webgpu *webgpu = wr_host_alloc(sizeof *webgpu);
    if (webgpu == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "webgpu: no memory for the driver itself");
    }
    weir_result result = wr_webgpu_acquire(webgpu, argument != NULL ? argument : "");
    if (result != WEIR_OK) {
        wr_host_free(webgpu);
        return result;
    }
    webgpu->base.table = &wr_driver_webgpu;
    webgpu->book = (wr_regions){.driver = "webgpu"};
    uint64_t footprint = wr_webgpu_footprint(webgpu);
    webgpu->context_bytes = footprint == WEIR_UNKNOWN_BYTES ? 0 : footprint;
    *driver = &webgpu->base;
    return WEIR_OK;
}

/* After an abandoned device pages and streams may still be there, and commands may be
 * open or running; with the device all of that ends. */
static void webgpu_close(weir_driver *driver)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    wr_webgpu_flush(webgpu);
    wr_webgpu_free_all(webgpu);
    wr_webgpu_stages_free(webgpu);
    wr_webgpu_kernels_free(webgpu);
    wr_webgpu_dispose(webgpu);
    wr_webgpu_streams_free(webgpu);
    wr_lock_leave(&webgpu->lock);
    wr_host_free(webgpu);
}

static uint64_t largest_page(const wr_wg_limits *limits)
{
    uint64_t bytes = limits->storage_binding_bytes < limits->buffer_bytes
                         ? limits->storage_binding_bytes
                         : limits->buffer_bytes;
    return bytes / WR_WEBGPU_ALIGNMENT_BYTES * WR_WEBGPU_ALIGNMENT_BYTES;
}

static void webgpu_properties(weir_driver *driver, weir_driver_properties *properties)
{
    const wr_webgpu *webgpu = wr_webgpu_of(driver);
    *properties = (weir_driver_properties){
        .capacity_bytes = webgpu->capacity_bytes,
        .alignment_bytes = WR_WEBGPU_ALIGNMENT_BYTES,
        .max_page_bytes = largest_page(&webgpu->limits),
        .context_bytes = webgpu->context_bytes,
        .own_addresses = true,
        .argument_buffers = true,
        .exclusive_bindings = true,
        .max_bindings = wr_webgpu_most_bindings(webgpu) - 1, /* the arguments' */
    };
    snprintf(properties->name, sizeof properties->name, "%s", webgpu->name);
}

const weir_driver_table wr_driver_webgpu = {
    .size = sizeof(weir_driver_table),
    .name = "webgpu",
    .open = webgpu_open,
    .close = webgpu_close,
    .properties = webgpu_properties,
    .page_alloc = wr_webgpu_page_alloc,
    .page_free = wr_webgpu_page_free,
    .write = wr_webgpu_write,
    .read = wr_webgpu_read,
    .copy = wr_webgpu_copy,
    .stream_open = wr_webgpu_stream_open,
    .stream_close = wr_webgpu_stream_close,
    .stream_test = wr_webgpu_stream_test,
    .stream_sync = wr_webgpu_stream_sync,
    .stream_wait = wr_webgpu_stream_wait,
    .fence_record = wr_webgpu_fence_record,
    .fence_test = wr_webgpu_fence_test,
    .fence_wait = wr_webgpu_fence_wait,
    .fence_release = wr_webgpu_fence_release,
    .memory_info = wr_webgpu_memory_info,
    .untouched = wr_webgpu_untouched,
    .pending_bytes = wr_webgpu_pending_bytes,
    .progress = wr_webgpu_progress,
    .launch = wr_webgpu_launch,
    .queue = wr_webgpu_queue,
};
