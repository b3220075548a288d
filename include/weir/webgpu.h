/* SPDX-License-Identifier: MIT */
/* The WebGPU driver's own objects, for programs that use webgpu.h beside Weir: to run
 * shaders of their own on Weir's memory. */
#ifndef WEIR_WEBGPU_H
#define WEIR_WEBGPU_H

#include <weir/driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed; the device's until it is closed. */
typedef struct weir_webgpu_handles {
    void *instance; /* WGPUInstance */
    void *device;   /* WGPUDevice */
    void *queue;    /* WGPUQueue, the only one */
} weir_webgpu_handles;

/* WebGPU libraries serve one thread at a time. Submits what Weir has collected and keeps
 * all other threads out of the library until leave; the caller calls no function of
 * Weir's meanwhile but weir_webgpu_place. What it submits is told to Weir by
 * weir_buffer_use(), or by the driver table's queue(), after leaving.
 *
 * `driver` is what weir_device_driver() says. INVALID if that is another driver's;
 * DEVICE_LOST. On failure nothing is kept. */
WEIR_API weir_result weir_webgpu_enter(weir_driver *driver, weir_webgpu_handles *handles);
WEIR_API void weir_webgpu_leave(weir_driver *driver);

/* The WGPUBuffer that holds a run of bytes, and where it begins in it: a page of Weir's,
 * of which the run is a part. For bindings both are multiples of 256 if the address is.
 * Only between enter and leave. INVALID if nothing is at that address. */
WEIR_API weir_result weir_webgpu_place(weir_driver *driver, uint64_t address,
                                       uint64_t bytes, void **buffer, uint64_t *offset);

#ifdef __cplusplus
}
#endif
#endif
