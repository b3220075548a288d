/* SPDX-License-Identifier: MIT */
#ifndef WR_KERNEL_NAMED_H
#define WR_KERNEL_NAMED_H

#include <weir/kernel.h>

/* The kernel of a kind that is no expression, for elements of a dtype; it lives as long
 * as the process. NULL if there is none. */
const weir_kernel *wr_named_find(weir_kernel_kind kind, weir_dtype dtype);

#endif
