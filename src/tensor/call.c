/* SPDX-License-Identifier: MIT */
#include "call.h"

#include "rule.h"
#include "tape.h"

#include "kernel/memory.h"

#include <string.h>

/* ---- operands ---- */

/* NULL if the device has been closed. */
static weir_stream *stream_of(const wr_storage *storage)
{
    return wr_storage_state_of(storage) == WR_STORAGE_STATE_PENDING
               ? storage->queue->stream
               : weir_buffer_stream(storage->buffer);
}

/* On this stream's device, and there or to be computed by this stream's queue: what
 * another one has to compute first is computed now. */
static weir_result prepare_operand(const wr_call *call, const weir_tensor *operand,
                                   const wr_queue *queue)
{
    wr_storage *storage = operand->storage;
    if (wr_storage_state_of(storage) == WR_STORAGE_STATE_FAILED) {
        return wr_storage_failure(storage);
    }
    weir_stream *home = stream_of(storage);
    if (home == NULL) {
        return wr_fail(WEIR_STALE, "%s: the operand's device has been closed", call->who);
    }
    if (weir_stream_device(home) != weir_stream_device(queue->stream)) {
        return wr_fail(
            WEIR_INVALID,
            "%s: operands on device %s and on another device %s; copy one over",
            call->who, weir_device_name(weir_stream_device(queue->stream)),
            weir_device_name(weir_stream_device(home)));
    }
    if (wr_storage_state_of(storage) == WR_STORAGE_STATE_PENDING &&
        storage->queue != queue) {
        WR_TRY(wr_queue_drain(storage->queue, storage));
    }
    return wr_storage_state_of(storage) == WR_STORAGE_STATE_FAILED
               ? wr_storage_failure(storage)
               : WEIR_OK;
}

static weir_result find_queue(const wr_call *call, weir_stream *stream, wr_queue **queue)
{
    if (stream == NULL && call->operand_count > 0) {
        const wr_storage *first = call->operands[0]->storage;
        if (wr_storage_state_of(first) == WR_STORAGE_STATE_FAILED) {
            return wr_storage_failure(first);
        }
        stream = stream_of(first);
        if (stream == NULL) {
            return wr_fail(WEIR_STALE, "%s: the operand's device has been closed",
                           call->who);
        }
    }
    WR_TRY(wr_queue_find(call->who, stream, queue));
    for (uint32_t k = 0; k < call->operand_count; k++) {
        WR_TRY(prepare_operand(call, call->operands[k], *queue));
    }
    return WEIR_OK;
}

/* ---- the result ---- */

static weir_shape result_shape(const wr_call *call)
{
    weir_shape shape = {0};
    for (uint32_t d = 0; d < call->shape.rank; d++) {
        bool is_reduced = (call->reduced_axes >> d & 1) != 0;
        if (!is_reduced || call->keep) {
            shape.extent[shape.rank++] = is_reduced ? 1 : call->shape.extent[d];
        }
    }
    return shape;
}

/* The node and, if the call is a named one, its own copy of what that says; NULL without
 * memory. */
static wr_node *alloc_node(const wr_call *call)
{
    wr_node *node = wr_memory_alloc(sizeof *node);
    if (node == NULL || call->named == NULL) {
        return node;
    }
    node->named = wr_memory_alloc(sizeof *node->named);
    if (node->named == NULL) {
        wr_memory_free(node);
        return NULL;
    }
    *node->named = *call->named;
    return node;
}

static wr_node *make_node(const wr_call *call, wr_storage *storage)
{
    wr_node *node = alloc_node(call);
    if (node == NULL) {
        return NULL;
    }
    node->storage = storage;
    wr_storage_retain(storage);
    node->op = call->op;
    node->reduce = call->reduce;
    node->reduced_axes = call->reduced_axes;
    node->space.rank = call->shape.rank;
    memcpy(node->space.extent, call->shape.extent,
           call->shape.rank * sizeof *call->shape.extent);
    node->scalar_count = call->scalar_count;
    memcpy(node->scalars, call->scalars, sizeof node->scalars);
    strncpy(node->tag, weir_tag_current(), sizeof node->tag - 1);
    for (uint32_t k = 0; k < call->operand_count; k++) {
        const weir_tensor *operand = call->operands[k];
        wr_storage_retain(operand->storage);
        node->operands[k].storage = operand->storage;
        node->operands[k].view = node->named != NULL
                                     ? operand->view
                                     : wr_view_expand(&operand->view, &node->space);
        node->operand_count++;
    }
    return node;
}

