/* SPDX-License-Identifier: MIT */
/* Gradients, by reverse mode.
 *
 *     weir_tensor_track(x, &w);                      w: a leaf, with x's elements
 *     weir_tensor_mul(w, data, &t);                  t remembers how it was made
 *     weir_tensor_reduce(WEIR_REDUCE_SUM, t, WEIR_ALL_AXES, false, &loss);
 *     weir_tensor_backward(loss, NULL);
 *     weir_tensor_gradient(w, &gradient);            d loss / d w
 *
 * What a tracked tensor takes part in is written on the tape: an entry for each result,
 * with the operands that backward will need. An entry belongs to the tensors that were
 * made by it or from it, so what no live tensor can reach is gone at once, and a program
 * that only goes forward does not grow. Backward uses its entries up.
 *
 * Results that the tape keeps carry the tag "autodiff", as gradients do. Kept operands
 * count as seen by somebody: nothing is done in place on them. */
#ifndef WEIR_AUTODIFF_H
#define WEIR_AUTODIFF_H

#include <weir/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same elements as a leaf: a tensor that gradients are wanted for, whatever the
 * operand was made from. INVALID if it is not of floats. */
WEIR_API weir_result weir_tensor_track(weir_tensor *operand, weir_tensor **tensor);
/* The same elements, untracked. */
WEIR_API weir_result weir_tensor_detach(weir_tensor *operand, weir_tensor **tensor);
/* Whether it is a leaf or was made from one by operations that have a gradient. */
WEIR_API bool weir_tensor_is_tracked(const weir_tensor *tensor);

/* Between pause and resume nothing that this thread computes is tracked. Scopes nest.
 * INVALID for a resume without a pause. */
WEIR_API weir_result weir_tape_pause(void);
WEIR_API weir_result weir_tape_resume(void);

typedef struct weir_backward_desc {
    size_t size;
    weir_tensor *gradient; /* of what is wanted with respect to the tensor, in its shape
                              and dtype; NULL: 1, if the tensor has one element */
    bool keep_tape;        /* the entries stay, for another backward */
} weir_backward_desc;

/* Adds to the gradient of every leaf that the tensor was made from. Only records, as all
 * operations do. After a failure no gradient has changed, but without keep_tape the
 * entries are used up. INVALID for an untracked tensor, and where an earlier backward has
 * used up the tape; BUSY while another thread's backward is using it. */
WEIR_API weir_result weir_tensor_backward(weir_tensor *tensor,
                                          const weir_backward_desc *desc);

/* A leaf's gradient so far, a new reference; the caller drops it. NOT_FOUND if no
 * backward has come to it, INVALID if it is no leaf. */
WEIR_API weir_result weir_tensor_gradient(const weir_tensor *leaf,
                                          weir_tensor **gradient);
/* Forgets the gradient; there may be none. */
WEIR_API weir_result weir_tensor_gradient_clear(weir_tensor *leaf);

#ifdef __cplusplus
}
#endif
#endif
