/* SPDX-License-Identifier: MIT */
#include "formula.h"

#include "call.h"

weir_tensor *wr_formula_keep(wr_formula *formula, weir_result result,
                             weir_tensor *const *fresh)
{
    if (result != WEIR_OK) {
        formula->result = result;
        return NULL;
    }
    if (formula->made_count == WR_FORMULA_TENSORS) {
        weir_tensor_drop(*fresh);
        formula->result = wr_fail(WEIR_INVALID,
                                  "weir_tensor: a formula of more than %d "
                                  "operations",
                                  WR_FORMULA_TENSORS);
        return NULL;
    }
    formula->made[formula->made_count++] = *fresh;
    return *fresh;
}

weir_tensor *wr_formula_unary(wr_formula *formula, weir_op op, weir_tensor *operand)
{
    weir_tensor *fresh = NULL;
    return operand == NULL
               ? NULL
               : wr_formula_keep(formula, weir_tensor_unary(op, operand, &fresh), &fresh);
}

weir_tensor *wr_formula_binary(wr_formula *formula, weir_op op, weir_tensor *left,
                               weir_tensor *right)
{
    weir_tensor *fresh = NULL;
    return left == NULL || right == NULL
               ? NULL
               : wr_formula_keep(formula, weir_tensor_binary(op, left, right, &fresh),
                                 &fresh);
}

weir_tensor *wr_formula_scalar(wr_formula *formula, weir_op op, weir_tensor *left,
                               double right)
{
    weir_tensor *fresh = NULL;
    return left == NULL
               ? NULL
               : wr_formula_keep(
                     formula, weir_tensor_binary_scalar(op, left, right, &fresh), &fresh);
}

weir_tensor *wr_formula_where(wr_formula *formula, weir_tensor *condition,
                              weir_tensor *one, weir_tensor *other)
{
    weir_tensor *fresh = NULL;
    return condition == NULL || one == NULL || other == NULL
               ? NULL
               : wr_formula_keep(
                     formula, weir_tensor_where(condition, one, other, &fresh), &fresh);
}

weir_tensor *wr_formula_choose(wr_formula *formula, weir_tensor *condition,
                               weir_tensor *one, double otherwise)
{
    weir_tensor *fresh = NULL;
    return condition == NULL || one == NULL
               ? NULL
               : wr_formula_keep(
                     formula, wr_tensor_where_scalar(condition, one, otherwise, &fresh),
                     &fresh);
}

weir_tensor *wr_formula_cast(wr_formula *formula, weir_tensor *operand, weir_dtype dtype)
{
    weir_tensor *fresh = NULL;
    return operand == NULL || operand->storage->dtype == dtype
               ? operand
               : wr_formula_keep(formula, weir_tensor_cast(operand, dtype, &fresh),
                                 &fresh);
}

weir_tensor *wr_formula_reduce(wr_formula *formula, weir_reduce reduce,
                               weir_tensor *operand, uint32_t axes)
{
    weir_tensor *fresh = NULL;
    return operand == NULL || axes == 0
               ? operand
               : wr_formula_keep(
                     formula,
                     wr_call_record(&(wr_call){.who = "weir_tensor_reduce",
                                               .reduce = reduce,
                                               .reduced_axes = axes,
                                               .keep = true,
                                               .dtype = operand->storage->dtype,
                                               .shape = operand->view.shape,
                                               .operand_count = 1,
                                               .operands = {operand}},
                                    NULL, &fresh),
                     &fresh);
}

weir_tensor *wr_formula_reshape(wr_formula *formula, weir_tensor *operand,
                                const weir_shape *shape)
{
    weir_tensor *fresh = NULL;
    return operand == NULL || wr_shape_equals(&operand->view.shape, shape)
               ? operand
               : wr_formula_keep(formula, weir_tensor_reshape(operand, *shape, &fresh),
                                 &fresh);
}

weir_tensor *wr_formula_permute(wr_formula *formula, weir_tensor *operand,
                                const uint32_t *axes)
{
    weir_tensor *fresh = NULL;
    return operand == NULL
               ? NULL
               : wr_formula_keep(formula, weir_tensor_permute(operand, axes, &fresh),
                                 &fresh);
}

weir_tensor *wr_formula_expand(wr_formula *formula, weir_tensor *operand,
                               const weir_shape *shape)
{
    weir_tensor *fresh = NULL;
    return operand == NULL || wr_shape_equals(&operand->view.shape, shape)
               ? operand
               : wr_formula_keep(formula, weir_tensor_expand(operand, *shape, &fresh),
                                 &fresh);
}

void wr_formula_drop(wr_formula *formula)
{
    while (formula->made_count > 0) {
        weir_tensor_drop(formula->made[--formula->made_count]);
    }
}

weir_result wr_formula_finish(wr_formula *formula, weir_tensor *value,
                              weir_tensor **tensor)
{
    if (formula->result == WEIR_OK) {
        *tensor = weir_tensor_clone(value);
    }
    wr_formula_drop(formula);
    return formula->result;
}