static weir_result no_memory(const wr_call *call)
{
    return wr_fail(WEIR_OUT_OF_HOST_MEMORY, "%s: no host memory for the operation",
                   call->who);
}

/* A storage and the node that computes it; the storage's first reference is the caller's.
 */
static weir_result record(const wr_call *call, wr_queue *queue, uint64_t element_count,
                          wr_storage **storage)
{
    wr_storage *fresh = wr_storage_create(call->dtype, element_count);
    wr_node *node = fresh != NULL ? make_node(call, fresh) : NULL;
    if (node == NULL) {
        wr_storage_release(fresh);
        return no_memory(call);
    }
    weir_result result = wr_queue_record(queue, node);
    if (result != WEIR_OK) {
        wr_storage_release(fresh);
        return result;
    }
    *storage = fresh;
    return WEIR_OK;
}

static const wr_rule *rule_of(const wr_call *call)
{
    if (call->named != NULL) {
        return wr_rule_of_kernel(call->named->kind);
    }
    return call->reduce != WEIR_REDUCE_NONE ? wr_rule_of_reduce(call->reduce)
                                            : wr_rule_of_op(call->op);
}

static weir_result note(const wr_call *call, weir_tensor **tensor)
{
    wr_note what = {.who = call->who,
                    .rule = rule_of(call),
                    .operand_count = call->operand_count,
                    .operands = call->operands,
                    .attributes = {.axes = call->reduced_axes}};
    if (call->operand_count > 0 && call->scalar_count > 0) {
        float scalar; /* tracked operands are floats, and so are their scalars */
        memcpy(&scalar, call->scalars, sizeof scalar);
        what.attributes.has_scalar = true;
        what.attributes.scalar = (double)scalar;
    }
    if (call->named != NULL) {
        what.attributes.axis = call->named->axis;
        what.attributes.start = call->named->start;
        what.attributes.step = call->named->step;
    }
    return wr_tape_note(&what, tensor);
}

weir_result wr_call_record(const wr_call *call, weir_stream *stream, weir_tensor **tensor)
{
    uint64_t count;
    wr_queue *queue = NULL;
    wr_storage *storage = NULL;
    if (tensor == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the place for the result is NULL", call->who);
    }
    WR_TRY(wr_shape_count(call->who, &call->shape, &count));
    WR_TRY(find_queue(call, stream, &queue));
    weir_shape shape = result_shape(call);
    wr_view view = wr_view_of_shape(&shape);
    WR_TRY(record(call, queue, wr_shape_elements(&shape), &storage));
    weir_result result = wr_tensor_create(call->who, storage, &view, tensor);
    wr_storage_release(storage); /* the tensor has its own; without one it is skipped */
    return result == WEIR_OK ? note(call, tensor) : result;
}

weir_result wr_call_settle(weir_tensor *tensor)
{
    wr_storage *storage = tensor->storage;
    weir_result result = wr_queue_drain(storage->queue, storage);
    switch (wr_storage_state_of(storage)) {
    case WR_STORAGE_STATE_READY:
        return WEIR_OK;
    case WR_STORAGE_STATE_FAILED:
        return wr_storage_failure(storage);
    default:
        return result;
    }
}

weir_result wr_call_run(const wr_call *call, weir_stream *stream, weir_tensor **tensor)
{
    weir_tensor *fresh = NULL;
    WR_TRY(wr_call_record(call, stream, tensor != NULL ? &fresh : NULL));
    weir_result result = wr_call_settle(fresh);
    if (result != WEIR_OK) {
        weir_tensor_drop(fresh);
        return result;
    }
    *tensor = fresh;
    return WEIR_OK;
}

weir_result wr_call_copy(const char *who, weir_tensor *operand, const weir_shape *shape,
                         weir_tensor **tensor)
{
    return wr_call_record(&(wr_call){.who = who,
                                     .op = WEIR_OP_CAST,
                                     .dtype = operand->storage->dtype,
                                     .shape = *shape,
                                     .operand_count = 1,
                                     .operands = {operand}},
                          NULL, tensor);
}
