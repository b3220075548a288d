/* SPDX-License-Identifier: MIT */
/* Streams: ordered queues of device work. Each has pools of its own; what nobody holds is
 * lent between them. */
#ifndef WEIR_STREAM_H
#define WEIR_STREAM_H

#include <weir/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_stream_desc {
    size_t size;
    const char *name; /* for reports; copied, at most 31 bytes; NULL: "stream N" */
    void *native;     /* a queue to adopt (CUstream...), or NULL for a new one */
} weir_stream_desc;

/* The caller owns the stream and closes it before the device. Any thread. */
WEIR_API weir_result weir_stream_create(weir_device *device, const weir_stream_desc *desc,
                                        weir_stream **stream);

/* Ends a stream: its unheld memory goes to the device for others to use, at once or when
 * the stream's queued work has passed. With live buffers: BUSY, nothing changes. The
 * default stream cannot be closed. An adopted stream is closed here before it is
 * destroyed. NULL is OK. */
WEIR_API weir_result weir_stream_close(weir_stream *stream);

/* Waits for all work queued on the stream so far. */
WEIR_API weir_result weir_stream_sync(weir_stream *stream);

/* The driver's own queue (CUstream...), NULL where it has none. */
WEIR_API void *weir_stream_native(weir_stream *stream);

WEIR_API weir_driver_stream weir_stream_driver_stream(weir_stream *stream);

WEIR_API weir_device *weir_stream_device(weir_stream *stream);

/* Valid until close. */
WEIR_API const char *weir_stream_name(const weir_stream *stream);

/* Runs a kernel in stream order; see kernel.h. UNSUPPORTED if the driver cannot. */
WEIR_API weir_result weir_stream_launch(weir_stream *stream, const weir_launch *launch);

/* What whoever queues work above Weir wants to hear of. All are called with no lock held,
 * on the thread that makes the call that is about to do something, and may use every Weir
 * function but cleanup, sync, windows and close on that stream. */
typedef struct weir_stream_hook {
    size_t size;
    void *context;
    /* Submit what is queued, empty caches: their buffers are about to be looked for. */
    void (*before_cleanup)(void *context, weir_stream *stream);
    void (*before_close)(void *context, weir_stream *stream);
    /* Submit what is queued: somebody is about to wait for the stream, or a persistent or
     * capture window begins or ends there. A failure is what that call returns. NULL:
     * nothing is ever queued. */
    weir_result (*drain)(void *context, weir_stream *stream);
} weir_stream_hook;

/* Adds a hook (copied); they run in order of registration. */
WEIR_API weir_result weir_stream_hook_add(weir_stream *stream,
                                          const weir_stream_hook *hook);

/* Removes the hook with this context. When it returns, the hook is not running on another
 * thread and will not run again. */
WEIR_API weir_result weir_stream_hook_remove(weir_stream *stream, void *context);

#ifdef __cplusplus
}
#endif
#endif
