/* SPDX-License-Identifier: MIT */
#include "tensor.h"

#include <weir/driver.h>

#include <inttypes.h>
#include <stdio.h>

/* A whole tensor stays below this, so that a byte count and any sum of two fit. */
#define MOST_ELEMENTS (UINT64_MAX / 2 / sizeof(float))

weir_result wr_shape_count(const char *who, const weir_shape *shape,
                           uint64_t *element_count)
{
    if (shape->rank > WEIR_TENSOR_MAX_RANK) {
        return weir_driver_error(WEIR_INVALID, "%s: rank %" PRIu32 ", but at most %d",
                                 who, shape->rank, WEIR_TENSOR_MAX_RANK);
    }
    char text[WR_SHAPE_TEXT_BYTES];
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->extent[i] == 0) {
            return weir_driver_error(WEIR_INVALID, "%s: shape %s has no elements", who,
                                     wr_shape_format(shape, text));
        }
        if (shape->extent[i] > MOST_ELEMENTS / count) {
            return weir_driver_error(WEIR_INVALID, "%s: the bytes of shape %s overflow",
                                     who, wr_shape_format(shape, text));
        }
        count *= shape->extent[i];
    }
    *element_count = count;
    return WEIR_OK;
}

bool wr_shape_equals(const weir_shape *one, const weir_shape *other)
{
    bool equal = one->rank == other->rank;
    for (uint32_t i = 0; equal && i < one->rank; i++) {
        equal = one->extent[i] == other->extent[i];
    }
    return equal;
}

char *wr_shape_format(const weir_shape *shape, char text[WR_SHAPE_TEXT_BYTES])
{
    size_t used = 1;
    text[0] = '[';
    for (uint32_t i = 0; i < shape->rank; i++) {
        int wrote = snprintf(text + used, WR_SHAPE_TEXT_BYTES - 1 - used, "%s%" PRIu64,
                             i > 0 ? ", " : "", shape->extent[i]);
        used += (size_t)wrote;
    }
    text[used] = ']';
    text[used + 1] = '\0';
    return text;
}
