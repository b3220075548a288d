/* SPDX-License-Identifier: MIT */
/* Elements by index, and parts put together: kernels over a space in which each binding
 * is seen through a view (weir_move_words). */
#include "call.h"
#include "rule.h"
#include "tape.h"

#include "kernel/dtype.h"

#include <inttypes.h>

/* ---- words ---- */

static void set_view(weir_move_view *to, const wr_view *view)
{
    to->offset = view->offset;
    for (uint32_t d = 0; d < view->shape.rank; d++) {
        to->strides[d] = view->strides[d];
    }
}

static void set_space(weir_move_words *words, const weir_shape *shape)
{
    words->element_count = (int64_t)wr_shape_elements(shape);
    words->rank = shape->rank;
    for (uint32_t d = 0; d < WEIR_EXPRESSION_RANK; d++) {
        words->extents[d] = d < shape->rank ? (int64_t)shape->extent[d] : 1;
    }
}

static void move_dimension(weir_move_words *words, uint32_t to, uint32_t from)
{
    words->extents[to] = words->extents[from];
    for (uint32_t v = 0; v < 3; v++) {
        words->views[v].strides[to] = words->views[v].strides[from];
    }
}

/* Whether for every view a step along `outer` is a whole run along `inner`. */
static bool run_together(const weir_move_words *words, uint32_t outer, uint32_t inner)
{
    bool together = true;
    for (uint32_t v = 0; v < 3; v++) {
        const int64_t *strides = words->views[v].strides;
        together &= strides[outer] == strides[inner] * words->extents[inner];
    }
    return together;
}

/* From dimension `first` on, leaves out those of one element and joins those that run
 * together. */
static void collapse(weir_move_words *words, uint32_t first)
{
    uint32_t rank = first;
    for (uint32_t d = first; d < (uint32_t)words->rank; d++) {
        int64_t extent = words->extents[d];
        if (extent > 1 && rank > first && run_together(words, rank - 1, d)) {
            extent *= words->extents[rank - 1];
            move_dimension(words, rank - 1, d);
            words->extents[rank - 1] = extent;
        } else if (extent > 1) {
            move_dimension(words, rank++, d);
        }
    }
    for (uint32_t d = rank; d < WEIR_EXPRESSION_RANK; d++) {
        words->extents[d] = 1;
        for (uint32_t v = 0; v < 3; v++) {
            words->views[v].strides[d] = 0;
        }
    }
    words->rank = rank > 0 ? rank : 1;
}

/* The dimension becomes number 0. */
static void bring_forward(weir_move_words *words, uint32_t axis)
{
    int64_t extent = words->extents[axis];
    int64_t strides[3];
    for (uint32_t v = 0; v < 3; v++) {
        strides[v] = words->views[v].strides[axis];
    }
    for (uint32_t d = axis; d > 0; d--) {
        move_dimension(words, d, d - 1);
    }
    words->extents[0] = extent;
    for (uint32_t v = 0; v < 3; v++) {
        words->views[v].strides[0] = strides[v];
    }
}

/* ---- checks ---- */

static weir_result check_there(const char *who, const weir_tensor *operand,
                               const char *what)
{
    return operand != NULL ? WEIR_OK
                           : wr_fail(WEIR_INVALID, "%s: the %s is NULL", who, what);
}

static weir_result check_indices(const char *who, const weir_tensor *operand,
                                 const weir_tensor *indices)
{
    WR_TRY(check_there(who, operand, "operand"));
    WR_TRY(check_there(who, indices, "tensor of indices"));
    return indices->storage->dtype == WEIR_DTYPE_I32
               ? WEIR_OK
               : wr_fail(WEIR_INVALID, "%s: the indices are %s, not i32", who,
                         wr_dtype_name(indices->storage->dtype));
}

static weir_result refuse_shapes(const char *who, const weir_tensor *operand,
                                 const weir_tensor *other, const char *what)
{
    char texts[2][WR_SHAPE_TEXT_BYTES];
    return wr_fail(WEIR_INVALID, "%s: the operand is %s and the %s %s", who,
                   wr_shape_format(&operand->view.shape, texts[0]), what,
                   wr_shape_format(&other->view.shape, texts[1]));
}

