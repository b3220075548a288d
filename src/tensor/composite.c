/* SPDX-License-Identifier: MIT */
/* Operations made of others. Exponentials are computed where they are needed, and again
 * where they are needed again: that costs less than a buffer to keep them, and lets every
 * sum be one kernel with what it sums. */
#include "call.h"
#include "rule.h"
#include "tape.h"

#include "kernel/dtype.h"

static weir_result check(const char *who, const weir_tensor *operand,
                         weir_tensor *const *tensor)
{
    if (operand == NULL || tensor == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the %s is NULL", who,
                       operand == NULL ? "operand" : "place for the result");
    }
    return wr_dtype_is_float(operand->storage->dtype)
               ? WEIR_OK
               : wr_fail(WEIR_INVALID, "%s: not of %s; cast the operand", who,
                         wr_dtype_name(operand->storage->dtype));
}

/* In place of an operand the result of the call that has used it; NULL if that failed. */
static void replace(weir_tensor **tensor, weir_tensor *next)
{
    weir_tensor_drop(*tensor);
    *tensor = next;
}

static weir_result apply(weir_op op, weir_tensor **tensor)
{
    weir_tensor *next = NULL;
    weir_result result = weir_tensor_unary(op, *tensor, &next);
    replace(tensor, next);
    return result;
}

static weir_result apply_with(weir_op op, weir_tensor **tensor, weir_tensor *right)
{
    weir_tensor *next = NULL;
    weir_result result = weir_tensor_binary(op, *tensor, right, &next);
    replace(tensor, next);
    return result;
}

static weir_result apply_reduce(weir_reduce reduce, weir_tensor **tensor, int32_t axis)
{
    weir_tensor *next = NULL;
    weir_result result = weir_tensor_reduce(reduce, *tensor, axis, true, &next);
    replace(tensor, next);
    return result;
}

/* ---- softmax ---- */

/* Along an axis, which stays: the maximum, and the sum of what is left after it has been
 * taken off, exponentiated. */
typedef struct sums {
    weir_tensor *most;
    weir_tensor *sum;
} sums;

static void drop_sums(sums *made)
{
    weir_tensor_drop(made->most);
    weir_tensor_drop(made->sum);
}

static weir_result find_sums(weir_tensor *operand, int32_t axis, sums *made)
{
    WR_TRY(weir_tensor_reduce(WEIR_REDUCE_MAX, operand, axis, true, &made->most));
    WR_TRY(weir_tensor_sub(operand, made->most, &made->sum));
    WR_TRY(apply(WEIR_OP_EXP, &made->sum));
    return apply_reduce(WEIR_REDUCE_SUM, &made->sum, axis);
}

static weir_result softmax(weir_tensor *operand, int32_t axis, weir_tensor **tensor)
{
    sums made = {0};
    weir_tensor *y = NULL;
    weir_result result = find_sums(operand, axis, &made);
    if (result != WEIR_OK) {
        goto undo_sums;
    }
    result = weir_tensor_sub(operand, made.most, &y);
    result = result == WEIR_OK ? apply(WEIR_OP_EXP, &y) : result;
    result = result == WEIR_OK ? apply_with(WEIR_OP_DIV, &y, made.sum) : result;
    if (result == WEIR_OK) {
        *tensor = y;
    }
undo_sums:
    drop_sums(&made);
    return result;
}

static weir_result log_softmax(weir_tensor *operand, int32_t axis, weir_tensor **tensor)
{
    sums made = {0};
    weir_tensor *y = NULL;
    weir_result result = find_sums(operand, axis, &made);
    if (result != WEIR_OK) {
        goto undo_sums;
    }
    result = apply(WEIR_OP_LOG, &made.sum);
    result = result == WEIR_OK ? weir_tensor_sub(operand, made.most, &y) : result;
    result = result == WEIR_OK ? apply_with(WEIR_OP_SUB, &y, made.sum) : result;
    if (result == WEIR_OK) {
        *tensor = y;
    }
undo_sums:
    drop_sums(&made);
    return result;
}

/* One of the two, with one entry on the tape for all of it. */
typedef weir_result (*along_fn)(weir_tensor *operand, int32_t axis, weir_tensor **tensor);

