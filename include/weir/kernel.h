/* SPDX-License-Identifier: MIT */
/* Kernels: what a launch runs, in the forms that drivers understand.
 *
 * A kernel is structure only. What changes from launch to launch (addresses, shapes,
 * strides, scalars) comes with the launch, so a driver compiles each kernel once and
 * finds it again by `id`. Most kernels are expressions: plain data from which a driver
 * makes its own form. The others are known by `kind`. A driver uses the form it knows,
 * and answers UNSUPPORTED if that one is missing. */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#include <weir/driver.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- element types: name, number, text, bytes ---- */

#define WEIR_DTYPE_LIST(X)                                                               \
    X(F32, 0, "f32", 4)                                                                  \
    X(F16, 1, "f16", 2)                                                                  \
    X(BF16, 2, "bf16", 2)                                                                \
    X(I32, 3, "i32", 4)                                                                  \
    X(BOOL, 4, "bool", 1)

typedef enum weir_dtype {
#define WEIR_DTYPE_ENUM(name, number, text, bytes) WEIR_DTYPE_##name = number,
    WEIR_DTYPE_LIST(WEIR_DTYPE_ENUM)
#undef WEIR_DTYPE_ENUM
} weir_dtype;

/* ---- operations on elements ----
 *
 * Name, number, function, domain. Numbers stay; they are part of what is recorded. Which
 * dtypes an operation takes is its domain:
 *   ANY    f32, f16, bf16, i32      the result has the operands' dtype
 *   FLOAT  f32, f16, bf16           the same
 *   LOGIC  bool                     the same
 *   ORDER  f32, f16, bf16, i32      the result is bool
 *   EQUAL  all                      the result is bool
 * f16 and bf16 are computed in f32 and rounded when stored or cast. i32 wraps around; its
 * division by 0 gives 0. min, max and relu of a NaN are NaN. */
#define WEIR_UNARY_LIST(X)                                                               \
    X(NEG, 16, neg, ANY)                                                                 \
    X(ABS, 17, abs, ANY)                                                                 \
    X(EXP, 18, exp, FLOAT)                                                               \
    X(LOG, 19, log, FLOAT)                                                               \
    X(SQRT, 20, sqrt, FLOAT)                                                             \
    X(RSQRT, 21, rsqrt, FLOAT)                                                           \
    X(RECIP, 22, recip, FLOAT)                                                           \
    X(TANH, 23, tanh, FLOAT)                                                             \
    X(SIGMOID, 24, sigmoid, FLOAT)                                                       \
    X(RELU, 25, relu, ANY)                                                               \
    X(GELU, 26, gelu, FLOAT) /* x / 2 * (1 + erf(x / sqrt(2))) */                        \
    X(SIN, 27, sin, FLOAT)                                                               \
    X(COS, 28, cos, FLOAT)                                                               \
    X(NOT, 29, not, LOGIC)

#define WEIR_BINARY_LIST(X)                                                              \
    X(ADD, 48, add, ANY)                                                                 \
    X(SUB, 49, sub, ANY)                                                                 \
    X(MUL, 50, mul, ANY)                                                                 \
    X(DIV, 51, div, ANY)                                                                 \
    X(MIN, 52, min, ANY)                                                                 \
    X(MAX, 53, max, ANY)                                                                 \
    X(POW, 54, pow, FLOAT)                                                               \
    X(EQ, 55, eq, EQUAL)                                                                 \
    X(NE, 56, ne, EQUAL)                                                                 \
    X(LT, 57, lt, ORDER)                                                                 \
    X(LE, 58, le, ORDER)                                                                 \
    X(GT, 59, gt, ORDER)                                                                 \
    X(GE, 60, ge, ORDER)                                                                 \
    X(AND, 61, and, LOGIC)                                                               \
    X(OR, 62, or, LOGIC)

