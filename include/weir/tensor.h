/* SPDX-License-Identifier: MIT */
/* Tensors: elements of one dtype in a shape of at most 8 dimensions, in a device's
 * memory.
 *
 *     weir_tensor_uniform(stream, WEIR_SHAPE(1024, 512), -1, 1, seed, &x);
 *     weir_tensor_mul_scalar(x, 2, &t);
 *     weir_tensor_relu(t, &y);
 *     weir_tensor_drop(t);
 *     weir_tensor_into_data(y, floats, 1024 * 512);
 *
 * Tensors that come from outside (data, random numbers, one value) exist when the call
 * returns. Operations are only recorded: they wait in their stream's queue and run, fused
 * into few kernels, when somebody needs them: at weir_stream_sync, weir_tensor_into_data,
 * weir_tensor_buffer, a memory cleanup, and when the queue is full. What was dropped
 * before it ran is not computed unless something else needs it. Failures of the device
 * come from the call that ran the queue; those for want of memory leave it as it was, to
 * be tried again.
 *
 * A tensor is a counted reference. Several can be views of the same elements; nothing
 * changes an element that another tensor can see. An operation's result belongs to its
 * first operand's stream. Any thread may call any function; two threads may use one
 * tensor. Reclaim callbacks may drop tensors but not compute. */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include <weir/kernel.h>
#include <weir/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TENSOR_MAX_RANK 8

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
 * overflow), those of weir_buffer_create and of the driver; operations on tensors of a
 * closed device are STALE. */

/* ---- from outside ---- */

/* f32; uniform in [low, high), or normal by inversion, up to 6.3 deviations from the
 * mean. Philox4x32-10 (Salmon et al., SC 2011) by element index: for the same seed the
 * same numbers, bit by bit, on every driver and any number of threads. */
WEIR_API weir_result weir_tensor_uniform(weir_stream *stream, weir_shape shape, float low,
                                         float high, uint64_t seed, weir_tensor **tensor);
WEIR_API weir_result weir_tensor_normal(weir_stream *stream, weir_shape shape, float mean,
                                        float deviation, uint64_t seed,
                                        weir_tensor **tensor);
/* bool; true with this probability: where uniform numbers in [0, 1) of the same seed are
 * below it. */
WEIR_API weir_result weir_tensor_bernoulli(weir_stream *stream, weir_shape shape,
                                           float probability, uint64_t seed,
                                           weir_tensor **tensor);
WEIR_API weir_result weir_tensor_zeros(weir_stream *stream, weir_shape shape,
                                       weir_tensor **tensor);
WEIR_API weir_result weir_tensor_full(weir_stream *stream, weir_shape shape, float value,
                                      weir_tensor **tensor);
/* `data` has as many floats as the shape has elements. */
WEIR_API weir_result weir_tensor_from_floats(weir_stream *stream, weir_shape shape,
                                             const float *data, weir_tensor **tensor);
/* The same of any dtype, as its elements lie in memory (bool: bytes of 0 or 1). */
WEIR_API weir_result weir_tensor_from_data(weir_stream *stream, weir_shape shape,
                                           weir_dtype dtype, const void *data,
                                           weir_tensor **tensor);

/* ---- operations on elements ----
 *
 * Operands have one dtype (cast first), which must be in the operation's domain (see
 * kernel.h). Their shapes are broadcast: aligned at the last dimension, each extent equal
 * or 1. A scalar is rounded to the tensor's dtype. */
WEIR_API weir_result weir_tensor_unary(weir_op op, weir_tensor *operand,
                                       weir_tensor **tensor);
WEIR_API weir_result weir_tensor_binary(weir_op op, weir_tensor *left, weir_tensor *right,
                                        weir_tensor **tensor);
WEIR_API weir_result weir_tensor_binary_scalar(weir_op op, weir_tensor *left,
                                               double right, weir_tensor **tensor);
/* Where `condition`, a bool tensor, is true `one`, elsewhere `other`. */
WEIR_API weir_result weir_tensor_where(weir_tensor *condition, weir_tensor *one,
                                       weir_tensor *other, weir_tensor **tensor);
/* float to i32 cuts off, keeps to i32's range, and makes 0 of NaN; bool is what is not
 * 0. */
WEIR_API weir_result weir_tensor_cast(weir_tensor *operand, weir_dtype dtype,
                                      weir_tensor **tensor);

/* Not below `low`, not above `high`; a NaN stays one. */
WEIR_API weir_result weir_tensor_clamp(weir_tensor *operand, double low, double high,
                                       weir_tensor **tensor);

/* By name: weir_tensor_exp(x, &y), weir_tensor_add(a, b, &y),
 * weir_tensor_add_scalar(a, 2, &y) and so on, for every operation of kernel.h's lists. */
