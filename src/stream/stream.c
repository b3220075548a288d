/* SPDX-License-Identifier: MIT */
/* Streams: opening, ending, waiting, launching. */
#include "checked.h"
#include "device.h"

#include "base/fork.h"
#include "base/memory.h"
#include "base/result.h"
#include "manager/capture.h"
#include "manager/cleanup.h"
#include "manager/probe.h"
#include "manager/waits.h"

weir_result wr_stream_open(weir_device *device, const weir_stream_desc *desc,
                           weir_stream **stream_out)
{
    wr_bank *bank = &device->bank;
    weir_stream *stream = wr_host_alloc_apart(sizeof *stream);
    if (stream == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a stream");
    }
    weir_driver_stream queue = 0;
    weir_result result = bank->table->stream_open(bank->driver, desc->native, &queue);
    if (result != WEIR_OK) {
        goto undo_alloc;
    }
    stream->device = device;
    stream->adopted = desc->native != NULL;
    stream->manager.gate |= bank->loss.checked ? WR_GATE_CHECKED : 0;
    wr_callbacks_init(&stream->hooks);
    /* From here on others find it in the roster. */
    result = wr_manager_init(&stream->manager, bank, queue, desc->name);
    if (result != WEIR_OK) {
        goto undo_queue;
    }
    wr_lock_take(&device->lock);
    stream->next = device->streams;
    device->streams = stream;
    wr_lock_leave(&device->lock);
    *stream_out = stream;
    return WEIR_OK;

undo_queue:
    wr_callbacks_finish(&stream->hooks);
    bank->table->stream_close(bank->driver, queue);
undo_alloc:
    wr_host_free(stream);
    return result;
}

weir_result weir_stream_create(weir_device *device, const weir_stream_desc *desc,
                               weir_stream **stream)
{
    const weir_stream_desc defaults = {0};
    desc = desc == NULL ? &defaults : desc;
    WR_TRY(wr_fork_check());
    if (device == NULL || stream == NULL ||
        (desc->size != 0 && desc->size != sizeof *desc)) {
        return wr_error(
            WEIR_INVALID,
            "weir_stream_create: an argument is NULL, or options of another size");
    }
    wr_stream_reap(device);
    return wr_stream_open(device, desc, stream);
}

/* ---- ending ---- */

static void unlist(weir_stream *stream)
{
    weir_device *device = stream->device;
    wr_lock_take(&device->lock);
    weir_stream **link = &device->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    wr_lock_leave(&device->lock);
}

static void destroy(weir_stream *stream)
{
    wr_callbacks_finish(&stream->hooks);
    wr_host_free(stream);
}

/* A fence for what the stream still does; 0 if it does nothing, which is waited for when
 * no fence can be had. */
static weir_driver_fence last_fence(weir_stream *stream)
{
    wr_manager *manager = &stream->manager;
    wr_bank *bank = manager->bank;
    weir_driver_fence fence = 0;
    if (bank->table->stream_test(bank->driver, manager->stream) != WEIR_OK &&
        bank->table->fence_record(bank->driver, manager->stream, &fence) != WEIR_OK) {
        bank->table->stream_sync(bank->driver, manager->stream);
        return 0;
    }
    return fence;
}

/* Under the manager's lock: the driver's queue goes; the fence stands for what it still
 * does. */
static void close_queue(weir_stream *stream, weir_driver_fence fence)
{
    wr_manager *manager = &stream->manager;
    wr_bank *bank = manager->bank;
    wr_lock_take(&bank->roster_lock);
    manager->closing_fence = fence;
    manager->closing = true;
    manager->gate |= WR_GATE_CLOSED;
    bank->table->stream_close(bank->driver, manager->stream);
    wr_lock_leave(&bank->roster_lock);
}

static weir_result refuse_live(weir_stream *stream, uint64_t live)
{
    wr_error(WEIR_BUSY, "weir_stream_close: stream \"%s\" has %llu live buffers:",
             stream->manager.name, (unsigned long long)live);
    wr_holders_append(stream->manager.bank);
    wr_error_append("; release them first");
    return WEIR_BUSY;
}

weir_result weir_stream_close(weir_stream *stream)
{
    if (stream == NULL) {
        return WEIR_OK;
    }
    WR_TRY(wr_fork_check());
    if (stream->is_default) {
        return wr_error(WEIR_INVALID,
                        "weir_stream_close: the default stream ends with its device");
    }
    wr_hooks_stream_closes(stream);
    WR_TRY(wr_fork_check()); /* a hook may have forked */
    weir_device *device =
        stream->device; /* once closed, any thread may reap the stream */
    wr_manager *manager = &stream->manager;
    weir_driver_fence fence = manager->recording != NULL ? 0 : last_fence(stream);
    wr_manager_lock(manager);
    uint64_t live = wr_manager_live(manager);
    if (live == 0 && manager->recording == NULL) {
        wr_waits_close_batch(manager);
        wr_manager_publish(manager);
        close_queue(stream, fence);
    }
    bool closed = manager->closing;
    wr_manager_unlock(manager);
    if (!closed) {
        manager->bank->table->fence_release(manager->bank->driver, fence);
    }
    if (live > 0) {
        return refuse_live(stream, live);
    }
    if (!closed) {
        return wr_error(
            WEIR_BUSY,
            "weir_stream_close: stream \"%s\" is capturing, or primed for it; "
            "end or abort that first",
            manager->name);
    }
    wr_stream_reap(device);
    return WEIR_OK;
}

