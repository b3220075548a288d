/* SPDX-License-Identifier: MIT */
/* A tensor's life. The object is a counted reference to one buffer: clone and drop only
 * count, from any thread; the last drop gives the buffer's reference back. Everything but
 * the count is fixed when the tensor is handed out, so there is no lock. */
#include "tensor.h"

#include <weir/driver.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static weir_shape trimmed(const weir_shape *shape)
{
    weir_shape result = {.rank = shape->rank};
    for (uint32_t i = 0; i < shape->rank; i++) {
        result.extent[i] = shape->extent[i];
    }
    return result;
}

weir_result wr_tensor_create(const char *who, weir_stream *stream,
                             const weir_shape *shape, weir_tensor **tensor)
{
    if (stream == NULL || tensor == NULL) {
        return weir_driver_error(WEIR_INVALID, "%s: the %s is NULL", who,
                                 stream == NULL ? "stream" : "place for the result");
    }
    uint64_t count;
    weir_result result = wr_shape_count(who, shape, &count);
    if (result != WEIR_OK) {
        return result;
    }
    weir_tensor *fresh = malloc(sizeof *fresh);
    if (fresh == NULL) {
        return weir_driver_error(WEIR_OUT_OF_HOST_MEMORY,
                                 "%s: no memory for the tensor's %zu bytes", who,
                                 sizeof *fresh);
    }
    *fresh =
        (weir_tensor){.references = 1, .shape = trimmed(shape), .element_count = count};
    result = weir_buffer_create(stream, count * sizeof(float), NULL, &fresh->buffer);
    if (result != WEIR_OK) {
        free(fresh);
        return result;
    }
    *tensor = fresh;
    return WEIR_OK;
}

weir_result wr_tensor_operand(const char *who, const weir_tensor *tensor,
                              weir_stream *stream, uint64_t *address)
{
    weir_stream *home = weir_buffer_stream(tensor->buffer);
    if (home == NULL) {
        return weir_driver_error(WEIR_STALE, "%s: the operand's device has been closed",
                                 who);
    }
    if (weir_stream_device(home) != weir_stream_device(stream)) {
        return weir_driver_error(
            WEIR_INVALID,
            "%s: operands on device %s and on another device %s; copy one over", who,
            weir_device_name(weir_stream_device(stream)),
            weir_device_name(weir_stream_device(home)));
    }
    if (home != stream) {
        weir_result result = weir_buffer_use(tensor->buffer, stream);
        if (result != WEIR_OK) {
            return result;
        }
    }
    *address = weir_buffer_address(tensor->buffer);
    return WEIR_OK;
}

weir_result wr_tensor_compute(const wr_compute *compute, weir_tensor **tensor)
{
    weir_tensor *fresh = NULL;
    weir_result result = wr_tensor_create(compute->who, compute->stream, compute->shape,
                                          tensor != NULL ? &fresh : NULL);
    if (result != WEIR_OK) {
        return result;
    }
    uint64_t output = weir_buffer_address(fresh->buffer);
    memcpy(compute->arguments, &output, sizeof output);
    weir_buffer buffers[3] = {fresh->buffer};
    size_t buffer_count = 1;
    for (size_t i = 0; i < 2; i++) {
        if (compute->operands[i].generation != 0) {
            buffers[buffer_count++] = compute->operands[i];
        }
    }
    weir_launch launch = {
        .kernel = compute->kernel,
        .arguments = compute->arguments,
        .argument_bytes = compute->argument_bytes,
        .element_count = fresh->element_count,
        .buffers = buffers,
        .buffer_count = buffer_count,
    };
    result = weir_stream_launch(compute->stream, &launch);
    if (result != WEIR_OK) {
        weir_tensor_drop(fresh);
        return result;
    }
    *tensor = fresh;
    return WEIR_OK;
}

weir_tensor *weir_tensor_clone(weir_tensor *tensor)
{
    if (tensor != NULL) {
        atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    }
    return tensor;
}

/* The release can only fail as stale, after the device was abandoned; then nothing is
 * owed. */
void weir_tensor_drop(weir_tensor *tensor)
{
    if (tensor == NULL ||
        atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    weir_buffer_release(tensor->buffer);
    free(tensor);
}

weir_result weir_tensor_into_data(weir_tensor *tensor, float *data, uint64_t capacity)
{
    if (tensor == NULL || data == NULL) {
        return weir_driver_error(WEIR_INVALID, "weir_tensor_into_data: the %s is NULL",
                                 tensor == NULL ? "tensor" : "data");
    }
    if (capacity < tensor->element_count) {
        return weir_driver_error(WEIR_INVALID,
                                 "weir_tensor_into_data: room for %" PRIu64
                                 " floats, but the tensor has %" PRIu64,
                                 capacity, tensor->element_count);
    }
    return weir_buffer_read(tensor->buffer, 0, data,
                            tensor->element_count * sizeof(float));
}

weir_shape weir_tensor_shape(const weir_tensor *tensor)
{
    return tensor != NULL ? tensor->shape : (weir_shape){0};
}

weir_dtype weir_tensor_dtype(const weir_tensor *tensor)
{
    (void)tensor;
    return WEIR_DTYPE_F32;
}

uint64_t weir_tensor_element_count(const weir_tensor *tensor)
{
    return tensor != NULL ? tensor->element_count : 0;
}

weir_buffer weir_tensor_buffer(const weir_tensor *tensor)
{
    return tensor != NULL ? tensor->buffer : WEIR_NO_BUFFER;
}
