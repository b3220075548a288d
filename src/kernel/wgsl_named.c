/* SPDX-License-Identifier: MIT */
/* The kernels that are known by kind, as WGSL; matmul.c and move.c are what they do on
 * the host. Bindings are arrays of words as in wgsl_source.c, and reached by functions of
 * their number that take and give an element's bits:
 *
 *     get0(e) ... get2(e)      element e
 *     put0(e, bits)            of the one that is written
 *
 * Elements smaller than a word that lie anywhere are written with atomics, for another
 * invocation may write their neighbour: the bits are cleared, then set, and nobody else
 * touches those. WGSL takes whatever comes from memory to differ between invocations, so
 * what barriers depend on goes through workgroupUniformLoad. */
#include "source.h"

#include "dtype.h"

typedef struct shader {
    wr_writer out;
    const weir_kernel *kernel;
    uint32_t bytes; /* of an element */
} shader;

#define PUT(text) wr_writer_put(&s->out, text)
#define PRINT(...) wr_writer_print(&s->out, __VA_ARGS__)

/* ---- elements ---- */

typedef enum access {
    ACCESS_WORDS,  /* whole words */
    ACCESS_PARTS,  /* elements smaller than a word, only read, or written as words */
    ACCESS_SHARED, /* the same, written by themselves */
} access;

static void write_binding(shader *s, uint32_t number, access how)
{
    PRINT("@group(0) @binding(%u) var<storage, read_write> b%u: array<%s>;\n", number,
          number, how == ACCESS_SHARED ? "atomic<u32>" : "u32");
    if (how == ACCESS_WORDS) {
        PRINT("fn get%u(e: u32) -> u32 { return b%u[e]; }\n", number, number);
        return;
    }
    uint32_t shift = s->bytes == 2 ? 1 : 2;
    PRINT("fn get%u(e: u32) -> u32 { return %s(%s(%sb%u[e >> %uu]), e); }\n", number,
          s->bytes == 2 ? "half_of" : "byte_of", how == ACCESS_SHARED ? "atomicLoad" : "",
          how == ACCESS_SHARED ? "&" : "", number, shift);
}

static void write_put(shader *s, uint32_t number)
{
    PRINT("fn put%u(e: u32, bits: u32) {\n", number);
    if (s->bytes == 4) {
        PRINT("  b%u[e] = bits;\n}\n", number);
        return;
    }
    uint32_t shift = s->bytes == 2 ? 1 : 2;
    PRINT("  let shift = (e & %uu) * %uu;\n"
          "  atomicAnd(&b%u[e >> %uu], ~(%uu << shift));\n"
          "  atomicOr(&b%u[e >> %uu], bits << shift);\n}\n",
          s->bytes == 2 ? 1u : 3u, s->bytes * 8, number, shift,
          s->bytes == 2 ? 0xffffu : 0xffu, number, shift);
}

/* The words come after `count` bindings. */
static void write_words(shader *s, uint32_t count)
{
    PRINT("@group(0) @binding(%u) var<storage, read_write> words: array<u32>;\n", count);
    wr_source_write_wgsl_basics(&s->out, s->bytes < 4);
}

/* Between bits and f32. */
static void write_conversions(shader *s)
{
    if (s->kernel->dtype == WEIR_DTYPE_F32) {
        PUT("fn value_of(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"
            "fn bits_of(a: f32) -> u32 { return bitcast<u32>(a); }\n");
    } else {
        const char *name = wr_dtype_name(s->kernel->dtype);
        PRINT("fn value_of(bits: u32) -> f32 { return from_%s(bits); }\n"
              "fn bits_of(a: f32) -> u32 { return to_%s(a); }\n",
              name, name);
    }
}

static void write_entry(shader *s)
{
    PRINT("@compute @workgroup_size(%u)\n"
          "fn %s(@builtin(workgroup_id) group: vec3<u32>,\n"
          "    @builtin(num_workgroups) groups: vec3<u32>,\n"
          "    @builtin(local_invocation_index) lane: u32) {\n"
          "  let number = group.y * groups.x + group.x;\n",
          WEIR_WGSL_WORKGROUP, s->kernel->name);
}

