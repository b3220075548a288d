/* SPDX-License-Identifier: MIT */
#include "view.h"

#include "error.h"

#include <inttypes.h>

wr_view wr_view_of_shape(const weir_shape *shape)
{
    wr_view view = {.shape = {.rank = shape->rank}};
    int64_t stride = 1;
    for (uint32_t d = shape->rank; d-- > 0;) {
        view.shape.extent[d] = shape->extent[d];
        view.strides[d] = stride;
        stride *= (int64_t)shape->extent[d];
    }
    return view;
}

bool wr_view_is_plain(const wr_view *view)
{
    int64_t stride = 1;
    bool plain = view->offset == 0;
    for (uint32_t d = view->shape.rank; plain && d-- > 0;) {
        plain = view->shape.extent[d] == 1 || view->strides[d] == stride;
        stride *= (int64_t)view->shape.extent[d];
    }
    return plain;
}

wr_view wr_view_expand(const wr_view *view, const weir_shape *shape)
{
    wr_view expanded = {.shape = *shape, .offset = view->offset};
    uint32_t added = shape->rank - view->shape.rank;
    for (uint32_t d = 0; d < view->shape.rank; d++) {
        bool is_repeated = view->shape.extent[d] == 1 && shape->extent[added + d] != 1;
        expanded.strides[added + d] = is_repeated ? 0 : view->strides[d];
    }
    return expanded;
}

weir_result wr_axis_find(const char *who, uint32_t rank, int32_t axis, uint32_t *found)
{
    int64_t number = axis < 0 ? (int64_t)axis + rank : axis;
    if (number < 0 || number >= rank) {
        return wr_fail(WEIR_INVALID,
                       "%s: axis %" PRId32 " of a tensor with %" PRIu32 " dimensions",
                       who, axis, rank);
    }
    *found = (uint32_t)number;
    return WEIR_OK;
}
