/* SPDX-License-Identifier: MIT */
/* Shapes and strides: which elements of a storage a tensor shows. Arithmetic only; no
 * memory, no lock. */
#ifndef WR_TENSOR_VIEW_H
#define WR_TENSOR_VIEW_H

#include <weir/tensor.h>

/* Element (i, j...) lies `offset + i * strides[0] + j * strides[1]...` elements into the
 * storage. Strides and extents past the rank are zero. */
typedef struct wr_view {
    weir_shape shape;
    int64_t strides[WEIR_TENSOR_MAX_RANK];
    int64_t offset;
} wr_view;

/* How many elements a shape has. INVALID if it has none, too many dimensions, or more
 * bytes than a number can say. `who` is the public function that was called, for the
 * error's text. */
weir_result wr_shape_count(const char *who, const weir_shape *shape,
                           uint64_t *element_count);
/* The same of a shape that has been checked. */
uint64_t wr_shape_elements(const weir_shape *shape);

bool wr_shape_equals(const weir_shape *one, const weir_shape *other);

/* "[4096, 4096]" for error texts, cut if it does not fit; returns `text`. */
#define WR_SHAPE_TEXT_BYTES 200
char *wr_shape_format(const weir_shape *shape, char text[WR_SHAPE_TEXT_BYTES]);

/* The shape that two are broadcast to, or INVALID. */
weir_result wr_shape_broadcast(const char *who, const weir_shape *one,
                               const weir_shape *other, weir_shape *shape);

/* Row-major, from the storage's first element on. */
wr_view wr_view_of_shape(const weir_shape *shape);
/* Whether elements lie row-major from the first one on; extents of 1 do not matter. */
bool wr_view_is_plain(const wr_view *view);
/* The same elements seen from a shape that the view's is broadcast to. */
wr_view wr_view_expand(const wr_view *view, const weir_shape *shape);

/* Elements start, start + step... of an axis, `count` of them. */
typedef struct wr_slice {
    uint32_t axis;
    uint64_t start;
    uint64_t count;
    int64_t step;
} wr_slice;

/* INVALID if some of them are not there. */
weir_result wr_view_slice(const char *who, const wr_view *view, const wr_slice *slice,
                          wr_view *part);

/* "axis -1" as a number below `rank`; INVALID if there is none. */
weir_result wr_axis_find(const char *who, uint32_t rank, int32_t axis, uint32_t *found);

#endif
