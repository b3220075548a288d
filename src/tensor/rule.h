/* SPDX-License-Identifier: MIT */
/* What makes an operation differentiable: what it keeps on the tape, and the gradient of
 * its inputs as a formula of public operations, which are fused like any others.
 *
 * Every operation of kernel.h's lists has its rule in rules.c, or the compiler complains;
 * those without a gradient say so. tests/tensor/test_gradients.c checks each by finite
 * differences. */
#ifndef WR_TENSOR_RULE_H
#define WR_TENSOR_RULE_H

#include "entry.h"
#include "formula.h"

#define WR_NEEDS_OPERAND(k) (1u << (k))
#define WR_NEEDS_RESULT (1u << 31)
#define WR_RULE_INPUTS 3

struct wr_rule {
    /* What the gradient of input k is made from; the last stands for all further ones. */
    uint32_t needs[WR_RULE_INPUTS];
    /* The gradient of input k from that of the result. It may have the shape that the
     * input was broadcast to, or one that is broadcast to the input's. NULL: the result
     * does not change with its operands, or only in steps, and is not tracked. */
    weir_tensor *(*gradient)(wr_formula *formula, const wr_entry *entry,
                             weir_tensor *gradient, uint32_t k);
};

const wr_rule *wr_rule_of_op(weir_op op);
const wr_rule *wr_rule_of_reduce(weir_reduce reduce);
const wr_rule *wr_rule_of_kernel(weir_kernel_kind kind);

/* Of an operation that has none: backward says so, instead of leaving a part out. */
extern const wr_rule wr_rule_missing;

/* Views; what of wr_attributes they use. */
extern const wr_rule wr_rule_reshape;
extern const wr_rule wr_rule_permute; /* order */
extern const wr_rule wr_rule_expand;
extern const wr_rule wr_rule_slice; /* axis, start, step */

/* One for all of what a function is made of; computed with the tape paused. */
extern const wr_rule wr_rule_concat;      /* axis */
extern const wr_rule wr_rule_softmax;     /* axes */
extern const wr_rule wr_rule_log_softmax; /* axes */
extern const wr_rule wr_rule_cross_entropy;

#endif
