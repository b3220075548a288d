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

/* Whether start, start + step... are below `extent`, `count` times. */
static bool is_within(uint64_t extent, const wr_slice *slice)
{
    if (slice->count == 0 || slice->start >= extent || slice->step == 0) {
        return false;
    }
    uint64_t stride = slice->step > 0 ? (uint64_t)slice->step : 0 - (uint64_t)slice->step;
    uint64_t room = slice->step > 0 ? extent - 1 - slice->start : slice->start;
    return slice->count - 1 <= room / stride;
}

weir_result wr_view_slice(const char *who, const wr_view *view, const wr_slice *slice,
                          wr_view *part)
{
    uint32_t d = slice->axis;
    if (!is_within(view->shape.extent[d], slice)) {
        return wr_fail(WEIR_INVALID,
                       "%s: %" PRIu64 " elements from %" PRIu64 " on, every %" PRId64
                       "th, of an axis of %" PRIu64,
                       who, slice->count, slice->start, slice->step,
                       view->shape.extent[d]);
    }
    *part = *view;
    part->offset += (int64_t)slice->start * view->strides[d];
    part->strides[d] *= slice->step;
    part->shape.extent[d] = slice->count;
    return WEIR_OK;
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
