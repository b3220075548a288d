/* SPDX-License-Identifier: MIT */
#include "call.h"

#include "kernel/dtype.h"

#include <inttypes.h>

static const char *name_of(weir_reduce reduce)
{
    static const char *const names[] = {
#define NAME(name, number, function, domain) [number] = #function,
        WEIR_REDUCE_LIST(NAME)
#undef NAME
    };
    return names[reduce];
}

static bool takes(weir_reduce reduce, weir_dtype dtype)
{
    return reduce == WEIR_REDUCE_MEAN ? wr_dtype_is_float(dtype)
                                      : dtype != WEIR_DTYPE_BOOL;
}

/* ARGMAX's results are i32. */
static weir_result check_places(const wr_call *call)
{
    uint64_t count = wr_shape_elements(&call->shape);
    return count <= INT32_MAX
               ? WEIR_OK
               : wr_fail(WEIR_INVALID,
                         "%s: argmax among %" PRIu64 " elements; i32 has no numbers for "
                         "so many",
                         call->who, count);
}

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
    if (reduce < WEIR_REDUCE_SUM || reduce > WEIR_REDUCE_ARGMAX) {
        return wr_fail(WEIR_INVALID, "%s: there is no reduction %d", call.who,
                       (int)reduce);
    }
    call.dtype = operand->storage->dtype;
    call.shape = operand->view.shape;
    if (!takes(reduce, call.dtype)) {
        return wr_fail(WEIR_INVALID, "%s: no %s of %s; cast the operand", call.who,
                       name_of(reduce), wr_dtype_name(call.dtype));
    }
    if (reduce == WEIR_REDUCE_ARGMAX) {
        WR_TRY(check_places(&call));
        call.dtype = WEIR_DTYPE_I32;
    }
    call.reduced_axes = (1u << call.shape.rank) - 1;
    if (axis != WEIR_ALL_AXES) {
        uint32_t found;
        WR_TRY(wr_axis_find(call.who, call.shape.rank, axis, &found));
        call.reduced_axes = 1u << found;
    }
    return wr_call_record(&call, NULL, tensor);
}
