/* SPDX-License-Identifier: MIT */
/* What operations on elements give, in double and written apart from the library. */
#ifndef WR_TESTS_SUPPORT_OPERATIONS_H
#define WR_TESTS_SUPPORT_OPERATIONS_H

#include <weir/kernel.h>

/* Of floats and, if the operands are 0 or 1, of bool; for operations with one operand `b`
 * is not looked at. Fails the test for an operation that is not in it. */
double operation_reference(weir_op op, double a, double b);

/* Of a dtype: operands are cut to integers first, or taken as truth. */
double operation_reference_of(weir_op op, weir_dtype dtype, double a, double b);

#endif
