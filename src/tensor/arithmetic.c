/* SPDX-License-Identifier: MIT */
/* Elementwise arithmetic. The result lives on the left operand's stream. */
#include "tensor.h"

#include "kernel/kernels.h"

#include <weir/driver.h>

weir_result weir_tensor_add_scalar(weir_tensor *left, float right, weir_tensor **tensor)
{
    const char *who = "weir_tensor_add_scalar";
    if (left == NULL) {
        return weir_driver_error(WEIR_INVALID, "%s: the operand is NULL", who);
    }
    weir_stream *stream = weir_buffer_stream(left->buffer);
    wr_add_scalar_arguments arguments = {.right = right};
    weir_result result = wr_tensor_operand(who, left, stream, &arguments.left);
    if (result != WEIR_OK) {
        return result;
    }
    return wr_tensor_compute(&(wr_compute){.who = who,
                                           .stream = stream,
                                           .shape = &left->shape,
                                           .kernel = &wr_kernel_add_scalar,
                                           .arguments = &arguments,
                                           .argument_bytes = sizeof arguments,
                                           .operands = {left->buffer, WEIR_NO_BUFFER}},
                             tensor);
}

weir_result weir_tensor_add(weir_tensor *left, weir_tensor *right, weir_tensor **tensor)
{
    const char *who = "weir_tensor_add";
    if (left == NULL || right == NULL) {
        return weir_driver_error(WEIR_INVALID, "%s: the %s operand is NULL", who,
                                 left == NULL ? "left" : "right");
    }
    if (!wr_shape_equals(&left->shape, &right->shape)) {
        char one[WR_SHAPE_TEXT_BYTES];
        char other[WR_SHAPE_TEXT_BYTES];
        return weir_driver_error(WEIR_INVALID, "%s: shapes %s and %s differ", who,
                                 wr_shape_format(&left->shape, one),
                                 wr_shape_format(&right->shape, other));
    }
    weir_stream *stream = weir_buffer_stream(left->buffer);
    wr_add_arguments arguments = {0};
    weir_result result = wr_tensor_operand(who, left, stream, &arguments.left);
    if (result == WEIR_OK) {
        result = wr_tensor_operand(who, right, stream, &arguments.right);
    }
    if (result != WEIR_OK) {
        return result;
    }
    return wr_tensor_compute(&(wr_compute){.who = who,
                                           .stream = stream,
                                           .shape = &left->shape,
                                           .kernel = &wr_kernel_add,
                                           .arguments = &arguments,
                                           .argument_bytes = sizeof arguments,
                                           .operands = {left->buffer, right->buffer}},
                             tensor);
}
