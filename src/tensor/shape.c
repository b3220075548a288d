/* SPDX-License-Identifier: MIT */
#include "view.h"

#include "error.h"

#include <inttypes.h>
#include <stdio.h>

/* A whole tensor stays below this, so that a byte count and any sum of two fit, signed.
 */
#define MOST_ELEMENTS (UINT64_MAX / 2 / sizeof(float))

weir_result wr_shape_count(const char *who, const weir_shape *shape,
                           uint64_t *element_count)
{
    if (shape->rank > WEIR_TENSOR_MAX_RANK) {
        return wr_fail(WEIR_INVALID, "%s: rank %" PRIu32 ", but at most %d", who,
                       shape->rank, WEIR_TENSOR_MAX_RANK);
    }
    char text[WR_SHAPE_TEXT_BYTES];
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->extent[i] == 0) {
            return wr_fail(WEIR_INVALID, "%s: shape %s has no elements", who,
                           wr_shape_format(shape, text));
        }
        if (shape->extent[i] > MOST_ELEMENTS / count) {
            return wr_fail(WEIR_INVALID, "%s: the bytes of shape %s overflow", who,
                           wr_shape_format(shape, text));
        }
        count *= shape->extent[i];
    }
    *element_count = count;
    return WEIR_OK;
}

uint64_t wr_shape_elements(const weir_shape *shape)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        count *= shape->extent[i];
    }
    return count;
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

/* Extent of dimension `d`, counted from behind. */
static uint64_t extent_from_behind(const weir_shape *shape, uint32_t d)
{
    return d < shape->rank ? shape->extent[shape->rank - 1 - d] : 1;
}

weir_result wr_shape_broadcast(const char *who, const weir_shape *one,
                               const weir_shape *other, weir_shape *shape)
{
    weir_shape result = {.rank = one->rank > other->rank ? one->rank : other->rank};
    for (uint32_t d = 0; d < result.rank; d++) {
        uint64_t left = extent_from_behind(one, d);
        uint64_t right = extent_from_behind(other, d);
        if (left != right && left != 1 && right != 1) {
            char texts[2][WR_SHAPE_TEXT_BYTES];
            return wr_fail(WEIR_INVALID,
                           "%s: shapes %s and %s differ, and neither is 1 where they do",
                           who, wr_shape_format(one, texts[0]),
                           wr_shape_format(other, texts[1]));
        }
        result.extent[result.rank - 1 - d] = left == 1 ? right : left;
    }
    uint64_t count;
    WR_TRY(wr_shape_count(who, &result, &count));
    *shape = result;
    return WEIR_OK;
}
