/* SPDX-License-Identifier: MIT */
/* Expressions as CUDA C. What is written for `relu(a * x + b)`, b a row:
 *
 *     (prelude)
 *     struct words { i64 w[15]; };
 *     struct spot { i64 v2; };                                    strided views' elements
 *     spot outside(const words &w, u64 o);                        from kept dimensions
 *     u64 inside(const words &w, u64 r, spot &at);                ... from the others
 *     template <int N> void steps(w, b0, b1, b2, b3, i, r, base)  N elements from i on
 *     void fused_1007(b0, b1, b2, b3, w)                          the loop over them
 *
 * N is such that a linear view's largest elements are 16 bytes together; the rest, and
 * views that begin in between, go one by one. Elements of strided views are found once,
 * and then by steps along the innermost dimension until that ends.
 *
 * Products and sums are as written, for the text is compiled without contraction: so
 * results are the host's wherever IEEE 754 says what they are, fused or not, and random
 * numbers are so bit by bit. */
#include "source.h"

#include "dtype.h"
#include "operation.h"
#include "prelude.h"

#include <inttypes.h>

typedef struct writer {
    wr_writer text;
    const weir_kernel *kernel;
    const weir_expression *expression;
    uint32_t first_inside; /* dimension; those before it are the outputs' */
    uint32_t width;        /* elements at once */
    bool has_strided;
} writer;

#define PUT(piece) wr_writer_put(&w->text, piece)
#define PRINT(...) wr_writer_print(&w->text, __VA_ARGS__)

static bool is_reduction(const writer *w)
{
    return w->expression->reduce != WEIR_REDUCE_NONE;
}

/* The element's type in memory. */
static const char *element_of(weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_BOOL ? "truth" : wr_dtype_name(dtype);
}

static const char *value_of(weir_dtype dtype)
{
    return wr_dtype_is_float(dtype) ? "float" : "int";
}

static const char *reduce_name(weir_reduce reduce)
{
    switch (reduce) {
#define NAME(name, number, function, domain)                                             \
    case WEIR_REDUCE_##name:                                                             \
        return #function;
        WEIR_REDUCE_LIST(NAME)
#undef NAME
    default:
        return "?";
    }
}

static bool is_strided(const weir_view *view)
{
    return view->layout == WEIR_VIEW_STRIDED;
}

/* ---- what is known beforehand ---- */

static uint32_t larger(uint32_t one, uint32_t other)
{
    return one > other ? one : other;
}

/* 4 or 8 elements where some are side by side in memory; else 1. */
static uint32_t width_of(const weir_expression *expression)
{
    uint32_t bytes = 0;
    for (uint32_t v = 0; v < expression->view_count; v++) {
        const weir_view *view = &expression->views[v];
        if (view->layout == WEIR_VIEW_LINEAR) {
            bytes = larger(bytes, wr_dtype_bytes(view->dtype));
        }
    }
    for (uint32_t k = 0;
         k < expression->output_count && expression->reduce == WEIR_REDUCE_NONE; k++) {
        bytes = larger(bytes, wr_dtype_bytes(expression->outputs[k].dtype));
    }
    return bytes == 0 ? 1 : bytes == 4 ? 4 : 8;
}

static void look(writer *w)
{
    const weir_expression *expression = w->expression;
    w->width = width_of(expression);
    w->first_inside =
        is_reduction(w) ? (uint32_t)expression->rank - expression->reduced_rank : 0;
    for (uint32_t v = 0; v < expression->view_count; v++) {
        w->has_strided |= is_strided(&expression->views[v]);
    }
}

static bool has_random(const writer *w)
{
    bool has = false;
    for (uint32_t s = 0; s < w->expression->step_count; s++) {
        weir_op op = w->expression->steps[s].op;
        has |= op == WEIR_OP_UNIFORM || op == WEIR_OP_NORMAL;
    }
    return has;
}

/* ---- parameters ---- */

/* Bindings do not overlap; one that is worked on in place is one pointer. */
static void put_parameters(writer *w)
{
    for (uint32_t b = 0; b < w->expression->binding_count; b++) {
        PRINT("void *__restrict__ b%u, ", b);
    }
}

static void put_bindings(writer *w)
{
    for (uint32_t b = 0; b < w->expression->binding_count; b++) {
        PRINT("b%u, ", b);
    }
}

/* ---- strided views ---- */

