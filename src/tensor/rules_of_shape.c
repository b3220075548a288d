/* SPDX-License-Identifier: MIT */
/* The rules of reductions and of views. */
#include "rule.h"

#define FORMULA wr_formula *f, const wr_entry *e, weir_tensor *dy, uint32_t k

/* ---- reductions ---- */

/* The result's shape with the reduced dimensions kept, so that it is broadcast to the
 * operand's. */
static weir_tensor *keep_axes(wr_formula *f, const wr_entry *e, weir_tensor *tensor)
{
    weir_shape kept = e->inputs[0].shape;
    for (uint32_t d = 0; d < kept.rank; d++) {
        kept.extent[d] = (e->attributes.axes >> d & 1) != 0 ? 1 : kept.extent[d];
    }
    return tensor == NULL ? NULL : wr_formula_reshape(f, tensor, &kept);
}

static weir_tensor *of_sum(FORMULA)
{
    (void)k;
    return keep_axes(f, e, dy);
}

static weir_tensor *of_mean(FORMULA)
{
    uint64_t count = 1;
    const weir_shape *shape = &e->inputs[k].shape;
    for (uint32_t d = 0; d < shape->rank; d++) {
        count *= (e->attributes.axes >> d & 1) != 0 ? shape->extent[d] : 1;
    }
    return keep_axes(f, e, wr_formula_scalar(f, WEIR_OP_MUL, dy, 1.0 / (double)count));
}

/* Each of the elements that are the extreme gets an equal part. */
static weir_tensor *of_extreme(FORMULA)
{
    weir_tensor *is_extreme =
        wr_formula_binary(f, WEIR_OP_EQ, e->inputs[k].saved, keep_axes(f, e, e->result));
    weir_tensor *one_each = wr_formula_cast(f, is_extreme, e->inputs[k].dtype);
    weir_tensor *count =
        wr_formula_reduce(f, WEIR_REDUCE_SUM, one_each, e->attributes.axes);
    weir_tensor *share = wr_formula_binary(f, WEIR_OP_DIV, keep_axes(f, e, dy), count);
    return wr_formula_binary(f, WEIR_OP_MUL, one_each, share);
}

#define OPERAND_AND_RESULT (WR_NEEDS_OPERAND(0) | WR_NEEDS_RESULT)

#define RULE_SUM                                                                         \
    {                                                                                    \
        .gradient = of_sum                                                               \
    }
#define RULE_MEAN                                                                        \
    {                                                                                    \
        .gradient = of_mean                                                              \
    }
#define RULE_ARGMAX                                                                      \
    {                                                                                    \
        .gradient = NULL                                                                 \
    }
#define RULE_MAX                                                                         \
    {                                                                                    \
        .gradient = of_extreme, .needs = { OPERAND_AND_RESULT }                          \
    }
#define RULE_MIN                                                                         \
    {                                                                                    \
        .gradient = of_extreme, .needs = { OPERAND_AND_RESULT }                          \
    }

const wr_rule *wr_rule_of_reduce(weir_reduce reduce)
{
    switch (reduce) {
#define FIND(name, ...)                                                                  \
    case WEIR_REDUCE_##name: {                                                           \
        static const wr_rule rule = RULE_##name;                                         \
        return &rule;                                                                    \
    }
        WEIR_REDUCE_LIST(FIND)
#undef FIND
    case WEIR_REDUCE_NONE:
        break;
    }
    return &wr_rule_missing;
}

/* ---- none ---- */

static weir_tensor *of_unknown(FORMULA)
{
    (void)e, (void)dy, (void)k;
    weir_tensor *none = NULL;
    return wr_formula_keep(f,
                           wr_fail(WEIR_UNSUPPORTED,
                                   "weir_tensor_backward: an operation on the way back "
                                   "has no gradient; detach its operand"),
                           &none);
}

const wr_rule wr_rule_missing = {.gradient = of_unknown};

/* ---- views ---- */

static weir_tensor *of_reshape(FORMULA)
{
    return wr_formula_reshape(f, dy, &e->inputs[k].shape);
}

static weir_tensor *of_permute(FORMULA)
{
    uint32_t inverse[WEIR_TENSOR_MAX_RANK] = {0};
    for (uint32_t d = 0; d < e->inputs[k].shape.rank; d++) {
        inverse[e->attributes.order[d]] = d;
    }
    return wr_formula_permute(f, dy, inverse);
}

/* What is broadcast is summed where the gradient is handed on. */
static weir_tensor *of_expand(FORMULA)
{
    (void)f, (void)e, (void)k;
    return dy;
}

const wr_rule wr_rule_reshape = {.gradient = of_reshape};
const wr_rule wr_rule_permute = {.gradient = of_permute};
const wr_rule wr_rule_expand = {.gradient = of_expand};
