/* SPDX-License-Identifier: MIT */
/* OpenBLAS, loaded when the first matrix product runs on the host. It stays loaded, and
 * uses threads of its own. Any thread. */
#ifndef WR_KERNEL_BLAS_H
#define WR_KERNEL_BLAS_H

#include <weir/base.h>

/* cblas_sgemm, with CBLAS's numbers for its choices. */
enum { WR_BLAS_ROW_MAJOR = 101, WR_BLAS_PLAIN = 111, WR_BLAS_TRANSPOSED = 112 };

typedef void (*wr_blas_sgemm)(int order, int left_form, int right_form, int rows,
                              int columns, int inner, float factor, const float *left,
                              int left_lead, const float *right, int right_lead,
                              float keep, float *result, int result_lead);

/* NOT_FOUND if there is no such library, INVALID if WEIR_BLAS_LIBRARY is no absolute
 * path. */
weir_result wr_blas_load(void);

/* After wr_blas_load() has succeeded. */
wr_blas_sgemm wr_blas_get(void);

#endif
