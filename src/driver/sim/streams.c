/* SPDX-License-Identifier: MIT */
/* Streams, fences and work of the sim driver. Each entry takes the lock, does its work in
 * a function that runs under it, and leaves the lock. */
#include "sim.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

/* ---- streams ---- */

/* The first slot that is not taken, or one more. */
static weir_result take_stream_slot(wr_sim *sim, size_t *index)
{
    size_t slot = 0;
    while (slot < sim->stream_count && sim->streams[slot].is_live) {
        slot++;
    }
    if (!wr_host_grow((void **)&sim->streams, &sim->stream_capacity, slot + 1,
                      sizeof sim->streams[0])) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "sim: no memory for a stream");
    }
    sim->stream_count = slot == sim->stream_count ? slot + 1 : sim->stream_count;
    *index = slot;
    return WEIR_OK;
}

weir_result wr_sim_stream_open(weir_driver *driver, void *native,
                               weir_driver_stream *stream)
{
    wr_sim *sim = wr_sim_of(driver);
    size_t index = 0;
    wr_lock_take(&sim->lock);
    weir_result result = wr_sim_check_alive(sim, "stream_open");
    if (result == WEIR_OK) {
        result = take_stream_slot(sim, &index);
    }
    if (result == WEIR_OK) {
        uint32_t generation = sim->streams[index].generation + 1;
        sim->streams[index] = (wr_sim_stream){
            .generation = generation, .is_live = true, .is_open = true, .native = native};
        *stream = wr_sim_handle(generation, index);
    }
    wr_lock_leave(&sim->lock);
    return result;
}

/* The slot stays taken as long as work is queued or a fence names the stream. */
void wr_sim_stream_close(weir_driver *driver, weir_driver_stream handle)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    wr_sim_stream *stream = wr_sim_stream_at(sim, handle);
    WR_ASSERT(stream != NULL && stream->is_open);
    if (stream != NULL) {
        stream->is_open = false;
        stream->is_capturing = false;
        wr_sim_reap(stream);
    }
    wr_lock_leave(&sim->lock);
}

void *wr_sim_stream_native(weir_driver *driver, weir_driver_stream handle)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    wr_sim_stream *stream = wr_sim_stream_at(sim, handle);
    void *native = stream != NULL ? stream->native : NULL;
    wr_lock_leave(&sim->lock);
    return native;
}

/* Counts the call and finds a stream that is not capturing. */
static weir_result enter_stream(wr_sim *sim, weir_sim_op op, const char *call,
                                weir_driver_stream handle, wr_sim_stream **stream)
{
    WR_TRY(wr_sim_enter(sim, op));
    WR_TRY(wr_sim_get_stream(sim, call, handle, stream));
    return wr_sim_refuse_capture(*stream, call);
}

weir_result wr_sim_stream_test(weir_driver *driver, weir_driver_stream handle)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_sim_stream *stream;
    wr_lock_take(&sim->lock);
    weir_result result =
        enter_stream(sim, WEIR_SIM_OP_stream_test, "stream_test", handle, &stream);
    if (result == WEIR_OK && stream->done < stream->queued) {
        result = WEIR_NOT_READY;
    }
    wr_lock_leave(&sim->lock);
    return result;
}

weir_result wr_sim_stream_sync(weir_driver *driver, weir_driver_stream handle)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_sim_stream *stream;
    wr_lock_take(&sim->lock);
    weir_result result =
        enter_stream(sim, WEIR_SIM_OP_stream_sync, "stream_sync", handle, &stream);
    if (result == WEIR_OK) {
        wr_sim_complete(sim, stream, stream->queued);
    }
    wr_lock_leave(&sim->lock);
    return result;
}

/* ---- fences ---- */

static wr_sim_fence *fence_at(const wr_sim *sim, weir_driver_fence handle)
{
    uint32_t index = (uint32_t)handle - 1;
    if (index >= sim->fence_count) {
        return NULL;
    }
    wr_sim_fence *fence = &sim->fences[index];
    return fence->is_live && fence->generation == handle >> 32 ? fence : NULL;
}

static weir_result get_fence(const wr_sim *sim, const char *call,
                             weir_driver_fence handle, wr_sim_fence **fence)
{
    *fence = fence_at(sim, handle);
    if (*fence == NULL) {
        return wr_error(WEIR_INVALID,
                        "sim: %s: 0x%" PRIx64 " is no fence, or was released", call,
                        handle);
    }
    return WEIR_OK;
}

/* Takes a free slot, or adds one. */
static weir_result take_fence_slot(wr_sim *sim, uint32_t *index)
{
    if (sim->free_fence != 0) {
        *index = sim->free_fence - 1;
        return WEIR_OK;
    }
    if (!wr_host_grow((void **)&sim->fences, &sim->fence_capacity, sim->fence_count + 1,
                      sizeof sim->fences[0])) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "sim: no memory for a fence");
    }
    *index = (uint32_t)sim->fence_count;
    return WEIR_OK;
}

static void fill_fence(wr_sim *sim, uint32_t index, wr_sim_stream *stream)
{
    wr_sim_fence *fence = &sim->fences[index];
    if (index == sim->fence_count) {
        sim->fence_count++;
    } else {
        sim->free_fence = fence->next_free;
    }
    *fence = (wr_sim_fence){
        .generation = fence->generation + 1,
        .is_live = true,
        .stream = (uint32_t)(stream - sim->streams),
        .position = stream->queued,
    };
    stream->fences++;
}

