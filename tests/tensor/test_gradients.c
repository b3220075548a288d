/* SPDX-License-Identifier: MIT */
/* The gradient of every operation against finite differences: of sum(r * operation(x))
 * with random r, element by element of each operand. The cases come from the lists of
 * kernel.h, and for the functions of tensor.h that are in none of them from CASES below;
 * a function without a case fails the last test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers.h"

#include <weir/autodiff.h>

#include <math.h>

enum { MOST_ELEMENTS = 64, MOST_OPERANDS = 3 };

typedef weir_result (*operation_fn)(weir_tensor *const *in, weir_tensor **out);

typedef struct operand {
    weir_shape shape;
    float low; /* elements are in [low, high) */
    float high;
    float values[MOST_ELEMENTS];
    bool is_constant; /* not tracked */
} operand;

static operand operands[MOST_OPERANDS];
static uint32_t operand_count;
static operation_fn operation;
static weir_dtype dtype;
static float weights[MOST_ELEMENTS];

/* ---- a case ---- */

static uint64_t count_of(weir_shape shape)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < shape.rank; d++) {
        count *= shape.extent[d];
    }
    return count;
}

/* Numbers apart from each other by much more than what they are varied by. */
static void fill(float *values, uint64_t count, float low, float high, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = (i * 29 + seed * 17 + 5) % MOST_ELEMENTS;
        values[i] = low + (high - low) * ((float)place + 0.5F) / MOST_ELEMENTS;
    }
}

static void begin(operation_fn function)
{
    operation = function;
    operand_count = 0;
    dtype = WEIR_DTYPE_F32;
    fill(weights, MOST_ELEMENTS, -1.0F, 1.0F, 7);
}

static void take_operand(weir_shape shape, float low, float high)
{
    operand *fresh = &operands[operand_count];
    assert_true(count_of(shape) <= MOST_ELEMENTS);
    *fresh = (operand){.shape = shape, .low = low, .high = high};
    fill(fresh->values, count_of(shape), low, high, operand_count);
    operand_count++;
}

static weir_tensor *make(const operand *from)
{
    weir_tensor *plain = NULL;
    weir_tensor *cast = NULL;
    assert_ok(weir_tensor_from_floats(stream, from->shape, from->values, &plain));
    assert_ok(weir_tensor_cast(plain, dtype, &cast));
    weir_tensor_drop(plain);
    return cast;
}

/* ---- both sides ---- */

static weir_tensor *run(weir_tensor *const *in)
{
    weir_tensor *out = NULL;
    weir_result result = operation(in, &out);
    if (result != WEIR_OK) {
        print_error("%s\n", weir_last_error());
    }
    assert_int_equal(result, WEIR_OK);
    return out;
}

static double weighted_sum(void)
{
    weir_tensor *in[MOST_OPERANDS] = {NULL};
    float values[MOST_ELEMENTS];
    double sum = 0;
    for (uint32_t k = 0; k < operand_count; k++) {
        in[k] = make(&operands[k]);
    }
    weir_tensor *out = run(in);
    uint64_t count = weir_tensor_element_count(out);
    assert_true(count <= MOST_ELEMENTS);
    assert_ok(weir_tensor_into_data(out, values, MOST_ELEMENTS));
    for (uint64_t i = 0; i < count; i++) {
        sum += (double)values[i] * (double)weights[i];
    }
    for (uint32_t k = 0; k < operand_count; k++) {
        weir_tensor_drop(in[k]);
    }
    weir_tensor_drop(out);
    return sum;
}

static double slope(operand *from, uint64_t element)
{
    const float step = 0x1p-8F;
    float before = from->values[element];
    from->values[element] = before + step;
    double above = weighted_sum();
    from->values[element] = before - step;
    double below = weighted_sum();
    from->values[element] = before;
    return (above - below) / (2.0 * (double)step);
}

