/* SPDX-License-Identifier: MIT */
/* Tensors from outside: random numbers, one value, the caller's data. They exist when the
 * call returns, so that a full device is known at once. */
#include "call.h"

#include "kernel/dtype.h"

#include <math.h>
#include <string.h>

static int32_t bits_of(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static weir_result run_leaf(const wr_call *call, weir_stream *stream,
                            weir_tensor **tensor)
{
    if (stream == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the stream is NULL", call->who);
    }
    return wr_call_run(call, stream, tensor);
}

/* ---- random numbers ---- */

static weir_result make_random(wr_call *call, weir_stream *stream, uint64_t seed,
                               const float parameters[2], weir_tensor **tensor)
{
    call->scalar_count = 4;
    call->scalars[0] = (int32_t)(uint32_t)seed;
    call->scalars[1] = (int32_t)(uint32_t)(seed >> 32);
    call->scalars[2] = bits_of(parameters[0]);
    call->scalars[3] = bits_of(parameters[1]);
    return run_leaf(call, stream, tensor);
}

weir_result weir_tensor_uniform(weir_stream *stream, weir_shape shape, float low,
                                float high, uint64_t seed, weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_uniform", .op = WEIR_OP_UNIFORM, .shape = shape};
    if (!(low < high) || !isfinite(high - low)) {
        return wr_fail(WEIR_INVALID, "%s: the range [%g, %g) is empty or not finite",
                       call.who, (double)low, (double)high);
    }
    return make_random(&call, stream, seed, (const float[2]){low, high}, tensor);
}

weir_result weir_tensor_normal(weir_stream *stream, weir_shape shape, float mean,
                               float deviation, uint64_t seed, weir_tensor **tensor)
{
    wr_call call = {.who = "weir_tensor_normal", .op = WEIR_OP_NORMAL, .shape = shape};
    if (!isfinite(mean) || !isfinite(deviation) || deviation < 0) {
        return wr_fail(WEIR_INVALID,
                       "%s: mean %g and deviation %g; both must be finite, the deviation "
                       "not negative",
                       call.who, (double)mean, (double)deviation);
    }
    return make_random(&call, stream, seed, (const float[2]){mean, deviation}, tensor);
}

/* Uniform numbers and the comparison are one kernel. The numbers are multiples of 2^-24,
 * so rounding the probability up to one changes nothing but that it is no subnormal,
 * which a device may take for 0. */
weir_result weir_tensor_bernoulli(weir_stream *stream, weir_shape shape,
                                  float probability, uint64_t seed, weir_tensor **tensor)
{
    wr_call uniform = {
        .who = "weir_tensor_bernoulli",
        .op = WEIR_OP_UNIFORM,
        .shape = shape,
        .scalar_count = 4,
        .scalars = {(int32_t)(uint32_t)seed, (int32_t)(uint32_t)(seed >> 32),
                    bits_of(0.0F), bits_of(1.0F)},
    };
    weir_tensor *numbers = NULL;
    if (!(probability >= 0 && probability <= 1)) {
        return wr_fail(WEIR_INVALID, "%s: %g is no probability", uniform.who,
                       (double)probability);
    }
    WR_TRY(wr_call_record(&uniform, stream, tensor != NULL ? &numbers : NULL));
    const wr_call below = {.who = uniform.who,
                           .op = WEIR_OP_LT,
                           .dtype = WEIR_DTYPE_BOOL,
                           .shape = shape,
                           .operand_count = 1,
                           .operands = {numbers},
                           .scalar_count = 1,
                           .scalars = {bits_of(ceilf(probability * 0x1p24F) * 0x1p-24F)}};
    weir_tensor *made = NULL;
    weir_result result = wr_call_record(&below, stream, &made);
    weir_tensor_drop(numbers);
    result = result == WEIR_OK ? wr_call_settle(made) : result;
    if (result != WEIR_OK) {
        weir_tensor_drop(made);
        return result;
    }
    *tensor = made;
    return WEIR_OK;
}

/* ---- one value ---- */

static weir_result fill(const char *who, weir_stream *stream, const weir_shape *shape,
                        float value, weir_tensor **tensor)
{
    return run_leaf(&(wr_call){.who = who,
                               .op = WEIR_OP_SCALAR,
                               .shape = *shape,
                               .scalar_count = 1,
                               .scalars = {bits_of(value)}},
                    stream, tensor);
}

weir_result weir_tensor_zeros(weir_stream *stream, weir_shape shape, weir_tensor **tensor)
{
    return fill("weir_tensor_zeros", stream, &shape, 0.0F, tensor);
}

weir_result weir_tensor_full(weir_stream *stream, weir_shape shape, float value,
                             weir_tensor **tensor)
{
    return fill("weir_tensor_full", stream, &shape, value, tensor);
}

/* ---- the caller's data ---- */

static weir_result make_written(const wr_call *call, weir_stream *stream,
                                const void *data, weir_tensor **tensor)
{
    weir_buffer buffer;
    uint64_t count = wr_shape_elements(&call->shape);
    uint64_t bytes = count * wr_dtype_bytes(call->dtype);
    WR_TRY(weir_buffer_create(stream, bytes, NULL, &buffer));
    wr_storage *storage = NULL;
    weir_result result = weir_buffer_write(buffer, 0, data, bytes);
    if (result != WEIR_OK) {
        goto undo_buffer;
    }
    storage = wr_storage_create(call->dtype, count);
    if (storage == NULL) {
        result = wr_fail(WEIR_OUT_OF_HOST_MEMORY, "%s: no host memory for the tensor",
                         call->who);
        goto undo_buffer;
    }
    wr_storage_become_ready(storage, buffer, weir_tag_current());
    wr_view view = wr_view_of_shape(&call->shape);
    result = wr_tensor_create(call->who, storage, &view, tensor);
    wr_storage_release(storage);
    return result;

undo_buffer:
    weir_buffer_release(buffer);
    return result;
}

static weir_result from_data(const wr_call *call, weir_stream *stream, const void *data,
                             weir_tensor **tensor)
{
    uint64_t count;
    wr_queue *queue;
    if (data == NULL || tensor == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the %s is NULL", call->who,
                       data == NULL ? "data" : "place for the result");
    }
    if (wr_dtype_bytes(call->dtype) == 0) {
        return wr_fail(WEIR_INVALID, "%s: there is no dtype %d", call->who,
                       (int)call->dtype);
    }
    WR_TRY(wr_shape_count(call->who, &call->shape, &count));
    WR_TRY(wr_queue_find(call->who, stream, &queue));
    return make_written(call, stream, data, tensor);
}

weir_result weir_tensor_from_floats(weir_stream *stream, weir_shape shape,
                                    const float *data, weir_tensor **tensor)
{
    return from_data(&(wr_call){.who = "weir_tensor_from_floats", .shape = shape}, stream,
                     data, tensor);
}

weir_result weir_tensor_from_data(weir_stream *stream, weir_shape shape, weir_dtype dtype,
                                  const void *data, weir_tensor **tensor)
{
    return from_data(
        &(wr_call){.who = "weir_tensor_from_data", .shape = shape, .dtype = dtype},
        stream, data, tensor);
}
