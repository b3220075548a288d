/* SPDX-License-Identifier: MIT */
/* From a result back to its leaves.
 *
 *     claim     all entries that the result was made from, under the tape's lock: none of
 *               them is another backward's, and from now on no other one can have them
 *     order     newest first, so that an entry comes after all that was made from it
 *     run       each entry's gradient, complete by then, gives its inputs' gradients;
 *               then what the entry kept is dropped
 *     deposit   the leaves' gradients are added to what they have
 *
 * Leaves belong to nobody: several backwards may be on their way to one. */
#include "rule.h"
#include "tape.h"

#include "call.h"

#include "kernel/memory.h"

#include <weir/autodiff.h>

#include <string.h>

static const char who[] = "weir_tensor_backward";

typedef struct item {
    wr_entry *entry;       /* one reference */
    weir_tensor *gradient; /* so far; NULL: none */
} item;

typedef struct backward {
    item *items;
    uint32_t count;
    uint32_t capacity;
    bool keep_tape;
} backward;

/* ---- claim ---- */

static weir_result no_memory(void)
{
    return wr_fail(WEIR_OUT_OF_HOST_MEMORY, "%s: no host memory for a list of entries",
                   who);
}

static bool make_room(backward *work)
{
    if (work->count < work->capacity) {
        return true;
    }
    uint32_t capacity = work->capacity == 0 ? 64 : 2 * work->capacity;
    item *items = wr_memory_alloc(capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    if (work->count > 0) {
        memcpy(items, work->items, work->count * sizeof *items);
    }
    wr_memory_free(work->items);
    work->items = items;
    work->capacity = capacity;
    return true;
}

/* Under the tape's lock. Leaves come once for each way that leads to them. */
static weir_result claim_one(backward *work, wr_entry *entry)
{
    if (entry->claim == work) {
        return WEIR_OK;
    }
    if (entry->is_spent) {
        return wr_fail(WEIR_INVALID,
                       "%s: an earlier backward has used up the tape that the tensor was "
                       "made on; give that one keep_tape, or compute the tensor again",
                       who);
    }
    if (entry->claim != NULL) {
        return wr_fail(WEIR_BUSY,
                       "%s: another thread is going back through the same tape", who);
    }
    if (!make_room(work)) {
        return no_memory();
    }
    if (entry->rule != NULL) {
        entry->claim = work;
    }
    wr_entry_retain(entry);
    work->items[work->count++] = (item){.entry = entry};
    return WEIR_OK;
}

static weir_result claim_all(backward *work, wr_entry *root)
{
    WR_TRY(claim_one(work, root));
    for (uint32_t i = 0; i < work->count; i++) {
        const wr_entry *entry = work->items[i].entry;
        for (uint32_t k = 0; k < entry->input_count; k++) {
            if (entry->inputs[k].entry != NULL) {
                WR_TRY(claim_one(work, entry->inputs[k].entry));
            }
        }
    }
    return WEIR_OK;
}

/* Under the tape's lock. */
static void disclaim(backward *work, bool is_spent)
{
    for (uint32_t i = 0; i < work->count; i++) {
        wr_entry *entry = work->items[i].entry;
        if (entry->rule != NULL) {
            entry->claim = NULL;
            entry->is_spent = is_spent;
        }
    }
}

/* ---- order ---- */

/* Lets the item at `from` sink in the heap of the first `count`, oldest on top. */
static void sink(item *items, uint32_t from, uint32_t count)
{
    item sinking = items[from];
    for (uint32_t child = 2 * from + 1; child < count; child = 2 * from + 1) {
        if (child + 1 < count &&
            items[child + 1].entry->serial < items[child].entry->serial) {
            child++;
        }
        if (sinking.entry->serial <= items[child].entry->serial) {
            break;
        }
        items[from] = items[child];
        from = child;
    }
    items[from] = sinking;
}

static void sort(item *items, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;) {
        sink(items, i, count);
    }
    for (uint32_t last = count; last-- > 1;) {
        item oldest = items[0];
        items[0] = items[last];
        items[last] = oldest;
        sink(items, 0, last);
    }
}

/* Leaves that came several times stay once. */
static void order(backward *work)
{
    uint32_t kept = 0;
    sort(work->items, work->count);
    for (uint32_t i = 0; i < work->count; i++) {
        if (kept > 0 && work->items[kept - 1].entry == work->items[i].entry) {
            wr_entry_release(work->items[i].entry);
        } else {
            work->items[kept++] = work->items[i];
        }
    }
    work->count = kept;
}