/* Of all operands, by backward. */
static void find_gradients(float gradients[MOST_OPERANDS][MOST_ELEMENTS])
{
    weir_tensor *in[MOST_OPERANDS] = {NULL};
    for (uint32_t k = 0; k < operand_count; k++) {
        weir_tensor *plain = make(&operands[k]);
        assert_ok(operands[k].is_constant ? weir_tensor_detach(plain, &in[k])
                                          : weir_tensor_track(plain, &in[k]));
        weir_tensor_drop(plain);
    }
    weir_tensor *out = run(in);
    assert_true(weir_tensor_is_tracked(out));
    operand weighting = {.shape = weir_tensor_shape(out)};
    memcpy(weighting.values, weights, sizeof weights);
    weir_tensor *r = make(&weighting);
    weir_result result = weir_tensor_backward(out, &(weir_backward_desc){.gradient = r});
    if (result != WEIR_OK) {
        print_error("%s\n", weir_last_error());
    }
    assert_int_equal(result, WEIR_OK);
    weir_tensor_drop(r);
    weir_tensor_drop(out);
    for (uint32_t k = 0; k < operand_count; k++) {
        weir_tensor *gradient = NULL;
        if (!operands[k].is_constant) {
            assert_ok(weir_tensor_gradient(in[k], &gradient));
            assert_shape(weir_tensor_shape(gradient), operands[k].shape);
            assert_int_equal(weir_tensor_dtype(gradient), dtype);
            assert_ok(weir_tensor_into_data(gradient, gradients[k], MOST_ELEMENTS));
        }
        weir_tensor_drop(gradient);
        weir_tensor_drop(in[k]);
    }
}

/* ---- what a driver has ---- */

static weir_result read_all(weir_tensor *const *in, weir_tensor *out)
{
    float values[MOST_ELEMENTS];
    weir_result result = weir_tensor_into_data(out, values, MOST_ELEMENTS);
    for (uint32_t k = 0; result == WEIR_OK && k < operand_count; k++) {
        weir_tensor *gradient = NULL;
        if (operands[k].is_constant) {
            continue;
        }
        result = weir_tensor_gradient(in[k], &gradient);
        result = result == WEIR_OK
                     ? weir_tensor_into_data(gradient, values, MOST_ELEMENTS)
                     : result;
        weir_tensor_drop(gradient);
    }
    return result;
}

/* Whether there and back again goes, without a look at the numbers. */
static weir_result try_once(void)
{
    weir_tensor *in[MOST_OPERANDS] = {NULL};
    weir_tensor *out = NULL;
    for (uint32_t k = 0; k < operand_count; k++) {
        weir_tensor *plain = make(&operands[k]);
        assert_ok(operands[k].is_constant ? weir_tensor_detach(plain, &in[k])
                                          : weir_tensor_track(plain, &in[k]));
        weir_tensor_drop(plain);
    }
    weir_result result = operation(in, &out);
    if (result == WEIR_OK) {
        operand weighting = {.shape = weir_tensor_shape(out)};
        weir_tensor *r = make(&weighting);
        result = weir_tensor_backward(out, &(weir_backward_desc){.gradient = r});
        weir_tensor_drop(r);
    }
    result = result == WEIR_OK ? read_all(in, out) : result;
    weir_tensor_drop(out);
    for (uint32_t k = 0; k < operand_count; k++) {
        weir_tensor_drop(in[k]);
    }
    return result;
}

static bool can_run(const char *name)
{
    return has_everything || !is_missing(name, try_once());
}

/* Arguments that a driver wants on the device go with the cleanup. */
static void assert_nothing_stays(void)
{
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    assert_int_equal(in_use_bytes(), 0);
}

/* ---- comparing ---- */

/* On the host every element is looked at. Elsewhere the formulas are the same, each
 * launch costs much more, and some elements will do. */
static uint64_t element_step(void)
{
    return strcmp(weir_device_name(device), "host") == 0 ? 1 : 7;
}

static void compare(const char *name, double tolerance)
{
    float gradients[MOST_OPERANDS][MOST_ELEMENTS];
    if (!can_run(name)) {
        return;
    }
    find_gradients(gradients);
    for (uint32_t k = 0; k < operand_count; k++) {
        for (uint64_t i = 0; !operands[k].is_constant && i < count_of(operands[k].shape);
             i += element_step()) {
            double expected = slope(&operands[k], i);
            double found = (double)gradients[k][i];
            if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected)))) {
                fail_msg("%s: operand %u, element %u: gradient %g, but the slope is %g",
                         name, k, (unsigned)i, found, expected);
            }
        }
    }
    assert_nothing_stays();
}

