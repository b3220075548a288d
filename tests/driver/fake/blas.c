/* SPDX-License-Identifier: MIT */
/* A cuBLAS that multiplies on the host, one element after the other, by the book: columns
 * first, and sums in double. It wants its workspace to be given. */
#include "state.h"

#include "driver/cuda/cublas.h"

#include <stdlib.h>
#include <string.h>

#define DECLARE_BLAS(name, symbol, parameters) EXPORT int symbol parameters;
WR_CUBLAS_LIST(DECLARE_BLAS)
#undef DECLARE_BLAS

enum {
    BLAS_SUCCESS = 0,
    BLAS_NOT_INITIALIZED = 1,
    BLAS_INVALID_VALUE = 7,
};

struct wr_cublas_handle_opaque {
    wr_cu_stream stream;
    size_t workspace_bytes;
};

int cublasCreate_v2(wr_cublas_handle *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? BLAS_SUCCESS : WR_CUBLAS_NO_MEMORY;
}

int cublasDestroy_v2(wr_cublas_handle handle)
{
    free(handle);
    return BLAS_SUCCESS;
}

int cublasSetStream_v2(wr_cublas_handle handle, wr_cu_stream stream)
{
    handle->stream = stream;
    handle->workspace_bytes = 0;
    return BLAS_SUCCESS;
}

int cublasSetWorkspace_v2(wr_cublas_handle handle, void *workspace, size_t bytes)
{
    handle->workspace_bytes = bytes;
    return (uintptr_t)workspace % 256 == 0 ? BLAS_SUCCESS : BLAS_INVALID_VALUE;
}

/* ---- elements ---- */

/* f16: 5 bits of exponent, 10 of mantissa; bf16: the upper half of f32. */
static double half_of(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023;
    double size = exponent == 0 ? mantissa / 16777216
                                : (1024 + mantissa) / 1024 *
                                      (exponent >= 15 ? (double)(1u << (exponent - 15))
                                                      : 1.0 / (1u << (15 - exponent)));
    return (bits & 0x8000) != 0 ? -size : size;
}

static double get(const void *elements, int type, long long i)
{
    uint16_t bits = type == WR_CUBLAS_F32 ? 0 : ((const uint16_t *)elements)[i];
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return type == WR_CUBLAS_F32   ? (double)((const float *)elements)[i]
           : type == WR_CUBLAS_F16 ? half_of(bits)
                                   : (double)value;
}

/* Of the two neighbours of a 16-bit element the nearer one, by trying. */
static uint16_t nearest(double value, int type)
{
    uint16_t sign = value < 0 ? 0x8000 : 0;
    uint16_t low = 0;
    uint16_t high = type == WR_CUBLAS_F16 ? 0x7BFF : 0x7F7F;
    double size = value < 0 ? -value : value;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (get(&middle, type, 0) <= size) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double under = size - get(&low, type, 0);
    double over = get(&high, type, 0) - size;
    bool is_low = under < over || (under == over && low % 2 == 0);
    return (uint16_t)(sign | (is_low ? low : high));
}

static void put(void *elements, int type, long long i, double value)
{
    if (type == WR_CUBLAS_F32) {
        ((float *)elements)[i] = (float)value;
    } else {
        ((uint16_t *)elements)[i] = nearest(value, type);
    }
}

/* ---- products ---- */

static long long place(int form, int lead, int row, int column)
{
    return form == WR_CUBLAS_PLAIN ? row + (long long)column * lead
                                   : column + (long long)row * lead;
}

/* A leading extent must hold a column. */
static bool is_wrong(int form, int lead, int rows, int columns)
{
    return lead < (form == WR_CUBLAS_PLAIN ? rows : columns) ||
           (form != WR_CUBLAS_PLAIN && form != WR_CUBLAS_TRANSPOSED);
}

int cublasGemmStridedBatchedEx(wr_cublas_handle handle, int transpose_a, int transpose_b,
                               int m, int n, int k, const void *alpha, const void *a,
                               int a_type, int a_lead, long long a_stride, const void *b,
                               int b_type, int b_lead, long long b_stride,
                               const void *beta, void *c, int c_type, int c_lead,
                               long long c_stride, int batch_count, int compute_type,
                               int algorithm)
{
    if (handle->stream == NULL || handle->workspace_bytes == 0) {
        return BLAS_NOT_INITIALIZED;
    }
    if (is_wrong(transpose_a, a_lead, m, k) || is_wrong(transpose_b, b_lead, k, n) ||
        c_lead < m || compute_type != WR_CUBLAS_EXACT || algorithm != WR_CUBLAS_ANY ||
        *(const float *)alpha != 1.0F || *(const float *)beta != 0.0F) {
        return BLAS_INVALID_VALUE;
    }
    for (int batch = 0; batch < batch_count; batch++) {
        for (int column = 0; column < n; column++) {
            for (int row = 0; row < m; row++) {
                double sum = 0;
                for (int i = 0; i < k; i++) {
                    sum += get(a, a_type,
                               batch * a_stride + place(transpose_a, a_lead, row, i)) *
                           get(b, b_type,
                               batch * b_stride + place(transpose_b, b_lead, i, column));
                }
                put(c, c_type, batch * c_stride + row + (long long)column * c_lead, sum);
            }
        }
    }
    return BLAS_SUCCESS;
}
