/* SPDX-License-Identifier: MIT */
/* A kernel in the forms that drivers understand. A driver uses the form it knows and
 * answers UNSUPPORTED if that one is missing. */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_kernel {
    const char *name;
    /* Host form: work on elements [begin, end). Called from several threads with disjoint
     * ranges; begins are multiples of 4,096. */
    void (*host)(const void *arguments, uint64_t begin, uint64_t end);
    const char *cuda; /* CUDA C source of an extern "C" kernel with this name, or NULL */
    const char *wgsl; /* WGSL source, or NULL */
} weir_kernel;

#ifdef __cplusplus
}
#endif
#endif
