/* SPDX-License-Identifier: MIT */
/* Operations on elements. The result lives on the first operand's stream. */
#include "call.h"

#include "kernel/dtype.h"
#include "kernel/operation.h"

#include <string.h>

/* "weir_tensor_add", as callers know it. */
static const char *name_of(weir_op op)
{
    switch (op) {
#define NAME(name, number, function, domain)                                             \
    case WEIR_OP_##name:                                                                 \
        return "weir_tensor_" #function;
        WEIR_UNARY_LIST(NAME)
        WEIR_BINARY_LIST(NAME)
#undef NAME
    default:
        return "weir_tensor";
    }
}

static const char *name_with_scalar_of(weir_op op)
{
    switch (op) {
#define NAME(name, number, function, domain)                                             \
    case WEIR_OP_##name:                                                                 \
        return "weir_tensor_" #function "_scalar";
        WEIR_BINARY_LIST(NAME)
#undef NAME
    default:
        return "weir_tensor";
    }
}

static weir_result check_operand(const char *who, const char *which,
                                 const weir_tensor *operand)
{
    return operand != NULL ? WEIR_OK
                           : wr_fail(WEIR_INVALID, "%s: the %s is NULL", who, which);
}

static weir_result check_arity(const char *who, weir_op op, uint32_t arity)
{
    bool is_listed = op >= WEIR_OP_NEG && wr_operation_arity(op) == arity;
    return is_listed ? WEIR_OK
                     : wr_fail(WEIR_INVALID, "%s: %d is no operation with %u operands",
                               who, (int)op, (unsigned)arity);
}

static weir_result check_same_dtype(const char *who, const weir_tensor *left,
                                    const weir_tensor *right)
{
    weir_dtype one = left->storage->dtype;
    weir_dtype other = right->storage->dtype;
    return one == other
               ? WEIR_OK
               : wr_fail(WEIR_INVALID, "%s: operands are %s and %s; cast one of them",
                         who, wr_dtype_name(one), wr_dtype_name(other));
}

/* Fills in the result's dtype. */
static weir_result check_domain(wr_call *call)
{
    weir_dtype operand = call->operands[0]->storage->dtype;
    return wr_operation_takes(call->op, operand, &call->dtype)
               ? WEIR_OK
               : wr_fail(WEIR_INVALID, "%s: not an operation on %s; cast the operand",
                         call->who, wr_dtype_name(operand));
}

weir_result weir_tensor_unary(weir_op op, weir_tensor *operand, weir_tensor **tensor)
{
    wr_call call = {
        .who = name_of(op), .op = op, .operand_count = 1, .operands = {operand}};
    WR_TRY(check_arity("weir_tensor_unary", op, 1));
    WR_TRY(check_operand(call.who, "operand", operand));
    WR_TRY(check_domain(&call));
    call.shape = operand->view.shape;
    return wr_call_record(&call, NULL, tensor);
}

weir_result weir_tensor_binary(weir_op op, weir_tensor *left, weir_tensor *right,
                               weir_tensor **tensor)
{
    wr_call call = {
        .who = name_of(op), .op = op, .operand_count = 2, .operands = {left, right}};
    WR_TRY(check_arity("weir_tensor_binary", op, 2));
    WR_TRY(check_operand(call.who, "left operand", left));
    WR_TRY(check_operand(call.who, "right operand", right));
    WR_TRY(check_same_dtype(call.who, left, right));
    WR_TRY(check_domain(&call));
    WR_TRY(
        wr_shape_broadcast(call.who, &left->view.shape, &right->view.shape, &call.shape));
    return wr_call_record(&call, NULL, tensor);
}

/* A number as a value of the dtype, in the form in which kernels take scalars. */
static int32_t scalar_bits(weir_dtype dtype, double number)
{
    float value = (float)number;
    int32_t bits = 0;
    if (dtype == WEIR_DTYPE_I32) {
        return number >= INT32_MAX   ? INT32_MAX
               : number <= INT32_MIN ? INT32_MIN
               : number != number    ? 0
                                     : (int32_t)number;
    }
    if (dtype == WEIR_DTYPE_BOOL) {
        return number != 0;
    }
    wr_dtype_cast(dtype, &value, WEIR_DTYPE_F32, &value, 1);
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

weir_result weir_tensor_binary_scalar(weir_op op, weir_tensor *left, double right,
                                      weir_tensor **tensor)
{
    wr_call call = {.who = name_with_scalar_of(op),
                    .op = op,
                    .operand_count = 1,
                    .operands = {left},
                    .scalar_count = 1};
    WR_TRY(check_arity("weir_tensor_binary_scalar", op, 2));
    WR_TRY(check_operand(call.who, "operand", left));
    WR_TRY(check_domain(&call));
    call.shape = left->view.shape;
    call.scalars[0] = scalar_bits(left->storage->dtype, right);
    return wr_call_record(&call, NULL, tensor);
}

weir_result weir_tensor_where(weir_tensor *condition, weir_tensor *one,
                              weir_tensor *other, weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_where",
                    .op = WEIR_OP_SELECT,
                    .operand_count = 3,
                    .operands = {condition, one, other}};
    WR_TRY(check_operand(call.who, "condition", condition));
    WR_TRY(check_operand(call.who, "first choice", one));
    WR_TRY(check_operand(call.who, "second choice", other));
    WR_TRY(check_same_dtype(call.who, one, other));
    if (condition->storage->dtype != WEIR_DTYPE_BOOL) {
        return wr_fail(WEIR_INVALID, "%s: the condition is %s, not bool", call.who,
                       wr_dtype_name(condition->storage->dtype));
    }
    call.dtype = one->storage->dtype;
    WR_TRY(
        wr_shape_broadcast(call.who, &one->view.shape, &other->view.shape, &call.shape));
    WR_TRY(
        wr_shape_broadcast(call.who, &condition->view.shape, &call.shape, &call.shape));
    return wr_call_record(&call, NULL, tensor);
}

weir_result wr_tensor_where_scalar(weir_tensor *condition, weir_tensor *one, double other,
                                   weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_where",
                    .op = WEIR_OP_SELECT,
                    .dtype = one->storage->dtype,
                    .operand_count = 2,
                    .operands = {condition, one},
                    .scalar_count = 1,
                    .scalars = {scalar_bits(one->storage->dtype, other)}};
    WR_TRY(wr_shape_broadcast(call.who, &condition->view.shape, &one->view.shape,
                              &call.shape));
    return wr_call_record(&call, NULL, tensor);
}

weir_result weir_tensor_cast(weir_tensor *operand, weir_dtype dtype, weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_cast",
                    .op = WEIR_OP_CAST,
                    .dtype = dtype,
                    .operand_count = 1,
                    .operands = {operand}};
    WR_TRY(check_operand(call.who, "operand", operand));
    if (wr_dtype_bytes(dtype) == 0) {
        return wr_fail(WEIR_INVALID, "%s: there is no dtype %d", call.who, (int)dtype);
    }
    call.shape = operand->view.shape;
    return wr_call_record(&call, NULL, tensor);
}
