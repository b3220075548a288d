/* SPDX-License-Identifier: MIT */
/* Matrix products. Kernels want each operand row- or column-major with one stride from
 * product to product; transposed, sliced and broadcast operands mostly are that as they
 * lie, and the others are copied. */
#include "call.h"

#include "kernel/dtype.h"
#include "kernel/matmul.h"

#include <inttypes.h>

/* ---- operands ---- */

/* One stride for all dimensions before the last two, if there is one. */
static bool find_batch_stride(const wr_view *view, int64_t *stride)
{
    int64_t inner = 0;  /* the stride of the dimension behind... */
    int64_t extent = 0; /* ...and its extent; 0: there is none */
    *stride = 0;
    for (uint32_t d = view->shape.rank - 2; d-- > 0;) {
        if (view->shape.extent[d] == 1) {
            continue;
        }
        if (extent != 0 && view->strides[d] != inner * extent) {
            return false;
        }
        *stride = extent == 0 ? view->strides[d] : *stride;
        inner = view->strides[d];
        extent = (int64_t)view->shape.extent[d];
    }
    return true;
}

/* How a kernel gets at the matrices, or false if it cannot. */
static bool describe(const wr_view *view, weir_matmul_operand *operand)
{
    uint32_t rank = view->shape.rank;
    int64_t rows = (int64_t)view->shape.extent[rank - 2];
    int64_t columns = (int64_t)view->shape.extent[rank - 1];
    int64_t row_stride = view->strides[rank - 2];
    int64_t column_stride = columns == 1 ? 1 : view->strides[rank - 1];
    if (rows == 1) {
        row_stride = column_stride == 1 ? columns : 1;
    }
    operand->offset = view->offset;
    operand->row_stride = row_stride;
    operand->column_stride = column_stride;
    bool is_row_major = column_stride == 1 && row_stride >= columns;
    bool is_column_major = row_stride == 1 && column_stride >= rows;
    return (is_row_major || is_column_major) && row_stride <= INT32_MAX &&
           column_stride <= INT32_MAX && find_batch_stride(view, &operand->batch_stride);
}

/* The operand itself, or a copy that can be described; the caller drops it. */
static weir_result prepare(const wr_call *call, weir_tensor *operand,
                           weir_matmul_operand *words, weir_tensor **prepared)
{
    weir_shape full = call->shape;
    full.extent[full.rank - 2] = operand->view.shape.extent[operand->view.shape.rank - 2];
    full.extent[full.rank - 1] = operand->view.shape.extent[operand->view.shape.rank - 1];
    wr_view view = wr_view_expand(&operand->view, &full);
    if (describe(&view, words)) {
        *prepared = weir_tensor_clone(operand);
        return WEIR_OK;
    }
    /* Broadcasting may be what cannot be said in one stride. */
    wr_view plain = wr_view_of_shape(&operand->view.shape);
    view = wr_view_expand(&plain, &full);
    bool is_enough = describe(&view, words);
    if (!is_enough) {
        view = wr_view_of_shape(&full);
        describe(&view, words);
    }
    return wr_call_copy(call->who, operand, is_enough ? &plain.shape : &full, prepared);
}

/* ---- checks ---- */

static weir_result refuse_shapes(const wr_call *call)
{
    char texts[2][WR_SHAPE_TEXT_BYTES];
    return wr_fail(WEIR_INVALID,
                   "%s: shapes %s and %s; the last two dimensions must be [m, k] and "
                   "[k, n], none over %d",
                   call->who, wr_shape_format(&call->operands[0]->view.shape, texts[0]),
                   wr_shape_format(&call->operands[1]->view.shape, texts[1]), INT32_MAX);
}

static weir_result check_operands(const wr_call *call)
{
    const weir_tensor *left = call->operands[0];
    const weir_tensor *right = call->operands[1];
    if (left == NULL || right == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the %s operand is NULL", call->who,
                       left == NULL ? "left" : "right");
    }
    weir_dtype dtype = left->storage->dtype;
    if (dtype != right->storage->dtype || !wr_dtype_is_float(dtype)) {
        return wr_fail(WEIR_INVALID,
                       "%s: operands are %s and %s; both must be floats of one dtype",
                       call->who, wr_dtype_name(dtype),
                       wr_dtype_name(right->storage->dtype));
    }
    return WEIR_OK;
}

/* The result's shape, in `call->shape`. */
static weir_result find_shape(wr_call *call, weir_matmul_words *words)
{
    weir_shape left = call->operands[0]->view.shape;
    weir_shape right = call->operands[1]->view.shape;
    if (left.rank < 2 || right.rank < 2 ||
        left.extent[left.rank - 1] != right.extent[right.rank - 2]) {
        return refuse_shapes(call);
    }
    uint64_t rows = left.extent[left.rank - 2];
    uint64_t columns = right.extent[right.rank - 1];
    uint64_t inner = left.extent[left.rank - 1];
    if (rows > INT32_MAX || columns > INT32_MAX || inner > INT32_MAX) {
        return refuse_shapes(call);
    }
    *words = (weir_matmul_words){
        .rows = (int64_t)rows, .columns = (int64_t)columns, .inner = (int64_t)inner};
    /* The matrices themselves are not broadcast. */
    left.extent[left.rank - 2] = right.extent[right.rank - 2] = rows;
    left.extent[left.rank - 1] = right.extent[right.rank - 1] = columns;
    return wr_shape_broadcast(call->who, &left, &right, &call->shape);
}

/* ---- the product ---- */

/* Products with one right operand and left ones that follow each other are one product.
 */
static void join_batch(weir_matmul_words *words)
{
    int64_t rows = words->batch_count * words->rows;
    bool follows = words->left.column_stride == 1 &&
                   words->left.batch_stride == words->rows * words->left.row_stride;
    if (words->batch_count > 1 && words->right.batch_stride == 0 && follows &&
        rows <= INT32_MAX) {
        words->batch_count = 1;
        words->rows = rows;
        words->left.batch_stride = 0;
    }
}

static weir_result record(wr_call *call, const weir_matmul_words *words,
                          weir_tensor **tensor)
{
    wr_named named = {.kind = WEIR_KERNEL_MATMUL,
                      .dtype = call->dtype,
                      .word_bytes = sizeof *words,
                      .words = {.matmul = *words}};
    named.words.matmul.batch_count = (int64_t)(wr_shape_elements(&call->shape) /
                                               (uint64_t)(words->rows * words->columns));
    join_batch(&named.words.matmul);
    named.element_count = wr_matmul_elements(&named.words.matmul, named.dtype);
    named.element_work = (uint64_t)(words->columns * words->inner);
    call->named = &named;
    return wr_call_record(call, NULL, tensor);
}

weir_result weir_tensor_matmul(weir_tensor *left, weir_tensor *right,
                               weir_tensor **tensor)
{
    wr_call call = {
        .who = "weir_tensor_matmul", .operand_count = 2, .operands = {left, right}};
    weir_matmul_words words;
    uint64_t count;
    WR_TRY(check_operands(&call));
    WR_TRY(find_shape(&call, &words));
    WR_TRY(wr_shape_count(call.who, &call.shape, &count));
    call.dtype = left->storage->dtype;
    WR_TRY(prepare(&call, left, &words.left, &call.operands[0]));
    weir_result result = prepare(&call, right, &words.right, &call.operands[1]);
    if (result != WEIR_OK) {
        goto undo_left;
    }
    result = record(&call, &words, tensor);
    weir_tensor_drop(call.operands[1]);
undo_left:
    weir_tensor_drop(call.operands[0]);
    return result;
}
