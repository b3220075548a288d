/* SPDX-License-Identifier: MIT */
/* Pointers, for code that cannot hold handles: replacements of cudaMalloc, allocator
 * hooks of frameworks. Whoever can hold a weir_buffer should: a handle that is stale is
 * always recognized, while a pointer that was freed is an error only until its address is
 * handed out again.
 *
 *     void *pointer;
 *     weir_malloc(stream, bytes, NULL, &pointer);
 *     weir_free(NULL, pointer);
 *
 * A pointer is the device address of a buffer that weir_malloc made. Other buffers are
 * unknown here, and cost nothing for it. Where addresses are the process's own (host,
 * cuda) a pointer tells its device, and `device` may be NULL; if it is given, it must be
 * that one. Drivers that make addresses up (sim) may have the same ones on several
 * devices: there `device` must be given (weir_driver_properties.own_addresses).
 *
 * No call takes a lock of more than the pointer's own stream. Any thread. */
#ifndef WEIR_POINTER_H
#define WEIR_POINTER_H

#include <weir/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As weir_buffer_create, with the errors of that; what weir_free gives back. On failure
 * `*pointer` is untouched. */
WEIR_API weir_result weir_malloc(weir_stream *stream, uint64_t bytes,
                                 const weir_buffer_desc *desc, void **pointer);

/* As weir_buffer_release: in the order of the stream that the pointer was made on; uses
 * on others are declared before (weir_buffer_find, weir_buffer_use). NULL is OK. Wrong
 * pointers change nothing:
 *   STALE      it has been freed already
 *   INVALID    it lies inside a buffer, or on another device than `device`
 *   NOT_FOUND  nothing that weir_malloc made is, or was, there */
WEIR_API weir_result weir_free(weir_device *device, void *pointer);

/* How many bytes from `pointer` on may be used: the requested ones and the padding behind
 * them (in checked mode the requested ones). Errors as weir_free. */
WEIR_API weir_result weir_usable_bytes(weir_device *device, const void *pointer,
                                       uint64_t *bytes);

/* The buffer that holds the byte at `pointer`, inside it too, and how far behind its
 * begin that is (`offset_bytes` may be NULL). The handle is borrowed: to keep the memory
 * beyond weir_free, retain it. Errors as weir_free, but for what lies inside. */
WEIR_API weir_result weir_buffer_find(weir_device *device, const void *pointer,
                                      weir_buffer *buffer, uint64_t *offset_bytes);

#ifdef __cplusplus
}
#endif
#endif