/* With a lag the fence is an item of its own, which takes its time. */
static weir_result record(wr_sim *sim, weir_driver_stream handle,
                          weir_driver_fence *fence)
{
    wr_sim_stream *stream;
    uint32_t index = 0;
    WR_TRY(enter_stream(sim, WEIR_SIM_OP_fence_record, "fence_record", handle, &stream));
    WR_TRY(take_fence_slot(sim, &index));
    if (sim->desc.lag > 0) {
        WR_TRY(wr_sim_queue_item(sim, stream));
    }
    fill_fence(sim, index, stream);
    *fence = wr_sim_handle(sim->fences[index].generation, index);
    return WEIR_OK;
}

weir_result wr_sim_fence_record(weir_driver *driver, weir_driver_stream stream,
                                weir_driver_fence *fence)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = record(sim, stream, fence);
    wr_lock_leave(&sim->lock);
    return result;
}

/* Counts the call and finds the fence, whose stream is not capturing; NULL for the fence
 * that has always passed. */
static weir_result enter_fence(wr_sim *sim, weir_sim_op op, const char *call,
                               weir_driver_fence handle, const wr_sim_fence **fence)
{
    wr_sim_fence *found = NULL;
    WR_TRY(wr_sim_enter(sim, op));
    if (handle != 0) {
        WR_TRY(get_fence(sim, call, handle, &found));
        WR_TRY(wr_sim_refuse_capture(&sim->streams[found->stream], call));
    }
    *fence = found;
    return WEIR_OK;
}

weir_result wr_sim_fence_test(weir_driver *driver, weir_driver_fence handle)
{
    wr_sim *sim = wr_sim_of(driver);
    const wr_sim_fence *fence = NULL;
    wr_lock_take(&sim->lock);
    weir_result result =
        enter_fence(sim, WEIR_SIM_OP_fence_test, "fence_test", handle, &fence);
    if (result == WEIR_OK && fence != NULL &&
        sim->streams[fence->stream].done < fence->position) {
        result = WEIR_NOT_READY;
    }
    wr_lock_leave(&sim->lock);
    return result;
}

weir_result wr_sim_fence_wait(weir_driver *driver, weir_driver_fence handle)
{
    wr_sim *sim = wr_sim_of(driver);
    const wr_sim_fence *fence = NULL;
    wr_lock_take(&sim->lock);
    weir_result result =
        enter_fence(sim, WEIR_SIM_OP_fence_wait, "fence_wait", handle, &fence);
    if (result == WEIR_OK && fence != NULL) {
        wr_sim_complete(sim, &sim->streams[fence->stream], fence->position);
    }
    wr_lock_leave(&sim->lock);
    return result;
}

void wr_sim_fence_release(weir_driver *driver, weir_driver_fence handle)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    wr_sim_fence *fence = fence_at(sim, handle);
    WR_ASSERT(fence != NULL || handle == 0);
    if (fence != NULL) {
        fence->is_live = false;
        fence->next_free = sim->free_fence;
        sim->free_fence = (uint32_t)(fence - sim->fences) + 1;
        sim->streams[fence->stream].fences--;
        wr_sim_reap(&sim->streams[fence->stream]);
    }
    wr_lock_leave(&sim->lock);
}

/* A fence of the stream itself, or one that has passed, needs no wait. */
static weir_result wait_on_device(wr_sim *sim, weir_driver_stream handle,
                                  weir_driver_fence fence_handle)
{
    wr_sim_stream *stream;
    wr_sim_fence *fence;
    WR_TRY(enter_stream(sim, WEIR_SIM_OP_stream_wait, "stream_wait", handle, &stream));
    if (fence_handle == 0) {
        return WEIR_OK;
    }
    WR_TRY(get_fence(sim, "stream_wait", fence_handle, &fence));
    const wr_sim_stream *awaited = &sim->streams[fence->stream];
    if (awaited == stream || awaited->done >= fence->position) {
        return WEIR_OK;
    }
    return wr_sim_queue_wait(sim, stream, fence->stream, fence->position);
}

weir_result wr_sim_stream_wait(weir_driver *driver, weir_driver_stream stream,
                               weir_driver_fence fence)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = wait_on_device(sim, stream, fence);
    wr_lock_leave(&sim->lock);
    return result;
}

/* ---- work ---- */

static weir_result queue_work(weir_driver *driver, const char *call,
                              weir_driver_stream handle)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_sim_stream *stream;
    wr_lock_take(&sim->lock);
    weir_result result = wr_sim_check_alive(sim, call);
    if (result == WEIR_OK) {
        result = wr_sim_get_stream(sim, call, handle, &stream);
    }
    if (result == WEIR_OK) {
        result = wr_sim_queue_item(sim, stream);
    }
    wr_lock_leave(&sim->lock);
    return result;
}

weir_result wr_sim_queue(weir_driver *driver, weir_driver_stream stream)
{
    return queue_work(driver, "queue", stream);
}

weir_result wr_sim_launch(weir_driver *driver, weir_driver_stream stream,
                          const weir_launch *launch)
{
    if (launch->kernel == NULL) {
        return wr_error(WEIR_INVALID, "sim: launch without a kernel");
    }
    return queue_work(driver, "launch", stream);
}
