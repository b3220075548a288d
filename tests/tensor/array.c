/* SPDX-License-Identifier: MIT */
#include "array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

array array_make(weir_shape shape)
{
    array made = {.shape = shape, .count = 1};
    for (uint32_t d = 0; d < shape.rank; d++) {
        made.count *= shape.extent[d];
    }
    made.values = calloc(made.count, sizeof(double));
    if (made.values == NULL) {
        abort();
    }
    return made;
}

void array_free(array *gone)
{
    free(gone->values);
    *gone = (array){0};
}

coordinates array_coordinates(const weir_shape *shape, uint64_t index)
{
    coordinates found = {{0}};
    for (uint32_t d = shape->rank; d-- > 0;) {
        found.at[d] = index % shape->extent[d];
        index /= shape->extent[d];
    }
    return found;
}

static uint64_t index_of(const weir_shape *shape, const coordinates *where)
{
    uint64_t index = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        index = index * shape->extent[d] + where->at[d];
    }
    return index;
}

double array_at(const array *from, const weir_shape *shape, const coordinates *where)
{
    coordinates own = {{0}};
    uint32_t added = shape->rank - from->shape.rank;
    for (uint32_t d = 0; d < from->shape.rank; d++) {
        own.at[d] = from->shape.extent[d] == 1 ? 0 : where->at[added + d];
    }
    return from->values[index_of(&from->shape, &own)];
}

/* Splitmix64. */
uint64_t array_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

array array_grid(weir_shape shape, double low, double high, uint64_t *state)
{
    array made = array_make(shape);
    int64_t first = (int64_t)ceil(low * 32);
    int64_t last = (int64_t)floor(high * 32);
    for (uint64_t i = 0; i < made.count; i++) {
        uint64_t step = array_random(state) % (uint64_t)(last - first + 1);
        made.values[i] = (double)(first + (int64_t)step) / 32;
    }
    return made;
}

static weir_shape broadcast(const array *operands, uint32_t count)
{
    weir_shape shape = {0};
    for (uint32_t k = 0; k < count; k++) {
        shape.rank =
            operands[k].shape.rank > shape.rank ? operands[k].shape.rank : shape.rank;
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.extent[d] = 1;
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t added = shape.rank - operands[k].shape.rank;
        for (uint32_t d = 0; d < operands[k].shape.rank; d++) {
            uint64_t extent = operands[k].shape.extent[d];
            shape.extent[added + d] = extent > 1 ? extent : shape.extent[added + d];
        }
    }
    return shape;
}

array array_map(const array *operands, uint32_t count, array_fn function,
                const void *context)
{
    array made = array_make(broadcast(operands, count));
    for (uint64_t i = 0; i < made.count; i++) {
        coordinates where = array_coordinates(&made.shape, i);
        double elements[3] = {0};
        for (uint32_t k = 0; k < count; k++) {
            elements[k] = array_at(&operands[k], &made.shape, &where);
        }
        made.values[i] = function(elements, context);
    }
    return made;
}

array array_permute(const array *from, const uint32_t *order)
{
    weir_shape shape = {.rank = from->shape.rank};
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.extent[d] = from->shape.extent[order[d]];
    }
    array made = array_make(shape);
    for (uint64_t i = 0; i < made.count; i++) {
        coordinates where = array_coordinates(&shape, i);
        coordinates source = {{0}};
        for (uint32_t d = 0; d < shape.rank; d++) {
            source.at[order[d]] = where.at[d];
        }
        made.values[i] = from->values[index_of(&from->shape, &source)];
    }
    return made;
}

array array_expand(const array *from, weir_shape shape)
{
    array made = array_make(shape);
    for (uint64_t i = 0; i < made.count; i++) {
        coordinates where = array_coordinates(&shape, i);
        made.values[i] = array_at(from, &shape, &where);
    }
    return made;
}

array array_reshape(const array *from, weir_shape shape)
{
    array made = array_make(shape);
    memcpy(made.values, from->values, made.count * sizeof(double));
    return made;
}

array array_slice(const array *from, uint32_t axis, uint64_t start, uint64_t count,
                  int64_t step)
{
    weir_shape shape = from->shape;
    shape.extent[axis] = count;
    array made = array_make(shape);
    for (uint64_t i = 0; i < made.count; i++) {
        coordinates where = array_coordinates(&shape, i);
        where.at[axis] = (uint64_t)((int64_t)start + (int64_t)where.at[axis] * step);
        made.values[i] = from->values[index_of(&from->shape, &where)];
    }
    return made;
}

array array_place(const array *into, uint32_t axis, uint64_t start, int64_t step,
                  const array *part)
{
    array made = array_reshape(into, into->shape);
    for (uint64_t i = 0; i < part->count; i++) {
        coordinates where = array_coordinates(&part->shape, i);
        where.at[axis] = (uint64_t)((int64_t)start + (int64_t)where.at[axis] * step);
        made.values[index_of(&made.shape, &where)] = part->values[i];
    }
    return made;
}

