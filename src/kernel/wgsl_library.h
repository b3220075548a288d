/* SPDX-License-Identifier: MIT */
/* The functions that every WGSL shader of an expression begins with: operations by type,
 * packed elements, random numbers. Only those that it needs: compilers of shaders take
 * their time for each.
 *
 * WGSL says nothing of NaN, and its compilers may take comparisons with one for what they
 * like; so NaN is told by its bits. */
#ifndef WR_KERNEL_WGSL_LIBRARY_H
#define WR_KERNEL_WGSL_LIBRARY_H

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
    /* `once` keeps compilers from contracting a product and a sum: words[1], the upper
     * half of the element count, is always 0, which they do not know. Philox4x32-10; see
     * random.c for what the numbers are. */
    {WR_WGSL_RANDOM,
     "fn once(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) ^ words[1]); }\n"
     "fn high_of(a: u32, b: u32) -> u32 {\n"
     "  let al = a & 0xffffu; let ah = a >> 16u;\n"
     "  let bl = b & 0xffffu; let bh = b >> 16u;\n"
     "  let m = ah * bl + ((al * bl) >> 16u);\n"
     "  let n = al * bh + (m & 0xffffu);\n"
     "  return ah * bh + (m >> 16u) + (n >> 16u);\n"
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
    /* below: the float before `high`, on the side of `low`. */
    {WEIR_OP_UNIFORM,
     "fn below(high: f32, low: f32) -> f32 {\n"
     "  let u = bitcast<u32>(high);\n"
     "  if (high == low) { return high; }\n"
     "  if (high == 0.0) { return bitcast<f32>(select(1u, 0x80000001u, low < 0.0)); }\n"
     "  return bitcast<f32>(select(u + 1u, u - 1u, (low < high) == (high > 0.0)));\n"
     "}\n"
     "fn random_uniform(l: u32, seed: u32, seed_high: u32, low: f32, high: f32) -> f32 {\n"
     "  let unit = f32(philox(l >> 2u, seed, seed_high)[l & 3u] >> 8u) * 5.9604644775390625e-8;\n"
     "  return min(low + once((high - low) * unit), below(high, low));\n"
     "}\n"},
    {WEIR_OP_NORMAL,
     "fn natural_log(x: f32) -> f32 {\n"
     "  var bits = bitcast<i32>(x);\n"
     "  let exponent = (bits - 0x3F3504F3) >> 23u;\n"
     "  bits -= exponent * 8388608;\n"
     "  let m = bitcast<f32>(bits) - 1.0;\n"
     "  let square = once(m * m);\n"
     "  var sum = 7.0376836292e-2;\n"
     "  sum = once(sum * m) - 1.1514610310e-1;\n"
     "  sum = once(sum * m) + 1.1676998740e-1;\n"
     "  sum = once(sum * m) - 1.2420140846e-1;\n"
     "  sum = once(sum * m) + 1.4249322787e-1;\n"
     "  sum = once(sum * m) - 1.6668057665e-1;\n"
     "  sum = once(sum * m) + 2.0000714765e-1;\n"
     "  sum = once(sum * m) - 2.4999993993e-1;\n"
     "  sum = once(sum * m) + 3.3333331174e-1;\n"
     "  sum = once(sum * m) * square;\n"
     "  sum = once(sum) + once(-2.12194440e-4 * f32(exponent));\n"
     "  sum = sum - once(0.5 * square);\n"
     "  return (m + sum) + once(0.693359375 * f32(exponent));\n"
     "}\n"
     "fn random_normal(l: u32, seed: u32, seed_high: u32, mean: f32, deviation: f32) -> f32 {\n"
     "  let w = philox(l >> 2u, seed, seed_high);\n"
     "  let pair = select(w.xy, w.zw, (l & 2u) != 0u);\n"
     "  let unit = f32(pair.x) * 2.3283064365386963e-10 + 1.1641532182693481e-10;\n"
     "  let radius = sqrt(-2.0 * natural_log(unit));\n"
     "  let turn = f32(pair.y >> 8u) * 5.9604644775390625e-8;\n"
     "  let quarter = i32(4.0 * turn + 0.5);\n"
     "  let x = once((turn - 0.25 * f32(quarter)) * 6.28318530718);\n"
     "  let z = once(x * x);\n"
     "  let s = once(once(once(once(once(-1.9515295891e-4 * z) + 8.3321608736e-3) * z) - 1.6666654611e-1) * z);\n"
     "  let sine = once(s * x) + x;\n"
     "  let c = once(once(once(2.443315711809948e-5 * z) - 1.388731625493765e-3) * z) + 4.166664568298827e-2;\n"
     "  let cosine = once(once(c * z) * z) - once(0.5 * z) + 1.0;\n"
     "  let swapped = (quarter & 1) != 0;\n"
     "  var number = select(select(cosine, sine, swapped), select(sine, cosine, swapped), (l & 1u) != 0u);\n"
     "  let turned = select(quarter + 1, quarter, (l & 1u) != 0u);\n"
     "  if ((turned & 2) != 0) { number = -number; }\n"
     "  return mean + once(deviation * once(radius * number));\n"
     "}\n"},
};

#endif