static uint32_t stride_word(const writer *w, uint32_t v, uint32_t d)
{
    return weir_expression_view_word(w->expression, v) + 1 + d;
}

static void put_spot(writer *w)
{
    PUT("struct spot { i64 ");
    const char *before = "";
    for (uint32_t v = 0; v < w->expression->view_count; v++) {
        if (is_strided(&w->expression->views[v])) {
            PRINT("%sv%u", before, v);
            before = ", ";
        }
    }
    PUT("; };\n");
}

/* Adds coordinate `c` of dimension `d` to every spot. */
static void put_step_along(writer *w, uint32_t d, const char *coordinate)
{
    for (uint32_t v = 0; v < w->expression->view_count; v++) {
        if (is_strided(&w->expression->views[v])) {
            PRINT("    at.v%u += (i64)%s * w.w[%u];\n", v, coordinate,
                  stride_word(w, v, d));
        }
    }
}

/* Takes index `from` apart over dimensions [first, end), the innermost first. */
static void put_coordinates(writer *w, const char *from, uint32_t first, uint32_t end)
{
    for (uint32_t d = end; d-- > first;) {
        if (d == first) {
            put_step_along(w, d, from);
        } else {
            PRINT("    %s = divide(%s, (u64)w.w[%u], c);\n", from, from, 2 + d);
            put_step_along(w, d, "c");
        }
        if (d + 1 == end) {
            PRINT("    left = (u64)w.w[%u] - %s;\n", 2 + d, d == first ? from : "c");
        }
    }
}

static void put_places(writer *w)
{
    uint32_t rank = w->expression->rank;
    put_spot(w);
    PUT("INLINE spot outside(const words &w, u64 o)\n{\n    spot at;\n    u64 c, left;\n");
    for (uint32_t v = 0; v < w->expression->view_count; v++) {
        if (is_strided(&w->expression->views[v])) {
            PRINT("    at.v%u = w.w[%u];\n", v,
                  weir_expression_view_word(w->expression, v));
        }
    }
    put_coordinates(w, "o", 0, w->first_inside);
    PUT("    return at;\n}\n"
        "/* How many elements are left in the innermost run. */\n"
        "INLINE u64 inside(const words &w, u64 r, spot &at)\n{\n    u64 c, left = ~0ULL;\n");
    put_coordinates(w, "r", w->first_inside, rank);
    PUT("    return left;\n}\n\n");
}

/* ---- steps ---- */

static void put_strided_loads(writer *w)
{
    const weir_expression *expression = w->expression;
    PUT("    spot at = base;\n    u64 left = inside(w, r, at);\n    EACH {\n"
        "        if (left == 0) {\n"
        "            at = base;\n            left = inside(w, r + k, at);\n        }\n");
    for (uint32_t s = 0; s < expression->step_count; s++) {
        uint8_t v = expression->steps[s].operand[0];
        if (expression->steps[s].op == WEIR_OP_LOAD &&
            is_strided(&expression->views[v])) {
            PRINT("        s%u[k] = value(((const %s *)b%u)[at.v%u]);\n", s,
                  element_of(expression->views[v].dtype), expression->views[v].binding,
                  v);
        }
    }
    for (uint32_t v = 0; v < expression->view_count && expression->rank > w->first_inside;
         v++) {
        if (is_strided(&expression->views[v])) {
            PRINT("        at.v%u += w.w[%u];\n", v,
                  stride_word(w, v, expression->rank - 1u));
        }
    }
    PUT("        left--;\n    }\n");
}

/* Strided ones have been loaded already. */
static void put_load(writer *w, uint32_t s)
{
    uint8_t v = w->expression->steps[s].operand[0];
    const weir_view *view = &w->expression->views[v];
    const char *element = element_of(view->dtype);
    uint32_t offset = weir_expression_view_word(w->expression, v);
    if (view->layout == WEIR_VIEW_LINEAR) {
        PRINT("    load<N>(s%u, (const %s *)b%u + w.w[%u] + i);\n", s, element,
              view->binding, offset);
    } else if (view->layout == WEIR_VIEW_SCALAR) {
        PRINT("    EACH s%u[k] = value(((const %s *)b%u)[w.w[%u]]);\n", s, element,
              view->binding, offset);
    }
}

