/* SPDX-License-Identifier: MIT */
/* CUDA C that is the same for all expressions; what cuda_source.c writes calls it. */
#ifndef WR_KERNEL_PRELUDE_H
#define WR_KERNEL_PRELUDE_H

extern const char *const wr_cuda_prelude;    /* types, memory, operations */
extern const char *const wr_cuda_random;     /* Philox and what is made of it */
extern const char *const wr_cuda_reductions; /* what gathers values, for each kind */
extern const char *const wr_cuda_blocks;     /* combining in a block, by A and both() */
extern const char *const wr_cuda_moves;      /* GATHER, SCATTER_ADD and PLACE */

#endif
