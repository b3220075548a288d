/* SPDX-License-Identifier: MIT */
/* cuBLAS thinks in columns: what is row-major to us is transposed to it, and so the
 * product of the operands, swapped, is our result. */
#define _GNU_SOURCE
#include "cublas.h"

#include "library.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* cuBLAS uses it to split long sums; what it takes by itself is 32 MiB on a Hopper. */
#define MOST_WORKSPACE ((uint64_t)32 << 20)
#define LEAST_WORKSPACE ((uint64_t)256 << 10)
#define SPLITS 8

static const wr_cuda_library cublas_library = {
    .variable = "WEIR_CUBLAS_LIBRARY",
    .names = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"},
    .what_to_do = "install cuBLAS (Debian: libcublas12; pip: nvidia-cublas)",
};

static weir_result check(int status, const char *call)
{
    return status == 0 ? WEIR_OK
           : status == WR_CUBLAS_NO_MEMORY
               ? wr_error(WEIR_OUT_OF_MEMORY,
                          "cuda: matmul: %s finds no device memory for itself", call)
               : wr_error(WEIR_DRIVER, "cuda: matmul: %s says %d (cublasStatus_t)", call,
                          status);
}

/* With the mutex held. */
static weir_result open_handle(wr_cublas *cublas)
{
    const wr_cuda_symbol symbols[] = {
#define SYMBOL(name, symbol, parameters) {#symbol, &cublas->name},
        WR_CUBLAS_LIST(SYMBOL)
#undef SYMBOL
    };
    if (cublas->handle != NULL) {
        return WEIR_OK;
    }
    WR_TRY(wr_cuda_library_load(&cublas_library, symbols,
                                sizeof symbols / sizeof symbols[0]));
    const char *tf32 = secure_getenv("WEIR_CUDA_TF32");
    cublas->allows_tf32 = tf32 != NULL && strcmp(tf32, "1") == 0;
    return check(cublas->create(&cublas->handle), "cublasCreate");
}

/* ---- a product in cuBLAS's words ---- */

typedef struct matrix {
    const void *elements;
    int form;
    int lead;
    long long stride; /* between those of a batch */
} matrix;

static bool is_f32(const weir_launch *launch)
{
    return launch->kernel->dtype == WEIR_DTYPE_F32;
}

static int type_of(const weir_launch *launch)
{
    return is_f32(launch)                            ? WR_CUBLAS_F32
           : launch->kernel->dtype == WEIR_DTYPE_F16 ? WR_CUBLAS_F16
                                                     : WR_CUBLAS_BF16;
}

static matrix matrix_of(const weir_launch *launch, uint32_t binding,
                        const weir_matmul_operand *operand)
{
    int64_t bytes = is_f32(launch) ? 4 : 2;
    bool row_major = operand->column_stride == 1;
    return (matrix){
        .elements = (const char *)(uintptr_t)launch->bindings[binding].address +
                    operand->offset * bytes,
        .form = row_major ? WR_CUBLAS_PLAIN : WR_CUBLAS_TRANSPOSED,
        .lead = (int)(row_major ? operand->row_stride : operand->column_stride),
        .stride = operand->batch_stride,
    };
}

/* With the mutex held. */
static weir_result multiply(const wr_cublas *cublas, const weir_launch *launch)
{
    const weir_matmul_words *words = launch->arguments;
    const float one = 1;
    const float none = 0;
    int type = type_of(launch);
    int compute =
        type == WR_CUBLAS_F32 && cublas->allows_tf32 ? WR_CUBLAS_TF32 : WR_CUBLAS_EXACT;
    matrix left = matrix_of(launch, 0, &words->left);
    matrix right = matrix_of(launch, 1, &words->right);
    return check(cublas->product(cublas->handle, right.form, left.form,
                                 (int)words->columns, (int)words->rows, (int)words->inner,
                                 &one, right.elements, type, right.lead, right.stride,
                                 left.elements, type, left.lead, left.stride, &none,
                                 (void *)(uintptr_t)launch->bindings[2].address, type,
                                 (int)words->columns, words->rows * words->columns,
                                 (int)words->batch_count, compute, WR_CUBLAS_ANY),
                 "cublasGemmStridedBatchedEx");
}

/* Setting the stream takes the workspace away, so that is set each time. */
static weir_result run(wr_cublas *cublas, wr_cu_stream stream, const weir_launch *launch)
{
    WR_TRY(open_handle(cublas));
    WR_TRY(check(cublas->set_stream(cublas->handle, stream), "cublasSetStream"));
    WR_TRY(check(cublas->set_workspace(cublas->handle,
                                       (void *)(uintptr_t)launch->workspace_address,
                                       launch->workspace_bytes),
                 "cublasSetWorkspace"));
    return multiply(cublas, launch);
}

weir_result wr_cublas_run(wr_cublas *cublas, wr_cu_stream stream,
                          const weir_launch *launch)
{
    if (launch->binding_count != 3 ||
        launch->argument_bytes != sizeof(weir_matmul_words)) {
        return wr_error(
            WEIR_INVALID,
            "cuda: kernel \"%s\" with %zu bindings and %zu bytes of arguments; "
            "a product has 3 and %zu",
            launch->kernel->name, launch->binding_count, launch->argument_bytes,
            sizeof(weir_matmul_words));
    }
    pthread_mutex_lock(&cublas->mutex);
    weir_result result = run(cublas, stream, launch);
    pthread_mutex_unlock(&cublas->mutex);
    return result;
}

uint64_t wr_cublas_workspace(const weir_launch *launch)
{
    const weir_matmul_words *words = launch->arguments;
    if (launch->argument_bytes != sizeof *words) {
        return 0;
    }
    uint64_t one = (uint64_t)words->rows * (uint64_t)words->columns;
    uint64_t few = MOST_WORKSPACE / sizeof(float) / SPLITS; /* elements that fill it */
    if (one >= few || (uint64_t)words->batch_count >= few / one) {
        return MOST_WORKSPACE;
    }
    uint64_t bytes = one * (uint64_t)words->batch_count * sizeof(float) * SPLITS;
    return bytes > LEAST_WORKSPACE ? bytes : LEAST_WORKSPACE;
}

void wr_cublas_finish(wr_cublas *cublas)
{
    if (cublas->handle != NULL) {
        (void)cublas->destroy(cublas->handle);
        cublas->handle = NULL;
    }
}
