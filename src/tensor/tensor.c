/* SPDX-License-Identifier: MIT */
/* A tensor's life, and what comes out of it. The object is a counted reference to a view
 * of a storage; everything but the count is fixed when it is handed out, so there is no
 * lock. */
#include "tensor.h"

#include "call.h"
#include "entry.h"

#include "kernel/dtype.h"
#include "kernel/memory.h"

#include <inttypes.h>

weir_result wr_tensor_create(const char *who, wr_storage *storage, const wr_view *view,
                             weir_tensor **tensor)
{
    weir_tensor *fresh = wr_memory_alloc(sizeof *fresh);
    if (fresh == NULL) {
        return wr_fail(WEIR_OUT_OF_HOST_MEMORY,
                       "%s: no host memory for the tensor's %zu bytes", who,
                       sizeof *fresh);
    }
    wr_storage_retain(storage);
    fresh->references = 1;
    fresh->storage = storage;
    fresh->view = *view;
    *tensor = fresh;
    return WEIR_OK;
}

bool wr_tensor_is_plain(const weir_tensor *tensor)
{
    return wr_view_is_plain(&tensor->view) &&
           wr_shape_elements(&tensor->view.shape) == tensor->storage->element_count;
}

weir_tensor *weir_tensor_clone(weir_tensor *tensor)
{
    if (tensor != NULL) {
        atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    }
    return tensor;
}

void weir_tensor_drop(weir_tensor *tensor)
{
    if (tensor == NULL ||
        atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    wr_storage_release(tensor->storage);
    wr_entry_release(tensor->entry);
    wr_memory_free(tensor);
}

/* ---- out ---- */

/* The elements in order, in a dtype: the tensor itself where it is that already,
 * otherwise a copy. The caller drops it. */
static weir_result straighten(const char *who, weir_tensor *tensor, weir_dtype dtype,
                              weir_tensor **straight)
{
    if (tensor->storage->dtype == dtype && wr_tensor_is_plain(tensor)) {
        *straight = weir_tensor_clone(tensor);
        return WEIR_OK;
    }
    return wr_call_record(&(wr_call){.who = who,
                                     .op = WEIR_OP_CAST,
                                     .dtype = dtype,
                                     .shape = tensor->view.shape,
                                     .operand_count = 1,
                                     .operands = {tensor}},
                          NULL, straight);
}

static weir_result read_as(const char *who, weir_tensor *tensor, weir_dtype dtype,
                           void *data)
{
    weir_tensor *straight;
    WR_TRY(straighten(who, tensor, dtype, &straight));
    weir_result result = wr_storage_settle(straight->storage);
    if (result == WEIR_OK) {
        result =
            weir_buffer_read(straight->storage->buffer, 0, data,
                             straight->storage->element_count * wr_dtype_bytes(dtype));
    }
    weir_tensor_drop(straight);
    return result;
}

static weir_result check_room(const char *who, const weir_tensor *tensor,
                              const void *data)
{
    if (tensor == NULL || data == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the %s is NULL", who,
                       tensor == NULL ? "tensor" : "data");
    }
    return WEIR_OK;
}

weir_result weir_tensor_into_data(weir_tensor *tensor, float *data, uint64_t capacity)
{
    const char *who = "weir_tensor_into_data";
    WR_TRY(check_room(who, tensor, data));
    if (capacity < weir_tensor_element_count(tensor)) {
        return wr_fail(WEIR_INVALID,
                       "%s: room for %" PRIu64 " floats, but the tensor has %" PRIu64,
                       who, capacity, weir_tensor_element_count(tensor));
    }
    return read_as(who, tensor, WEIR_DTYPE_F32, data);
}

weir_result weir_tensor_read(weir_tensor *tensor, void *data, uint64_t capacity_bytes)
{
    const char *who = "weir_tensor_read";
    WR_TRY(check_room(who, tensor, data));
    weir_dtype dtype = tensor->storage->dtype;
    uint64_t bytes = weir_tensor_element_count(tensor) * wr_dtype_bytes(dtype);
    if (capacity_bytes < bytes) {
        return wr_fail(WEIR_INVALID,
                       "%s: room for %" PRIu64 " bytes, but the tensor has %" PRIu64, who,
                       capacity_bytes, bytes);
    }
    return read_as(who, tensor, dtype, data);
}

/* By way of the tensor's own kind of number: f32 does not hold every i32. */
weir_result weir_tensor_item(weir_tensor *tensor, double *value)
{
    const char *who = "weir_tensor_item";
    WR_TRY(check_room(who, tensor, value));
    if (weir_tensor_element_count(tensor) != 1) {
        char text[WR_SHAPE_TEXT_BYTES];
        return wr_fail(WEIR_INVALID, "%s: shape %s has more than one element", who,
                       wr_shape_format(&tensor->view.shape, text));
    }
    if (tensor->storage->dtype == WEIR_DTYPE_I32) {
        int32_t integer;
        WR_TRY(read_as(who, tensor, WEIR_DTYPE_I32, &integer));
        *value = integer;
        return WEIR_OK;
    }
    float number;
    WR_TRY(read_as(who, tensor, WEIR_DTYPE_F32, &number));
    *value = (double)number;
    return WEIR_OK;
}

/* ---- what it is ---- */

weir_shape weir_tensor_shape(const weir_tensor *tensor)
{
    return tensor != NULL ? tensor->view.shape : (weir_shape){0};
}

weir_dtype weir_tensor_dtype(const weir_tensor *tensor)
{
    return tensor != NULL ? tensor->storage->dtype : WEIR_DTYPE_F32;
}

uint64_t weir_tensor_element_count(const weir_tensor *tensor)
{
    return tensor != NULL ? wr_shape_elements(&tensor->view.shape) : 0;
}

weir_buffer weir_tensor_buffer(const weir_tensor *tensor)
{
    return tensor != NULL && wr_storage_settle(tensor->storage) == WEIR_OK
               ? tensor->storage->buffer
               : WEIR_NO_BUFFER;
}

weir_stream *weir_tensor_stream(const weir_tensor *tensor)
{
    if (tensor == NULL) {
        return NULL;
    }
    const wr_storage *storage = tensor->storage;
    return wr_storage_state_of(storage) == WR_STORAGE_STATE_PENDING
               ? storage->queue->stream
               : weir_buffer_stream(storage->buffer);
}
