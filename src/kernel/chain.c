/* SPDX-License-Identifier: MIT */
#include "chain.h"

#include "dtype.h"

#include <math.h>

/* Operation, name. */
#define CHAIN_UNARY(X)                                                                   \
    X(NEG, neg)                                                                          \
    X(ABS, abs)                                                                          \
    X(SQRT, sqrt)                                                                        \
    X(RSQRT, rsqrt)                                                                      \
    X(RECIP, recip)                                                                      \
    X(RELU, relu)
#define CHAIN_BINARY(X)                                                                  \
    X(ADD, add)                                                                          \
    X(SUB, sub)                                                                          \
    X(MUL, mul)                                                                          \
    X(DIV, div)                                                                          \
    X(MIN, min)                                                                          \
    X(MAX, max)

/* GCC notes that calls with vectors were once made differently; these are ours alone. */
#pragma GCC diagnostic ignored "-Wpsabi"

#if defined(__x86_64__)
#include <immintrin.h>

#define CHAIN_BYTES 16
#define CHAIN_TARGET
#define CHAIN_NAME(name) narrow_##name
#define CHAIN_SQRT(v) ((vec)_mm_sqrt_ps((__m128)(v)))
#define CHAIN_STREAM(to, v) _mm_stream_ps((float *)(void *)(to), (__m128)(v))
#include "chain_links.h"

#define CHAIN_BYTES 32
#define CHAIN_TARGET __attribute__((target("avx2")))
#define CHAIN_NAME(name) wide_##name
#define CHAIN_SQRT(v) ((vec)_mm256_sqrt_ps((__m256)(v)))
#define CHAIN_STREAM(to, v) _mm256_stream_ps((float *)(void *)(to), (__m256)(v))
#include "chain_links.h"

void wr_chain_run(const wr_chain *chain, uint64_t count)
{
    if (__builtin_cpu_supports("avx2")) {
        wide_run(chain, count);
    } else {
        narrow_run(chain, count);
    }
}

void wr_chain_settle(void)
{
    _mm_sfence();
}

#else

typedef float four __attribute__((vector_size(16)));

static inline four sqrt_of_four(four v)
{
    return (four){sqrtf(v[0]), sqrtf(v[1]), sqrtf(v[2]), sqrtf(v[3])};
}

#define CHAIN_BYTES 16
#define CHAIN_TARGET
#define CHAIN_NAME(name) narrow_##name
#define CHAIN_SQRT(v) sqrt_of_four(v)
#define CHAIN_STREAM(to, v) (*(element *)(void *)(to) = (element)(v))
#include "chain_links.h"

void wr_chain_run(const wr_chain *chain, uint64_t count)
{
    narrow_run(chain, count);
}

void wr_chain_settle(void)
{
}

#endif

bool wr_chain_takes(weir_op op, weir_dtype operand)
{
    switch (op) {
#define TAKES(op, name) case WEIR_OP_##op:
        CHAIN_UNARY(TAKES)
        CHAIN_BINARY(TAKES)
        return wr_dtype_is_float(operand);
#undef TAKES
    default:
        return false;
    }
}
