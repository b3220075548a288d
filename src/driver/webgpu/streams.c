/* SPDX-License-Identifier: MIT */
/* Streams and fences of the WebGPU driver. All streams share the one queue, which runs
 * in order: waiting for another stream's fence needs nothing. A fence is the number of a
 * submission, and needs nothing to keep. */
#include "webgpu.h"

#include "base/memory.h"
#include "base/result.h"

weir_result wr_webgpu_stream_open(weir_driver *driver, void *native,
                                  weir_driver_stream *stream)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    if (native != NULL) {
        return wr_error(WEIR_UNSUPPORTED,
                        "webgpu: a device has one queue and Weir uses it; there is none "
                        "to adopt");
    }
    wr_webgpu_stream *made = wr_host_alloc(sizeof *made);
    if (made == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "webgpu: no memory for a stream");
    }
    wr_lock_take(&webgpu->lock);
    made->next = webgpu->streams;
    if (made->next != NULL) {
        made->next->previous = made;
    }
    webgpu->streams = made;
    wr_lock_leave(&webgpu->lock);
    *stream = (weir_driver_stream)(uintptr_t)made;
    return WEIR_OK;
}

void wr_webgpu_stream_close(weir_driver *driver, weir_driver_stream stream)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_webgpu_stream *closing = wr_webgpu_stream_of(stream);
    wr_lock_take(&webgpu->lock);
    if (closing->previous != NULL) {
        closing->previous->next = closing->next;
    } else {
        webgpu->streams = closing->next;
    }
    if (closing->next != NULL) {
        closing->next->previous = closing->previous;
    }
    wr_lock_leave(&webgpu->lock);
    wr_host_free(closing);
}

void wr_webgpu_streams_free(wr_webgpu *webgpu)
{
    while (webgpu->streams != NULL) {
        wr_webgpu_stream *next = webgpu->streams->next;
        wr_host_free(webgpu->streams);
        webgpu->streams = next;
    }
}

/* OK if passed, NOT_READY if not, or what went wrong. */
static weir_result test(wr_webgpu *webgpu, const char *entry, uint64_t submission)
{
    if (wr_webgpu_has_passed(webgpu, submission)) {
        return wr_webgpu_check(webgpu, entry);
    }
    WR_TRY(wr_webgpu_check(webgpu, entry));
    return WEIR_NOT_READY;
}

weir_result wr_webgpu_stream_test(weir_driver *driver, weir_driver_stream stream)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    weir_result result = test(webgpu, "stream_test", wr_webgpu_stream_of(stream)->last);
    wr_lock_leave(&webgpu->lock);
    return result;
}

weir_result wr_webgpu_stream_sync(weir_driver *driver, weir_driver_stream stream)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    weir_result result =
        wr_webgpu_await(webgpu, "stream_sync", wr_webgpu_stream_of(stream)->last);
    wr_lock_leave(&webgpu->lock);
    return result;
}

/* What the fence stands for is in the queue already, before all that will follow. */
weir_result wr_webgpu_stream_wait(weir_driver *driver, weir_driver_stream stream,
                                  weir_driver_fence fence)
{
    (void)driver;
    (void)stream;
    (void)fence;
    return WEIR_OK;
}

weir_result wr_webgpu_fence_record(weir_driver *driver, weir_driver_stream stream,
                                   weir_driver_fence *fence)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    uint64_t last = wr_webgpu_stream_of(stream)->last;
    bool has_passed = wr_webgpu_has_passed(webgpu, last);
    weir_result result = wr_webgpu_check(webgpu, "fence_record");
    wr_lock_leave(&webgpu->lock);
    if (result == WEIR_OK) {
        *fence = has_passed ? 0 : last;
    }
    return result;
}

weir_result wr_webgpu_fence_test(weir_driver *driver, weir_driver_fence fence)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    if (fence <= atomic_load(&webgpu->completed)) {
        return WEIR_OK;
    }
    wr_lock_take(&webgpu->lock);
    weir_result result = test(webgpu, "fence_test", fence);
    wr_lock_leave(&webgpu->lock);
    return result;
}

weir_result wr_webgpu_fence_wait(weir_driver *driver, weir_driver_fence fence)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    if (fence <= atomic_load(&webgpu->completed)) {
        return WEIR_OK;
    }
    wr_lock_take(&webgpu->lock);
    weir_result result = wr_webgpu_await(webgpu, "fence_wait", fence);
    wr_lock_leave(&webgpu->lock);
    return result;
}

void wr_webgpu_fence_release(weir_driver *driver, weir_driver_fence fence)
{
    (void)driver;
    (void)fence;
}

/* The program has submitted to the queue itself: a submission of ours after that stands
 * for it. */
weir_result wr_webgpu_queue(weir_driver *driver, weir_driver_stream stream)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    weir_result result = wr_webgpu_check(webgpu, "queue");
    if (result == WEIR_OK) {
        wr_webgpu_submit(webgpu);
        wr_webgpu_stream_of(stream)->last = webgpu->submitted;
    }
    wr_lock_leave(&webgpu->lock);
    return result;
}
