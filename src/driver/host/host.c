/* SPDX-License-Identifier: MIT */
/* Opening, streams and work of the host driver. */
#define _GNU_SOURCE
#include "host.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/result.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static wr_hostdrv *host_of(weir_driver *driver)
{
    return (wr_hostdrv *)driver;
}

static wr_hostdrv_stream *stream_of(weir_driver_stream stream)
{
    WR_ASSERT(stream != 0);
    return (wr_hostdrv_stream *)(uintptr_t)stream;
}

/* ---- open and close ---- */

static weir_result host_open(const char *argument, const void *config,
                             weir_driver **driver)
{
    if (argument != NULL && argument[0] != '\0') {
        return wr_error(
            WEIR_NOT_FOUND,
            "host: there is no device \"%s\"; the host is one device, \"host\"",
            argument);
    }
    if (config != NULL) {
        return wr_error(WEIR_INVALID,
                        "host: this driver takes no configuration, pass NULL");
    }
    wr_hostdrv *host = wr_host_alloc(sizeof *host);
    if (host == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "host: no memory for the driver itself");
    }
    weir_result result = wr_workers_init(&host->workers);
    if (result != WEIR_OK) {
        wr_host_free(host);
        return result;
    }
    host->base.table = &wr_driver_host;
    host->book =
        (wr_regions){.driver = "host", .granule_bytes = WR_HOSTDRV_GRANULE_BYTES};
    host->system_page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    wr_system_init(&host->system);
    uint64_t footprint = wr_system_footprint(&host->system);
    host->context_bytes = footprint == WEIR_UNKNOWN_BYTES ? 0 : footprint;
    *driver = &host->base;
    return WEIR_OK;
}

/* After an abandoned device pages, ranges and streams may still be there. */
static void host_close(weir_driver *driver)
{
    wr_hostdrv *host = host_of(driver);
    wr_workers_finish(&host->workers);
    wr_hostdrv_unmap_all(host);
    while (host->streams != NULL) {
        wr_hostdrv_stream *next = host->streams->next;
        wr_host_free(host->streams);
        host->streams = next;
    }
    wr_host_free(host);
}

static void host_properties(weir_driver *driver, weir_driver_properties *properties)
{
    wr_hostdrv *host = host_of(driver);
    *properties = (weir_driver_properties){
        .name = "host memory",
        .capacity_bytes = host->system.capacity_bytes,
        .granule_bytes = WR_HOSTDRV_GRANULE_BYTES,
        .alignment_bytes = WR_HOSTDRV_ALIGNMENT_BYTES,
        .context_bytes = host->context_bytes,
        .host_visible = true,
        .pinned = "host", /* for whoever opens pinned memory by the device */
    };
}

/* ---- streams and fences ----
 *
 * Work is done when the call that asks for it returns, so nothing is ever queued: a
 * stream is an order of calls, kept by its lock, and a fence is the value that has always
 * passed. */

static weir_result host_stream_open(weir_driver *driver, void *native,
                                    weir_driver_stream *stream)
{
    wr_hostdrv *host = host_of(driver);
    wr_hostdrv_stream *made = wr_host_alloc(sizeof *made);
    if (made == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "host: no memory for a stream");
    }
    made->native = native;
    wr_lock_take(&host->lock);
    made->next = host->streams;
    if (made->next != NULL) {
        made->next->previous = made;
    }
    host->streams = made;
    wr_lock_leave(&host->lock);
    *stream = (weir_driver_stream)(uintptr_t)made;
    return WEIR_OK;
}

static void host_stream_close(weir_driver *driver, weir_driver_stream stream)
{
    wr_hostdrv *host = host_of(driver);
    wr_hostdrv_stream *closing = stream_of(stream);
    wr_lock_take(&host->lock);
    if (closing->previous != NULL) {
        closing->previous->next = closing->next;
    } else {
        host->streams = closing->next;
    }
    if (closing->next != NULL) {
        closing->next->previous = closing->previous;
    }
    wr_lock_leave(&host->lock);
    wr_host_free(closing);
}

static void *host_stream_native(weir_driver *driver, weir_driver_stream stream)
{
    (void)driver;
    return stream_of(stream)->native;
}

static weir_result host_stream_test(weir_driver *driver, weir_driver_stream stream)
{
    (void)driver;
    (void)stream;
    return WEIR_OK;
}

