/* SPDX-License-Identifier: MIT */
/* From a result back to its leaves.
 *
 *     claim     all entries that the result was made from: the walk (walk.h)
 *     run       each entry's gradient, complete by then, gives its inputs' gradients;
 *               then what the entry kept is dropped
 *     deposit   the leaves' gradients are added to what they have
 */
#include "rule.h"
#include "tape.h"
#include "walk.h"

#include "call.h"

#include "kernel/memory.h"

#include <weir/autodiff.h>

#include <string.h>

static const char who[] = "weir_tensor_backward";

/* ---- run ---- */

/* Sums over what the input was broadcast along, and broadcasts over what the gradient
 * left out. */
static weir_tensor *fit(wr_formula *formula, weir_tensor *gradient,
                        const weir_shape *shape)
{
    if (gradient == NULL) {
        return NULL;
    }
    const weir_shape *wide = &gradient->view.shape;
    uint32_t added = wide->rank > shape->rank ? wide->rank - shape->rank : 0;
    uint32_t axes = (1u << added) - 1;
    weir_shape narrow = *shape;
    for (uint32_t d = added; d < wide->rank; d++) {
        uint32_t own = d + shape->rank - wide->rank;
        axes |= (uint32_t)(shape->extent[own] == 1 && wide->extent[d] != 1) << d;
    }
    weir_tensor *sum = wr_formula_reduce(formula, WEIR_REDUCE_SUM, gradient, axes);
    if (sum == NULL || added == 0) {
        return sum == NULL ? NULL : wr_formula_expand(formula, sum, shape);
    }
    for (uint32_t d = 0; d < shape->rank; d++) {
        narrow.extent[d] = sum->view.shape.extent[added + d];
    }
    return wr_formula_expand(formula, wr_formula_reshape(formula, sum, &narrow), shape);
}

/* What entry `from` contributes to the gradient of its input k. */
static weir_result contribute(const wr_walk *walk, const wr_walk_item *from, uint32_t k)
{
    wr_formula formula = {0};
    const wr_input *input = &from->entry->inputs[k];
    wr_walk_item *to = wr_walk_find(walk, input->entry);
    weir_tensor *total = NULL;
    weir_tensor *part =
        from->entry->rule->gradient(&formula, from->entry, from->gradient, k);
    part = fit(&formula, part, &input->shape);
    if (to->gradient != NULL) {
        part = wr_formula_binary(&formula, WEIR_OP_ADD, to->gradient, part);
    }
    WR_TRY(wr_formula_finish(&formula, part, &total));
    weir_tensor_drop(to->gradient);
    to->gradient = total;
    return WEIR_OK;
}

static weir_result run_one(const wr_walk *walk, wr_walk_item *from, bool keep_tape)
{
    wr_entry *entry = from->entry;
    for (uint32_t k = 0; from->gradient != NULL && k < entry->input_count; k++) {
        if (entry->inputs[k].entry != NULL) {
            WR_TRY(contribute(walk, from, k));
        }
    }
    if (entry->rule != NULL && !keep_tape) {
        wr_entry_spend(entry);
    }
    if (entry->rule != NULL) {
        weir_tensor_drop(from->gradient);
        from->gradient = NULL;
    }
    return WEIR_OK;
}

static weir_result run(const wr_walk *walk, bool keep_tape)
{
    for (uint32_t i = 0; i < walk->count; i++) {
        WR_TRY(run_one(walk, &walk->items[i], keep_tape));
    }
    return WEIR_OK;
}

/* ---- deposit ---- */

/* A leaf's gradient, and what it becomes. */
typedef struct deposit {
    weir_tensor *before;
    weir_tensor *after;
} deposit;

static weir_result add_up(const wr_walk_item *leaf, deposit *entry)
{
    wr_tape_lock();
    entry->before = weir_tensor_clone(leaf->entry->gradient);
    wr_tape_unlock();
    if (entry->before == NULL) {
        entry->after = weir_tensor_clone(leaf->gradient);
        return WEIR_OK;
    }
    return weir_tensor_add(entry->before, leaf->gradient, &entry->after);
}

static void drop_deposit(deposit *entry)
{
    weir_tensor_drop(entry->before);
    weir_tensor_drop(entry->after);
    *entry = (deposit){0};
}

/* False if the leaf has got another gradient meanwhile; then nothing has changed. */
static bool try_put(const wr_walk_item *leaf, deposit *entry)
{
    wr_tape_lock();
    bool is_same = leaf->entry->gradient == entry->before;
    if (is_same) {
        leaf->entry->gradient = entry->after;
        entry->after = entry->before; /* the leaf's reference on it is ours to drop */
    }
    wr_tape_unlock();
    return is_same;
}

