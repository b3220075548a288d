/* SPDX-License-Identifier: MIT */
/* The rules of matrix products, of elements by index and parts, and of composites. */
#include "call.h"
#include "rule.h"

#define FORMULA wr_formula *f, const wr_entry *e, weir_tensor *dy, uint32_t k

/* ---- shorthands ---- */

static weir_tensor *mul(wr_formula *f, weir_tensor *left, weir_tensor *right)
{
    return wr_formula_binary(f, WEIR_OP_MUL, left, right);
}

static weir_tensor *subtract(wr_formula *f, weir_tensor *left, weir_tensor *right)
{
    return wr_formula_binary(f, WEIR_OP_SUB, left, right);
}

static weir_tensor *scale(wr_formula *f, weir_tensor *left, double right)
{
    return wr_formula_scalar(f, WEIR_OP_MUL, left, right);
}

static weir_tensor *matmul(wr_formula *f, weir_tensor *left, weir_tensor *right)
{
    weir_tensor *fresh = NULL;
    return left == NULL || right == NULL
               ? NULL
               : wr_formula_keep(f, weir_tensor_matmul(left, right, &fresh), &fresh);
}

/* Each matrix turned over. */
static weir_tensor *turn(wr_formula *f, weir_tensor *matrices)
{
    weir_tensor *fresh = NULL;
    return matrices == NULL
               ? NULL
               : wr_formula_keep(f, weir_tensor_transpose(matrices, -2, -1, &fresh),
                                 &fresh);
}

/* On the stream and of the dtype of another tensor. */
static weir_tensor *zeros(wr_formula *f, const weir_tensor *like, const weir_shape *shape)
{
    weir_tensor *fresh = NULL;
    const wr_call call = {.who = "weir_tensor_backward",
                          .op = WEIR_OP_SCALAR,
                          .dtype = like->storage->dtype,
                          .shape = *shape,
                          .scalar_count = 1};
    return wr_formula_keep(f, wr_call_record(&call, weir_tensor_stream(like), &fresh),
                           &fresh);
}

static weir_tensor *scatter(wr_formula *f, weir_tensor *onto, uint32_t axis,
                            weir_tensor *indices, weir_tensor *source)
{
    weir_tensor *fresh = NULL;
    return onto == NULL || indices == NULL || source == NULL
               ? NULL
               : wr_formula_keep(f,
                                 weir_tensor_scatter_add(onto, (int32_t)axis, indices,
                                                         source, &fresh),
                                 &fresh);
}

static weir_tensor *slice(wr_formula *f, weir_tensor *whole, const wr_attributes *where,
                          uint64_t count)
{
    weir_tensor *fresh = NULL;
    return wr_formula_keep(f,
                           weir_tensor_slice(whole, (int32_t)where->axis, where->start,
                                             count, where->step, &fresh),
                           &fresh);
}

static weir_tensor *place(wr_formula *f, weir_tensor *onto, const wr_attributes *where,
                          weir_tensor *part)
{
    weir_tensor *fresh = NULL;
    return onto == NULL || part == NULL
               ? NULL
               : wr_formula_keep(f,
                                 weir_tensor_place(onto, (int32_t)where->axis,
                                                   where->start, where->step, part,
                                                   &fresh),
                                 &fresh);
}

/* ---- matrix products ---- */

/* [..., m, k] as [all of m, k]. */
static weir_tensor *flatten(wr_formula *f, weir_tensor *matrices)
{
    const weir_shape *shape = &matrices->view.shape;
    uint64_t columns = shape->extent[shape->rank - 1];
    weir_shape flat = WEIR_SHAPE(wr_shape_elements(shape) / columns, columns);
    return wr_formula_reshape(f, matrices, &flat);
}

/* One right matrix for all left ones is one product; else there would be one gradient for
 * each of them, to be summed. */
static weir_tensor *of_right(wr_formula *f, const wr_entry *e, weir_tensor *dy)
{
    weir_tensor *left = e->inputs[0].saved;
    if (e->inputs[1].shape.rank == 2 && e->inputs[0].shape.rank > 2) {
        left = flatten(f, left);
        dy = flatten(f, dy);
    }
    return matmul(f, turn(f, left), dy);
}

static weir_tensor *of_matmul(FORMULA)
{
    return k == 0 ? matmul(f, dy, turn(f, e->inputs[1].saved)) : of_right(f, e, dy);
}

/* ---- elements by index ---- */

static weir_tensor *of_gather(FORMULA)
{
    return scatter(f, zeros(f, dy, &e->inputs[k].shape), e->attributes.axis,
                   e->inputs[1].saved, dy);
}

