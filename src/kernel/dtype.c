/* SPDX-License-Identifier: MIT */
#include "dtype.h"

uint32_t wr_dtype_bytes(weir_dtype dtype)
{
    switch (dtype) {
#define BYTES(name, number, text, bytes)                                                 \
    case WEIR_DTYPE_##name:                                                              \
        return bytes;
        WEIR_DTYPE_LIST(BYTES)
#undef BYTES
    }
    return 0;
}

const char *wr_dtype_name(weir_dtype dtype)
{
    switch (dtype) {
#define TEXT(name, number, text, bytes)                                                  \
    case WEIR_DTYPE_##name:                                                              \
        return text;
        WEIR_DTYPE_LIST(TEXT)
#undef TEXT
    }
    return "?";
}

/* ---- 16-bit floats ---- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Below the normal numbers the float adder rounds: 0.5 has its last place where f16's
 * smallest number is. Above, half a last place is added by hand, ties to even. */
uint16_t wr_f16_from_f32(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t size = bits & 0x7FFFFFFF;
    if (size >= 0x47800000) { /* 65536 and more, infinity, NaN */
        return (uint16_t)(sign | (size > 0x7F800000 ? 0x7E00 : 0x7C00));
    }
    if (size < 0x38800000) { /* below f16's normal numbers */
        return (uint16_t)(sign | (bits_of(float_of(size) + 0.5F) - bits_of(0.5F)));
    }
    uint32_t rounded = size + 0xFFF + (size >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

float wr_f32_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t size = half & 0x7FFF;
    float value = float_of(size << 13) * 0x1p112F; /* exact, subnormal numbers too */
    uint32_t bits = size >= 0x7C00 ? 0x7F800000 | (size & 0x3FF) << 13 : bits_of(value);
    return float_of(sign | bits);
}

uint16_t wr_bf16_from_f32(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* ---- memory to values and back ---- */

#define LOAD(value_type, element_type, convert)                                          \
    do {                                                                                 \
        value_type *to = values;                                                         \
        const element_type *from = elements;                                             \
        for (uint64_t i = 0; i < count; i++) {                                           \
            to[i] = convert(from[(int64_t)i * stride]);                                  \
        }                                                                                \
    } while (0)

void wr_dtype_load(weir_dtype dtype, void *values, const void *elements, int64_t stride,
                   uint64_t count)
{
    if (stride == 1 && wr_dtype_is_value(dtype)) {
        memcpy(values, elements, count * sizeof(float));
        return;
    }
    switch (dtype) {
    case WEIR_DTYPE_F32:
        LOAD(float, float, );
        break;
    case WEIR_DTYPE_I32:
        LOAD(int32_t, int32_t, );
        break;
    case WEIR_DTYPE_BOOL:
        LOAD(int32_t, uint8_t, 0 !=);
        break;
    case WEIR_DTYPE_F16:
        LOAD(float, uint16_t, wr_f32_from_f16);
        break;
    case WEIR_DTYPE_BF16:
        LOAD(float, uint16_t, wr_f32_from_bf16);
        break;
    }
}

#define STORE(element_type, value_type, convert)                                         \
    do {                                                                                 \
        element_type *to = elements;                                                     \
        const value_type *from = values;                                                 \
        for (uint64_t i = 0; i < count; i++) {                                           \
            to[i] = (element_type)convert(from[i]);                                      \
        }                                                                                \
    } while (0)

void wr_dtype_store(weir_dtype dtype, void *elements, const void *values, uint64_t count)
{
    switch (dtype) {
    case WEIR_DTYPE_F32:
    case WEIR_DTYPE_I32:
        memmove(elements, values, count * sizeof(float));
        break;
    case WEIR_DTYPE_BOOL:
        STORE(uint8_t, int32_t, );
        break;
    case WEIR_DTYPE_F16:
        STORE(uint16_t, float, wr_f16_from_f32);
        break;
    case WEIR_DTYPE_BF16:
        STORE(uint16_t, float, wr_bf16_from_f32);
        break;
    }
}

/* ---- casts ---- */

static int32_t to_i32(float value)
{
    if (!(value > -2147483648.0F)) {
        return value < 0 ? INT32_MIN : 0;
    }
    return value < 2147483648.0F ? (int32_t)value : INT32_MAX;
}

/* What a float becomes when it is stored and loaded again. */
static float rounded_to(weir_dtype dtype, float value)
{
    return dtype == WEIR_DTYPE_F16    ? wr_f32_from_f16(wr_f16_from_f32(value))
           : dtype == WEIR_DTYPE_BF16 ? wr_f32_from_bf16(wr_bf16_from_f32(value))
                                      : value;
}

static void cast_from_float(weir_dtype dtype, void *to, const float *from, uint64_t count)
{
    float *floats = to;
    int32_t *integers = to;
    for (uint64_t i = 0; i < count; i++) {
        if (wr_dtype_is_float(dtype)) {
            floats[i] = rounded_to(dtype, from[i]);
        } else {
            integers[i] = dtype == WEIR_DTYPE_I32 ? to_i32(from[i]) : from[i] != 0;
        }
    }
}

static void cast_from_integer(weir_dtype dtype, void *to, const int32_t *from,
                              uint64_t count)
{
    float *floats = to;
    int32_t *integers = to;
    for (uint64_t i = 0; i < count; i++) {
        if (wr_dtype_is_float(dtype)) {
            floats[i] = rounded_to(dtype, (float)from[i]);
        } else {
            integers[i] = dtype == WEIR_DTYPE_I32 ? from[i] : from[i] != 0;
        }
    }
}

void wr_dtype_cast(weir_dtype to_dtype, void *to, weir_dtype from_dtype, const void *from,
                   uint64_t count)
{
    if (wr_dtype_is_float(from_dtype)) {
        cast_from_float(to_dtype, to, from, count);
    } else {
        cast_from_integer(to_dtype, to, from, count);
    }
}
