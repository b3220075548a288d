/* SPDX-License-Identifier: MIT */
#include "reduce.h"

#include "dtype.h"

enum { LANES = 8 };

void wr_reduction_begin(wr_reduction *reduction, weir_reduce reduce, weir_dtype dtype)
{
    *reduction = (wr_reduction){.reduce = reduce, .is_float = wr_dtype_is_float(dtype)};
}

WR_CLONES static double sum_floats(const float *values, uint64_t count)
{
    float lanes[LANES] = {0};
    uint64_t whole = count - count % LANES;
    for (uint64_t i = 0; i < whole; i += LANES) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            lanes[lane] += values[i + lane];
        }
    }
    double sum = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        sum += (double)lanes[lane];
    }
    for (uint64_t i = whole; i < count; i++) {
        sum += (double)values[i];
    }
    return sum;
}

/* Adds in unsigned numbers, which wrap around. */
static int32_t sum_integers(int32_t before, const int32_t *values, uint64_t count)
{
    uint32_t sum = (uint32_t)before;
    for (uint64_t i = 0; i < count; i++) {
        sum += (uint32_t)values[i];
    }
    return (int32_t)sum;
}

/* The largest, or with `sign` -1 the smallest; a NaN wins over everything. */
static float most_float(float most, const float *values, uint64_t count, float sign)
{
    for (uint64_t i = 0; i < count; i++) {
        most =
            sign * values[i] > sign * most || values[i] != values[i] ? values[i] : most;
    }
    return most;
}

static int32_t most_integer(int32_t most, const int32_t *values, uint64_t count,
                            bool is_max)
{
    for (uint64_t i = 0; i < count; i++) {
        most = (is_max ? values[i] > most : values[i] < most) ? values[i] : most;
    }
    return most;
}

/* The first value that is greater than all before it, or a NaN; a NaN stays. */
static void find_float(wr_reduction *reduction, const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        float most = reduction->value;
        if (values[i] > most || (values[i] != values[i] && most == most)) {
            reduction->value = values[i];
            reduction->place = reduction->taken + i;
        }
    }
}

static void find_integer(wr_reduction *reduction, const int32_t *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (values[i] > reduction->integer) {
            reduction->integer = values[i];
            reduction->place = reduction->taken + i;
        }
    }
}

static void take_floats(wr_reduction *reduction, const float *values, uint64_t count)
{
    switch (reduction->reduce) {
    case WEIR_REDUCE_MAX:
        reduction->value = most_float(reduction->value, values, count, 1.0F);
        break;
    case WEIR_REDUCE_MIN:
        reduction->value = most_float(reduction->value, values, count, -1.0F);
        break;
    case WEIR_REDUCE_ARGMAX:
        find_float(reduction, values, count);
        break;
    default:
        reduction->sum += sum_floats(values, count);
    }
}

static void take_integers(wr_reduction *reduction, const int32_t *values, uint64_t count)
{
    switch (reduction->reduce) {
    case WEIR_REDUCE_MAX:
    case WEIR_REDUCE_MIN:
        reduction->integer = most_integer(reduction->integer, values, count,
                                          reduction->reduce == WEIR_REDUCE_MAX);
        break;
    case WEIR_REDUCE_ARGMAX:
        find_integer(reduction, values, count);
        break;
    default:
        reduction->integer = sum_integers(reduction->integer, values, count);
    }
}

void wr_reduction_take(wr_reduction *reduction, const void *values, uint64_t count)
{
    bool is_sum =
        reduction->reduce == WEIR_REDUCE_SUM || reduction->reduce == WEIR_REDUCE_MEAN;
    if (reduction->taken == 0 && !is_sum && count > 0) {
        memcpy(reduction->is_float ? (void *)&reduction->value : &reduction->integer,
               values, sizeof(float));
    }
    if (reduction->is_float) {
        take_floats(reduction, values, count);
    } else {
        take_integers(reduction, values, count);
    }
    reduction->taken += count;
}

void wr_reduction_end(wr_reduction *reduction, weir_dtype dtype, void *element)
{
    int32_t integer = reduction->integer;
    float value = reduction->value;
    if (reduction->reduce == WEIR_REDUCE_SUM) {
        value = (float)reduction->sum;
    } else if (reduction->reduce == WEIR_REDUCE_MEAN) {
        value = (float)(reduction->sum / (double)reduction->taken);
    } else if (reduction->reduce == WEIR_REDUCE_ARGMAX) {
        integer = (int32_t)reduction->place;
    }
    wr_dtype_store(dtype, element,
                   wr_dtype_is_float(dtype) ? (const void *)&value : &integer, 1);
    *reduction =
        (wr_reduction){.reduce = reduction->reduce, .is_float = reduction->is_float};
}
