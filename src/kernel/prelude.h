/* SPDX-License-Identifier: MIT */
/* CUDA C that is the same for all expressions; what cuda_source.c writes calls it. */
#ifndef WR_KERNEL_PRELUDE_H
#define WR_KERNEL_PRELUDE_H

extern const char *const wr_cuda_prelude;    /* types, memory, operations */
extern const char *const wr_cuda_random;     /* Philox and what is made of it */
extern const char *const wr_cuda_reductions; /* combining, within a block and after it */

#endif