static access parts_or_words(const shader *s, access parts)
{
    return s->bytes < 4 ? parts : ACCESS_WORDS;
}

/* ---- matrix products ----
 *
 * A workgroup makes a tile of 64 x 64, an invocation 4 x 4 of it, from tiles of 64 x 16
 * and 16 x 64 in the workgroup's memory, whose vectors are four rows of the left operand
 * and four columns of the right one. Neighbours load what is side by side in memory:
 * along the inner dimension, or across it. What lies outside is 0. */

static const char matmul_memory[] =
    "var<workgroup> lefts: array<vec4<f32>, 256>;\n"
    "var<workgroup> rights: array<vec4<f32>, 256>;\n"
    "var<workgroup> turns: u32;\n"
    "fn left_over(begin: u32, end: u32) -> u32 { return select(0u, end - begin, begin < end); }\n";

/* printf: the operand's number, five times. Its elements at, at + step and so on, of
 * which the first `have` are there. */
static const char matmul_load[] =
    "fn load%u(at: u32, step: u32, have: u32) -> vec4<f32> {\n"
    "  var v = vec4<f32>(0.0, 0.0, 0.0, 0.0);\n"
    "  if (have > 0u) { v.x = value_of(get%u(at)); }\n"
    "  if (have > 1u) { v.y = value_of(get%u(at + step)); }\n"
    "  if (have > 2u) { v.z = value_of(get%u(at + 2u * step)); }\n"
    "  if (have > 3u) { v.w = value_of(get%u(at + 3u * step)); }\n"
    "  return v;\n"
    "}\n";

/* (li, lq): inner index and vector of the left tile that this invocation loads. */
static const char matmul_body[] =
    "  let rows = word(1u);\n"
    "  let columns = word(2u);\n"
    "  let inner = word(3u);\n"
    "  let tall = (rows + 63u) / 64u;\n"
    "  let wide = (columns + 63u) / 64u;\n"
    "  let batch = number / (tall * wide);\n"
    "  let row = number / wide % tall * 64u;\n"
    "  let column = number % wide * 64u;\n"
    "  if (lane == 0u) { turns = select(0u, (inner + 15u) / 16u, batch < word(0u)); }\n"
    "  let count = workgroupUniformLoad(&turns);\n"
    "  let x = lane & 15u;\n"
    "  let y = lane >> 4u;\n"
    "  let li = select(y, x, word(7u) == 1u);\n"
    "  let lq = select(x, y, word(7u) == 1u);\n"
    "  let ri = select(x, y, word(11u) == 1u);\n"
    "  let rq = select(y, x, word(11u) == 1u);\n"
    "  let lrow = row + 4u * lq;\n"
    "  let rcolumn = column + 4u * rq;\n"
    "  let left = word(4u) + batch * word(5u) + lrow * word(6u);\n"
    "  let right = word(8u) + batch * word(9u) + rcolumn * word(11u);\n"
    "  let lhave = left_over(lrow, rows);\n"
    "  let rhave = left_over(rcolumn, columns);\n"
    "  var s0 = vec4<f32>(0.0, 0.0, 0.0, 0.0);\n"
    "  var s1 = s0;\n"
    "  var s2 = s0;\n"
    "  var s3 = s0;\n"
    "  for (var t = 0u; t < count; t++) {\n"
    "    let a = t * 16u + li;\n"
    "    let b = t * 16u + ri;\n"
    "    lefts[li * 16u + lq] = load0(left + a * word(7u), word(6u),\n"
    "        select(0u, lhave, a < inner));\n"
    "    rights[ri * 16u + rq] = load1(right + b * word(10u), word(11u),\n"
    "        select(0u, rhave, b < inner));\n"
    "    workgroupBarrier();\n"
    "    for (var i = 0u; i < 16u; i++) {\n"
    "      let l = lefts[i * 16u + y];\n"
    "      let r = rights[i * 16u + x];\n"
    "      s0 += l.x * r;\n"
    "      s1 += l.y * r;\n"
    "      s2 += l.z * r;\n"
    "      s3 += l.w * r;\n"
    "    }\n"
    "    workgroupBarrier();\n"
    "  }\n"
    "  if (batch >= word(0u)) { return; }\n"
    "  var sums = array<vec4<f32>, 4>(s0, s1, s2, s3);\n"
    "  let down = min(4u, left_over(row + 4u * y, rows));\n"
    "  let across = min(4u, left_over(column + 4u * x, columns));\n"
    "  for (var r = 0u; r < down; r++) {\n"
    "    let to = (batch * rows + row + 4u * y + r) * columns + column + 4u * x;\n"
    "    for (var c = 0u; c < across; c++) { put2(to + c, bits_of(sums[r][c])); }\n"
    "  }\n"
    "}\n";

