/* SPDX-License-Identifier: MIT */
/* Matrix products through cuBLAS. Signatures and numbers are those of cublas_api.h 13.0;
 * all entries are there since CUDA 11.
 *
 * f32 is computed in f32: WEIR_CUDA_TF32=1 allows tensor cores and their 10 bits of
 * mantissa instead. f16 and bf16 are multiplied by tensor cores and summed in f32.
 *
 * One handle for the device. `mutex` guards it, as it holds the stream and the workspace
 * of the call that is being made. */
#ifndef WR_DRIVER_CUDA_CUBLAS_H
#define WR_DRIVER_CUDA_CUBLAS_H

#include "api.h"

#include <weir/kernel.h>

#include <pthread.h>

typedef struct wr_cublas_handle_opaque *wr_cublas_handle; /* cublasHandle_t */

/* Entry, symbol, parameters. All return cublasStatus_t. */
#define WR_CUBLAS_LIST(X)                                                                \
    X(create, cublasCreate_v2, (wr_cublas_handle * handle))                              \
    X(destroy, cublasDestroy_v2, (wr_cublas_handle handle))                              \
    X(set_stream, cublasSetStream_v2, (wr_cublas_handle handle, wr_cu_stream stream))    \
    X(set_workspace, cublasSetWorkspace_v2,                                              \
      (wr_cublas_handle handle, void *workspace, size_t bytes))                          \
    X(product, cublasGemmStridedBatchedEx,                                               \
      (wr_cublas_handle handle, int transpose_a, int transpose_b, int m, int n, int k,   \
       const void *alpha, const void *a, int a_type, int a_lead, long long a_stride,     \
       const void *b, int b_type, int b_lead, long long b_stride, const void *beta,      \
       void *c, int c_type, int c_lead, long long c_stride, int batch_count,             \
       int compute_type, int algorithm))

enum {
    WR_CUBLAS_PLAIN = 0,      /* CUBLAS_OP_N */
    WR_CUBLAS_TRANSPOSED = 1, /* CUBLAS_OP_T */
    WR_CUBLAS_F32 = 0,        /* CUDA_R_32F */
    WR_CUBLAS_F16 = 2,        /* CUDA_R_16F */
    WR_CUBLAS_BF16 = 14,      /* CUDA_R_16BF */
    WR_CUBLAS_EXACT = 68,     /* CUBLAS_COMPUTE_32F */
    WR_CUBLAS_TF32 = 77,      /* CUBLAS_COMPUTE_32F_FAST_TF32 */
    WR_CUBLAS_ANY = -1,       /* CUBLAS_GEMM_DEFAULT */
    WR_CUBLAS_NO_MEMORY = 3,  /* CUBLAS_STATUS_ALLOC_FAILED */
};

typedef struct wr_cublas {
#define WR_CUBLAS_ENTRY(name, symbol, parameters) int(*name) parameters;
    WR_CUBLAS_LIST(WR_CUBLAS_ENTRY)
#undef WR_CUBLAS_ENTRY
    wr_cublas_handle handle; /* NULL until the first product */
    bool allows_tf32;
    pthread_mutex_t mutex; /* guards all above */
} wr_cublas;

/* What a product wants: in proportion to the result, at most 32 MiB. */
uint64_t wr_cublas_workspace(const weir_launch *launch);

/* Runs a launch of kind MATMUL on a stream, the device's context being current. Loads the
 * library ($WEIR_CUBLAS_LIBRARY, or libcublas.so of CUDA 13, 12 or 11) the first time;
 * UNSUPPORTED if there is none. */
weir_result wr_cublas_run(wr_cublas *cublas, wr_cu_stream stream,
                          const weir_launch *launch);

/* Inside the device's context. */
void wr_cublas_finish(wr_cublas *cublas);

#endif