static weir_result run_along(wr_note *note, along_fn function, weir_tensor *operand,
                             int32_t axis, weir_tensor **tensor)
{
    uint32_t found;
    WR_TRY(check(note->who, operand, tensor));
    WR_TRY(wr_axis_find(note->who, operand->view.shape.rank, axis, &found));
    note->operand_count = 1;
    note->operands = &operand;
    note->attributes.axes = 1u << found;
    wr_tape_pause();
    weir_result result = function(operand, axis, tensor);
    wr_tape_resume();
    return result == WEIR_OK ? wr_tape_note(note, tensor) : result;
}

weir_result weir_tensor_softmax(weir_tensor *operand, int32_t axis, weir_tensor **tensor)
{
    wr_note note = {.who = "weir_tensor_softmax", .rule = &wr_rule_softmax};
    return run_along(&note, softmax, operand, axis, tensor);
}

weir_result weir_tensor_log_softmax(weir_tensor *operand, int32_t axis,
                                    weir_tensor **tensor)
{
    wr_note note = {.who = "weir_tensor_log_softmax", .rule = &wr_rule_log_softmax};
    return run_along(&note, log_softmax, operand, axis, tensor);
}

/* ---- cross entropy ---- */

static weir_result check_targets(const char *who, const weir_tensor *logits,
                                 const weir_tensor *targets)
{
    bool fits = targets != NULL && logits->view.shape.rank == 2 &&
                targets->view.shape.rank == 1 &&
                targets->view.shape.extent[0] == logits->view.shape.extent[0] &&
                targets->storage->dtype == WEIR_DTYPE_I32;
    return fits ? WEIR_OK
                : wr_fail(WEIR_INVALID,
                          "%s: wants logits [rows, classes] and i32 targets [rows]", who);
}

/* The logit of each row's target, [rows, 1]. */
static weir_result pick(weir_tensor *logits, weir_tensor *targets, weir_tensor **picked)
{
    weir_tensor *column = NULL;
    WR_TRY(weir_tensor_reshape(targets, WEIR_SHAPE(targets->view.shape.extent[0], 1),
                               &column));
    weir_result result = weir_tensor_gather(logits, 1, column, picked);
    weir_tensor_drop(column);
    return result;
}

/* Of log(sum) + most - picked, row by row. */
static weir_result finish_loss(sums *made, weir_tensor *picked, weir_tensor **tensor)
{
    WR_TRY(apply(WEIR_OP_LOG, &made->sum));
    WR_TRY(apply_with(WEIR_OP_ADD, &made->sum, made->most));
    WR_TRY(apply_with(WEIR_OP_SUB, &made->sum, picked));
    return weir_tensor_reduce(WEIR_REDUCE_MEAN, made->sum, WEIR_ALL_AXES, false, tensor);
}

static weir_result cross_entropy(weir_tensor *logits, weir_tensor *targets,
                                 weir_tensor **tensor)
{
    sums made = {0};
    weir_tensor *picked = NULL;
    weir_result result = find_sums(logits, 1, &made);
    result = result == WEIR_OK ? pick(logits, targets, &picked) : result;
    result = result == WEIR_OK ? finish_loss(&made, picked, tensor) : result;
    weir_tensor_drop(picked);
    drop_sums(&made);
    return result;
}

weir_result weir_tensor_cross_entropy(weir_tensor *logits, weir_tensor *targets,
                                      weir_tensor **tensor)
{
    weir_tensor *const operands[2] = {logits, targets};
    const wr_note note = {.who = "weir_tensor_cross_entropy",
                          .rule = &wr_rule_cross_entropy,
                          .operand_count = 2,
                          .operands = operands};
    WR_TRY(check(note.who, logits, tensor));
    WR_TRY(check_targets(note.who, logits, targets));
    wr_tape_pause();
    weir_result result = cross_entropy(logits, targets, tensor);
    wr_tape_resume();
    return result == WEIR_OK ? wr_tape_note(&note, tensor) : result;
}

/* ---- others ---- */

weir_result weir_tensor_clamp(weir_tensor *operand, double low, double high,
                              weir_tensor **tensor)
{
    const char *who = "weir_tensor_clamp";
    weir_tensor *raised = NULL;
    if (!(low <= high)) {
        return wr_fail(WEIR_INVALID, "%s: from %g to %g is no range", who, low, high);
    }
    WR_TRY(weir_tensor_max_scalar(operand, low, &raised));
    weir_result result = weir_tensor_min_scalar(raised, high, tensor);
    weir_tensor_drop(raised);
    return result;
}
