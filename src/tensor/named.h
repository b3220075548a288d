/* SPDX-License-Identifier: MIT */
/* Nodes that are no expressions: matrix products, elements by index, parts put together.
 * Each is a launch of its own. */
#ifndef WR_TENSOR_NAMED_H
#define WR_TENSOR_NAMED_H

#include <weir/kernel.h>
#include <weir/tensor.h>

typedef struct wr_queue wr_queue;
typedef struct wr_node wr_node;

typedef struct wr_named {
    weir_kernel_kind kind;
    weir_dtype dtype;  /* of the elements */
    bool result_first; /* in the kernel's bindings; else it is the last */
    bool has_target;   /* operand 0 is what the result was before: its buffer is taken
                          over, or copied if somebody else can see it */
    uint32_t axis;     /* what the public function was told, for whoever listens */
    uint64_t start;    /* PLACE: the same */
    int64_t step;      /* PLACE: the same */
    uint64_t element_count; /* of the launch */
    uint64_t element_work;
    size_t word_bytes;
    union {
        weir_matmul_words matmul;
        weir_move_words move;
    } words;
} wr_named;

/* Launches the node, whose operands are READY. Then its result is; on failure nothing has
 * changed. Under the queue's lock. */
weir_result wr_named_run(wr_queue *queue, wr_node *node);

#endif