static void write_matmul(shader *s)
{
    write_words(s, 3);
    write_binding(s, 0, parts_or_words(s, ACCESS_PARTS));
    write_binding(s, 1, parts_or_words(s, ACCESS_PARTS));
    write_binding(s, 2, parts_or_words(s, ACCESS_SHARED));
    write_put(s, 2);
    write_conversions(s);
    PUT(matmul_memory);
    PRINT(matmul_load, 0u, 0u, 0u, 0u, 0u);
    PRINT(matmul_load, 1u, 1u, 1u, 1u, 1u);
    write_entry(s);
    PUT(matmul_body);
}

/* ---- elements that move ----
 *
 * Words: 0 count, 1 rank, 2 indices, 3 their stride, 4 ... 11 extents, then from 12, 21
 * and 30 on each view's offset and strides. Where elements go one by one, neighbours take
 * those side by side, and an invocation every 256th. */

/* Where index `number` of dimensions `first` and on is, in the three views. */
static const char move_locate[] =
    "fn locate(number: u32, first: u32) -> vec3<u32> {\n"
    "  var at = vec3<u32>(word(12u), word(21u), word(30u));\n"
    "  var rest = number;\n"
    "  for (var d = word(1u); d > first; d--) {\n"
    "    let c = rest % word(3u + d);\n"
    "    rest = rest / word(3u + d);\n"
    "    at += c * vec3<u32>(word(12u + d), word(21u + d), word(30u + d));\n"
    "  }\n"
    "  return at;\n"
    "}\n"
    "fn is_within(index: i32) -> bool { return index >= 0 && u32(index) < word(2u); }\n";

/* A NaN's bits. */
static const char *missing(weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_F32    ? "0x7fc00000u"
           : dtype == WEIR_DTYPE_F16  ? "0x7e00u"
           : dtype == WEIR_DTYPE_BF16 ? "0x7fc0u"
                                      : "0u";
}

/* The result is linear: four elements are whole words. What lies behind the last one is
 * the slice's padding. */
static const char *gather_store(uint32_t bytes)
{
    return bytes == 4   ? "  for (var k = 0u; k < 4u && base + k < end; k++) {\n"
                          "    b2[base + k] = o[k];\n"
                          "  }\n}\n"
           : bytes == 2 ? "  b2[base >> 1u] = o[0] | (o[1] << 16u);\n"
                          "  if (base + 2u < end) {\n"
                          "    b2[(base >> 1u) + 1u] = o[2] | (o[3] << 16u);\n"
                          "  }\n}\n"
                        : "  b2[base >> 2u] = o[0] | (o[1] << 8u) | (o[2] << 16u) | "
                          "(o[3] << 24u);\n}\n";
}