#define TOLERANCE 2e-3

/* ---- operations of the lists ---- */

static weir_op op;
static double scalar;
static weir_reduce reduce;
static int32_t axis;
static bool keep;

static weir_result run_unary(weir_tensor *const *in, weir_tensor **out)
{
    return weir_tensor_unary(op, in[0], out);
}

static weir_result run_binary(weir_tensor *const *in, weir_tensor **out)
{
    return weir_tensor_binary(op, in[0], in[1], out);
}

static weir_result run_scalar(weir_tensor *const *in, weir_tensor **out)
{
    return weir_tensor_binary_scalar(op, in[0], scalar, out);
}

static weir_result run_reduce(weir_tensor *const *in, weir_tensor **out)
{
    return weir_tensor_reduce(reduce, in[0], axis, keep, out);
}

static bool is_defined_below_zero(weir_op which)
{
    return which != WEIR_OP_LOG && which != WEIR_OP_SQRT && which != WEIR_OP_RSQRT;
}

static void check_unary(weir_op which, const char *name)
{
    op = which;
    begin(run_unary);
    take_operand(WEIR_SHAPE(3, 5), 0.4F, 1.9F);
    compare(name, TOLERANCE);
    if (is_defined_below_zero(which)) {
        begin(run_unary);
        take_operand(WEIR_SHAPE(3, 5), -1.9F, -0.4F);
        compare(name, TOLERANCE);
    }
}

static void check_binary(weir_op which, const char *name)
{
    const weir_shape shapes[4][2] = {{WEIR_SHAPE(2, 3), WEIR_SHAPE(2, 3)},
                                     {WEIR_SHAPE(2, 3), WEIR_SHAPE(3)},
                                     {WEIR_SHAPE(2, 1), WEIR_SHAPE(4, 1, 3)},
                                     {{.rank = 0}, WEIR_SHAPE(2, 3)}};
    op = which;
    for (int i = 0; i < 4; i++) {
        begin(run_binary);
        take_operand(shapes[i][0], 0.5F, 1.5F);
        take_operand(shapes[i][1], 0.5078125F, 1.5078125F); /* nowhere equal */
        compare(name, TOLERANCE);
    }
    scalar = 1.11;
    begin(run_scalar);
    take_operand(WEIR_SHAPE(2, 3), 0.5F, 1.5F);
    compare(name, TOLERANCE);
}

/* Of what is a bool there is no gradient. */
static void check_untracked(weir_op which, bool is_binary, const char *name)
{
    weir_tensor *in[2] = {NULL};
    weir_tensor *out = NULL;
    const float values[2] = {1, 2};
    weir_tensor *plain = NULL;
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(2), values, &plain));
    assert_ok(weir_tensor_track(plain, &in[0]));
    assert_ok(weir_tensor_track(plain, &in[1]));
    if (is_binary && weir_tensor_binary(which, in[0], in[1], &out) == WEIR_OK &&
        weir_tensor_is_tracked(out)) {
        fail_msg("%s: a bool is tracked", name);
    }
    weir_tensor_drop(out);
    weir_tensor_drop(plain);
    weir_tensor_drop(in[0]);
    weir_tensor_drop(in[1]);
}