/* Same rank, and no extent off the axis larger than the operand's. */
static bool lies_within(const weir_tensor *operand, const weir_shape *shape,
                        uint32_t axis)
{
    bool within = operand->view.shape.rank == shape->rank;
    for (uint32_t d = 0; within && d < shape->rank; d++) {
        within = d == axis || shape->extent[d] <= operand->view.shape.extent[d];
    }
    return within;
}

/* ---- by index ---- */

/* The operand through which the index steps, in view 0; the indices in view 1. */
static void set_indexed(wr_named *named, const wr_view *operand, const wr_view *indices)
{
    weir_move_words *words = &named->words.move;
    words->index_count = (int64_t)operand->shape.extent[named->axis];
    words->index_stride = operand->strides[named->axis];
    set_view(&words->views[0], operand);
    words->views[0].strides[named->axis] = 0;
    words->views[1].offset = indices->offset;
    if (indices->shape.rank == 1) {
        words->views[1].strides[named->axis] = indices->strides[0];
    } else {
        set_view(&words->views[1], indices);
    }
}

static weir_result record_gather(wr_call *call, wr_named *named, weir_tensor **tensor)
{
    wr_view result = wr_view_of_shape(&call->shape);
    set_indexed(named, &call->operands[0]->view, &call->operands[1]->view);
    set_space(&named->words.move, &call->shape);
    set_view(&named->words.move.views[2], &result);
    collapse(&named->words.move, 0);
    named->kind = WEIR_KERNEL_GATHER;
    named->dtype = call->dtype = call->operands[0]->storage->dtype;
    named->word_bytes = sizeof named->words.move;
    named->element_count = (uint64_t)named->words.move.element_count;
    call->named = named;
    return wr_call_record(call, NULL, tensor);
}

weir_result weir_tensor_index_select(weir_tensor *operand, int32_t axis,
                                     weir_tensor *indices, weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_index_select",
                    .operand_count = 2,
                    .operands = {operand, indices}};
    wr_named named = {0};
    WR_TRY(check_indices(call.who, operand, indices));
    WR_TRY(wr_axis_find(call.who, operand->view.shape.rank, axis, &named.axis));
    if (indices->view.shape.rank != 1) {
        return refuse_shapes(call.who, operand, indices,
                             "indices, not of one dimension,");
    }
    call.shape = operand->view.shape;
    call.shape.extent[named.axis] = indices->view.shape.extent[0];
    return record_gather(&call, &named, tensor);
}

weir_result weir_tensor_gather(weir_tensor *operand, int32_t axis, weir_tensor *indices,
                               weir_tensor **tensor)
{
    wr_call call = {
        .who = "weir_tensor_gather", .operand_count = 2, .operands = {operand, indices}};
    wr_named named = {0};
    WR_TRY(check_indices(call.who, operand, indices));
    WR_TRY(wr_axis_find(call.who, operand->view.shape.rank, axis, &named.axis));
    call.shape = indices->view.shape;
    if (!lies_within(operand, &call.shape, named.axis)) {
        return refuse_shapes(call.who, operand, indices, "indices");
    }
    return record_gather(&call, &named, tensor);
}

/* ---- onto what is there ---- */

/* Operand 0 in its own storage from the first element on, as the result will be: itself
 * or a copy, which the caller drops. */
static weir_result prepare_target(const char *who, weir_tensor *operand,
                                  weir_tensor **target)
{
    if (wr_tensor_is_plain(operand)) {
        *target = weir_tensor_clone(operand);
        return WEIR_OK;
    }
    return wr_call_copy(who, operand, &operand->view.shape, target);
}

static weir_result check_source(const char *who, const weir_tensor *operand,
                                const weir_tensor *source, const char *what)
{
    weir_dtype dtype = operand->storage->dtype;
    WR_TRY(check_there(who, source, what));
    return source->storage->dtype == dtype
               ? WEIR_OK
               : wr_fail(WEIR_INVALID, "%s: the operand is %s and the %s %s; cast one",
                         who, wr_dtype_name(dtype), what,
                         wr_dtype_name(source->storage->dtype));
}

