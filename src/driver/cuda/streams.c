/* SPDX-License-Identifier: MIT */
/* Streams, fences and copies of the CUDA driver.
 *
 * A fence is an event without timing, taken from a set that grows to the most that were
 * recorded at once. CUDA takes an event's record when a wait for it is queued, so that an
 * event can be recorded anew while streams still wait for its old place. */
#include "cuda.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

wr_cuda_stream *wr_cuda_stream_of(weir_driver_stream stream)
{
    WR_ASSERT(stream != 0);
    return (wr_cuda_stream *)(uintptr_t)stream;
}

/* Calls CUDA with the device's context current. */
#define CALL(cuda, entry, call, name)                                                    \
    do {                                                                                 \
        WR_TRY(wr_cuda_enter((cuda), (entry)));                                          \
        wr_cu_result call_result = (call);                                               \
        wr_cuda_leave(cuda);                                                             \
        WR_TRY(wr_cu_failed(&(cuda)->api, call_result, (entry), (name)));                \
    } while (0)

/* ---- streams ---- */

static void enter_stream(wr_cuda *cuda, wr_cuda_stream *made)
{
    wr_lock_take(&cuda->lock);
    made->next = cuda->streams;
    if (made->next != NULL) {
        made->next->previous = made;
    }
    cuda->streams = made;
    wr_lock_leave(&cuda->lock);
}

static void strike_stream(wr_cuda *cuda, wr_cuda_stream *closing)
{
    wr_lock_take(&cuda->lock);
    if (closing->previous != NULL) {
        closing->previous->next = closing->next;
    } else {
        cuda->streams = closing->next;
    }
    if (closing->next != NULL) {
        closing->next->previous = closing->previous;
    }
    wr_lock_leave(&cuda->lock);
}

/* Non-blocking: it has no order with the legacy default stream. */
static weir_result create_native(wr_cuda *cuda, wr_cu_stream *native)
{
    CALL(cuda, "stream_open", cuda->api.stream_create(native, WR_CU_STREAM_NON_BLOCKING),
         "cuStreamCreate");
    return WEIR_OK;
}

weir_result wr_cuda_stream_open(weir_driver *driver, void *native,
                                weir_driver_stream *stream)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_cuda_stream *made = wr_host_alloc(sizeof *made);
    if (made == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory for a stream");
    }
    made->native = native;
    made->is_adopted = native != NULL;
    weir_result result = made->is_adopted ? WEIR_OK : create_native(cuda, &made->native);
    if (result != WEIR_OK) {
        wr_host_free(made);
        return result;
    }
    enter_stream(cuda, made);
    *stream = (weir_driver_stream)(uintptr_t)made;
    return WEIR_OK;
}

/* CUDA lets queued work complete. */
void wr_cuda_stream_close(weir_driver *driver, weir_driver_stream stream)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_cuda_stream *closing = wr_cuda_stream_of(stream);
    strike_stream(cuda, closing);
    if (!closing->is_adopted && wr_cuda_enter(cuda, "stream_close") == WEIR_OK) {
        (void)cuda->api.stream_destroy(closing->native);
        wr_cuda_leave(cuda);
    }
    wr_host_free(closing);
}

void *wr_cuda_stream_native(weir_driver *driver, weir_driver_stream stream)
{
    (void)driver;
    return wr_cuda_stream_of(stream)->native;
}

weir_result wr_cuda_stream_test(weir_driver *driver, weir_driver_stream stream)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    CALL(cuda, "stream_test", cuda->api.stream_query(wr_cuda_stream_of(stream)->native),
         "cuStreamQuery");
    return WEIR_OK;
}

weir_result wr_cuda_stream_sync(weir_driver *driver, weir_driver_stream stream)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    CALL(cuda, "stream_sync", cuda->api.stream_sync(wr_cuda_stream_of(stream)->native),
         "cuStreamSynchronize");
    return WEIR_OK;
}

/* ---- fences ---- */

static weir_driver_fence fence_value(const wr_cuda_fence *fence, uint32_t index)
{
    return (uint64_t)fence->generation << 32 | (index + 1);
}

