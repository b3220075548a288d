/* SPDX-License-Identifier: MIT */
/* The one way in: every operation that makes new elements is a call, whatever public
 * function it came from. Here operands are checked for their device and their state,
 * broadcast, and recorded; here is the place for whoever wants to hear of operations. */
#ifndef WR_TENSOR_CALL_H
#define WR_TENSOR_CALL_H

#include "tensor.h"

typedef struct wr_call {
    const char *who; /* the public function, for error texts */
    weir_op op;      /* or, if there is one, `reduce`... */
    weir_reduce reduce;
    const wr_named *named; /* or this; copied */
    uint32_t reduced_axes; /* a bit for each of the operand's dimensions */
    bool keep;             /* reduced axes stay, with extent 1 */
    weir_dtype dtype;      /* of the result */
    weir_shape shape;      /* what operands are broadcast to; a reduction's operand's */
    uint32_t operand_count;
    weir_tensor *operands[WR_NODE_OPERANDS]; /* not NULL */
    uint32_t scalar_count;
    int32_t scalars[WR_NODE_SCALARS];
} wr_call;

/* Records the call in the queue of `stream`, or if that is NULL of its first operand's.
 */
weir_result wr_call_record(const wr_call *call, weir_stream *stream,
                           weir_tensor **tensor);

/* The same, and runs it: for tensors that come from outside. */
weir_result wr_call_run(const wr_call *call, weir_stream *stream, weir_tensor **tensor);

/* Runs what a recorded tensor needs, and nothing else. */
weir_result wr_call_settle(weir_tensor *tensor);

/* A recorded copy in row-major order, broadcast to a shape. */
weir_result wr_call_copy(const char *who, weir_tensor *operand, const weir_shape *shape,
                         weir_tensor **tensor);

#endif
