/* SPDX-License-Identifier: MIT */
#include "gather.h"

/* Coordinates of an index, and the element they stand for. */
static int64_t locate(const wr_gather *gather, uint64_t index,
                      int64_t coordinates[WEIR_EXPRESSION_RANK])
{
    int64_t element = gather->view[0];
    for (uint32_t d = gather->rank; d-- > 0;) {
        uint64_t extent = (uint64_t)gather->extents[d];
        coordinates[d] = (int64_t)(index % extent);
        index /= extent;
        element += coordinates[d] * gather->view[1 + d];
    }
    return element;
}

/* To the start of the next innermost run. */
static int64_t carry(const wr_gather *gather, int64_t element,
                     int64_t coordinates[WEIR_EXPRESSION_RANK])
{
    uint32_t d = gather->rank - 1;
    while (d > 0 && coordinates[d] == gather->extents[d]) {
        element -= coordinates[d] * gather->view[1 + d];
        coordinates[d] = 0;
        d--;
        coordinates[d]++;
        element += gather->view[1 + d];
    }
    return element;
}

void wr_gather_run(const wr_gather *gather, uint64_t first, void *values, uint64_t count)
{
    int64_t coordinates[WEIR_EXPRESSION_RANK] = {0};
    int64_t element = locate(gather, first, coordinates);
    uint32_t inner = gather->rank - 1;
    int64_t stride = gather->view[1 + inner];
    int64_t element_bytes = wr_dtype_bytes(gather->dtype);
    char *to = values;
    while (count > 0) {
        uint64_t left = (uint64_t)(gather->extents[inner] - coordinates[inner]);
        uint64_t run = count < left ? count : left;
        wr_dtype_load(gather->dtype, to, gather->memory + element * element_bytes, stride,
                      run);
        to += run * sizeof(float);
        count -= run;
        coordinates[inner] += (int64_t)run;
        element += (int64_t)run * stride;
        element = carry(gather, element, coordinates);
    }
}

const void *wr_gather_find(const wr_gather *gather, uint64_t first, uint64_t count)
{
    int64_t coordinates[WEIR_EXPRESSION_RANK] = {0};
    uint32_t inner = gather->rank - 1;
    if (gather->view[1 + inner] != 1 || count > (uint64_t)gather->extents[inner]) {
        return NULL;
    }
    int64_t element = locate(gather, first, coordinates);
    return coordinates[inner] + (int64_t)count <= gather->extents[inner]
               ? gather->memory + element * (int64_t)wr_dtype_bytes(gather->dtype)
               : NULL;
}