/* Whether the source has the shape of what would be read. */
static bool fits(const weir_tensor *operand, const weir_tensor *indices,
                 const weir_tensor *source, uint32_t axis)
{
    weir_shape expected = indices->view.shape;
    if (expected.rank == 1) {
        expected = operand->view.shape;
        expected.extent[axis] = indices->view.shape.extent[0];
    }
    return wr_shape_equals(&expected, &source->view.shape) &&
           lies_within(operand, &expected, axis);
}

static weir_result record_scatter_add(wr_call *call, wr_named *named,
                                      weir_tensor **tensor)
{
    weir_move_words *words = &named->words.move;
    wr_view target = wr_view_of_shape(&call->shape);
    set_indexed(named, &target, &call->operands[1]->view);
    set_space(words, &call->operands[2]->view.shape);
    set_view(&words->views[2], &call->operands[2]->view);
    bring_forward(words, named->axis);
    collapse(words, 1);
    named->kind = WEIR_KERNEL_SCATTER_ADD;
    named->dtype = call->dtype;
    named->result_first = true;
    named->has_target = true;
    named->word_bytes = sizeof *words;
    named->element_count = (uint64_t)(words->element_count / words->extents[0]);
    named->element_work = (uint64_t)words->extents[0];
    call->named = named;
    return wr_call_record(call, NULL, tensor);
}

weir_result weir_tensor_scatter_add(weir_tensor *operand, int32_t axis,
                                    weir_tensor *indices, weir_tensor *source,
                                    weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_scatter_add",
                    .operand_count = 3,
                    .operands = {operand, indices, source}};
    wr_named named = {0};
    WR_TRY(check_indices(call.who, operand, indices));
    WR_TRY(check_source(call.who, operand, source, "source"));
    WR_TRY(wr_axis_find(call.who, operand->view.shape.rank, axis, &named.axis));
    if (!fits(operand, indices, source, named.axis)) {
        return refuse_shapes(call.who, operand, source,
                             "source, which is not what the indices would read,");
    }
    call.dtype = operand->storage->dtype;
    call.shape = operand->view.shape;
    if (call.dtype == WEIR_DTYPE_BOOL) {
        return wr_fail(WEIR_INVALID, "%s: not of bool; cast the operand", call.who);
    }
    WR_TRY(prepare_target(call.who, operand, &call.operands[0]));
    weir_result result = record_scatter_add(&call, &named, tensor);
    weir_tensor_drop(call.operands[0]);
    return result;
}

/* ---- parts ---- */

/* The part is the last operand; the one before, if there is one, is the target. */
static weir_result record_place(wr_call *call, const wr_slice *slice,
                                weir_tensor **tensor)
{
    const weir_tensor *part = call->operands[call->operand_count - 1];
    wr_named named = {.kind = WEIR_KERNEL_PLACE,
                      .dtype = call->dtype,
                      .result_first = true,
                      .has_target = call->operand_count == 2,
                      .axis = slice->axis,
                      .start = slice->start,
                      .step = slice->step,
                      .word_bytes = sizeof named.words.move};
    wr_view whole = wr_view_of_shape(&call->shape);
    wr_view place;
    WR_TRY(wr_view_slice(call->who, &whole, slice, &place));
    set_view(&named.words.move.views[0], &place);
    set_view(&named.words.move.views[1], &part->view);
    set_space(&named.words.move, &part->view.shape);
    collapse(&named.words.move, 0);
    named.element_count = (uint64_t)named.words.move.element_count;
    call->named = &named;
    return wr_call_record(call, NULL, tensor);
}

static bool differs_off_axis(const weir_shape *one, const weir_shape *other,
                             uint32_t axis)
{
    bool differs = one->rank != other->rank;
    for (uint32_t d = 0; !differs && d < one->rank; d++) {
        differs = d != axis && one->extent[d] != other->extent[d];
    }
    return differs;
}

