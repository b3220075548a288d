/* SPDX-License-Identifier: MIT */
/* Expressions as WGSL.
 *
 * Every binding is an array of 32-bit words, as WGSL has no smaller ones in memory. An
 * invocation makes four elements in a row, so that those of bool and the 16-bit dtypes
 * are whole words; what is written behind the last element lies in the slice's padding.
 *
 *     elementwise   invocation n makes elements 4n ... 4n + 3
 *     reduction     workgroup n makes elements 4n ... 4n + 3, one after the other: its
 *                   256 invocations take turns at what goes into one, then halve
 *
 * Values are f32 (also of f16 and bf16), i32 or bool. `l` is the index in the iteration
 * space, `i` that in what a window binds. */
#include "source.h"

#include "dtype.h"
#include "operation.h"
#include "wgsl_library.h"

#include <stdio.h>

typedef struct shader {
    wr_writer out;
    const weir_expression *expression;
    const char *name;
    bool is_reduction;
} shader;

static const char *type_of(uint8_t dtype)
{
    return wr_dtype_is_float((weir_dtype)dtype) ? "f32"
           : dtype == WEIR_DTYPE_I32            ? "i32"
                                                : "bool";
}

/* ---- declarations ---- */

static void write_bindings(shader *s)
{
    uint32_t count = s->expression->binding_count;
    for (uint32_t i = 0; i < count; i++) {
        wr_writer_print(
            &s->out, "@group(0) @binding(%u) var<storage, read_write> b%u: array<u32>;\n",
            i, i);
    }
    wr_writer_print(&s->out,
                    "@group(0) @binding(%u) var<storage, read_write> words: array<u32>;\n"
                    "override first: u32 = 0u;\n",
                    count);
}

static bool is_packed(uint8_t dtype)
{
    return wr_dtype_bytes((weir_dtype)dtype) < 4;
}

static bool has_packed(const weir_expression *e)
{
    bool packed = false;
    for (uint32_t i = 0; i < e->view_count; i++) {
        packed |= is_packed(e->views[i].dtype);
    }
    for (uint32_t i = 0; i < e->output_count; i++) {
        packed |= is_packed(e->outputs[i].dtype);
    }
    for (uint32_t i = 0; i < e->step_count; i++) {
        packed |= e->steps[i].op == WEIR_OP_CAST && is_packed(e->steps[i].dtype);
    }
    return packed;
}

static bool has_operation(const weir_expression *e, uint8_t op)
{
    bool found = (op == WEIR_OP_MAX && e->reduce == WEIR_REDUCE_MAX) ||
                 (op == WEIR_OP_MIN && e->reduce == WEIR_REDUCE_MIN);
    for (uint32_t i = 0; i < e->step_count; i++) {
        found |= e->steps[i].op == op;
    }
    return found;
}

static bool does_need(const weir_expression *e, uint8_t need)
{
    switch (need) {
    case WR_WGSL_ALWAYS:
        return true;
    case WR_WGSL_PACKED:
        return has_packed(e);
    case WR_WGSL_RANDOM:
        return has_operation(e, WEIR_OP_UNIFORM) || has_operation(e, WEIR_OP_NORMAL);
    default:
        return has_operation(e, need);
    }
}

static void write_library(shader *s)
{
    for (size_t i = 0; i < sizeof wr_wgsl_library / sizeof *wr_wgsl_library; i++) {
        if (does_need(s->expression, wr_wgsl_library[i].need)) {
            wr_writer_put(&s->out, wr_wgsl_library[i].text);
        }
    }
}

void wr_source_write_wgsl_basics(wr_writer *writer, bool is_packed)
{
    for (size_t i = 0; i < sizeof wr_wgsl_library / sizeof *wr_wgsl_library; i++) {
        uint8_t need = wr_wgsl_library[i].need;
        if (need == WR_WGSL_ALWAYS || (need == WR_WGSL_PACKED && is_packed)) {
            wr_writer_put(writer, wr_wgsl_library[i].text);
        }
    }
}

/* ---- one element ---- */

/* The coordinates of l, innermost last. */
static void write_coordinates(shader *s)
{
    const weir_expression *e = s->expression;
    bool is_wanted = false;
    for (uint32_t v = 0; v < e->view_count; v++) {
        is_wanted |= e->views[v].layout == WEIR_VIEW_STRIDED;
    }
    if (!is_wanted) {
        return;
    }
    wr_writer_put(&s->out, "    var rest = l;\n");
    for (uint32_t d = e->rank; d-- > 0;) {
        wr_writer_print(&s->out, "    let c%u = rest %% word(%uu);\n", d, 2 + d);
        wr_writer_print(&s->out, "    rest = rest / word(%uu);\n", 2 + d);
    }
}