typedef enum weir_op {
    WEIR_OP_NONE = 0,
    WEIR_OP_LOAD = 1,    /* an element of view operand[0] */
    WEIR_OP_SCALAR = 2,  /* the scalar in slot operand[0] */
    WEIR_OP_CAST = 3,    /* operand[0], in the step's dtype */
    WEIR_OP_SELECT = 4,  /* operand[0], a bool, ? operand[1] : operand[2] */
    WEIR_OP_UNIFORM = 5, /* random, by the element's index; scalars from slot operand[0]
                            on: seed low, seed high (i32), low, high (f32) */
    WEIR_OP_NORMAL = 6,  /* the same; the last two are mean and deviation */
#define WEIR_OP_ENUM(name, number, function, domain) WEIR_OP_##name = number,
    WEIR_UNARY_LIST(WEIR_OP_ENUM) WEIR_BINARY_LIST(WEIR_OP_ENUM)
#undef WEIR_OP_ENUM
} weir_op;

/* What a reduction makes of the elements that go into one: name, number, function,
 * domain (ANY and FLOAT as above). i32 sums wrap around. A NaN among the elements is the
 * maximum and the minimum. ARGMAX is the number of the first maximum, i32, counted in the
 * order of the reduced space. */
#define WEIR_REDUCE_LIST(X)                                                              \
    X(SUM, 1, sum, ANY)                                                                  \
    X(MAX, 2, max, ANY)                                                                  \
    X(MIN, 3, min, ANY)                                                                  \
    X(MEAN, 4, mean, FLOAT)                                                              \
    X(ARGMAX, 5, argmax, ANY)

typedef enum weir_reduce {
    WEIR_REDUCE_NONE = 0,
#define WEIR_REDUCE_ENUM(name, number, function, domain) WEIR_REDUCE_##name = number,
    WEIR_REDUCE_LIST(WEIR_REDUCE_ENUM)
#undef WEIR_REDUCE_ENUM
} weir_reduce;

/* ---- expressions ----
 *
 * A program over one element at a time, run for every index of an iteration space. Steps
 * are in order: operands are numbers of earlier steps. With a reduction the space is
 * that of the output and, behind it, that of what goes into each output element; the
 * value of outputs[0].step is reduced, and there is no other output.
 *
 *     y = relu(a * x + b), b a row:    0 load v0    1 load v1    2 mul 0 1
 *                                      3 load v2    4 add 2 3    5 relu 4
 *     views: v0 of binding 0, linear; v1 of 1, linear; v2 of 2, strided [0, 1]
 *     outputs: step 5 to binding 3
 *
 * All unused bytes are zero, so that equal structures are equal bytes. */
#define WEIR_EXPRESSION_STEPS 48
#define WEIR_EXPRESSION_VIEWS 16
#define WEIR_EXPRESSION_OUTPUTS 8
#define WEIR_EXPRESSION_SCALARS 24
#define WEIR_EXPRESSION_RANK 8

typedef struct weir_step {
    uint8_t op;         /* weir_op */
    uint8_t dtype;      /* weir_dtype of the value */
    uint8_t operand[3]; /* steps, or what the operation says */
} weir_step;

typedef enum weir_view_layout {
    WEIR_VIEW_LINEAR = 0,  /* element offset + i of the binding, i the linear index */
    WEIR_VIEW_SCALAR = 1,  /* element offset, always */
    WEIR_VIEW_STRIDED = 2, /* element offset + sum of coordinate * stride */
} weir_view_layout;

typedef struct weir_view {
    uint8_t binding;
    uint8_t dtype;  /* weir_dtype of the elements in memory */
    uint8_t layout; /* weir_view_layout */
} weir_view;

/* Always linear: element i of the binding, from 0 on. */
typedef struct weir_output {
    uint8_t step;
    uint8_t binding; /* that of a linear view too where the operand is used in place */
    uint8_t dtype;
} weir_output;

