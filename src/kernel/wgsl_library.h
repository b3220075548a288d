/* SPDX-License-Identifier: MIT */
/* The functions that every WGSL shader of an expression begins with: operations by type,
 * packed elements, random numbers. Only those that it needs: compilers of shaders take
 * their time for each.
 *
 * WGSL says nothing of NaN, and its compilers may take comparisons with one for what they
 * like; so NaN is told by its bits. */
#ifndef WR_KERNEL_WGSL_LIBRARY_H
#define WR_KERNEL_WGSL_LIBRARY_H

#include "normal_rows.h"

#include <weir/kernel.h>

/* printf: invocations, name */
#define WR_WGSL_ENTRY                                                                    \
    "@compute @workgroup_size(%u)\n"                                                     \
    "fn %s(@builtin(workgroup_id) group: vec3<u32>,\n"                                   \
    "    @builtin(num_workgroups) groups: vec3<u32>,\n"                                  \
    "    @builtin(local_invocation_index) lane: u32) {\n"

/* printf: type, invocations */
#define WR_WGSL_SHARED "var<workgroup> shared_values: array<%s, %u>;\n"

/* printf: type. An invocation that has had no element has no value, and is not asked for
 * one. All of them take every turn, as barriers demand. */
#define WR_WGSL_REDUCE                                                                   \
    "  let base = (group.y * groups.x + group.x) * 4u;\n"                                \
    "  let end = word(0u);\n"                                                            \
    "  let count = word(1u);\n"                                                          \
    "  var o0: array<u32, 4>;\n"                                                         \
    "  for (var k = 0u; k < 4u; k++) {\n"                                                \
    "    let start = min(base + k, end - 1u) * count;\n"                                 \
    "    var total: %s;\n"                                                               \
    "    var has = false;\n"                                                             \
    "    for (var r = lane; r < count; r += 256u) {\n"                                   \
    "      let one = value(start + r, r);\n"                                             \
    "      if (has) { total = combine(total, one); } else { total = one; }\n"            \
    "      has = true;\n"                                                                \
    "    }\n"                                                                            \
    "    shared_values[lane] = total;\n"                                                 \
    "    workgroupBarrier();\n"                                                          \
    "    for (var half = 128u; half > 0u; half = half >> 1u) {\n"                        \
    "      if (lane < half && lane + half < count) {\n"                                  \
    "        shared_values[lane] = combine(shared_values[lane], shared_values[lane + "   \
    "half]);\n"                                                                          \
    "      }\n"                                                                          \
    "      workgroupBarrier();\n"                                                        \
    "    }\n"

#define WR_WGSL_ALWAYS 0u
#define WR_WGSL_PACKED 200u /* elements smaller than a word */
#define WR_WGSL_RANDOM 201u

/* The number of the first maximum, with its value; a NaN is one. What is written once for
 * each type. */
#define WR_WGSL_BEST_F32                                                                 \
    "struct best { v: f32, at: u32 }\n"                                                  \
    "fn combine(a: best, b: best) -> best {\n"                                           \
    "  let a_nan = is_nan(a.v);\n"                                                       \
    "  let b_nan = is_nan(b.v);\n"                                                       \
    "  let same = (a_nan && b_nan) || (!a_nan && !b_nan && a.v == b.v);\n"               \
    "  let more = a_nan || (!b_nan && a.v > b.v);\n"                                     \
    "  if (select(more, a.at < b.at, same)) { return a; }\n"                             \
    "  return b;\n"                                                                      \
    "}\n"
#define WR_WGSL_BEST_I32                                                                 \
    "struct best { v: i32, at: u32 }\n"                                                  \
    "fn combine(a: best, b: best) -> best {\n"                                           \
    "  if (select(a.v > b.v, a.at < b.at, a.v == b.v)) { return a; }\n"                  \
    "  return b;\n"                                                                      \
    "}\n"

/* A row of normal_rows.h as two vectors, and as a case of a switch. */
#define WR_WGSL_VECTORS(row) WR_WGSL_VECTORS_OF(row)
#define WR_WGSL_VECTORS_OF(a, b, c, d, e, f, g, h)                                       \
    WR_WGSL_VECTOR(a, b, c, d) ", " WR_WGSL_VECTOR(e, f, g, h)
#define WR_WGSL_VECTOR(...) "vec4<i32>(" #__VA_ARGS__ ")"
#define WR_WGSL_ROW(number, a, b, c, d, e, f, g, h)                                      \
    "    case " #number                                                                  \
    "u: { a = " WR_WGSL_VECTOR(a, b, c, d) "; b = " WR_WGSL_VECTOR(e, f, g, h) "; }\n"