#define WEIR_TENSOR_UNARY(name, number, function, domain)                                \
    static inline weir_result weir_tensor_##function(weir_tensor *operand,               \
                                                     weir_tensor **tensor)               \
    {                                                                                    \
        return weir_tensor_unary(WEIR_OP_##name, operand, tensor);                       \
    }
#define WEIR_TENSOR_BINARY(name, number, function, domain)                               \
    static inline weir_result weir_tensor_##function(                                    \
        weir_tensor *left, weir_tensor *right, weir_tensor **tensor)                     \
    {                                                                                    \
        return weir_tensor_binary(WEIR_OP_##name, left, right, tensor);                  \
    }                                                                                    \
    static inline weir_result weir_tensor_##function##_scalar(                           \
        weir_tensor *left, double right, weir_tensor **tensor)                           \
    {                                                                                    \
        return weir_tensor_binary_scalar(WEIR_OP_##name, left, right, tensor);           \
    }
WEIR_UNARY_LIST(WEIR_TENSOR_UNARY)
WEIR_BINARY_LIST(WEIR_TENSOR_BINARY)
#undef WEIR_TENSOR_UNARY
#undef WEIR_TENSOR_BINARY

/* ---- reductions ---- */

#define WEIR_ALL_AXES INT32_MAX

/* Over one axis (negative: counted from behind) or WEIR_ALL_AXES. `keep`: the axis stays,
 * with extent 1. Not of bool tensors; MEAN of floats only; ARGMAX gives i32. */
WEIR_API weir_result weir_tensor_reduce(weir_reduce reduce, weir_tensor *operand,
                                        int32_t axis, bool keep, weir_tensor **tensor);

/* By name: weir_tensor_reduce_sum(x, axis, keep, &y) and so on. */
#define WEIR_TENSOR_REDUCE(name, number, function, domain)                               \
    static inline weir_result weir_tensor_reduce_##function(                             \
        weir_tensor *operand, int32_t axis, bool keep, weir_tensor **tensor)             \
    {                                                                                    \
        return weir_tensor_reduce(WEIR_REDUCE_##name, operand, axis, keep, tensor);      \
    }
WEIR_REDUCE_LIST(WEIR_TENSOR_REDUCE)
#undef WEIR_TENSOR_REDUCE

/* Along one axis: exp(x) / sum(exp(x)), and its logarithm. Floats. */
WEIR_API weir_result weir_tensor_softmax(weir_tensor *operand, int32_t axis,
                                         weir_tensor **tensor);
WEIR_API weir_result weir_tensor_log_softmax(weir_tensor *operand, int32_t axis,
                                             weir_tensor **tensor);
/* The mean over rows of -log_softmax(logits)[row, targets[row]], a scalar. `logits` are
 * floats, [rows, classes]; `targets` i32, [rows]; one that is no class makes the result
 * a NaN. */
WEIR_API weir_result weir_tensor_cross_entropy(weir_tensor *logits, weir_tensor *targets,
                                               weir_tensor **tensor);

/* ---- matrices ---- */

/* [..., m, k] times [..., k, n]; dimensions before the last two are broadcast. Floats of
 * one dtype, summed in f32. On the host f32 needs OpenBLAS: NOT_FOUND without it, when
 * the queue runs. */
WEIR_API weir_result weir_tensor_matmul(weir_tensor *left, weir_tensor *right,
                                        weir_tensor **tensor);

/* ---- selecting and joining ---- */

/* One after the other along an axis; same dtype, same extents otherwise. */
WEIR_API weir_result weir_tensor_concat(weir_tensor *const *operands, uint32_t count,
                                        int32_t axis, weir_tensor **tensor);
/* `operand` with elements start, start + step... of an axis replaced by those of `part`:
 * weir_tensor_slice the other way round. */
WEIR_API weir_result weir_tensor_place(weir_tensor *operand, int32_t axis, uint64_t start,
                                       int64_t step, weir_tensor *part,
                                       weir_tensor **tensor);
/* Those of the axis whose numbers are in `indices`, i32 and of one dimension. Numbers out
 * of range give NaN, or 0 of i32 and bool. */
WEIR_API weir_result weir_tensor_index_select(weir_tensor *operand, int32_t axis,
                                              weir_tensor *indices, weir_tensor **tensor);
/* For each element of `indices`, i32 and of the operand's rank, the element that has that
 * number on the axis and the same coordinates otherwise; extents off the axis are not
 * larger than the operand's. */
WEIR_API weir_result weir_tensor_gather(weir_tensor *operand, int32_t axis,
                                        weir_tensor *indices, weir_tensor **tensor);
/* `operand` with each element of `source` added where weir_tensor_gather, or with indices
 * of one dimension weir_tensor_index_select, would have read it. Adds in order, so the
 * result is the same every time. Not of bool; numbers out of range are left out. */
WEIR_API weir_result weir_tensor_scatter_add(weir_tensor *operand, int32_t axis,
                                             weir_tensor *indices, weir_tensor *source,
                                             weir_tensor **tensor);

/* ---- views: the same elements in another shape; nothing is copied ---- */

/* As many elements in row-major order. Copies if the operand's elements do not lie so. */
WEIR_API weir_result weir_tensor_reshape(weir_tensor *operand, weir_shape shape,
                                         weir_tensor **tensor);
/* Swaps two axes (negative: counted from behind). */
WEIR_API weir_result weir_tensor_transpose(weir_tensor *operand, int32_t one,
                                           int32_t other, weir_tensor **tensor);
/* Dimension i of the result is dimension axes[i] of the operand. */
WEIR_API weir_result weir_tensor_permute(weir_tensor *operand, const uint32_t *axes,
                                         weir_tensor **tensor);
/* Elements start, start + step... of an axis, `count` of them; step may be negative. */
WEIR_API weir_result weir_tensor_slice(weir_tensor *operand, int32_t axis, uint64_t start,
                                       uint64_t count, int64_t step,
                                       weir_tensor **tensor);
/* To a shape that the operand's can be broadcast to. */
WEIR_API weir_result weir_tensor_expand(weir_tensor *operand, weir_shape shape,
                                        weir_tensor **tensor);

/* ---- life ---- */

/* One more reference on the same tensor; drop each. NULL gives NULL. */
WEIR_API weir_tensor *weir_tensor_clone(weir_tensor *tensor);
/* One reference less. The memory goes back once nothing that waits in the queue needs it.
 * NULL is a no-op. */
WEIR_API void weir_tensor_drop(weir_tensor *tensor);

/* ---- to outside ---- */

/* Runs what the tensor needs, waits and copies out, as floats whatever the dtype;
 * `capacity` in floats must be at least the element count. */
WEIR_API weir_result weir_tensor_into_data(weir_tensor *tensor, float *data,
                                           uint64_t capacity);
/* The same in the tensor's own dtype. */
WEIR_API weir_result weir_tensor_read(weir_tensor *tensor, void *data,
                                      uint64_t capacity_bytes);
/* The only element of a tensor that has one. */
WEIR_API weir_result weir_tensor_item(weir_tensor *tensor, double *value);

/* For people: the elements in brackets, dimension by dimension, then shape, dtype and
 * device. Of dimensions longer than 6 only the first and last 3 are shown if there are
 * more than 1,000 elements. Runs what the tensor needs. */
WEIR_API weir_result weir_tensor_format(weir_tensor *tensor, weir_write_fn write,
                                        void *context);

WEIR_API weir_shape weir_tensor_shape(const weir_tensor *tensor);
WEIR_API weir_dtype weir_tensor_dtype(const weir_tensor *tensor);
WEIR_API uint64_t weir_tensor_element_count(const weir_tensor *tensor);
/* The buffer below, after running what it needs; it stays the tensor's. A view's elements
 * may lie anywhere in it. WEIR_NO_BUFFER after a failure, which weir_last_error() tells.
 */
WEIR_API weir_buffer weir_tensor_buffer(const weir_tensor *tensor);
/* The stream whose queue it belongs to, NULL if its device has been closed. */
WEIR_API weir_stream *weir_tensor_stream(const weir_tensor *tensor);

/* ---- what the queue did: name, what it counts ---- */

#define WEIR_TENSOR_COUNTER_LIST(X)                                                      \
    X(recorded, "operations recorded")                                                   \
    X(skipped, "of these dropped before anybody needed them")                            \
    X(launches, "kernels launched")                                                      \
    X(fused, "operations that shared another one's kernel")                              \
    X(in_place, "results that took over an operand's buffer")                            \
    X(buffers, "buffers made for results")                                               \
    X(argument_writes, "launch arguments written to device memory")

typedef struct weir_tensor_counters {
    size_t size;
#define WEIR_TENSOR_COUNTER_FIELD(name, text) uint64_t name;
    WEIR_TENSOR_COUNTER_LIST(WEIR_TENSOR_COUNTER_FIELD)
#undef WEIR_TENSOR_COUNTER_FIELD
    uint64_t queued; /* operations that wait now */
} weir_tensor_counters;

/* Since the stream's first tensor. `counters->size` is 0 or sizeof(weir_tensor_counters).
 */
WEIR_API weir_result weir_stream_tensor_counters(weir_stream *stream,
                                                 weir_tensor_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
