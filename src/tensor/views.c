/* SPDX-License-Identifier: MIT */
/* Tensors that show another one's elements. Nothing is recorded: a view is arithmetic on
 * strides, of elements that are there or still to be computed. */
#include "call.h"

#include "rule.h"
#include "tape.h"

#include <inttypes.h>

static weir_result check(const char *who, const weir_tensor *operand,
                         weir_tensor *const *tensor)
{
    if (operand == NULL || tensor == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the %s is NULL", who,
                       operand == NULL ? "operand" : "place for the result");
    }
    return WEIR_OK;
}

/* Another view of the operand's storage, on the tape by the rule. */
static weir_result make_view(const wr_note *note, weir_tensor *operand,
                             const wr_view *view, weir_tensor **tensor)
{
    wr_note what = *note;
    weir_tensor *fresh;
    what.operand_count = 1;
    what.operands = &operand;
    WR_TRY(wr_tensor_create(note->who, operand->storage, view, &fresh));
    WR_TRY(wr_tape_note(&what, &fresh));
    *tensor = fresh;
    return WEIR_OK;
}

/* ---- reshape ---- */

/* Row-major from some element on, which is all that a new shape needs. */
static bool is_row_major(const wr_view *view)
{
    wr_view moved = *view;
    moved.offset = 0;
    return wr_view_is_plain(&moved);
}

weir_result weir_tensor_reshape(weir_tensor *operand, weir_shape shape,
                                weir_tensor **tensor)
{
    const char *who = "weir_tensor_reshape";
    uint64_t count;
    WR_TRY(check(who, operand, tensor));
    WR_TRY(wr_shape_count(who, &shape, &count));
    if (count != wr_shape_elements(&operand->view.shape)) {
        char texts[2][WR_SHAPE_TEXT_BYTES];
        return wr_fail(WEIR_INVALID,
                       "%s: shapes %s and %s have different numbers of elements", who,
                       wr_shape_format(&operand->view.shape, texts[0]),
                       wr_shape_format(&shape, texts[1]));
    }
    weir_tensor *source = operand;
    if (is_row_major(&operand->view)) {
        weir_tensor_clone(source);
    } else {
        WR_TRY(wr_call_copy(who, operand, &operand->view.shape, &source));
    }
    wr_view view = wr_view_of_shape(&shape);
    view.offset = source->view.offset;
    weir_result result = make_view(&(wr_note){.who = who, .rule = &wr_rule_reshape},
                                   source, &view, tensor);
    weir_tensor_drop(source);
    return result;
}

/* ---- the order of dimensions ---- */

weir_result weir_tensor_permute(weir_tensor *operand, const uint32_t *axes,
                                weir_tensor **tensor)
{
    const char *who = "weir_tensor_permute";
    WR_TRY(check(who, operand, tensor));
    uint32_t rank = operand->view.shape.rank;
    wr_note note = {.who = who, .rule = &wr_rule_permute};
    wr_view view = {.shape = {.rank = rank}, .offset = operand->view.offset};
    uint32_t seen = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (axes == NULL || axes[d] >= rank || (seen >> axes[d] & 1) != 0) {
            return wr_fail(WEIR_INVALID,
                           "%s: the axes are not the numbers below %" PRIu32
                           ", each once",
                           who, rank);
        }
        seen |= 1u << axes[d];
        note.attributes.order[d] = axes[d];
        view.shape.extent[d] = operand->view.shape.extent[axes[d]];
        view.strides[d] = operand->view.strides[axes[d]];
    }
    return make_view(&note, operand, &view, tensor);
}

weir_result weir_tensor_transpose(weir_tensor *operand, int32_t one, int32_t other,
                                  weir_tensor **tensor)
{
    const char *who = "weir_tensor_transpose";
    uint32_t left;
    uint32_t right;
    WR_TRY(check(who, operand, tensor));
    WR_TRY(wr_axis_find(who, operand->view.shape.rank, one, &left));
    WR_TRY(wr_axis_find(who, operand->view.shape.rank, other, &right));
    uint32_t axes[WEIR_TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < operand->view.shape.rank; d++) {
        axes[d] = d == left ? right : d == right ? left : d;
    }
    return weir_tensor_permute(operand, axes, tensor);
}

/* ---- parts and repetitions ---- */

weir_result weir_tensor_slice(weir_tensor *operand, int32_t axis, uint64_t start,
                              uint64_t count, int64_t step, weir_tensor **tensor)
{
    const char *who = "weir_tensor_slice";
    wr_slice slice = {.start = start, .count = count, .step = step};
    wr_view view;
    WR_TRY(check(who, operand, tensor));
    WR_TRY(wr_axis_find(who, operand->view.shape.rank, axis, &slice.axis));
    WR_TRY(wr_view_slice(who, &operand->view, &slice, &view));
    const wr_note note = {
        .who = who,
        .rule = &wr_rule_slice,
        .attributes = {.axis = slice.axis, .start = start, .step = step},
    };
    return make_view(&note, operand, &view, tensor);
}

weir_result weir_tensor_expand(weir_tensor *operand, weir_shape shape,
                               weir_tensor **tensor)
{
    const char *who = "weir_tensor_expand";
    uint64_t count;
    weir_shape both;
    WR_TRY(check(who, operand, tensor));
    WR_TRY(wr_shape_count(who, &shape, &count));
    WR_TRY(wr_shape_broadcast(who, &operand->view.shape, &shape, &both));
    if (!wr_shape_equals(&both, &shape)) {
        char texts[2][WR_SHAPE_TEXT_BYTES];
        return wr_fail(WEIR_INVALID, "%s: shape %s cannot be broadcast to %s", who,
                       wr_shape_format(&operand->view.shape, texts[0]),
                       wr_shape_format(&shape, texts[1]));
    }
    wr_view view = wr_view_expand(&operand->view, &both);
    return make_view(&(wr_note){.who = who, .rule = &wr_rule_expand}, operand, &view,
                     tensor);
}