typedef struct weir_expression {
    uint8_t rank;         /* of the whole iteration space, the last dimension innermost */
    uint8_t reduced_rank; /* the last so many dimensions are reduced */
    uint8_t reduce;       /* weir_reduce */
    uint8_t step_count;
    uint8_t view_count;
    uint8_t output_count;
    uint8_t scalar_count;
    uint8_t binding_count;
    weir_step steps[WEIR_EXPRESSION_STEPS];
    weir_view views[WEIR_EXPRESSION_VIEWS];
    weir_output outputs[WEIR_EXPRESSION_OUTPUTS];
} weir_expression;

/* The arguments of an expression's launch are 64-bit words:
 *
 *     word 0                   elements of each output (weir_launch.element_count)
 *     word 1                   elements that go into one; 1 without a reduction
 *     then `rank` words        the extents
 *     then, for each view      1 + rank words: offset and strides, in elements, signed
 *     then `scalar_count`      each in the low 32 bits: f32, or i32 (bool: 0 or 1)
 *
 * Scalars of f16 and bf16 values are f32. */
static inline uint32_t weir_expression_view_word(const weir_expression *expression,
                                                 uint32_t view)
{
    return 2u + expression->rank + view * (1u + expression->rank);
}

static inline uint32_t weir_expression_scalar_word(const weir_expression *expression,
                                                   uint32_t slot)
{
    return weir_expression_view_word(expression, expression->view_count) + slot;
}

static inline uint32_t weir_expression_words(const weir_expression *expression)
{
    return weir_expression_scalar_word(expression, expression->scalar_count);
}

/* ---- kernels ---- */

typedef enum weir_kernel_kind {
    WEIR_KERNEL_CUSTOM = 0,      /* only the driver's own form says what it does */
    WEIR_KERNEL_EXPRESSION = 1,  /* `expression` */
    WEIR_KERNEL_MATMUL = 2,      /* bindings left, right, result; weir_matmul_words */
    WEIR_KERNEL_GATHER = 3,      /* source, indices (i32), result; weir_move_words */
    WEIR_KERNEL_SCATTER_ADD = 4, /* result (in place), indices, source; the same */
    WEIR_KERNEL_PLACE = 5,       /* result, source; the same */
} weir_kernel_kind;

/* ---- arguments of the kernels that are known by kind ----
 *
 * All are 64-bit words; offsets and strides count elements of the binding and may be
 * negative or 0. Two bindings that are only read may be the same buffer, unless the
 * driver asks for exclusive_bindings. */

/* result[b][r][c] = sum over i of left[b][r][i] * right[b][i][c], summed in f32; dtype
 * f32, f16 or bf16. The result is row-major from its element 0 on. Each operand is
 * row-major (column_stride 1, row_stride at least its columns) or column-major
 * (row_stride 1, column_stride at least its rows). All extents and strides but those of
 * the batch fit into 31 bits. */
typedef struct weir_matmul_operand {
    int64_t offset;
    int64_t batch_stride; /* 0: the same for all */
    int64_t row_stride;
    int64_t column_stride;
} weir_matmul_operand;

typedef struct weir_matmul_words {
    int64_t batch_count;
    int64_t rows;
    int64_t columns;
    int64_t inner;
    weir_matmul_operand left;
    weir_matmul_operand right;
} weir_matmul_words;

/* For every index (c0, c1...) of a space, with at(v) = views[v].offset + c0 *
 * views[v].strides[0] + ..., views in the order of the bindings:
 *
 *     GATHER        result[at(2)] = source[at(0) + index_stride * indices[at(1)]]
 *     SCATTER_ADD   result[at(0) + index_stride * indices[at(1)]] += source[at(2)]
 *     PLACE         result[at(0)] = source[at(1)]
 *
 * Where an index is not in [0, index_count), GATHER makes a NaN, or 0 of i32 and bool,
 * and SCATTER_ADD adds nothing. GATHER's result is row-major, from 0 on. SCATTER_ADD's
 * indices run along dimension 0: elements that differ in another one never meet, so a
 * launch has one element for each index of the others, and adds in the order of dimension
 * 0, which gives the same result every time. Past the rank extents are 1 and strides 0;
 * the rank is at least 1. */
