/* SPDX-License-Identifier: MIT */
/* Tensors as text for people. Of a long dimension only the ends are computed and read:
 *
 *     [[0, 1, 2, ..., 997, 998, 999],
 *      [1, 2, 3, ..., 998, 999, 1000]]
 *     tensor [2, 1000] f32 on host */
#include "call.h"

#include "kernel/dtype.h"
#include "kernel/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_ELEMENTS 1000u /* so many are shown, all of them */
#define END_ELEMENTS 3u      /* at either end of a dimension that is cut */
#define CELL_BYTES 32

typedef struct page {
    weir_write_fn write;
    void *context;
    weir_dtype dtype;
    weir_shape shape;                  /* of what is shown */
    bool is_cut[WEIR_TENSOR_MAX_RANK]; /* the dimension's middle is left out */
    const void *values;                /* int32_t for i32, else float */
    int width;                         /* of the widest element */
} page;

/* ---- what is shown ---- */

/* The ends of an axis, in a tensor of their own. */
static weir_result cut_axis(weir_tensor *tensor, uint32_t axis, weir_tensor **ends)
{
    int32_t numbers[2 * END_ELEMENTS];
    weir_tensor *indices = NULL;
    int32_t extent = (int32_t)tensor->view.shape.extent[axis];
    for (int32_t i = 0; i < (int32_t)END_ELEMENTS; i++) {
        numbers[i] = i;
        numbers[i + (int32_t)END_ELEMENTS] = extent - (int32_t)END_ELEMENTS + i;
    }
    WR_TRY(weir_tensor_from_data(weir_tensor_stream(tensor), WEIR_SHAPE(2 * END_ELEMENTS),
                                 WEIR_DTYPE_I32, numbers, &indices));
    weir_result result = weir_tensor_index_select(tensor, (int32_t)axis, indices, ends);
    weir_tensor_drop(indices);
    return result;
}

static bool is_long(uint64_t extent)
{
    return extent > 2 * (uint64_t)END_ELEMENTS && extent <= INT32_MAX;
}

/* The tensor or, if it is large, the ends of its long dimensions; the caller drops it. */
static weir_result cut(weir_tensor *tensor, page *to, weir_tensor **shown)
{
    weir_tensor *left = weir_tensor_clone(tensor);
    bool is_large = wr_shape_elements(&tensor->view.shape) > WHOLE_ELEMENTS;
    for (uint32_t d = 0; is_large && d < tensor->view.shape.rank; d++) {
        to->is_cut[d] = is_long(tensor->view.shape.extent[d]);
        if (to->is_cut[d]) {
            weir_tensor *ends = NULL;
            weir_result result = cut_axis(left, d, &ends);
            weir_tensor_drop(left);
            if (result != WEIR_OK) {
                return result;
            }
            left = ends;
        }
    }
    *shown = left;
    return WEIR_OK;
}

/* ---- elements ---- */

static int format_element(const page *from, uint64_t element, char text[CELL_BYTES])
{
    const int32_t *integers = from->values;
    const float *floats = from->values;
    switch (from->dtype) {
    case WEIR_DTYPE_I32:
        return snprintf(text, CELL_BYTES, "%" PRId32, integers[element]);
    case WEIR_DTYPE_BOOL:
        return snprintf(text, CELL_BYTES, "%s", floats[element] != 0 ? "true" : "false");
    default:
        return snprintf(text, CELL_BYTES, "%.6g", (double)floats[element]);
    }
}

static void find_width(page *to)
{
    char text[CELL_BYTES];
    uint64_t count = wr_shape_elements(&to->shape);
    for (uint64_t i = 0; i < count; i++) {
        int width = format_element(to, i, text);
        to->width = width > to->width ? width : to->width;
    }
}

static weir_result write_text(const page *to, const char *text)
{
    return to->write(to->context, text, strlen(text));
}

static weir_result write_element(const page *to, uint64_t element)
{
    char text[CELL_BYTES];
    char padded[2 * CELL_BYTES];
    format_element(to, element, text);
    snprintf(padded, sizeof padded, "%*s", to->width, text);
    return write_text(to, padded);
}