array array_concat(const array *one, const array *other, uint32_t axis)
{
    weir_shape shape = one->shape;
    shape.extent[axis] += other->shape.extent[axis];
    array room = array_make(shape);
    array half = array_place(&room, axis, 0, 1, one);
    array made = array_place(&half, axis, one->shape.extent[axis], 1, other);
    array_free(&room);
    array_free(&half);
    return made;
}

static double join(weir_reduce reduce, double before, double value)
{
    switch (reduce) {
    case WEIR_REDUCE_MAX:
        return value > before ? value : before;
    case WEIR_REDUCE_MIN:
        return value < before ? value : before;
    default:
        return before + value;
    }
}

/* The element that one goes into, and its number there. */
static uint64_t target_of(const array *from, uint64_t i, int32_t axis, const array *to,
                          uint64_t *number)
{
    coordinates where = array_coordinates(&from->shape, i);
    *number = i;
    if (axis == WEIR_ALL_AXES) {
        return 0;
    }
    *number = where.at[axis];
    where.at[axis] = 0;
    return index_of(&to->shape, &where);
}

array array_reduce(const array *from, weir_reduce reduce, int32_t axis, bool keep)
{
    weir_shape kept = from->shape;
    weir_shape left = {0};
    for (uint32_t d = 0; d < kept.rank; d++) {
        bool goes = axis == WEIR_ALL_AXES || d == (uint32_t)axis;
        kept.extent[d] = goes ? 1 : kept.extent[d];
        if (!goes) {
            left.extent[left.rank++] = kept.extent[d];
        }
    }
    array made = array_make(kept);
    array most = array_make(kept);
    for (uint64_t i = 0; i < from->count; i++) {
        uint64_t number;
        uint64_t to = target_of(from, i, axis, &made, &number);
        double value = from->values[i];
        if (reduce == WEIR_REDUCE_ARGMAX) {
            bool is_more = number == 0 || value > most.values[to];
            most.values[to] = is_more ? value : most.values[to];
            made.values[to] = is_more ? (double)number : made.values[to];
        } else {
            made.values[to] = number == 0 ? value : join(reduce, made.values[to], value);
        }
    }
    for (uint64_t i = 0; reduce == WEIR_REDUCE_MEAN && i < made.count; i++) {
        made.values[i] /= (double)(from->count / made.count);
    }
    made.shape = keep ? kept : left;
    array_free(&most);
    return made;
}

array array_matmul(const array *left, const array *right)
{
    uint32_t l = left->shape.rank;
    uint32_t r = right->shape.rank;
    array pair[2] = {*left, *right};
    pair[0].shape.extent[l - 1] = 1;
    pair[1].shape.extent[r - 2] = 1;
    weir_shape shape = broadcast(pair, 2);
    array made = array_make(shape);
    for (uint64_t i = 0; i < made.count; i++) {
        coordinates row = array_coordinates(&shape, i);
        coordinates column = row;
        for (uint64_t k = 0; k < left->shape.extent[l - 1]; k++) {
            row.at[shape.rank - 1] = k;
            column.at[shape.rank - 2] = k;
            made.values[i] +=
                array_at(left, &shape, &row) * array_at(right, &shape, &column);
        }
    }
    return made;
}

array array_softmax(const array *from, uint32_t axis, bool logarithm)
{
    array made = array_reshape(from, from->shape);
    array sum = {0};
    for (uint64_t i = 0; i < made.count; i++) {
        made.values[i] = exp(made.values[i]);
    }
    sum = array_reduce(&made, WEIR_REDUCE_SUM, (int32_t)axis, true);
    for (uint64_t i = 0; i < made.count; i++) {
        coordinates where = array_coordinates(&made.shape, i);
        made.values[i] /= array_at(&sum, &made.shape, &where);
        made.values[i] = logarithm ? log(made.values[i]) : made.values[i];
    }
    array_free(&sum);
    return made;
}

/* The operand's element that coordinates of the result stand for. */
static uint64_t indexed(const array *operand, uint32_t axis, const array *indices,
                        coordinates where)
{
    coordinates number = where;
    if (indices->shape.rank == 1) {
        number.at[0] = where.at[axis];
    }
    where.at[axis] = (uint64_t)indices->values[index_of(&indices->shape, &number)];
    return index_of(&operand->shape, &where);
}

array array_gather(const array *from, uint32_t axis, const array *indices)
{
    weir_shape shape = indices->shape;
    if (shape.rank == 1) {
        shape = from->shape;
        shape.extent[axis] = indices->shape.extent[0];
    }
    array made = array_make(shape);
    for (uint64_t i = 0; i < made.count; i++) {
        made.values[i] =
            from->values[indexed(from, axis, indices, array_coordinates(&shape, i))];
    }
    return made;
}

array array_scatter_add(const array *into, uint32_t axis, const array *indices,
                        const array *source)
{
    array made = array_reshape(into, into->shape);
    for (uint64_t i = 0; i < source->count; i++) {
        coordinates where = array_coordinates(&source->shape, i);
        made.values[indexed(&made, axis, indices, where)] += source->values[i];
    }
    return made;
}