static void write_index(shader *s, uint32_t v)
{
    const weir_expression *e = s->expression;
    uint32_t word = weir_expression_view_word(e, v);
    wr_writer_print(&s->out, "word(%uu)", word);
    if (e->views[v].layout == WEIR_VIEW_LINEAR) {
        wr_writer_put(&s->out, " + i");
    } else if (e->views[v].layout == WEIR_VIEW_STRIDED) {
        for (uint32_t d = 0; d < e->rank; d++) {
            wr_writer_print(&s->out, " + c%u * word(%uu)", d, word + 1 + d);
        }
    }
}

static void write_load(shader *s, uint32_t number, uint32_t v)
{
    const weir_view *view = &s->expression->views[v];
    wr_writer_print(&s->out, "    let e%u = ", number);
    write_index(s, v);
    wr_writer_print(&s->out, ";\n    let v%u = ", number);
    switch (view->dtype) {
    case WEIR_DTYPE_F32:
        wr_writer_print(&s->out, "bitcast<f32>(b%u[e%u]);\n", view->binding, number);
        break;
    case WEIR_DTYPE_I32:
        wr_writer_print(&s->out, "bitcast<i32>(b%u[e%u]);\n", view->binding, number);
        break;
    case WEIR_DTYPE_BOOL:
        wr_writer_print(&s->out, "byte_of(b%u[e%u >> 2u], e%u) != 0u;\n", view->binding,
                        number, number);
        break;
    default:
        wr_writer_print(&s->out, "from_%s(half_of(b%u[e%u >> 1u], e%u));\n",
                        wr_dtype_name((weir_dtype)view->dtype), view->binding, number,
                        number);
        break;
    }
}

static void write_scalar(shader *s, uint32_t number, uint8_t dtype, uint32_t slot)
{
    uint32_t word = weir_expression_scalar_word(s->expression, slot);
    if (dtype == WEIR_DTYPE_BOOL) {
        wr_writer_print(&s->out, "    let v%u = word(%uu) != 0u;\n", number, word);
    } else {
        wr_writer_print(&s->out, "    let v%u = bitcast<%s>(word(%uu));\n", number,
                        type_of(dtype), word);
    }
}

static void write_random(shader *s, uint32_t number, const weir_step *step)
{
    uint32_t word = weir_expression_scalar_word(s->expression, step->operand[0]);
    wr_writer_print(&s->out,
                    "    let v%u = %s(l, word(%uu), word(%uu), word(%uu), word(%uu));\n",
                    number,
                    step->op == WEIR_OP_UNIFORM ? "random_uniform" : "random_normal",
                    word, word + 1, word + 2, word + 3);
}

/* Through f32 where the value is one, so that a cast to a 16-bit dtype rounds. */
static void write_cast(shader *s, uint32_t number, const weir_step *step)
{
    uint32_t from = step->operand[0];
    uint8_t before = s->expression->steps[from].dtype;
    bool from_float = wr_dtype_is_float((weir_dtype)before);
    if (step->dtype == WEIR_DTYPE_I32 && from_float) {
        wr_writer_print(&s->out, "    let v%u = to_i32(v%u);\n", number, from);
    } else if (step->dtype == WEIR_DTYPE_F16 || step->dtype == WEIR_DTYPE_BF16) {
        const char *name = wr_dtype_name((weir_dtype)step->dtype);
        wr_writer_print(&s->out, "    let v%u = from_%s(to_%s(f32(v%u)));\n", number,
                        name, name, from);
    } else {
        wr_writer_print(&s->out, "    let v%u = %s(v%u);\n", number, type_of(step->dtype),
                        from);
    }
}

