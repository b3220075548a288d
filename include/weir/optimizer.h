/* SPDX-License-Identifier: MIT */
/* Optimizers: from gradients to new parameters.
 *
 *     weir_tensor *parameters[2] = {weights, bias};         leaves
 *     weir_optimizer_create_adamw(parameters, 2, NULL, &optimizer);
 *     loop:  loss = ... parameters[0] ... parameters[1] ...
 *            weir_tensor_backward(loss, NULL);
 *            weir_tensor_drop(loss);
 *            weir_optimizer_step(optimizer, 1e-3);
 *
 * A step puts a new leaf in the place of each parameter, under the old one's tag and
 * without a gradient, and drops the old one. If nobody else holds it, and the loss has
 * been dropped, the step is one kernel per parameter that works in place. */
#ifndef WEIR_OPTIMIZER_H
#define WEIR_OPTIMIZER_H

#include <weir/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_optimizer weir_optimizer;

/* w -= rate * v, with v = momentum * v + g. Sutskever et al., ICML 2013, as PyTorch has
 * it. */
typedef struct weir_sgd_desc {
    size_t size;
    double momentum;     /* 0: none, and no memory for it */
    double weight_decay; /* g is gradient + weight_decay * w */
    bool nesterov;       /* w -= rate * (g + momentum * v) */
} weir_sgd_desc;

/* Loshchilov and Hutter, ICLR 2019. */
typedef struct weir_adamw_desc {
    size_t size;
    double beta1;        /* 0: 0.9 */
    double beta2;        /* 0: 0.999 */
    double epsilon;      /* 0: 1e-8 */
    double weight_decay; /* 0: none */
} weir_adamw_desc;

/* For leaves; the array is the caller's and must stay as long as the optimizer. What the
 * optimizer remembers is f32, on the parameters' streams, under the tag "optimizer", and
 * there from the start. `desc` NULL: zeros. Errors: INVALID (no leaf, a number out of
 * range), those of weir_tensor_zeros. */
WEIR_API weir_result weir_optimizer_create_sgd(weir_tensor **parameters, size_t count,
                                               const weir_sgd_desc *desc,
                                               weir_optimizer **optimizer);
WEIR_API weir_result weir_optimizer_create_adamw(weir_tensor **parameters, size_t count,
                                                 const weir_adamw_desc *desc,
                                                 weir_optimizer **optimizer);

/* One step for each parameter that has a gradient; INVALID if none has. Only records.
 * After a failure the parameters that were done have no gradient any more, so the same
 * call again goes on where it stopped. */
WEIR_API weir_result weir_optimizer_step(weir_optimizer *optimizer, double rate);

/* The parameters stay. NULL is a no-op. */
WEIR_API void weir_optimizer_destroy(weir_optimizer *optimizer);

#ifdef __cplusplus
}
#endif
#endif
