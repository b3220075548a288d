/* SPDX-License-Identifier: MIT */
#include "call.h"

weir_result weir_tensor_reduce(weir_reduce reduce, weir_tensor *operand, int32_t axis,
                               bool keep, weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_reduce",
                    .reduce = reduce,
                    .keep = keep,
                    .operand_count = 1,
                    .operands = {operand}};
    if (operand == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the operand is NULL", call.who);
    }
    if (reduce < WEIR_REDUCE_SUM || reduce > WEIR_REDUCE_MIN) {
        return wr_fail(WEIR_INVALID, "%s: there is no reduction %d", call.who,
                       (int)reduce);
    }
    call.dtype = operand->storage->dtype;
    call.shape = operand->view.shape;
    if (call.dtype == WEIR_DTYPE_BOOL) {
        return wr_fail(WEIR_INVALID, "%s: not of bool; cast the operand", call.who);
    }
    call.reduced_axes = (1u << call.shape.rank) - 1;
    if (axis != WEIR_ALL_AXES) {
        uint32_t found;
        WR_TRY(wr_axis_find(call.who, call.shape.rank, axis, &found));
        call.reduced_axes = 1u << found;
    }
    return wr_call_record(&call, NULL, tensor);
}