/* Operators as they are, all else by the function of the library for that type. */
static void write_operation(shader *s, uint32_t number, const weir_step *step)
{
    static const struct {
        uint8_t op;
        const char *sign;
    } operators[] = {
        {WEIR_OP_ADD, "+"}, {WEIR_OP_SUB, "-"}, {WEIR_OP_MUL, "*"}, {WEIR_OP_EQ, "=="},
        {WEIR_OP_NE, "!="}, {WEIR_OP_LT, "<"},  {WEIR_OP_LE, "<="}, {WEIR_OP_GT, ">"},
        {WEIR_OP_GE, ">="}, {WEIR_OP_AND, "&"}, {WEIR_OP_OR, "|"},
    };
    const char *name = wr_operation_name((weir_op)step->op);
    const char *type = type_of(s->expression->steps[step->operand[0]].dtype);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (operators[i].op == step->op) {
            wr_writer_print(&s->out, "    let v%u = v%u %s v%u;\n", number,
                            step->operand[0], operators[i].sign, step->operand[1]);
            return;
        }
    }
    if (wr_operation_arity((weir_op)step->op) == 1) {
        wr_writer_print(&s->out, "    let v%u = %s_%s(v%u);\n", number, name, type,
                        step->operand[0]);
    } else {
        wr_writer_print(&s->out, "    let v%u = %s_%s(v%u, v%u);\n", number, name, type,
                        step->operand[0], step->operand[1]);
    }
}

static void write_step(shader *s, uint32_t number)
{
    const weir_step *step = &s->expression->steps[number];
    switch (step->op) {
    case WEIR_OP_LOAD:
        write_load(s, number, step->operand[0]);
        break;
    case WEIR_OP_SCALAR:
        write_scalar(s, number, step->dtype, step->operand[0]);
        break;
    case WEIR_OP_UNIFORM:
    case WEIR_OP_NORMAL:
        write_random(s, number, step);
        break;
    case WEIR_OP_CAST:
        write_cast(s, number, step);
        break;
    case WEIR_OP_SELECT:
        wr_writer_print(&s->out, "    let v%u = select(v%u, v%u, v%u);\n", number,
                        step->operand[2], step->operand[1], step->operand[0]);
        break;
    default:
        write_operation(s, number, step);
        break;
    }
}

static void write_steps(shader *s)
{
    write_coordinates(s);
    for (uint32_t k = 0; k < s->expression->step_count; k++) {
        write_step(s, k);
    }
}

/* ---- results ---- */

/* A value's bits, as they lie in memory. */
static void write_bits(shader *s, uint8_t dtype, const char *value)
{
    switch (dtype) {
    case WEIR_DTYPE_BOOL:
        wr_writer_print(&s->out, "select(0u, 1u, %s)", value);
        break;
    case WEIR_DTYPE_F16:
    case WEIR_DTYPE_BF16:
        wr_writer_print(&s->out, "to_%s(%s)", wr_dtype_name((weir_dtype)dtype), value);
        break;
    default:
        wr_writer_print(&s->out, "bitcast<u32>(%s)", value);
        break;
    }
}

/* The four elements from `base` on, whose bits are in o<number>; `end` is the index of
 * the first that is not there. */
static void write_store(shader *s, uint32_t number)
{
    const weir_output *output = &s->expression->outputs[number];
    uint32_t b = output->binding;
    switch (wr_dtype_bytes((weir_dtype)output->dtype)) {
    case 4:
        for (uint32_t k = 0; k < WEIR_WGSL_ELEMENTS; k++) {
            wr_writer_print(&s->out,
                            "  if (base + %uu < end) { b%u[base + %uu] = o%u[%u]; }\n", k,
                            b, k, number, k);
        }
        break;
    case 2:
        wr_writer_print(
            &s->out,
            "  if (base < end) { b%u[base >> 1u] = o%u[0] | (o%u[1] << 16u); }\n", b,
            number, number);
        wr_writer_print(
            &s->out,
            "  if (base + 2u < end) { b%u[(base >> 1u) + 1u] = o%u[2] | (o%u[3] "
            "<< 16u); }\n",
            b, number, number);
        break;
    default:
        wr_writer_print(&s->out,
                        "  if (base < end) { b%u[base >> 2u] = o%u[0] | (o%u[1] << 8u) | "
                        "(o%u[2] << 16u) | (o%u[3] << 24u); }\n",
                        b, number, number, number, number);
        break;
    }
}

static void write_stores(shader *s)
{
    for (uint32_t i = 0; i < s->expression->output_count; i++) {
        write_store(s, i);
    }
}

/* ---- the two forms ---- */