static void put_random(writer *w, uint32_t s)
{
    const weir_step *step = &w->expression->steps[s];
    uint32_t slot = weir_expression_scalar_word(w->expression, step->operand[0]);
    PRINT("    random<%s_numbers>(s%u, i, (u32)w.w[%u] | (u64)(u32)w.w[%u] << 32, "
          "__int_as_float((int)w.w[%u]), __int_as_float((int)w.w[%u]));\n",
          wr_operation_name(step->op), s, slot, slot + 1, slot + 2, slot + 3);
}

static void put_scalar(writer *w, uint32_t s)
{
    const weir_step *step = &w->expression->steps[s];
    PRINT("    EACH s%u[k] = %s((int)w.w[%u]);\n", s,
          wr_dtype_is_float(step->dtype) ? "__int_as_float" : "",
          weir_expression_scalar_word(w->expression, step->operand[0]));
}

static void put_operation(writer *w, uint32_t s)
{
    const weir_step *step = &w->expression->steps[s];
    const uint8_t *from = step->operand;
    if (step->op == WEIR_OP_SELECT) {
        PRINT("    EACH s%u[k] = s%u[k] ? s%u[k] : s%u[k];\n", s, from[0], from[1],
              from[2]);
    } else if (step->op == WEIR_OP_CAST) {
        PRINT("    EACH s%u[k] = to_%s(s%u[k]);\n", s, wr_dtype_name(step->dtype),
              from[0]);
    } else if (wr_operation_arity(step->op) == 2) {
        PRINT("    EACH s%u[k] = op_%s(s%u[k], s%u[k]);\n", s,
              wr_operation_name(step->op), from[0], from[1]);
    } else {
        PRINT("    EACH s%u[k] = op_%s(s%u[k]);\n", s, wr_operation_name(step->op),
              from[0]);
    }
}

static void put_step(writer *w, uint32_t s)
{
    switch ((weir_op)w->expression->steps[s].op) {
    case WEIR_OP_LOAD:
        put_load(w, s);
        break;
    case WEIR_OP_SCALAR:
        put_scalar(w, s);
        break;
    case WEIR_OP_UNIFORM:
    case WEIR_OP_NORMAL:
        put_random(w, s);
        break;
    default:
        put_operation(w, s);
    }
}

static void put_results(writer *w)
{
    const weir_expression *expression = w->expression;
    if (is_reduction(w)) {
        PRINT("    EACH result[k] = s%u[k];\n", expression->outputs[0].step);
        return;
    }
    for (uint32_t k = 0; k < expression->output_count; k++) {
        const weir_output *output = &expression->outputs[k];
        PRINT("    store<N>((%s *)b%u + i, s%u);\n", element_of(output->dtype),
              output->binding, output->step);
    }
}

/* i is the index in the whole space, r that among what goes into one output. */
static void put_steps(writer *w)
{
    const weir_expression *expression = w->expression;
    PUT("template <int N> INLINE void steps(const words &w, ");
    put_parameters(w);
    PUT("u64 i");
    if (w->has_strided) {
        PUT(", u64 r, const spot &base");
    }
    if (is_reduction(w)) {
        PRINT(", %s (&result)[N]",
              value_of(expression->steps[expression->outputs[0].step].dtype));
    }
    PUT(")\n{\n");
    for (uint32_t s = 0; s < expression->step_count; s++) {
        PRINT("    %s s%u[N];\n", value_of(expression->steps[s].dtype), s);
    }
    if (w->has_strided) {
        put_strided_loads(w);
    }
    for (uint32_t s = 0; s < expression->step_count; s++) {
        put_step(w, s);
    }
    put_results(w);
    PUT("}\n\n");
}

/* ---- the kernel over elements ---- */

/* Whether all linear views begin where N elements are aligned. */
static void put_is_aligned(writer *w)
{
    PUT("(0");
    for (uint32_t v = 0; v < w->expression->view_count; v++) {
        if (w->expression->views[v].layout == WEIR_VIEW_LINEAR) {
            PRINT(" | w.w[%u]", weir_expression_view_word(w->expression, v));
        }
    }
    PRINT(") %% %u == 0", w->width);
}

static void put_signature(writer *w, const char *last)
{
    PRINT("extern \"C\" __global__ void __launch_bounds__(256) %s(", w->kernel->name);
    put_parameters(w);
    PRINT("const words w%s)\n{\n", last);
}

static void put_call(writer *w, uint32_t width, const char *index)
{
    PRINT("        steps<%u>(w, ", width);
    put_bindings(w);
    PRINT(w->has_strided ? "%s, %s, base);\n" : "%s);\n", index, index);
}

