/* SPDX-License-Identifier: MIT */
/* Pinned host memory: pages that the system may not move or swap out, so that a GPU
 * copies to and from them by itself, at full speed and while the program goes on.
 *
 * It is memory of a device of its own, so that everything holds for it that holds for
 * device memory: pools, tags, limits, cleanup, idle time, reports. Addresses are host
 * pointers.
 *
 *     weir_device_open_pinned(gpu, NULL, &pinned);
 *     weir_stream_create(pinned, &(weir_stream_desc){.native =
 * weir_stream_native(stream)}, &staging); weir_buffer_create(staging, bytes, NULL,
 * &buffer);
 *     ... cuMemcpyHtoDAsync(to, weir_buffer_address(buffer), bytes, native stream) ...
 *     weir_buffer_release(buffer);
 *
 * On a stream that adopts the queue of the copies, a buffer can be released as soon as
 * they are queued: its room is used again in the order of that queue, and goes back to
 * the system when they have passed. */
#ifndef WEIR_PINNED_H
#define WEIR_PINNED_H

#include <weir/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* driver_config of the driver "pinned". */
typedef struct weir_pinned_desc {
    size_t size;             /* sizeof(weir_pinned_desc), or 0 for this first layout */
    uint64_t capacity_bytes; /* the most to pin; 0: half of the host's memory */
} weir_pinned_desc;

/* Opens the device whose memory is pinned for `device`: "pinned:N" for "cuda:N", the
 * driver itself once more for "host" and "sim". The caller closes it, before or after
 * `device`. UNSUPPORTED where there is no such memory; other errors as weir_device_open.
 */
WEIR_API weir_result weir_device_open_pinned(weir_device *device,
                                             const weir_device_desc *desc,
                                             weir_device **pinned);

#ifdef __cplusplus
}
#endif
#endif