static void write_gather(shader *s)
{
    write_words(s, 3);
    write_binding(s, 0, parts_or_words(s, ACCESS_PARTS));
    write_binding(s, 1, ACCESS_WORDS);
    write_binding(s, 2, parts_or_words(s, ACCESS_PARTS));
    PUT(move_locate);
    write_entry(s);
    PRINT("  let base = (number * 256u + lane) * 4u;\n"
          "  let end = word(0u);\n"
          "  if (base >= end) { return; }\n"
          "  var o: array<u32, 4>;\n"
          "  for (var k = 0u; k < 4u && base + k < end; k++) {\n"
          "    let at = locate(base + k, 0u);\n"
          "    let index = bitcast<i32>(get1(at.y));\n"
          "    o[k] = %s;\n"
          "    if (is_within(index)) { o[k] = get0(at.x + u32(index) * word(3u)); }\n"
          "  }\n",
          missing(s->kernel->dtype));
    PUT(gather_store(s->bytes));
}

/* Dimension 0 in order, by one invocation, so that sums are the same every time. */
static const char scatter_body[] =
    "  let others = word(0u) / word(4u);\n"
    "  for (var k = 0u; k < 4u; k++) {\n"
    "    let i = number * 1024u + k * 256u + lane;\n"
    "    if (i >= others) { return; }\n"
    "    let at = locate(i, 1u);\n"
    "    for (var n = 0u; n < word(4u); n++) {\n"
    "      let index = bitcast<i32>(get1(at.y + n * word(22u)));\n"
    "      if (is_within(index)) {\n"
    "        let to = at.x + n * word(13u) + u32(index) * word(3u);\n"
    "        put0(to, sum_of(get0(to), get2(at.z + n * word(31u))));\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

static void write_scatter_add(shader *s)
{
    write_words(s, 3);
    write_binding(s, 0, parts_or_words(s, ACCESS_SHARED));
    write_binding(s, 1, ACCESS_WORDS);
    write_binding(s, 2, parts_or_words(s, ACCESS_PARTS));
    write_put(s, 0);
    if (s->kernel->dtype == WEIR_DTYPE_I32) {
        PUT("fn sum_of(a: u32, b: u32) -> u32 { return a + b; }\n");
    } else {
        write_conversions(s);
        PUT("fn sum_of(a: u32, b: u32) -> u32 {\n"
            "  return bits_of(value_of(a) + value_of(b));\n}\n");
    }
    PUT(move_locate);
    write_entry(s);
    PUT(scatter_body);
}

static void write_place(shader *s)
{
    write_words(s, 2);
    write_binding(s, 0, parts_or_words(s, ACCESS_SHARED));
    write_binding(s, 1, parts_or_words(s, ACCESS_PARTS));
    write_put(s, 0);
    PUT(move_locate);
    write_entry(s);
    PUT("  for (var k = 0u; k < 4u; k++) {\n"
        "    let i = number * 1024u + k * 256u + lane;\n"
        "    if (i >= word(0u)) { return; }\n"
        "    let at = locate(i, 0u);\n"
        "    put0(at.x, get1(at.y));\n"
        "  }\n"
        "}\n");
}

/* ---- all of them ---- */

weir_result wr_source_write_wgsl_named(const weir_kernel *kernel, weir_write_fn write,
                                       void *context)
{
    shader of = {
        .out = {.write = write, .context = context, .result = WEIR_OK},
        .kernel = kernel,
        .bytes = wr_dtype_bytes(kernel->dtype),
    };
    switch (kernel->kind) {
    case WEIR_KERNEL_MATMUL:
        write_matmul(&of);
        break;
    case WEIR_KERNEL_GATHER:
        write_gather(&of);
        break;
    case WEIR_KERNEL_SCATTER_ADD:
        write_scatter_add(&of);
        break;
    case WEIR_KERNEL_PLACE:
        write_place(&of);
        break;
    default:
        return weir_driver_error(WEIR_UNSUPPORTED, "kernel \"%s\" has no form in WGSL",
                                 kernel->name);
    }
    return of.out.result;
}