/* Takes a fence that nobody has, with the lock of fences held; its index. */
static weir_result take_fence(wr_cuda *cuda, uint32_t *index)
{
    if (cuda->fence_free != 0) {
        *index = cuda->fence_free - 1;
        cuda->fence_free = cuda->fences[*index].next_free;
        return WEIR_OK;
    }
    void *fences = cuda->fences;
    if (cuda->fence_count == UINT32_MAX - 1 ||
        !wr_host_grow(&fences, &cuda->fence_capacity, (size_t)cuda->fence_count + 1,
                      sizeof *cuda->fences)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory for a fence");
    }
    cuda->fences = fences;
    *index = cuda->fence_count++;
    cuda->fences[*index].generation = 1;
    return WEIR_OK;
}

/* Gives a fence back, with the lock of fences held. Generation 0 is left out, so that no
 * fence is ever 0. */
static void drop_fence(wr_cuda *cuda, uint32_t index)
{
    wr_cuda_fence *fence = &cuda->fences[index];
    fence->is_recorded = false;
    fence->generation += fence->generation == UINT32_MAX ? 2 : 1;
    fence->next_free = cuda->fence_free;
    cuda->fence_free = index + 1;
}

/* The fence with this value, with the lock of fences held, or NULL. */
static wr_cuda_fence *find_fence(const wr_cuda *cuda, weir_driver_fence value)
{
    uint32_t number = (uint32_t)value;
    if (number == 0 || number > cuda->fence_count) {
        return NULL;
    }
    wr_cuda_fence *fence = &cuda->fences[number - 1];
    return fence->is_recorded && fence->generation == value >> 32 ? fence : NULL;
}

static weir_result get_event(wr_cuda *cuda, const char *entry, weir_driver_fence value,
                             wr_cu_event *event)
{
    wr_lock_take(&cuda->fence_lock);
    const wr_cuda_fence *fence = find_fence(cuda, value);
    *event = fence != NULL ? fence->event : NULL;
    wr_lock_leave(&cuda->fence_lock);
    return fence != NULL ? WEIR_OK
                         : wr_error(WEIR_INVALID,
                                    "cuda: %s: there is no fence %" PRIx64
                                    "; it may have been released",
                                    entry, value);
}

/* Records `*event`, made first if it is NULL; inside enter and leave. */
static weir_result record(wr_cuda *cuda, wr_cuda_stream *stream, wr_cu_event *event)
{
    if (*event == NULL) {
        WR_TRY(wr_cu_failed(&cuda->api,
                            cuda->api.event_create(event, WR_CU_EVENT_DISABLE_TIMING),
                            "fence_record", "cuEventCreate"));
    }
    return wr_cu_failed(&cuda->api, cuda->api.event_record(*event, stream->native),
                        "fence_record", "cuEventRecord");
}

weir_result wr_cuda_fence_record(weir_driver *driver, weir_driver_stream stream,
                                 weir_driver_fence *fence)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    uint32_t index = 0;
    wr_cu_event event = NULL;
    wr_lock_take(&cuda->fence_lock);
    weir_result result = take_fence(cuda, &index);
    if (result == WEIR_OK) {
        event = cuda->fences[index].event;
    }
    wr_lock_leave(&cuda->fence_lock);
    if (result != WEIR_OK) {
        return result;
    }
    result = wr_cuda_enter(cuda, "fence_record");
    if (result == WEIR_OK) {
        result = record(cuda, wr_cuda_stream_of(stream), &event);
        wr_cuda_leave(cuda);
    }
    wr_lock_take(&cuda->fence_lock);
    cuda->fences[index].event = event;
    if (result == WEIR_OK) {
        cuda->fences[index].is_recorded = true;
        *fence = fence_value(&cuda->fences[index], index);
    } else {
        drop_fence(cuda, index);
    }
    wr_lock_leave(&cuda->fence_lock);
    return result;
}

