/* SPDX-License-Identifier: MIT */
#include "reduce.h"

#include "dtype.h"

enum { LANES = 8 };

void wr_reduction_begin(wr_reduction *reduction, weir_reduce reduce, weir_dtype dtype)
{
    *reduction = (wr_reduction){.reduce = reduce, .is_float = wr_dtype_is_float(dtype)};
}

static double sum_floats(const float *values, uint64_t count)
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

void wr_reduction_take(wr_reduction *reduction, const void *values, uint64_t count)
{
    const float *floats = values;
    const int32_t *integers = values;
    bool is_max = reduction->reduce == WEIR_REDUCE_MAX;
    if (count == 0) {
        return;
    }
    if (reduction->reduce == WEIR_REDUCE_SUM) {
        if (reduction->is_float) {
            reduction->sum += sum_floats(floats, count);
        } else {
            reduction->integer = sum_integers(reduction->integer, integers, count);
        }
    } else if (reduction->is_float) {
        float most = reduction->has_any ? reduction->value : floats[0];
        reduction->value = most_float(most, floats, count, is_max ? 1.0F : -1.0F);
    } else {
        int32_t most = reduction->has_any ? reduction->integer : integers[0];
        reduction->integer = most_integer(most, integers, count, is_max);
    }
    reduction->has_any = true;
}

void wr_reduction_end(wr_reduction *reduction, weir_dtype dtype, void *element)
{
    float value =
        reduction->reduce == WEIR_REDUCE_SUM ? (float)reduction->sum : reduction->value;
    const void *result = &value;
    if (!reduction->is_float) {
        result = &reduction->integer;
    }
    wr_dtype_store(dtype, element, result, 1);
    *reduction =
        (wr_reduction){.reduce = reduction->reduce, .is_float = reduction->is_float};
}
