/* SPDX-License-Identifier: MIT */
/* Operations nested as one writes them: each function returns a tensor that the formula
 * keeps, or NULL after a failure, and NULL operands give NULL. So
 *
 *     mul(f, dy, scale(f, cos(f, x), 2))
 *
 * needs one check, at its end, and drops what is between by itself. One thread. */
#ifndef WR_TENSOR_FORMULA_H
#define WR_TENSOR_FORMULA_H

#include "tensor.h"

#define WR_FORMULA_TENSORS 32

typedef struct wr_formula {
    weir_result result; /* the first failure, whose text is the thread's last error */
    uint32_t made_count;
    weir_tensor *made[WR_FORMULA_TENSORS];
} wr_formula;

weir_tensor *wr_formula_unary(wr_formula *formula, weir_op op, weir_tensor *operand);
weir_tensor *wr_formula_binary(wr_formula *formula, weir_op op, weir_tensor *left,
                               weir_tensor *right);
weir_tensor *wr_formula_scalar(wr_formula *formula, weir_op op, weir_tensor *left,
                               double right);
weir_tensor *wr_formula_where(wr_formula *formula, weir_tensor *condition,
                              weir_tensor *one, weir_tensor *other);
/* Where the condition is false: `otherwise`. */
weir_tensor *wr_formula_choose(wr_formula *formula, weir_tensor *condition,
                               weir_tensor *one, double otherwise);
/* The operand itself if it is of the dtype. */
weir_tensor *wr_formula_cast(wr_formula *formula, weir_tensor *operand, weir_dtype dtype);
/* Over the dimensions whose bits are set; they stay, with extent 1. None: the operand. */
weir_tensor *wr_formula_reduce(wr_formula *formula, weir_reduce reduce,
                               weir_tensor *operand, uint32_t axes);
weir_tensor *wr_formula_reshape(wr_formula *formula, weir_tensor *operand,
                                const weir_shape *shape);
weir_tensor *wr_formula_permute(wr_formula *formula, weir_tensor *operand,
                                const uint32_t *axes);
weir_tensor *wr_formula_expand(wr_formula *formula, weir_tensor *operand,
                               const weir_shape *shape);

/* Keeps what some other function made; for the next nesting. */
weir_tensor *wr_formula_keep(wr_formula *formula, weir_result result,
                             weir_tensor *const *fresh);

/* Ends the formula: everything is dropped but `value`, of which the caller gets a
 * reference. */
weir_result wr_formula_finish(wr_formula *formula, weir_tensor *value,
                              weir_tensor **tensor);
/* The same without a value. */
void wr_formula_drop(wr_formula *formula);

#endif