void wr_cuda_fence_release(weir_driver *driver, weir_driver_fence fence)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_lock_take(&cuda->fence_lock);
    if (find_fence(cuda, fence) != NULL) {
        drop_fence(cuda, (uint32_t)fence - 1);
    }
    wr_lock_leave(&cuda->fence_lock);
}

weir_result wr_cuda_fence_test(weir_driver *driver, weir_driver_fence fence)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_cu_event event;
    if (fence == 0) {
        return WEIR_OK;
    }
    WR_TRY(get_event(cuda, "fence_test", fence, &event));
    CALL(cuda, "fence_test", cuda->api.event_query(event), "cuEventQuery");
    return WEIR_OK;
}

weir_result wr_cuda_fence_wait(weir_driver *driver, weir_driver_fence fence)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_cu_event event;
    if (fence == 0) {
        return WEIR_OK;
    }
    WR_TRY(get_event(cuda, "fence_wait", fence, &event));
    CALL(cuda, "fence_wait", cuda->api.event_sync(event), "cuEventSynchronize");
    return WEIR_OK;
}

weir_result wr_cuda_stream_wait(weir_driver *driver, weir_driver_stream stream,
                                weir_driver_fence fence)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_cu_event event;
    if (fence == 0) {
        return WEIR_OK;
    }
    WR_TRY(get_event(cuda, "stream_wait", fence, &event));
    CALL(cuda, "stream_wait",
         cuda->api.stream_wait(wr_cuda_stream_of(stream)->native, event, 0),
         "cuStreamWaitEvent");
    return WEIR_OK;
}

void wr_cuda_end_all(wr_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->fence_count; i++) {
        if (cuda->fences[i].event != NULL) {
            (void)cuda->api.event_destroy(cuda->fences[i].event);
        }
    }
    wr_host_free(cuda->fences);
    while (cuda->streams != NULL) {
        wr_cuda_stream *next = cuda->streams->next;
        if (!cuda->streams->is_adopted) {
            (void)cuda->api.stream_destroy(cuda->streams->native);
        }
        wr_host_free(cuda->streams);
        cuda->streams = next;
    }
}

/* ---- copies ---- */

/* What waits for a capturing stream would spoil the capture. */
static weir_result refuse_capture(weir_driver_stream stream, const char *entry)
{
    return atomic_load(&wr_cuda_stream_of(stream)->is_capturing)
               ? wr_error(WEIR_BUSY,
                          "cuda: %s waits for its stream, which is capturing; end the "
                          "capture first, or copy on another stream",
                          entry)
               : WEIR_OK;
}

/* Waits for the stream: from memory that the device itself can reach, pinned or not, CUDA
 * returns before it has read it. */
weir_result wr_cuda_write(weir_driver *driver, weir_driver_stream stream,
                          uint64_t address, const void *data, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    if (bytes == 0) {
        return WEIR_OK;
    }
    WR_TRY(refuse_capture(stream, "write"));
    CALL(cuda, "write",
         cuda->api.write(address, data, bytes, wr_cuda_stream_of(stream)->native),
         "cuMemcpyHtoDAsync");
    return wr_cuda_stream_sync(driver, stream);
}

weir_result wr_cuda_read(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                         void *data, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    if (bytes == 0) {
        return WEIR_OK;
    }
    WR_TRY(refuse_capture(stream, "read"));
    CALL(cuda, "read",
         cuda->api.read(data, address, bytes, wr_cuda_stream_of(stream)->native),
         "cuMemcpyDtoHAsync");
    return wr_cuda_stream_sync(driver, stream);
}

/* CUDA's copies must not overlap. Two places that do are copied in pieces as long as
 * their distance, from the end that is not overwritten. */
weir_result wr_cuda_copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                         uint64_t from, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    uint64_t distance = to > from ? to - from : from - to;
    if (distance == 0) {
        return WEIR_OK;
    }
    for (uint64_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done < distance ? bytes - done : distance;
        uint64_t at = to > from ? bytes - done - piece : done;
        CALL(cuda, "copy",
             cuda->api.copy(to + at, from + at, piece, wr_cuda_stream_of(stream)->native),
             "cuMemcpyDtoDAsync");
    }
    return WEIR_OK;
}