static weir_stream *next_ended(weir_device *device, weir_stream *after)
{
    wr_lock_take(&device->lock);
    weir_stream *stream = after == NULL ? device->streams : after->next;
    while (stream != NULL && !stream->manager.closing) {
        stream = stream->next;
    }
    wr_lock_leave(&device->lock);
    return stream;
}

void wr_stream_reap(weir_device *device)
{
    wr_lock_take(&device->reap_lock);
    weir_stream *stream = next_ended(device, NULL);
    while (stream != NULL) {
        weir_stream *next = next_ended(device, stream);
        weir_driver_fence fence = stream->manager.closing_fence;
        if (wr_cleanup_retire(&stream->manager) && wr_manager_finish(&stream->manager)) {
            device->bank.table->fence_release(device->bank.driver, fence);
            unlist(stream);
            destroy(stream);
        }
        stream = next;
    }
    wr_lock_leave(&device->reap_lock);
}

void wr_stream_end(weir_stream *stream)
{
    wr_manager *manager = &stream->manager;
    wr_bank *bank = manager->bank;
    if (!manager->closing) {
        bank->table->stream_sync(bank->driver, manager->stream);
    } else if (manager->closing_fence != 0) {
        bank->table->fence_wait(bank->driver, manager->closing_fence);
    }
    wr_holders_evict(manager);
    wr_manager_lock(manager);
    wr_waits_forget(manager);
    if (!manager->closing) {
        close_queue(stream, 0);
    }
    wr_manager_unlock(manager);
    wr_cleanup_retire(manager);
    bank->table->fence_release(bank->driver, manager->closing_fence);
    wr_manager_finish(manager);
    unlist(stream);
    destroy(stream);
}

/* ---- use ---- */

weir_result weir_stream_sync(weir_stream *stream)
{
    WR_TRY(wr_fork_check());
    if (stream == NULL) {
        return wr_error(WEIR_INVALID, "weir_stream_sync: the stream is NULL");
    }
    wr_bank *bank = stream->manager.bank;
    if (stream->manager.capturing) {
        return wr_capture_refuse_on(&stream->manager, "weir_stream_sync");
    }
    WR_TRY(wr_hooks_drain(stream));
    if (!wr_capture_enter(&stream->manager)) { /* since then */
        return wr_capture_refuse_on(&stream->manager, "weir_stream_sync");
    }
    weir_result result = bank->table->stream_sync(bank->driver, stream->manager.stream);
    wr_capture_leave(&stream->manager);
    return wr_probe_heed(bank, result);
}

static weir_result launch_on(weir_stream *stream, const weir_launch *launch)
{
    wr_bank *bank = stream->manager.bank;
    return wr_probe_heed(bank, bank->table->launch(bank->driver, stream->manager.stream,
                                                   launch));
}

/* The workspace is dropped at once: what the stream gets it for next runs later. */
static weir_result launch_with_workspace(weir_stream *stream, const weir_launch *launch,
                                         uint64_t bytes)
{
    const weir_buffer_desc desc = {.tag = "library"};
    weir_launch whole = *launch;
    weir_buffer workspace;
    WR_TRY(weir_buffer_create(stream, bytes, &desc, &workspace));
    whole.workspace_address = weir_buffer_address(workspace);
    whole.workspace_bytes = bytes;
    weir_result result = launch_on(stream, &whole);
    weir_buffer_release(workspace);
    return result;
}

weir_result weir_stream_launch(weir_stream *stream, const weir_launch *launch)
{
    WR_TRY(wr_fork_check());
    if (stream == NULL || launch == NULL || launch->kernel == NULL ||
        (launch->arguments == NULL && launch->argument_bytes > 0)) {
        return wr_error(WEIR_INVALID, "weir_stream_launch: the stream, launch, kernel or "
                                      "arguments are NULL");
    }
    wr_bank *bank = stream->manager.bank;
    if (bank->table->launch == NULL) {
        return wr_error(WEIR_UNSUPPORTED, "driver %s runs no kernels", bank->table->name);
    }
    WR_TRY(wr_checked_launch(stream, launch));
    uint64_t workspace_bytes =
        bank->table->workspace != NULL ? bank->table->workspace(bank->driver, launch) : 0;
    return workspace_bytes > 0 ? launch_with_workspace(stream, launch, workspace_bytes)
                               : launch_on(stream, launch);
}

void *weir_stream_native(weir_stream *stream)
{
    if (stream == NULL || wr_fork_is_child() ||
        stream->manager.bank->table->stream_native == NULL) {
        return NULL;
    }
    return stream->manager.bank->table->stream_native(stream->manager.bank->driver,
                                                      stream->manager.stream);
}

weir_driver_stream weir_stream_driver_stream(weir_stream *stream)
{
    return stream == NULL || wr_fork_is_child() ? 0 : stream->manager.stream;
}

weir_device *weir_stream_device(weir_stream *stream)
{
    return stream == NULL || wr_fork_is_child() ? NULL : stream->device;
}

const char *weir_stream_name(const weir_stream *stream)
{
    return stream == NULL || wr_fork_is_child() ? "" : stream->manager.name;
}
