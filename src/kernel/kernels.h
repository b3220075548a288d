/* SPDX-License-Identifier: MIT */
/* The kernels of the tensor layer and what each takes. Addresses are device addresses of
 * f32 elements; an output never overlaps an input. Arguments go by value with every
 * launch. */
#ifndef WR_KERNEL_KERNELS_H
#define WR_KERNEL_KERNELS_H

#include <weir/kernel.h>

/* Element i comes from word i % 4 of Philox counter i / 4 under the key `seed`. */
typedef struct wr_random_arguments {
    uint64_t output;
    uint64_t seed;
    float first;  /* uniform: low; normal: mean */
    float second; /* uniform: high; normal: deviation */
} wr_random_arguments;

typedef struct wr_fill_arguments {
    uint64_t output;
    float value;
} wr_fill_arguments;

typedef struct wr_add_scalar_arguments {
    uint64_t output;
    uint64_t left;
    float right;
} wr_add_scalar_arguments;

typedef struct wr_add_arguments {
    uint64_t output;
    uint64_t left;
    uint64_t right;
} wr_add_arguments;

extern const weir_kernel wr_kernel_uniform;
extern const weir_kernel wr_kernel_normal;
extern const weir_kernel wr_kernel_fill;
extern const weir_kernel wr_kernel_add_scalar;
extern const weir_kernel wr_kernel_add;

#endif