static weir_result put(const wr_walk_item *leaf, deposit *entry)
{
    while (!try_put(leaf, entry)) {
        drop_deposit(entry);
        WR_TRY(add_up(leaf, entry));
    }
    return WEIR_OK;
}

static bool is_due(const wr_walk_item *leaf)
{
    return leaf->entry->rule == NULL && leaf->gradient != NULL;
}

/* All sums are recorded before the first leaf changes. */
static weir_result deposit_all(const wr_walk *walk)
{
    weir_result result = WEIR_OK;
    deposit *deposits = wr_memory_alloc(walk->count * sizeof *deposits);
    if (deposits == NULL) {
        return wr_fail(WEIR_OUT_OF_HOST_MEMORY,
                       "%s: no host memory for the leaves' gradients", who);
    }
    for (uint32_t i = 0; result == WEIR_OK && i < walk->count; i++) {
        result = is_due(&walk->items[i]) ? add_up(&walk->items[i], &deposits[i]) : result;
    }
    for (uint32_t i = 0; result == WEIR_OK && i < walk->count; i++) {
        result = is_due(&walk->items[i]) ? put(&walk->items[i], &deposits[i]) : result;
    }
    for (uint32_t i = 0; i < walk->count; i++) {
        drop_deposit(&deposits[i]);
    }
    wr_memory_free(deposits);
    return result;
}

/* ---- the public function ---- */

static weir_result make_ones(const weir_tensor *tensor, weir_tensor **ones)
{
    const float one = 1.0F;
    wr_call call = {.who = who,
                    .op = WEIR_OP_SCALAR,
                    .dtype = tensor->storage->dtype,
                    .shape = tensor->view.shape,
                    .scalar_count = 1};
    memcpy(call.scalars, &one, sizeof one);
    return wr_call_record(&call, weir_tensor_stream(tensor), ones);
}

static weir_result check_gradient(const weir_tensor *tensor, const weir_tensor *gradient)
{
    char texts[2][WR_SHAPE_TEXT_BYTES];
    if (gradient == NULL && wr_shape_elements(&tensor->view.shape) != 1) {
        return wr_fail(WEIR_INVALID,
                       "%s: the tensor has shape %s; reduce it to one element, or give "
                       "the gradient of what you want in that shape",
                       who, wr_shape_format(&tensor->view.shape, texts[0]));
    }
    if (gradient != NULL &&
        (!wr_shape_equals(&gradient->view.shape, &tensor->view.shape) ||
         gradient->storage->dtype != tensor->storage->dtype)) {
        return wr_fail(WEIR_INVALID,
                       "%s: the gradient has shape %s, the tensor %s; their dtypes must "
                       "be equal too",
                       who, wr_shape_format(&gradient->view.shape, texts[0]),
                       wr_shape_format(&tensor->view.shape, texts[1]));
    }
    return WEIR_OK;
}

/* The entries have been claimed. */
static weir_result go_back(const wr_walk *walk, weir_tensor *tensor,
                           const weir_backward_desc *asked)
{
    wr_walk_item *root = wr_walk_find(walk, tensor->entry);
    root->gradient = weir_tensor_clone(asked->gradient);
    if (root->gradient == NULL) {
        WR_TRY(make_ones(tensor, &root->gradient));
    }
    WR_TRY(run(walk, asked->keep_tape));
    return deposit_all(walk);
}

/* With the tape paused, and under its tag. */
static weir_result run_backward(weir_tensor *tensor, const weir_backward_desc *asked)
{
    wr_walk walk = {0};
    WR_TRY(wr_walk_claim(&walk, tensor->entry));
    weir_result result = go_back(&walk, tensor, asked);
    wr_walk_finish(&walk, !asked->keep_tape);
    return result;
}

weir_result weir_tensor_backward(weir_tensor *tensor, const weir_backward_desc *desc)
{
    const weir_backward_desc asked = desc != NULL ? *desc : (weir_backward_desc){0};
    if (tensor == NULL || tensor->entry == NULL) {
        return wr_fail(WEIR_INVALID,
                       "%s: the tensor is %s; only what was made from a leaf, which "
                       "weir_tensor_track makes, has a way back",
                       who, tensor == NULL ? "NULL" : "not tracked");
    }
    WR_TRY(check_gradient(tensor, asked.gradient));
    WR_TRY(weir_tag_push(WR_TAPE_TAG));
    wr_tape_pause();
    weir_result result = run_backward(tensor, &asked);
    wr_tape_resume();
    weir_tag_pop();
    return result;
}