typedef struct weir_move_view {
    int64_t offset;
    int64_t strides[WEIR_EXPRESSION_RANK];
} weir_move_view;

typedef struct weir_move_words {
    int64_t element_count; /* of the space */
    int64_t rank;
    int64_t index_count;
    int64_t index_stride;
    int64_t extents[WEIR_EXPRESSION_RANK];
    weir_move_view views[3];
} weir_move_words;

typedef enum weir_language {
    WEIR_LANGUAGE_CUDA = 1, /* CUDA C, functions extern "C" __global__; see below */
    WEIR_LANGUAGE_WGSL = 2, /* WGSL, one compute entry point, `name`; see below */
} weir_language;

/* What WGSL has to look like. Group 0 has the launch's bindings in their order and, if
 * there are any, the arguments behind them, all as var<storage, read_write>. There are
 * workgroups enough for all elements, in rows:
 *
 *     number of a workgroup = workgroup_id.y * num_workgroups.x + workgroup_id.x
 *
 * An expression without a reduction gets one for every WEIR_WGSL_WORKGROUP times
 * WEIR_WGSL_ELEMENTS elements, and so do the kernels that move elements; MATMUL gets one
 * for every square of WEIR_WGSL_TILE rows and columns of each product, columns fastest,
 * everything else one for every WEIR_WGSL_ELEMENTS. There may be more workgroups than are
 * needed. An expression without a reduction also has `override first: u32 = 0u`, the
 * first element of a launch that is done in parts: its linear views and outputs are then
 * bound from that element on, and all else whole. */
#define WEIR_WGSL_WORKGROUP 256u
#define WEIR_WGSL_ELEMENTS 4u
#define WEIR_WGSL_TILE 64u

/* What CUDA C has to look like. It is compiled without headers and without contraction of
 * products and sums. An extern "C" __global__ function `name` takes a pointer for each
 * binding, then, if there are any, the arguments as one struct by value. Blocks have
 * WEIR_CUDA_THREADS threads, in one dimension. There are as many as the elements need, or
 * as fill the device: the function goes on by the grid.
 *
 * The function of an expression with a reduction takes a weir_cuda_split behind them.
 * `lanes` threads, side by side in the block, or block size / lanes apart (across), work
 * on one output; blockIdx.y is the part of the inputs that is theirs. With several parts,
 * part p of output o goes to memory[o * parts + p], in at most 8 bytes each, and
 * afterwards `name`_end(void *output, uint64_t outputs, uint64_t inputs_of_one,
 * weir_cuda_split) makes outputs of them, with other lanes. */
#define WEIR_CUDA_THREADS 256u

typedef struct weir_cuda_split {
    uint32_t lanes; /* a power of two, at most WEIR_CUDA_THREADS */
    uint32_t is_across;
    uint64_t parts;
    uint64_t memory;
} weir_cuda_split;

typedef struct weir_kernel weir_kernel;
struct weir_kernel {
    weir_kernel_kind kind;
    const char *name; /* an identifier; for compilers and error texts */
    uint64_t id;      /* equal for equal kernels, never reused in the process; 0: none, a
                         driver keeps nothing for it */
    weir_dtype dtype; /* of the elements, for kinds that are no expressions */
    const weir_expression *expression; /* EXPRESSION only */
    /* Whether the host form can run: it may need a library. NULL: it can. */
    weir_result (*host_ready)(const weir_kernel *kernel);
    /* Host form: works on elements [begin, end). Called from several threads with
     * disjoint ranges; begins are multiples of 4,096, or of 4,096 / element_work. */
    void (*host)(const weir_launch *launch, uint64_t begin, uint64_t end);
    /* Writes the source text in a language; UNSUPPORTED if there is none. NULL: none. */
    weir_result (*source)(const weir_kernel *kernel, weir_language language,
                          weir_write_fn write, void *context);
};

#ifdef __cplusplus
}
#endif
#endif
