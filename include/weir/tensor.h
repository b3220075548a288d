/* SPDX-License-Identifier: MIT */
/* Tensors: a first client of the memory core. f32 for now, contiguous, at most 8
 * dimensions. A tensor is a counted reference: clones share one buffer, drop gives one
 * reference back. */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include <weir/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TENSOR_MAX_RANK 8

typedef enum weir_dtype {
    WEIR_DTYPE_F32 = 0,
} weir_dtype;

typedef struct weir_shape {
    uint32_t rank; /* 0: a scalar, one element */
    uint64_t extent[WEIR_TENSOR_MAX_RANK];
} weir_shape;

/* weir_shape literal: WEIR_SHAPE(4096, 4096). */
#define WEIR_SHAPE(...)                                                                  \
    ((weir_shape){.rank = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),          \
                  .extent = {__VA_ARGS__}})

typedef struct weir_tensor weir_tensor;

/* Every function that makes a tensor: the result is the caller's to drop; on failure the
 * output is untouched. Errors: INVALID (shape with a zero, rank over 8, sizes that
 * overflow), those of weir_buffer_create and of the driver. Any thread. */

/* Uniform in [low, high), or normal. Philox4x32-10 (Salmon et al., SC 2011) by element
 * index: the same numbers for the same seed on every driver and any number of threads. */
WEIR_API weir_result weir_tensor_uniform(weir_stream *stream, weir_shape shape, float low,
                                         float high, uint64_t seed, weir_tensor **tensor);
WEIR_API weir_result weir_tensor_normal(weir_stream *stream, weir_shape shape, float mean,
                                        float deviation, uint64_t seed,
                                        weir_tensor **tensor);
WEIR_API weir_result weir_tensor_zeros(weir_stream *stream, weir_shape shape,
                                       weir_tensor **tensor);
WEIR_API weir_result weir_tensor_full(weir_stream *stream, weir_shape shape, float value,
                                      weir_tensor **tensor);
/* `data` has as many floats as the shape has elements. */
WEIR_API weir_result weir_tensor_from_floats(weir_stream *stream, weir_shape shape,
                                             const float *data, weir_tensor **tensor);

/* Elementwise, on the left operand's stream; shapes must be equal. */
WEIR_API weir_result weir_tensor_add_scalar(weir_tensor *left, float right,
                                            weir_tensor **tensor);
WEIR_API weir_result weir_tensor_add(weir_tensor *left, weir_tensor *right,
                                     weir_tensor **tensor);

/* One more reference on the same data; drop each. NULL gives NULL. */
WEIR_API weir_tensor *weir_tensor_clone(weir_tensor *tensor);
/* One reference less. NULL is a no-op. */
WEIR_API void weir_tensor_drop(weir_tensor *tensor);

/* Waits and copies out; `capacity` in floats must be at least the element count. */
WEIR_API weir_result weir_tensor_into_data(weir_tensor *tensor, float *data,
                                           uint64_t capacity);

WEIR_API weir_shape weir_tensor_shape(const weir_tensor *tensor);
WEIR_API weir_dtype weir_tensor_dtype(const weir_tensor *tensor);
WEIR_API uint64_t weir_tensor_element_count(const weir_tensor *tensor);
/* The buffer below; it stays the tensor's. */
WEIR_API weir_buffer weir_tensor_buffer(const weir_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