static void write_elementwise(shader *s)
{
    const weir_expression *e = s->expression;
    wr_writer_print(&s->out, WR_WGSL_ENTRY, WEIR_WGSL_WORKGROUP, s->name);
    wr_writer_put(&s->out,
                  "  let base = ((group.y * groups.x + group.x) * 256u + lane) * 4u;\n"
                  "  let end = word(0u) - first;\n");
    for (uint32_t i = 0; i < e->output_count; i++) {
        wr_writer_print(&s->out, "  var o%u: array<u32, 4>;\n", i);
    }
    wr_writer_put(&s->out, "  for (var k = 0u; k < 4u; k++) {\n"
                           "    let i = base + k;\n"
                           "    let l = first + i;\n"
                           "    if (i >= end) { break; }\n");
    write_steps(s);
    for (uint32_t i = 0; i < e->output_count; i++) {
        char value[8];
        snprintf(value, sizeof value, "v%u", e->outputs[i].step);
        wr_writer_print(&s->out, "    o%u[k] = ", i);
        write_bits(s, e->outputs[i].dtype, value);
        wr_writer_put(&s->out, ";\n");
    }
    wr_writer_put(&s->out, "  }\n");
    write_stores(s);
    wr_writer_put(&s->out, "}\n");
}

/* How two values become one. */
static void write_combine(shader *s, const char *type)
{
    weir_reduce reduce = (weir_reduce)s->expression->reduce;
    if (reduce == WEIR_REDUCE_ARGMAX) {
        wr_writer_put(&s->out, type[0] == 'f' ? WR_WGSL_BEST_F32 : WR_WGSL_BEST_I32);
        return;
    }
    wr_writer_print(&s->out, "fn combine(a: %s, b: %s) -> %s { return ", type, type,
                    type);
    if (reduce == WEIR_REDUCE_SUM || reduce == WEIR_REDUCE_MEAN) {
        wr_writer_put(&s->out, "a + b; }\n");
    } else {
        wr_writer_print(&s->out, "%s_%s(a, b); }\n",
                        reduce == WEIR_REDUCE_MAX ? "max" : "min", type);
    }
}

/* What is combined; r is the number among what goes into one output. */
static void write_value_function(shader *s, const char *gathered)
{
    bool is_best = s->expression->reduce == WEIR_REDUCE_ARGMAX;
    wr_writer_print(&s->out, "fn value(l: u32, r: u32) -> %s {\n    let i = l;\n",
                    gathered);
    write_steps(s);
    wr_writer_print(&s->out,
                    is_best ? "    return best(v%u, r);\n}\n" : "    return v%u;\n}\n",
                    s->expression->outputs[0].step);
}

static const char *reduced(weir_reduce reduce)
{
    return reduce == WEIR_REDUCE_MEAN     ? "shared_values[0] / f32(count)"
           : reduce == WEIR_REDUCE_ARGMAX ? "shared_values[0].at"
                                          : "shared_values[0]";
}

static void write_reduction(shader *s)
{
    const weir_output *output = &s->expression->outputs[0];
    weir_reduce reduce = (weir_reduce)s->expression->reduce;
    const char *type = type_of(s->expression->steps[output->step].dtype);
    const char *gathered = reduce == WEIR_REDUCE_ARGMAX ? "best" : type;
    write_combine(s, type);
    write_value_function(s, gathered);
    wr_writer_print(&s->out, WR_WGSL_SHARED, gathered, WEIR_WGSL_WORKGROUP);
    wr_writer_print(&s->out, WR_WGSL_ENTRY, WEIR_WGSL_WORKGROUP, s->name);
    wr_writer_print(&s->out, WR_WGSL_REDUCE, gathered);
    wr_writer_put(&s->out, "    o0[k] = ");
    write_bits(s, output->dtype, reduced(reduce));
    wr_writer_put(&s->out,
                  ";\n    workgroupBarrier();\n  }\n  if (lane != 0u) { return; }\n");
    write_stores(s);
    wr_writer_put(&s->out, "}\n");
}

weir_result wr_source_write_wgsl(const weir_kernel *kernel, weir_write_fn write,
                                 void *context)
{
    shader s = {
        .out = {.write = write, .context = context},
        .expression = kernel->expression,
        .name = kernel->name,
        .is_reduction = kernel->expression->reduce != WEIR_REDUCE_NONE,
    };
    write_bindings(&s);
    write_library(&s);
    if (s.is_reduction) {
        write_reduction(&s);
    } else {
        write_elementwise(&s);
    }
    return s.out.result;
}
