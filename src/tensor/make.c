/* SPDX-License-Identifier: MIT */
/* Tensors from nothing: random numbers, one value, the caller's floats. */
#include "tensor.h"

#include "kernel/kernels.h"

#include <weir/driver.h>

#include <math.h>

weir_result weir_tensor_uniform(weir_stream *stream, weir_shape shape, float low,
                                float high, uint64_t seed, weir_tensor **tensor)
{
    if (!(low < high) || !isfinite(high - low)) {
        return weir_driver_error(
            WEIR_INVALID,
            "weir_tensor_uniform: the range [%g, %g) is empty or not finite", (double)low,
            (double)high);
    }
    wr_random_arguments arguments = {.seed = seed, .first = low, .second = high};
    return wr_tensor_compute(&(wr_compute){.who = "weir_tensor_uniform",
                                           .stream = stream,
                                           .shape = &shape,
                                           .kernel = &wr_kernel_uniform,
                                           .arguments = &arguments,
                                           .argument_bytes = sizeof arguments},
                             tensor);
}

weir_result weir_tensor_normal(weir_stream *stream, weir_shape shape, float mean,
                               float deviation, uint64_t seed, weir_tensor **tensor)
{
    if (!isfinite(mean) || !isfinite(deviation) || deviation < 0) {
        return weir_driver_error(WEIR_INVALID,
                                 "weir_tensor_normal: mean %g and deviation %g; both "
                                 "must be finite, the deviation "
                                 "not negative",
                                 (double)mean, (double)deviation);
    }
    wr_random_arguments arguments = {.seed = seed, .first = mean, .second = deviation};
    return wr_tensor_compute(&(wr_compute){.who = "weir_tensor_normal",
                                           .stream = stream,
                                           .shape = &shape,
                                           .kernel = &wr_kernel_normal,
                                           .arguments = &arguments,
                                           .argument_bytes = sizeof arguments},
                             tensor);
}

static weir_result fill(const char *who, weir_stream *stream, const weir_shape *shape,
                        float value, weir_tensor **tensor)
{
    wr_fill_arguments arguments = {.value = value};
    return wr_tensor_compute(&(wr_compute){.who = who,
                                           .stream = stream,
                                           .shape = shape,
                                           .kernel = &wr_kernel_fill,
                                           .arguments = &arguments,
                                           .argument_bytes = sizeof arguments},
                             tensor);
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

weir_result weir_tensor_from_floats(weir_stream *stream, weir_shape shape,
                                    const float *data, weir_tensor **tensor)
{
    if (data == NULL) {
        return weir_driver_error(WEIR_INVALID,
                                 "weir_tensor_from_floats: the data is NULL");
    }
    weir_tensor *fresh = NULL;
    weir_result result = wr_tensor_create("weir_tensor_from_floats", stream, &shape,
                                          tensor != NULL ? &fresh : NULL);
    if (result != WEIR_OK) {
        return result;
    }
    result =
        weir_buffer_write(fresh->buffer, 0, data, fresh->element_count * sizeof *data);
    if (result != WEIR_OK) {
        weir_tensor_drop(fresh);
        return result;
    }
    *tensor = fresh;
    return WEIR_OK;
}