/* ---- dimensions ---- */

static weir_result write_dimension(const page *to, uint32_t d, uint64_t first);

/* What is between two neighbours: a comma and, in front of rows, a new line; where one
 * row's dimensions end more of them. */
static weir_result write_gap(const page *to, uint32_t d)
{
    if (d + 1 == to->shape.rank) {
        return write_text(to, ", ");
    }
    WR_TRY(write_text(to, ","));
    for (uint32_t inner = d + 1; inner < to->shape.rank; inner++) {
        WR_TRY(write_text(to, "\n"));
    }
    for (uint32_t outer = 0; outer <= d; outer++) {
        WR_TRY(write_text(to, " "));
    }
    return WEIR_OK;
}

static weir_result write_item(const page *to, uint32_t d, uint64_t first)
{
    return d + 1 == to->shape.rank ? write_element(to, first)
                                   : write_dimension(to, d + 1, first);
}

static weir_result write_dimension(const page *to, uint32_t d, uint64_t first)
{
    uint64_t step = 1;
    for (uint32_t inner = d + 1; inner < to->shape.rank; inner++) {
        step *= to->shape.extent[inner];
    }
    WR_TRY(write_text(to, "["));
    for (uint64_t i = 0; i < to->shape.extent[d]; i++) {
        if (i > 0) {
            WR_TRY(write_gap(to, d));
        }
        if (i == END_ELEMENTS && to->is_cut[d]) {
            WR_TRY(write_text(to, "..."));
            WR_TRY(write_gap(to, d));
        }
        WR_TRY(write_item(to, d, first + i * step));
    }
    return write_text(to, "]");
}

/* ---- all of it ---- */

static weir_result write_page(page *to, weir_tensor *tensor)
{
    char shape[WR_SHAPE_TEXT_BYTES];
    char line[WR_SHAPE_TEXT_BYTES + 80];
    find_width(to);
    WR_TRY(to->shape.rank == 0 ? write_element(to, 0) : write_dimension(to, 0, 0));
    snprintf(line, sizeof line, "\ntensor %s %s on %s\n",
             wr_shape_format(&tensor->view.shape, shape), wr_dtype_name(to->dtype),
             weir_device_name(weir_stream_device(weir_tensor_stream(tensor))));
    return write_text(to, line);
}

static weir_result read_and_write(page *to, weir_tensor *shown, weir_tensor *tensor)
{
    to->shape = shown->view.shape;
    uint64_t count = wr_shape_elements(&to->shape);
    void *values = wr_memory_alloc(count * sizeof(float));
    if (values == NULL) {
        return wr_fail(WEIR_OUT_OF_HOST_MEMORY,
                       "weir_tensor_format: no host memory for %" PRIu64 " elements",
                       count);
    }
    to->values = values;
    weir_result result = to->dtype == WEIR_DTYPE_I32
                             ? weir_tensor_read(shown, values, count * sizeof(int32_t))
                             : weir_tensor_into_data(shown, values, count);
    result = result == WEIR_OK ? write_page(to, tensor) : result;
    wr_memory_free(values);
    return result;
}

weir_result weir_tensor_format(weir_tensor *tensor, weir_write_fn write, void *context)
{
    page to = {.write = write, .context = context};
    weir_tensor *shown = NULL;
    if (tensor == NULL || write == NULL) {
        return wr_fail(WEIR_INVALID, "weir_tensor_format: the %s is NULL",
                       tensor == NULL ? "tensor" : "writer");
    }
    if (weir_tensor_stream(tensor) == NULL) {
        return wr_fail(WEIR_STALE,
                       "weir_tensor_format: the tensor's device has been closed");
    }
    to.dtype = tensor->storage->dtype;
    WR_TRY(cut(tensor, &to, &shown));
    weir_result result = read_and_write(&to, shown, tensor);
    weir_tensor_drop(shown);
    return result;
}