/* What the indices read, and 0 where they are out of range: nothing was added there. */
static weir_tensor *pick(wr_formula *f, weir_tensor *from, const wr_entry *e)
{
    weir_tensor *fresh = NULL;
    weir_tensor *indices = e->inputs[1].saved;
    uint32_t axis = e->attributes.axis;
    bool is_list = e->inputs[1].shape.rank == 1;
    weir_tensor *picked = wr_formula_keep(
        f,
        is_list ? weir_tensor_index_select(from, (int32_t)axis, indices, &fresh)
                : weir_tensor_gather(from, (int32_t)axis, indices, &fresh),
        &fresh);
    weir_shape along = {.rank = from->view.shape.rank - (is_list ? axis : 0)};
    for (uint32_t d = 0; d < along.rank; d++) {
        along.extent[d] = 1;
    }
    along.extent[0] = e->inputs[1].shape.extent[0];
    weir_tensor *numbers = is_list ? wr_formula_reshape(f, indices, &along) : indices;
    double end = (double)from->view.shape.extent[axis];
    weir_tensor *is_inside =
        wr_formula_binary(f, WEIR_OP_AND, wr_formula_scalar(f, WEIR_OP_GE, numbers, 0),
                          wr_formula_scalar(f, WEIR_OP_LT, numbers, end));
    return wr_formula_choose(f, is_inside, picked, 0);
}

static weir_tensor *of_scatter_add(FORMULA)
{
    return k == 0 ? dy : pick(f, dy, e);
}

/* ---- parts ---- */

static weir_tensor *of_slice(FORMULA)
{
    return place(f, zeros(f, dy, &e->inputs[k].shape), &e->attributes, dy);
}

/* The part is the last operand; the one before, if there is one, is what it goes into. */
static weir_tensor *of_place(FORMULA)
{
    const weir_shape *part = &e->inputs[e->input_count - 1].shape;
    return k + 1 == e->input_count
               ? slice(f, dy, &e->attributes, part->extent[e->attributes.axis])
               : place(f, dy, &e->attributes, zeros(f, dy, part));
}

static weir_tensor *of_concat(FORMULA)
{
    wr_attributes where = {.axis = e->attributes.axis, .step = 1};
    for (uint32_t before = 0; before < k; before++) {
        where.start += e->inputs[before].shape.extent[where.axis];
    }
    return slice(f, dy, &where, e->inputs[k].shape.extent[where.axis]);
}

/* ---- composites ---- */

/* y * (dy - sum(dy * y)) */
static weir_tensor *of_softmax(FORMULA)
{
    (void)k;
    weir_tensor *sum =
        wr_formula_reduce(f, WEIR_REDUCE_SUM, mul(f, dy, e->result), e->attributes.axes);
    return mul(f, e->result, subtract(f, dy, sum));
}

/* dy - exp(y) * sum(dy) */
static weir_tensor *of_log_softmax(FORMULA)
{
    (void)k;
    weir_tensor *sum = wr_formula_reduce(f, WEIR_REDUCE_SUM, dy, e->attributes.axes);
    return subtract(f, dy, mul(f, wr_formula_unary(f, WEIR_OP_EXP, e->result), sum));
}

/* (softmax(logits) - 1 at the targets) * dy / rows */
static weir_tensor *of_cross_entropy(FORMULA)
{
    (void)k;
    uint64_t rows = e->inputs[0].shape.extent[0];
    const weir_shape column = WEIR_SHAPE(rows, 1);
    weir_tensor *fresh = NULL;
    weir_tensor *softmax =
        wr_formula_keep(f, weir_tensor_softmax(e->inputs[0].saved, 1, &fresh), &fresh);
    weir_tensor *share = scale(f, dy, 1.0 / (double)rows);
    weir_tensor *taken = scale(f, share, -1);
    if (softmax == NULL || taken == NULL) {
        return NULL;
    }
    return scatter(f, mul(f, softmax, share), 1,
                   wr_formula_reshape(f, e->inputs[1].saved, &column),
                   wr_formula_expand(f, taken, &column));
}

/* ---- the list ---- */

#define A WR_NEEDS_OPERAND(0)
#define B WR_NEEDS_OPERAND(1)

const wr_rule wr_rule_slice = {.gradient = of_slice};
const wr_rule wr_rule_concat = {.gradient = of_concat};
const wr_rule wr_rule_softmax = {.gradient = of_softmax, .needs = {WR_NEEDS_RESULT}};
const wr_rule wr_rule_log_softmax = {.gradient = of_log_softmax,
                                     .needs = {WR_NEEDS_RESULT}};
const wr_rule wr_rule_cross_entropy = {.gradient = of_cross_entropy, .needs = {A | B}};

const wr_rule *wr_rule_of_kernel(weir_kernel_kind kind)
{
    static const wr_rule matmul_rule = {.gradient = of_matmul, .needs = {B, A}};
    static const wr_rule gather_rule = {.gradient = of_gather, .needs = {B}};
    static const wr_rule scatter_rule = {.gradient = of_scatter_add, .needs = {0, 0, B}};
    static const wr_rule place_rule = {.gradient = of_place};
    switch (kind) {
    case WEIR_KERNEL_MATMUL:
        return &matmul_rule;
    case WEIR_KERNEL_GATHER:
        return &gather_rule;
    case WEIR_KERNEL_SCATTER_ADD:
        return &scatter_rule;
    case WEIR_KERNEL_PLACE:
        return &place_rule;
    case WEIR_KERNEL_CUSTOM:
    case WEIR_KERNEL_EXPRESSION:
        break;
    }
    return &wr_rule_missing;
}