/* What is written if `need` is one of the expression's: an operation, or one of these. */
static const struct {
    uint8_t need;
    const char *text;
} wr_wgsl_library[] = {
    {WR_WGSL_ALWAYS,
     "fn word(k: u32) -> u32 { return words[2u * k]; }\n"
     "fn is_nan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }\n"},
    /* To f16: round to nearest, ties to even; pack2x16float may do as it likes. */
    {WR_WGSL_PACKED,
     "fn byte_of(w: u32, e: u32) -> u32 { return (w >> ((e & 3u) * 8u)) & 0xffu; }\n"
     "fn half_of(w: u32, e: u32) -> u32 { return (w >> ((e & 1u) * 16u)) & 0xffffu; }\n"
     "fn from_f16(h: u32) -> f32 { return unpack2x16float(h).x; }\n"
     "fn from_bf16(h: u32) -> f32 { return bitcast<f32>(h << 16u); }\n"
     "fn to_bf16(a: f32) -> u32 {\n"
     "  let u = bitcast<u32>(a);\n"
     "  if (is_nan(a)) { return (u >> 16u) | 0x40u; }\n"
     "  return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;\n"
     "}\n"
     "fn to_f16(a: f32) -> u32 {\n"
     "  let u = bitcast<u32>(a);\n"
     "  let sign = (u >> 16u) & 0x8000u;\n"
     "  let m = u & 0x7fffffffu;\n"
     "  if (m > 0x7f800000u) { return sign | 0x7e00u; }\n"
     "  if (m >= 0x477ff000u) { return sign | 0x7c00u; }\n"
     "  if (m >= 0x38800000u) {\n"
     "    return sign | ((m + 0xfffu + ((m >> 13u) & 1u) - 0x38000000u) >> 13u);\n"
     "  }\n"
     "  if (m < 0x33000000u) { return sign; }\n"
     "  let shift = 126u - (m >> 23u);\n"
     "  let f = (m & 0x7fffffu) | 0x800000u;\n"
     "  let q = f >> shift;\n"
     "  let rest = f & ((1u << shift) - 1u);\n"
     "  let tie = 1u << (shift - 1u);\n"
     "  return sign | (q + select(0u, 1u, rest > tie || (rest == tie && (q & 1u) == 1u)));\n"
     "}\n"},
    {WEIR_OP_CAST, "fn to_i32(a: f32) -> i32 {\n"
                   "  if (is_nan(a)) { return 0; }\n"
                   "  if (a >= 2147483648.0) { return 2147483647; }\n"
                   "  if (a <= -2147483648.0) { return -2147483647 - 1; }\n"
                   "  return i32(a);\n"
                   "}\n"},
    {WEIR_OP_NEG,
     "fn neg_f32(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) ^ 0x80000000u); }\n"
     "fn neg_i32(a: i32) -> i32 { return -a; }\n"},
    {WEIR_OP_ABS,
     "fn abs_f32(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) & 0x7fffffffu); }\n"
     "fn abs_i32(a: i32) -> i32 { return abs(a); }\n"},
    {WEIR_OP_EXP, "fn exp_f32(a: f32) -> f32 { return exp(a); }\n"},
    {WEIR_OP_LOG, "fn log_f32(a: f32) -> f32 { return log(a); }\n"},
    {WEIR_OP_SQRT, "fn sqrt_f32(a: f32) -> f32 { return sqrt(a); }\n"},
    {WEIR_OP_RSQRT, "fn rsqrt_f32(a: f32) -> f32 { return inverseSqrt(a); }\n"},
    {WEIR_OP_RECIP, "fn recip_f32(a: f32) -> f32 { return 1.0 / a; }\n"},
    {WEIR_OP_TANH,
     "fn tanh_f32(a: f32) -> f32 { return tanh(clamp(a, -20.0, 20.0)); }\n"},
    {WEIR_OP_SIGMOID,
     "fn sigmoid_f32(a: f32) -> f32 { return 1.0 / (1.0 + exp(-a)); }\n"},
    {WEIR_OP_RELU,
     "fn relu_f32(a: f32) -> f32 { return select(a, 0.0, !is_nan(a) && a < 0.0); }\n"
     "fn relu_i32(a: i32) -> i32 { return max(a, 0); }\n"},
    {WEIR_OP_SIN, "fn sin_f32(a: f32) -> f32 { return sin(a); }\n"},
    {WEIR_OP_COS, "fn cos_f32(a: f32) -> f32 { return cos(a); }\n"},
    {WEIR_OP_NOT, "fn not_bool(a: bool) -> bool { return !a; }\n"},
    /* erf: Abramowitz and Stegun, 7.1.26, to 1.5e-7. */
    {WEIR_OP_GELU,
     "fn gelu_f32(a: f32) -> f32 {\n"
     "  let x = abs(a) * 0.70710678;\n"
     "  let t = 1.0 / (1.0 + 0.3275911 * x);\n"
     "  let p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t\n"
     "      + 0.254829592) * t * exp(-x * x);\n"
     "  return 0.5 * a * select(2.0 - p, p, a < 0.0);\n"
     "}\n"},
    {WEIR_OP_DIV,
     "fn div_f32(a: f32, b: f32) -> f32 { return a / b; }\n"
     "fn div_i32(a: i32, b: i32) -> i32 { if (b == 0) { return 0; } return a / b; }\n"},
    {WEIR_OP_MIN, "fn min_f32(a: f32, b: f32) -> f32 {\n"
                  "  return select(b, a, is_nan(a) || (!is_nan(b) && a < b));\n"
                  "}\n"
                  "fn min_i32(a: i32, b: i32) -> i32 { return min(a, b); }\n"},
    {WEIR_OP_MAX, "fn max_f32(a: f32, b: f32) -> f32 {\n"
                  "  return select(b, a, is_nan(a) || (!is_nan(b) && a > b));\n"
                  "}\n"
                  "fn max_i32(a: i32, b: i32) -> i32 { return max(a, b); }\n"},
    {WEIR_OP_POW,
     "fn pow_f32(a: f32, b: f32) -> f32 {\n"
     "  let size = pow(abs(a), b);\n"
     "  if (b == 0.0) { return 1.0; }\n"
     "  if (a >= 0.0) { return size; }\n"
     "  if (floor(b) != b) { return bitcast<f32>(0x7fc00000u | (bitcast<u32>(a) & 1u)); }\n"
     "  return select(size, -size, abs(b % 2.0) == 1.0);\n"
     "}\n"},
    /* Compilers may contract, reorder and approximate what floats do, and integers do the
     * same everywhere. So floats are u32s here, and their product and sum are worked out,
     * rounded as IEEE 754 says. rounded: m * 2^(exponent - 158), exponent being the one
     * that the number has if bit 31 of m is set. Philox4x32-10; random.c says what the
     * numbers are. */
    {WR_WGSL_RANDOM,
     "fn high_of(a: u32, b: u32) -> u32 {\n"
     "  let al = a & 0xffffu; let ah = a >> 16u;\n"
     "  let bl = b & 0xffffu; let bh = b >> 16u;\n"
     "  let m = ah * bl + ((al * bl) >> 16u);\n"
     "  let n = al * bh + (m & 0xffffu);\n"
     "  return ah * bh + (m >> 16u) + (n >> 16u);\n"
     "}\n"
     "fn fraction_of(a: u32) -> u32 {\n"
     "  return (a & 0x7fffffu) | select(0u, 0x800000u, (a & 0x7f800000u) != 0u);\n"
     "}\n"
     "fn exponent_of(a: u32) -> i32 { return i32(max((a >> 23u) & 0xffu, 1u)); }\n"
     "fn cut(m: u32, count: u32) -> u32 {\n"
     "  if (count > 31u) { return select(0u, 1u, m != 0u); }\n"
     "  return (m >> count) | select(0u, 1u, (m & ((1u << count) - 1u)) != 0u);\n"
     "}\n"
     "fn rounded(sign: u32, exponent: i32, m: u32) -> u32 {\n"
     "  if (m == 0u) { return sign; }\n"
     "  let zeros = countLeadingZeros(m);\n"
     "  let e = exponent - i32(zeros);\n"
     "  if (e > 254) { return sign | 0x7f800000u; }\n"
     "  let f = cut(m << zeros, u32(max(1 - e, 0)));\n"
     "  let up = (f & 0xffu) + ((f >> 8u) & 1u) > 0x80u;\n"
     "  return sign | ((u32(max(e, 1) - 1) << 23u) + (f >> 8u) + select(0u, 1u, up));\n"
     "}\n"
     "fn product_of(a: u32, b: u32) -> u32 {\n"
     "  let fa = fraction_of(a) << 8u; let fb = fraction_of(b) << 8u;\n"
     "  return rounded((a ^ b) & 0x80000000u, exponent_of(a) + exponent_of(b) - 126,\n"
     "      high_of(fa, fb) | select(0u, 1u, fa * fb != 0u));\n"
     "}\n"
     "fn sum_of(a: u32, b: u32) -> u32 {\n"
     "  let is_swapped = (a & 0x7fffffffu) < (b & 0x7fffffffu);\n"
     "  let big = select(a, b, is_swapped); let small = select(b, a, is_swapped);\n"
     "  if ((big & 0x7f800000u) == 0x7f800000u) { return big; }\n"
     "  let f = fraction_of(big) << 6u;\n"
     "  let g = cut(fraction_of(small) << 6u, u32(exponent_of(big) - exponent_of(small)));\n"
     "  let m = select(f + g, f - g, ((a ^ b) & 0x80000000u) != 0u);\n"
     "  return rounded(select(big, a & b, m == 0u) & 0x80000000u, exponent_of(big) + 2, m);\n"
     "}\n"
     "fn philox(counter: u32, low: u32, high: u32) -> vec4<u32> {\n"
     "  var w = vec4<u32>(counter, 0u, 0u, 0u);\n"
     "  var k0 = low; var k1 = high;\n"
     "  for (var round = 0u; round < 10u; round++) {\n"
     "    w = vec4<u32>(high_of(0xCD9E8D57u, w.z) ^ w.y ^ k0, 0xCD9E8D57u * w.z,\n"
     "        high_of(0xD2511F53u, w.x) ^ w.w ^ k1, 0xD2511F53u * w.x);\n"
     "    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;\n"
     "  }\n"
     "  return w;\n"
     "}\n"},
    /* order: floats' order as that of u32s. below: the float before `high`, on the side
     * of `low`. */
    {WEIR_OP_UNIFORM,
     "fn order(a: u32) -> u32 { return select(a | 0x80000000u, ~a, (a >> 31u) != 0u); }\n"
     "fn below(high: u32, low: u32) -> u32 {\n"
     "  if (high == low) { return high; }\n"
     "  let is_up = order(low) < order(high);\n"
     "  if ((high & 0x7fffffffu) == 0u) { return select(1u, 0x80000001u, is_up); }\n"
     "  return select(high + 1u, high - 1u, is_up == ((high >> 31u) == 0u));\n"
     "}\n"
     "fn random_uniform(l: u32, seed: u32, seed_high: u32, low: u32, high: u32) -> f32 {\n"
     "  let unit = rounded(0u, 126, philox(l >> 2u, seed, seed_high)[l & 3u] & 0xffffff00u);\n"
     "  let width = sum_of(high, low ^ 0x80000000u);\n"
     "  let number = sum_of(low, product_of(width, unit));\n"
     "  let most = below(high, low);\n"
     "  return bitcast<f32>(select(number, most, order(number) > order(most)));\n"
     "}\n"},
    /* The polynomials are those of normal.h, 2^28 times. */
    {WEIR_OP_NORMAL,
     "fn term(sum: u32, t: u32, c: i32) -> u32 {\n"
     "  return u32(c) + high_of(sum, t) - select(0u, t, (sum >> 31u) != 0u);\n"
     "}\n"
     "fn polynomial(a: vec4<i32>, b: vec4<i32>, t: u32) -> u32 {\n"
     "  let last = term(term(term(u32(b.w), t, b.z), t, b.y), t, b.x);\n"
     "  return term(term(term(term(last, t, a.w), t, a.z), t, a.y), t, a.x);\n"
     "}\n"
     "fn slope_at(x: u32) -> u32 {\n"
     "  let zeros = countLeadingZeros(x);\n"
     "  var a: vec4<i32>;\n"
     "  var b: vec4<i32>;\n"
     "  switch (5u - zeros) {\n" WR_NORMAL_ROWS(
         WR_WGSL_ROW) "    default: {}\n"
                      "  }\n"
                      "  return polynomial(a, b, (x << zeros) << 1u);\n"
                      "}\n"
                      "fn random_normal(l: u32, seed: u32, seed_high: u32, mean: u32, deviation: u32) -> f32 {\n"
                      "  let drawn = philox(l >> 2u, seed, seed_high)[l & 3u];\n"
                      "  let tail = (drawn << 1u) | 1u;\n"
                      "  let centre = 0u - tail;\n"
                      "  let zeros = countLeadingZeros(tail);\n"
                      "  let logarithm = polynomial(" WR_WGSL_VECTORS(
                          WR_NORMAL_LOG) ", (tail << zeros) << 1u);\n"
                                         "  let x = ((zeros + 2u) << 26u) - (logarithm >> 2u);\n"
                                         "  let near = countLeadingZeros(centre);\n"
                                         "  let slope = slope_at(max(x, 1u << 26u));\n"
                                         "  let number = rounded(drawn & 0x80000000u, 130 - i32(near), high_of(centre << near, slope));\n"
                                         "  return bitcast<f32>(sum_of(mean, product_of(deviation, number)));\n"
                                         "}\n"},
};

#endif