static void put_elements(writer *w)
{
    put_signature(w, "");
    PUT("    u64 count = w.w[0];\n"
        "    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    u64 all = (u64)gridDim.x * blockDim.x;\n");
    if (w->has_strided) {
        PUT("    spot base = outside(w, 0);\n");
    }
    PUT("    u64 wide = ");
    put_is_aligned(w);
    PRINT(" ? count / %u : 0;\n"
          "    for (u64 g = first; g < wide; g += all) {\n",
          w->width);
    PRINT("        u64 i = g * %u;\n", w->width);
    put_call(w, w->width, "i");
    PRINT("    }\n    for (u64 i = wide * %u + first; i < count; i += all) {\n",
          w->width);
    put_call(w, 1, "i");
    PUT("    }\n}\n");
}

/* ---- the kernels of a reduction ---- */

/* Loads under way in one lane. */
#define ROUNDS 4

static void put_gatherer(writer *w)
{
    weir_reduce reduce = w->expression->reduce;
    const char *name = reduce_name(reduce);
    const weir_step *step = &w->expression->steps[w->expression->outputs[0].step];
    PRINT("typedef %s V;\ntypedef %s A;\n", value_of(step->dtype),
          reduce == WEIR_REDUCE_ARGMAX ? "best<V>" : "V");
    PRINT("INLINE A both(A a, A b) { return %s_of(a, b); }\n", name);
    PRINT("INLINE void begin(A &a) { begin_%s(a); }\n", name);
}

/* Rounds of `times` steps, whose loads are all under way before the first is used. */
static void put_rounds(writer *w, uint32_t width, uint32_t times)
{
    PRINT("        for (; r + %u * next < end; r += %u * next) {\n"
          "            V v[%u][%u];\n"
          "            _Pragma(\"unroll\") for (int n = 0; n < %u; n++) {\n"
          "                steps<%u>(w, ",
          times - 1, times, times, width, times, width);
    put_bindings(w);
    PUT(w->has_strided ? "o * (u64)w.w[1] + r + n * next, r + n * next, base, v[n]);\n"
                       : "o * (u64)w.w[1] + r + n * next, v[n]);\n");
    PRINT("            }\n"
          "            _Pragma(\"unroll\") for (int n = 0; n < %u; n++) {\n"
          "                _Pragma(\"unroll\") for (int k = 0; k < %u; k++) {\n"
          "                    A a;\n"
          "                    item(a, v[n][k], r + n * next + k);\n"
          "                    sums[k] = both(sums[k], a);\n"
          "                }\n            }\n        }\n",
          times, width);
}

static void put_total_loop(writer *w, uint32_t width)
{
    PRINT("        u64 r = begin_at + p.lane * %uu, next = s.lanes * %uu;\n", width,
          width);
    put_rounds(w, width, ROUNDS);
    put_rounds(w, width, 1);
}

/* One lane's share of [begin_at, end) of what goes into output o. */
static void put_total(writer *w)
{
    PUT("INLINE A total(const words &w, ");
    put_parameters(w);
    PUT("u64 o, u64 begin_at, u64 end, const split &s, const place &p)\n{\n");
    if (w->has_strided) {
        PUT("    spot base = outside(w, o);\n");
    }
    PRINT("    A sums[%u];\n"
          "    _Pragma(\"unroll\") for (int k = 0; k < %u; k++) begin(sums[k]);\n"
          "    bool wide = !s.across && w.w[1] %% %u == 0 && ",
          w->width, w->width, w->width);
    put_is_aligned(w);
    PUT(";\n    if (wide) {\n");
    put_total_loop(w, w->width);
    PUT("    } else {\n");
    put_total_loop(w, 1);
    PRINT("    }\n"
          "    _Pragma(\"unroll\") for (int k = 1; k < %u; k++) {\n"
          "        sums[0] = both(sums[0], sums[k]);\n    }\n    return sums[0];\n}\n\n",
          w->width);
}

