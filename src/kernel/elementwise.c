/* SPDX-License-Identifier: MIT */
/* Fill and add: one plain loop each, which compilers turn into vector code. */
#include "kernels.h"

static void fill_on_host(const void *arguments, uint64_t begin, uint64_t end)
{
    const wr_fill_arguments *take = arguments;
    float *output = (float *)(uintptr_t)take->output;
    float value = take->value;
    for (uint64_t i = begin; i < end; i++) {
        output[i] = value;
    }
}

static void add_scalar_on_host(const void *arguments, uint64_t begin, uint64_t end)
{
    const wr_add_scalar_arguments *take = arguments;
    float *restrict output = (float *)(uintptr_t)take->output;
    const float *left = (const float *)(uintptr_t)take->left;
    float right = take->right;
    for (uint64_t i = begin; i < end; i++) {
        output[i] = left[i] + right;
    }
}

static void add_on_host(const void *arguments, uint64_t begin, uint64_t end)
{
    const wr_add_arguments *take = arguments;
    float *restrict output = (float *)(uintptr_t)take->output;
    const float *left = (const float *)(uintptr_t)take->left;
    const float *right = (const float *)(uintptr_t)take->right;
    for (uint64_t i = begin; i < end; i++) {
        output[i] = left[i] + right[i];
    }
}

const weir_kernel wr_kernel_fill = {.name = "fill_f32", .host = fill_on_host};
const weir_kernel wr_kernel_add_scalar = {.name = "add_scalar_f32",
                                          .host = add_scalar_on_host};
const weir_kernel wr_kernel_add = {.name = "add_f32", .host = add_on_host};
