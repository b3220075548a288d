/* SPDX-License-Identifier: MIT */
/* The operations on tiles: one plain loop each, which compilers turn into vector code. */
#ifndef WR_KERNEL_OPERATION_H
#define WR_KERNEL_OPERATION_H

#include <weir/kernel.h>

/* Values of the first operand and, of operations that have one, of the second. */
typedef struct wr_operands {
    const void *values[2];
    bool is_same; /* the second's values are all equal; only the first is looked at */
} wr_operands;

/* `count` values of an operation with one or two operands; `dtype` is that of the
 * operands. `to` may be an operand. */
void wr_operation_run(weir_op op, weir_dtype dtype, void *to, const wr_operands *operands,
                      uint64_t count);

/* to[i] = condition[i] ? one[i] : other[i], whatever the 4 bytes of a value are. */
void wr_operation_select(void *to, const void *condition, const void *one,
                         const void *other, uint64_t count);

/* How many operand steps an operation has; 0 for the leaves and for what is none. */
uint32_t wr_operation_arity(weir_op op);
/* "add"; "?" for what is none. */
const char *wr_operation_name(weir_op op);

/* The dtype of an operation's value, or false if its operands' dtype is not in its
 * domain. */
bool wr_operation_takes(weir_op op, weir_dtype operand, weir_dtype *result);

#endif