/* Waits for a launch that another thread is in. */
static weir_result host_stream_sync(weir_driver *driver, weir_driver_stream stream)
{
    (void)driver;
    wr_lock_take(&stream_of(stream)->lock);
    wr_lock_leave(&stream_of(stream)->lock);
    return WEIR_OK;
}

static weir_result host_stream_wait(weir_driver *driver, weir_driver_stream stream,
                                    weir_driver_fence fence)
{
    (void)driver;
    (void)stream;
    (void)fence;
    return WEIR_OK;
}

static weir_result host_fence_record(weir_driver *driver, weir_driver_stream stream,
                                     weir_driver_fence *fence)
{
    (void)driver;
    (void)stream;
    *fence = 0;
    return WEIR_OK;
}

static weir_result host_fence_passed(weir_driver *driver, weir_driver_fence fence)
{
    (void)driver;
    (void)fence;
    return WEIR_OK;
}

static void host_fence_release(weir_driver *driver, weir_driver_fence fence)
{
    (void)driver;
    (void)fence;
}

/* ---- work ----
 *
 * Addresses are not looked up here: whoever calls has checked them, and a book that every
 * copy must lock would cost more than small copies do. */

static weir_result host_write(weir_driver *driver, weir_driver_stream stream,
                              uint64_t address, const void *data, uint64_t bytes)
{
    (void)driver;
    if (bytes > 0) {
        wr_lock_take(&stream_of(stream)->lock);
        memcpy((void *)(uintptr_t)address, data, bytes);
        wr_lock_leave(&stream_of(stream)->lock);
    }
    return WEIR_OK;
}

static weir_result host_read(weir_driver *driver, weir_driver_stream stream,
                             uint64_t address, void *data, uint64_t bytes)
{
    (void)driver;
    if (bytes > 0) {
        wr_lock_take(&stream_of(stream)->lock);
        memcpy(data, (const void *)(uintptr_t)address, bytes);
        wr_lock_leave(&stream_of(stream)->lock);
    }
    return WEIR_OK;
}

/* memmove: the two may overlap. */
static weir_result host_copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                             uint64_t from, uint64_t bytes)
{
    (void)driver;
    if (bytes > 0) {
        wr_lock_take(&stream_of(stream)->lock);
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
        wr_lock_leave(&stream_of(stream)->lock);
    }
    return WEIR_OK;
}

/* `arguments` need no copy, the kernel has run when this returns. */
static weir_result host_launch(weir_driver *driver, weir_driver_stream stream,
                               const weir_launch *launch)
{
    const weir_kernel *kernel = launch->kernel;
    if (kernel == NULL) {
        return wr_error(WEIR_INVALID, "host: launch without a kernel");
    }
    if (kernel->host == NULL) {
        return wr_error(WEIR_UNSUPPORTED,
                        "host: kernel \"%s\" has no host form; set its `host`",
                        kernel->name != NULL ? kernel->name : "");
    }
    if (kernel->host_ready != NULL) {
        WR_TRY(kernel->host_ready(kernel));
    }
    wr_lock_take(&stream_of(stream)->lock);
    wr_workers_run(&host_of(driver)->workers, launch);
    wr_lock_leave(&stream_of(stream)->lock);
    return WEIR_OK;
}

const weir_driver_table wr_driver_host = {
    .size = sizeof(weir_driver_table),
    .name = "host",
    .open = host_open,
    .close = host_close,
    .properties = host_properties,
    .page_alloc = wr_hostdrv_page_alloc,
    .page_free = wr_hostdrv_page_free,
    .write = host_write,
    .read = host_read,
    .copy = host_copy,
    .stream_open = host_stream_open,
    .stream_close = host_stream_close,
    .stream_test = host_stream_test,
    .stream_sync = host_stream_sync,
    .stream_wait = host_stream_wait,
    .fence_record = host_fence_record,
    .fence_test = host_fence_passed,
    .fence_wait = host_fence_passed,
    .fence_release = host_fence_release,
    .range_reserve = wr_hostdrv_range_reserve,
    .range_free = wr_hostdrv_range_free,
    .commit = wr_hostdrv_commit,
    .decommit = wr_hostdrv_decommit,
    .share_alloc = wr_hostdrv_share_alloc,
    .share_export = wr_hostdrv_share_export,
    .share_import = wr_hostdrv_share_import,
    .memory_info = wr_hostdrv_memory_info,
    .untouched = wr_hostdrv_untouched,
    .launch = host_launch,
    .stream_native = host_stream_native,
};