static item *find(const backward *work, const wr_entry *entry)
{
    uint32_t low = 0;
    uint32_t high = work->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        bool is_before = entry->serial > work->items[middle].entry->serial;
        high = is_before ? middle : high;
        low = is_before ? low : middle;
    }
    return &work->items[low];
}

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
static weir_result contribute(const backward *work, const item *from, uint32_t k)
{
    wr_formula formula = {0};
    const wr_input *input = &from->entry->inputs[k];
    item *to = find(work, input->entry);
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

static weir_result run_one(const backward *work, item *from)
{
    wr_entry *entry = from->entry;
    for (uint32_t k = 0; from->gradient != NULL && k < entry->input_count; k++) {
        if (entry->inputs[k].entry != NULL) {
            WR_TRY(contribute(work, from, k));
        }
    }
    if (entry->rule != NULL && !work->keep_tape) {
        wr_entry_spend(entry);
    }
    if (entry->rule != NULL) {
        weir_tensor_drop(from->gradient);
        from->gradient = NULL;
    }
    return WEIR_OK;
}

static weir_result run(const backward *work)
{
    for (uint32_t i = 0; i < work->count; i++) {
        WR_TRY(run_one(work, &work->items[i]));
    }
    return WEIR_OK;
}

/* ---- deposit ---- */

/* A leaf's gradient, and what it becomes. */
typedef struct deposit {
    weir_tensor *before;
    weir_tensor *after;
} deposit;

static weir_result add_up(const item *leaf, deposit *entry)
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
static bool try_put(const item *leaf, deposit *entry)
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

static weir_result put(const item *leaf, deposit *entry)
{
    while (!try_put(leaf, entry)) {
        drop_deposit(entry);
        WR_TRY(add_up(leaf, entry));
    }
    return WEIR_OK;
}

static bool is_due(const item *leaf)
{
    return leaf->entry->rule == NULL && leaf->gradient != NULL;
}

/* All sums are recorded before the first leaf changes. */
static weir_result deposit_all(const backward *work)
{
    weir_result result = WEIR_OK;
    deposit *deposits = wr_memory_alloc(work->count * sizeof *deposits);
    if (deposits == NULL) {
        return no_memory();
    }
    for (uint32_t i = 0; result == WEIR_OK && i < work->count; i++) {
        result = is_due(&work->items[i]) ? add_up(&work->items[i], &deposits[i]) : result;
    }
    for (uint32_t i = 0; result == WEIR_OK && i < work->count; i++) {
        result = is_due(&work->items[i]) ? put(&work->items[i], &deposits[i]) : result;
    }
    for (uint32_t i = 0; i < work->count; i++) {
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

static weir_result claim(backward *work, weir_tensor *tensor)
{
    wr_tape_lock();
    weir_result result = claim_all(work, tensor->entry);
    if (result != WEIR_OK) {
        disclaim(work, false);
    }
    wr_tape_unlock();
    return result;
}

static void finish(backward *work)
{
    for (uint32_t i = 0; i < work->count; i++) {
        weir_tensor_drop(work->items[i].gradient);
        wr_entry_release(work->items[i].entry);
    }
    wr_memory_free(work->items);
}

/* The entries have been claimed. */
static weir_result go_back(backward *work, weir_tensor *tensor, weir_tensor *gradient)
{
    item *root = find(work, tensor->entry);
    root->gradient = weir_tensor_clone(gradient);
    if (gradient == NULL) {
        WR_TRY(make_ones(tensor, &root->gradient));
    }
    WR_TRY(run(work));
    return deposit_all(work);
}

static weir_result run_backward(backward *work, weir_tensor *tensor,
                                weir_tensor *gradient)
{
    WR_TRY(weir_tag_push(WR_TAPE_TAG));
    wr_tape_pause();
    weir_result result = go_back(work, tensor, gradient);
    wr_tape_resume();
    weir_tag_pop();
    return result;
}

weir_result weir_tensor_backward(weir_tensor *tensor, const weir_backward_desc *desc)
{
    const weir_backward_desc asked = desc != NULL ? *desc : (weir_backward_desc){0};
    backward work = {.keep_tape = asked.keep_tape};
    if (tensor == NULL || tensor->entry == NULL) {
        return wr_fail(WEIR_INVALID,
                       "%s: the tensor is %s; only what was made from a leaf, which "
                       "weir_tensor_track makes, has a way back",
                       who, tensor == NULL ? "NULL" : "not tracked");
    }
    WR_TRY(check_gradient(tensor, asked.gradient));
    weir_result result = claim(&work, tensor);
    if (result == WEIR_OK) {
        order(&work);
        result = run_backward(&work, tensor, asked.gradient);
        for (uint32_t i = 0; i < work.count && !work.keep_tape; i++) {
            wr_entry *entry = work.items[i].entry;
            if (entry->rule != NULL) {
                wr_entry_spend(entry); /* after a failure there may be some left */
            }
        }
        wr_tape_lock();
        disclaim(&work, !work.keep_tape);
        wr_tape_unlock();
    }
    finish(&work);
    return result;
}