weir_result weir_tensor_place(weir_tensor *operand, int32_t axis, uint64_t start,
                              int64_t step, weir_tensor *part, weir_tensor **tensor)
{
    wr_call call = {
        .who = "weir_tensor_place", .operand_count = 2, .operands = {operand, part}};
    wr_slice slice = {.start = start, .step = step};
    WR_TRY(check_there(call.who, operand, "operand"));
    WR_TRY(check_source(call.who, operand, part, "part"));
    WR_TRY(wr_axis_find(call.who, operand->view.shape.rank, axis, &slice.axis));
    if (differs_off_axis(&operand->view.shape, &part->view.shape, slice.axis)) {
        return refuse_shapes(call.who, operand, part, "part");
    }
    slice.count = part->view.shape.extent[slice.axis];
    call.dtype = operand->storage->dtype;
    call.shape = operand->view.shape;
    wr_view place;
    WR_TRY(wr_view_slice(call.who, &operand->view, &slice, &place));
    WR_TRY(prepare_target(call.who, operand, &call.operands[0]));
    weir_result result = record_place(&call, &slice, tensor);
    weir_tensor_drop(call.operands[0]);
    return result;
}

/* ---- one after the other ---- */

/* The result's shape and dtype, in the call. */
static weir_result check_parts(wr_call *call, weir_tensor *const *operands,
                               uint32_t count, wr_slice *slice)
{
    uint64_t total = 0;
    for (uint32_t k = 0; k < count; k++) {
        WR_TRY(check_source(call->who, operands[0], operands[k], "next part"));
        if (differs_off_axis(&operands[0]->view.shape, &operands[k]->view.shape,
                             slice->axis)) {
            return refuse_shapes(call->who, operands[0], operands[k], "next part");
        }
        uint64_t extent = operands[k]->view.shape.extent[slice->axis];
        total = total + extent < total ? UINT64_MAX : total + extent;
    }
    call->shape = operands[0]->view.shape;
    call->shape.extent[slice->axis] = total;
    call->dtype = operands[0]->storage->dtype;
    return WEIR_OK;
}

/* The first part makes the result, the others are put into it in place. */
static weir_result join(wr_call *call, weir_tensor *const *operands, uint32_t count,
                        wr_slice *slice, weir_tensor **tensor)
{
    weir_tensor *joined = NULL;
    for (uint32_t k = 0; k < count; k++) {
        weir_tensor *next = NULL;
        call->operands[0] = joined;
        call->operands[joined != NULL] = operands[k];
        call->operand_count = joined != NULL ? 2 : 1;
        slice->count = operands[k]->view.shape.extent[slice->axis];
        weir_result result = record_place(call, slice, &next);
        weir_tensor_drop(joined);
        if (result != WEIR_OK) {
            return result;
        }
        joined = next;
        slice->start += slice->count;
    }
    *tensor = joined;
    return WEIR_OK;
}

weir_result weir_tensor_concat(weir_tensor *const *operands, uint32_t count, int32_t axis,
                               weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_concat"};
    wr_slice slice = {.step = 1};
    uint64_t elements;
    if (operands == NULL || count == 0 || tensor == NULL) {
        return wr_fail(WEIR_INVALID, "%s: no operands, or no place for the result",
                       call.who);
    }
    WR_TRY(check_there(call.who, operands[0], "first operand"));
    WR_TRY(wr_axis_find(call.who, operands[0]->view.shape.rank, axis, &slice.axis));
    WR_TRY(check_parts(&call, operands, count, &slice));
    WR_TRY(wr_shape_count(call.who, &call.shape, &elements));
    wr_tape_pause();
    weir_result result = join(&call, operands, count, &slice, tensor);
    wr_tape_resume();
    return result == WEIR_OK
               ? wr_tape_note(&(wr_note){.who = call.who,
                                         .rule = &wr_rule_concat,
                                         .operand_count = count,
                                         .operands = operands,
                                         .attributes = {.axis = slice.axis}},
                              tensor)
               : result;
}
