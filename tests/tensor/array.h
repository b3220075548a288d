/* SPDX-License-Identifier: MIT */
/* Arrays of double, worked on element by element: what the tensor layer's results are
 * compared with. Slow, and written apart from it. */
#ifndef WR_TESTS_TENSOR_ARRAY_H
#define WR_TESTS_TENSOR_ARRAY_H

#include <weir/tensor.h>

typedef struct array {
    weir_shape shape;
    uint64_t count;
    double *values; /* row-major */
} array;

array array_make(weir_shape shape);
void array_free(array *gone);

typedef struct coordinates {
    uint64_t at[WEIR_TENSOR_MAX_RANK];
} coordinates;

coordinates array_coordinates(const weir_shape *shape, uint64_t index);
/* The element at the coordinates' last dimensions, extents of 1 repeated. */
double array_at(const array *from, const weir_shape *shape, const coordinates *where);

/* The next of a sequence of numbers, evenly spread over 64 bits. */
uint64_t array_random(uint64_t *state);
/* Multiples of 1/32 in [low, high], which every float dtype holds if they are below 4. */
array array_grid(weir_shape shape, double low, double high, uint64_t *state);

typedef double (*array_fn)(const double *elements, const void *context);

/* An element from one of each operand, broadcast. */
array array_map(const array *operands, uint32_t count, array_fn function,
                const void *context);
array array_permute(const array *from, const uint32_t *order);
array array_expand(const array *from, weir_shape shape);
array array_reshape(const array *from, weir_shape shape);
array array_slice(const array *from, uint32_t axis, uint64_t start, uint64_t count,
                  int64_t step);
array array_place(const array *into, uint32_t axis, uint64_t start, int64_t step,
                  const array *part);
array array_concat(const array *one, const array *other, uint32_t axis);
/* One axis, or with WEIR_ALL_AXES all. */
array array_reduce(const array *from, weir_reduce reduce, int32_t axis, bool keep);
array array_matmul(const array *left, const array *right);
array array_softmax(const array *from, uint32_t axis, bool logarithm);
/* `indices` of one dimension, or of the operand's rank. */
array array_gather(const array *from, uint32_t axis, const array *indices);
array array_scatter_add(const array *into, uint32_t axis, const array *indices,
                        const array *source);

#endif