/* Parts begin at multiples of 64, so that they are as aligned as the whole. */
static void put_reduction(writer *w)
{
    const weir_output *output = &w->expression->outputs[0];
    put_signature(w, ", const split s");
    PUT("    place p = place_of(s);\n"
        "    u64 count = w.w[0], each = w.w[1];\n"
        "    u64 length = (each + s.parts * 64 - 1) / (s.parts * 64) * 64;\n"
        "    u64 begin_at = blockIdx.y * length;\n"
        "    u64 end = begin_at + length < each ? begin_at + length : each;\n"
        "    u64 groups = THREADS / s.lanes;\n"
        "    for (u64 first = blockIdx.x * groups; first < count;\n"
        "         first += gridDim.x * groups) {\n"
        "        u64 o = first + p.group;\n        A a;\n        begin(a);\n"
        "        if (o < count) a = total(w, ");
    put_bindings(w);
    PUT("o, begin_at, end, s, p);\n        a = combine(a, s, p);\n");
    PRINT(
        "        if (o < count && p.lane == 0) {\n"
        "            if (s.parts > 1) ((A *)s.memory)[o * s.parts + blockIdx.y] = a;\n"
        "            else set(((%s *)b%u)[o], done_%s(a, each));\n        }\n    }\n}\n\n",
        element_of(output->dtype), output->binding, reduce_name(w->expression->reduce));
}

/* Outputs from their parts. */
static void put_end(writer *w)
{
    const weir_output *output = &w->expression->outputs[0];
    PRINT(
        "extern \"C\" __global__ void __launch_bounds__(256) %s_end(void *b, u64 count, "
        "u64 each, split s)\n{\n",
        w->kernel->name);
    PUT("    place p = place_of(s);\n    u64 groups = THREADS / s.lanes;\n"
        "    for (u64 first = blockIdx.x * groups; first < count;\n"
        "         first += gridDim.x * groups) {\n"
        "        u64 o = first + p.group;\n        A a;\n        begin(a);\n"
        "        for (u64 k = p.lane; o < count && k < s.parts; k += s.lanes) {\n"
        "            a = both(a, ((const A *)s.memory)[o * s.parts + k]);\n        }\n"
        "        a = combine(a, s, p);\n");
    PRINT("        if (o < count && p.lane == 0) set(((%s *)b)[o], done_%s(a, each));\n"
          "    }\n}\n",
          element_of(output->dtype), reduce_name(w->expression->reduce));
}

/* ---- all of it ---- */

static void put_expression(writer *w)
{
    const weir_expression *expression = w->expression;
    look(w);
    PUT(wr_cuda_prelude);
    if (has_random(w)) {
        PUT(wr_cuda_random);
    }
    PRINT("struct words { i64 w[%u]; };\n", weir_expression_words(expression));
    if (w->has_strided) {
        put_places(w);
    }
    if (!is_reduction(w)) {
        put_steps(w);
        put_elements(w);
        return;
    }
    PUT(wr_cuda_reductions);
    put_gatherer(w);
    PUT(wr_cuda_blocks);
    put_steps(w);
    put_total(w);
    put_reduction(w);
    put_end(w);
}

/* ---- kernels that are known by kind ---- */

static const char *move_name(weir_kernel_kind kind)
{
    switch (kind) {
    case WEIR_KERNEL_GATHER:
        return "gather";
    case WEIR_KERNEL_SCATTER_ADD:
        return "scatter_add";
    case WEIR_KERNEL_PLACE:
        return "place";
    default:
        return NULL;
    }
}

static void put_move(writer *w)
{
    const char *element = element_of(w->kernel->dtype);
    bool has_indices = w->kernel->kind != WEIR_KERNEL_PLACE;
    PUT(wr_cuda_prelude);
    PRINT("typedef %s T;\n", element);
    PUT(wr_cuda_moves);
    PRINT("extern \"C\" __global__ void __launch_bounds__(256) %s(void *b0, void *b1%s, "
          "const words w)\n{\n    %s(w, b0, b1%s);\n}\n",
          w->kernel->name, has_indices ? ", void *b2" : "", move_name(w->kernel->kind),
          has_indices ? ", b2" : "");
}

weir_result wr_source_write_cuda(const weir_kernel *kernel, weir_write_fn write,
                                 void *context)
{
    writer w = {
        .text = {.write = write, .context = context, .result = WEIR_OK},
        .kernel = kernel,
        .expression = kernel->expression,
    };
    if (kernel->kind == WEIR_KERNEL_EXPRESSION) {
        put_expression(&w);
    } else if (move_name(kernel->kind) != NULL) {
        put_move(&w);
    } else {
        return weir_driver_error(WEIR_UNSUPPORTED, "kernel \"%s\" has no form in CUDA C",
                                 kernel->name);
    }
    return w.text.result;
}
