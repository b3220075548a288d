/* SPDX-License-Identifier: MIT */
/* Expressions on the host: an interpreter over tiles. A tile of every step's values is in
 * the first cache, an instruction is one loop over it, and elements in memory are used
 * where they lie if they are values as they stand. */
#ifndef WR_KERNEL_INTERPRET_H
#define WR_KERNEL_INTERPRET_H

#include "plan.h"

/* An expression's kernel. What outsiders see comes first. */
typedef struct wr_expression_kernel {
    weir_kernel base;
    weir_expression expression;
    wr_plan plan;
    char name[24];
} wr_expression_kernel;

/* The host form of every expression's kernel. */
void wr_interpret(const weir_launch *launch, uint64_t begin, uint64_t end);

#endif