static void elementwise__gradients_are_the_slopes(void **state)
{
    (void)state;
    skip_without_device();
#define CHECK_ANY(arity, name, function) check_##arity(WEIR_OP_##name, #function);
#define CHECK_FLOAT(arity, name, function) check_##arity(WEIR_OP_##name, #function);
#define CHECK_LOGIC(arity, name, function)                                               \
    check_untracked(WEIR_OP_##name, #arity[0] == 'b', #function);
#define CHECK_ORDER CHECK_LOGIC
#define CHECK_EQUAL CHECK_LOGIC
#define CHECK_UNARY(name, number, function, domain) CHECK_##domain(unary, name, function)
#define CHECK_BINARY(name, number, function, domain)                                     \
    CHECK_##domain(binary, name, function)
    WEIR_UNARY_LIST(CHECK_UNARY)
    WEIR_BINARY_LIST(CHECK_BINARY)
}

static void check_reduce(weir_reduce which, const char *name)
{
    const int32_t axes[4] = {0, 1, -1, WEIR_ALL_AXES};
    reduce = which;
    for (int i = 0; i < 8; i++) {
        axis = axes[i / 2];
        keep = i % 2 != 0;
        begin(run_reduce);
        take_operand(WEIR_SHAPE(2, 3, 4), -1.0F, 1.0F);
        compare(name, TOLERANCE);
    }
}

static void reductions__gradients_are_the_slopes(void **state)
{
    (void)state;
    skip_without_device();
#define CHECK_REDUCE(name, number, function, ...)                                        \
    if (WEIR_REDUCE_##name != WEIR_REDUCE_ARGMAX) { /* its results are no floats */      \
        check_reduce(WEIR_REDUCE_##name, #function);                                     \
    }
    WEIR_REDUCE_LIST(CHECK_REDUCE)
}

/* ---- other operations: function, operands, what is called ---- */

/* i32 on the device; the caller drops it. */
static weir_tensor *numbers(weir_shape shape, const int32_t *values)
{
    weir_tensor *made = NULL;
    assert_ok(weir_tensor_from_data(stream, shape, WEIR_DTYPE_I32, values, &made));
    return made;
}

/* Numbers that come twice, and one that is out of range. */
static const int32_t some[4] = {2, 0, 2, 1};
static const int32_t beyond[4] = {2, 0, -1, 1};

typedef weir_result (*indexed_fn)(weir_tensor *from, int32_t along, weir_tensor *indices,
                                  weir_tensor **out);

static weir_result select_with(indexed_fn function, weir_tensor *from, int32_t along,
                               weir_tensor *indices, weir_tensor **out)
{
    weir_result result = function(from, along, indices, out);
    weir_tensor_drop(indices);
    return result;
}

static weir_result add_with(weir_tensor *const *in, int32_t along, weir_tensor *indices,
                            weir_tensor **out)
{
    weir_result result = weir_tensor_scatter_add(in[0], along, indices, in[1], out);
    weir_tensor_drop(indices);
    return result;
}

static weir_result lose_with(weir_tensor *logits, weir_tensor *targets, weir_tensor **out)
{
    weir_result result = weir_tensor_cross_entropy(logits, targets, out);
    weir_tensor_drop(targets);
    return result;
}

#define ONE(...) take_operand(WEIR_SHAPE(__VA_ARGS__), -1, 1)
#define TWO(one, other) (ONE one, ONE other)
#define THREE(one, other, third) (ONE one, ONE other, ONE third)

#define CASES(X)                                                                         \
    X(cast, ONE(2, 3), weir_tensor_cast(in[0], dtype, out))                              \
    X(clamp, ONE(2, 9), weir_tensor_clamp(in[0], -0.4, 0.7, out))                        \
    X(reshape, ONE(2, 6), weir_tensor_reshape(in[0], WEIR_SHAPE(3, 1, 4), out))          \
    X(transpose, ONE(2, 3, 4), weir_tensor_transpose(in[0], 0, -1, out))                 \
    X(permute, ONE(2, 3, 4),                                                             \
      weir_tensor_permute(in[0], (const uint32_t[]){1, 2, 0}, out))                      \
    X(expand, ONE(3, 1), weir_tensor_expand(in[0], WEIR_SHAPE(2, 3, 4), out))            \
    X(slice, ONE(2, 7), weir_tensor_slice(in[0], 1, 5, 3, -2, out))                      \
    X(place, TWO((2, 7), (2, 3)), weir_tensor_place(in[0], 1, 1, 2, in[1], out))         \
    X(concat, THREE((2, 1, 3), (2, 4, 3), (2, 2, 3)),                                    \
      weir_tensor_concat(in, 3, -2, out))                                                \
    X(matmul, TWO((3, 4), (4, 2)), weir_tensor_matmul(in[0], in[1], out))                \
    X(softmax, ONE(3, 5), weir_tensor_softmax(in[0], 1, out))                            \
    X(log_softmax, ONE(3, 5), weir_tensor_log_softmax(in[0], 0, out))                    \
    X(cross_entropy, ONE(4, 3), lose_with(in[0], numbers(WEIR_SHAPE(4), some), out))     \
    X(index_select, ONE(3, 2),                                                           \
      select_with(weir_tensor_index_select, in[0], 0, numbers(WEIR_SHAPE(4), some),      \
                  out))                                                                  \
    X(gather, ONE(2, 3),                                                                 \
      select_with(weir_tensor_gather, in[0], 1, numbers(WEIR_SHAPE(2, 2), some), out))   \
    X(scatter_add, TWO((2, 3), (2, 2)),                                                  \
      add_with(in, 1, numbers(WEIR_SHAPE(2, 2), beyond), out))

/* The same functions where they work differently: they have names already. */
#define FURTHER_CASES(X)                                                                 \
    X(matmul_of_many, TWO((2, 3, 4), (4, 2)), weir_tensor_matmul(in[0], in[1], out))     \
    X(matmul_by_many, TWO((3, 4), (2, 4, 2)), weir_tensor_matmul(in[0], in[1], out))     \
    X(matmul_of_pairs, TWO((2, 1, 3, 2), (3, 2, 2)),                                     \
      weir_tensor_matmul(in[0], in[1], out))                                             \
    X(scatter_add_of_rows, TWO((3, 2), (4, 2)),                                          \
      add_with(in, 0, numbers(WEIR_SHAPE(4), some), out))                                \
    X(scatter_add_of_columns, TWO((2, 3), (2, 4)),                                       \
      add_with(in, 1, numbers(WEIR_SHAPE(4), beyond), out))                              \
    X(softmax_of_one_axis, ONE(5), weir_tensor_softmax(in[0], -1, out))

#define RUN_CASE(name, taken, call)                                                      \
    static weir_result run_##name(weir_tensor *const *in, weir_tensor **out)             \
    {                                                                                    \
        return call;                                                                     \
    }
CASES(RUN_CASE)
FURTHER_CASES(RUN_CASE)
#undef RUN_CASE

static void other_operations__gradients_are_the_slopes(void **state)
{
    (void)state;
    skip_without_device();
#define CHECK_CASE(name, taken, call)                                                    \
    begin(run_##name);                                                                   \
    taken;                                                                               \
    compare(#name, TOLERANCE);
    CASES(CHECK_CASE)
    FURTHER_CASES(CHECK_CASE)
#undef CHECK_CASE
}

/* The condition is made of the first operand, so this one's slope is 0. */
static weir_result run_where(weir_tensor *const *in, weir_tensor **out)
{
    weir_tensor *condition = NULL;
    weir_result result = weir_tensor_gt_scalar(in[0], 0, &condition);
    result = result == WEIR_OK ? weir_tensor_where(condition, in[1], in[2], out) : result;
    weir_tensor_drop(condition);
    return result;
}

static void where__gradients_are_the_slopes(void **state)
{
    (void)state;
    skip_without_device();
    begin(run_where);
    take_operand(WEIR_SHAPE(2, 1), -1.0F, 1.0F);
    take_operand(WEIR_SHAPE(2, 3), -1.0F, 1.0F);
    take_operand(WEIR_SHAPE(3), -1.0F, 1.0F);
    operands[0].is_constant = true;
    compare("where", TOLERANCE);
}

/* A net with most of it: values that are used twice, chains, broadcasting. */
static weir_result run_net(weir_tensor *const *in, weir_tensor **out)
{
    weir_tensor *t[6] = {NULL};
    weir_result result = weir_tensor_mul(in[0], in[1], &t[0]);
    result = result == WEIR_OK ? weir_tensor_tanh(t[0], &t[1]) : result;
    result = result == WEIR_OK ? weir_tensor_add(t[1], in[2], &t[2]) : result;
    result = result == WEIR_OK ? weir_tensor_mul(t[2], t[1], &t[3]) : result;
    result = result == WEIR_OK ? weir_tensor_transpose(t[3], 0, 1, &t[4]) : result;
    result = result == WEIR_OK ? weir_tensor_exp(t[4], &t[5]) : result;
    result = result == WEIR_OK ? weir_tensor_add(t[5], t[5], out) : result;
    for (int i = 0; i < 6; i++) {
        weir_tensor_drop(t[i]);
    }
    return result;
}

static void a_net__gradients_are_the_slopes(void **state)
{
    (void)state;
    skip_without_device();
    begin(run_net);
    take_operand(WEIR_SHAPE(2, 3), -1.0F, 1.0F);
    take_operand(WEIR_SHAPE(3), -1.0F, 1.0F);
    take_operand(WEIR_SHAPE(2, 1), -1.0F, 1.0F);
    compare("net", TOLERANCE);
}

/* Rounded to 11 and 8 bits, results differ by more than their slopes say; the gradient is
 * compared with that of f32. */
static void smaller_floats__have_gradients_of_their_dtype(void **state)
{
    (void)state;
    skip_without_device();
    const weir_dtype small[2] = {WEIR_DTYPE_F16, WEIR_DTYPE_BF16};
    for (int i = 0; i < 2; i++) {
        float exact[MOST_OPERANDS][MOST_ELEMENTS];
        float found[MOST_OPERANDS][MOST_ELEMENTS];
        begin(run_net);
        take_operand(WEIR_SHAPE(2, 3), -1.0F, 1.0F);
        take_operand(WEIR_SHAPE(3), -1.0F, 1.0F);
        take_operand(WEIR_SHAPE(2, 1), -1.0F, 1.0F);
        find_gradients(exact);
        dtype = small[i];
        if (!can_run(i == 0 ? "f16" : "bf16")) {
            continue;
        }
        find_gradients(found);
        for (uint32_t k = 0; k < 3; k++) {
            for (uint64_t j = 0; j < count_of(operands[k].shape); j++) {
                assert_true(fabsf(found[k][j] - exact[k][j]) <=
                            (i == 0 ? 0.01F : 0.08F) * (1 + fabsf(exact[k][j])));
            }
        }
    }
}

/* ---- the header ---- */

static const char *const covered[] = {"unary",    "binary", "binary_scalar",
                                      "reduce",   "where",
#define NAME(name, taken, call) #name,
                                      CASES(NAME)
#undef NAME
};

static bool is_covered(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < sizeof covered / sizeof covered[0]; i++) {
        found |= strcmp(covered[i], name) == 0;
    }
    return found;
}

/* Whether a declaration takes tensors and makes one. */
static bool is_operation(const char *begins, const char *ends)
{
    char text[1024] = "";
    snprintf(text, sizeof text, "%.*s", (int)(ends - begins), begins);
    const char *made = strstr(text, "weir_tensor **");
    const char *taken = strstr(text, "weir_tensor *");
    return made != NULL && taken != NULL && taken < made;
}

static void every_operation_of_the_header__has_a_case(void **state)
{
    (void)state;
    const char mark[] = "WEIR_API weir_result weir_tensor_";
    static char text[1 << 16];
    char path[4096];
    const char *tree = getenv("WEIR_SOURCE_DIR");
    uint32_t operations = 0;
    snprintf(path, sizeof path, "%s/include/weir/tensor.h", tree != NULL ? tree : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0 && feof(file));
    fclose(file);
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at, mark)) {
        char name[64] = "";
        at += sizeof mark - 1;
        size_t length = strcspn(at, "(");
        assert_true(length < sizeof name);
        memcpy(name, at, length);
        if (is_operation(at, strchr(at, ';'))) {
            operations++;
            if (!is_covered(name)) {
                fail_msg("weir_tensor_%s: no gradient is checked", name);
            }
        }
    }
    assert_true(operations >= 20);
}

#define ON(driver, test)                                                                 \
    {                                                                                    \
#driver "__" #test, test, open_driver_##driver, close_driver, NULL               \
    }

#define ON_DRIVER(driver, is_complete)                                                   \
    ON(driver, elementwise__gradients_are_the_slopes),                                   \
        ON(driver, reductions__gradients_are_the_slopes),                                \
        ON(driver, other_operations__gradients_are_the_slopes),                          \
        ON(driver, where__gradients_are_the_slopes),                                     \
        ON(driver, a_net__gradients_are_the_slopes),                                     \
        ON(driver, smaller_floats__have_gradients_of_their_dtype),

/* With an argument only the tests whose names match it, "cuda__*". */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        DRIVER_LIST(ON_DRIVER) ON_HOST(every_operation_of_the_header__has_a_case),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
