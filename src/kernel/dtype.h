/* SPDX-License-Identifier: MIT */
/* Element types: their sizes and names, and how elements in memory become values in a
 * tile and back. Values are 4 bytes each: float for f32, f16 and bf16, int32_t for i32
 * and bool (0 or 1). No state, no lock. */
#ifndef WR_KERNEL_DTYPE_H
#define WR_KERNEL_DTYPE_H

#include <weir/kernel.h>

#include <string.h>

/* Values worked on at once: a few such tiles fit into the first cache. */
#define WR_TILE 1024u

/* On cache lines, so that no vector lies in two. */
typedef union wr_tile {
    _Alignas(64) float f32[WR_TILE];
    int32_t i32[WR_TILE];
} wr_tile;

/* For loops whose iterations touch element i of everything and no other: outputs may be
 * operands, so `restrict` would lie. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* loops that call the C library */
#define WR_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define WR_VECTORIZE _Pragma("GCC ivdep")
#endif

/* Compiled twice, and chosen when the program is loaded: with the vectors of every 64-bit
 * PC, and with those of the last ten years. Not by Clang, whose choosers are visible from
 * outside, and not with sanitizers, which do not stand the choosing. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                  \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define WR_CLONES
#endif

/* 0 for a number that is no dtype. */
uint32_t wr_dtype_bytes(weir_dtype dtype);
/* "f32"; "?" for a number that is no dtype. */
const char *wr_dtype_name(weir_dtype dtype);

static inline bool wr_dtype_is_float(weir_dtype dtype)
{
    return dtype <= WEIR_DTYPE_BF16;
}

/* Whether elements in memory are values as they stand. */
static inline bool wr_dtype_is_value(weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_F32 || dtype == WEIR_DTYPE_I32;
}

/* Round to nearest, ties to even; NaN stays NaN. */
uint16_t wr_f16_from_f32(float value);
float wr_f32_from_f16(uint16_t half);
uint16_t wr_bf16_from_f32(float value);

static inline float wr_f32_from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* A strided run of elements, `stride` elements apart, to values. */
void wr_dtype_load(weir_dtype dtype, void *values, const void *elements, int64_t stride,
                   uint64_t count);
/* Values to elements side by side. */
void wr_dtype_store(weir_dtype dtype, void *elements, const void *values, uint64_t count);
/* Values of one dtype to values of another. float to i32 cuts off, keeps to i32's range,
 * and makes 0 of NaN. */
void wr_dtype_cast(weir_dtype to_dtype, void *to, weir_dtype from_dtype, const void *from,
                   uint64_t count);

#endif
