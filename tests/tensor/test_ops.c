/* SPDX-License-Identifier: MIT */
/* One list of operations for every driver, against arrays of double. */
#include "suite.h"

#include "support/operations.h"

/* ---- operations on elements ---- */

static double one_element(const double *elements, const void *context)
{
    const op_case *what = context;
    return operation_reference_of((weir_op)what->variant, dtype_now, elements[0],
                                  elements[1]);
}

static weir_result run_unary(const op_case *what, weir_tensor *const *in,
                             weir_tensor **out)
{
    return weir_tensor_unary((weir_op)what->variant, in[0], out);
}

static weir_result run_binary(const op_case *what, weir_tensor *const *in,
                              weir_tensor **out)
{
    return weir_tensor_binary((weir_op)what->variant, in[0], in[1], out);
}

static weir_result run_scalar(const op_case *what, weir_tensor *const *in,
                              weir_tensor **out)
{
    return weir_tensor_binary_scalar((weir_op)what->variant, in[0], 2, out);
}

static array expect_elements(const op_case *what, const array *in)
{
    return array_map(in, what->operand_count, one_element, what);
}

static double with_two(const double *elements, const void *context)
{
    const op_case *what = context;
    return operation_reference_of((weir_op)what->variant, dtype_now, elements[0],
                                  dtype_now == WEIR_DTYPE_BOOL ? 1 : 2);
}

static array expect_scalar(const op_case *what, const array *in)
{
    return array_map(in, 1, with_two, what);
}

#define DTYPES_ANY NUMBERS
#define DTYPES_FLOAT FLOATS
#define DTYPES_LOGIC BIT(BOOL)
#define DTYPES_ORDER NUMBERS
#define DTYPES_EQUAL EVERYTHING

/* Transcendental functions are good to some roundings, not to half of one; what compares
 * is exact, since its result has no rounding. */
#define SLACK 16

static void elements__agree_with_double(void **state)
{
    (void)state;
    skip_without_device();
#define UNARY(a_name, number, function, domain)                                          \
    run_case(&(op_case){#function,                                                       \
                        DTYPES_##domain,                                                 \
                        1,                                                               \
                        {WEIR_SHAPE(3, 5, 7)},                                           \
                        -3,                                                              \
                        3,                                                               \
                        SLACK,                                                           \
                        number,                                                          \
                        run_unary,                                                       \
                        expect_elements});
    WEIR_UNARY_LIST(UNARY)
#undef UNARY
#define BINARY(a_name, number, function, domain)                                         \
    run_case(&(op_case){#function,                                                       \
                        DTYPES_##domain,                                                 \
                        2,                                                               \
                        {WEIR_SHAPE(3, 5, 7), WEIR_SHAPE(3, 5, 7)},                      \
                        -3,                                                              \
                        3,                                                               \
                        SLACK,                                                           \
                        number,                                                          \
                        run_binary,                                                      \
                        expect_elements});                                               \
    run_case(&(op_case){#function,                                                       \
                        DTYPES_##domain,                                                 \
                        2,                                                               \
                        {WEIR_SHAPE(4, 1, 7), WEIR_SHAPE(5, 1)},                         \
                        -3,                                                              \
                        3,                                                               \
                        SLACK,                                                           \
                        number,                                                          \
                        run_binary,                                                      \
                        expect_elements});                                               \
    run_case(&(op_case){#function "_scalar",                                             \
                        DTYPES_##domain,                                                 \
                        1,                                                               \
                        {WEIR_SHAPE(5, 7)},                                              \
                        -3,                                                              \
                        3,                                                               \
                        SLACK,                                                           \
                        number,                                                          \
                        run_scalar,                                                      \
                        expect_scalar});
    WEIR_BINARY_LIST(BINARY)
#undef BINARY
}

static double choose(const double *elements, const void *context)
{
    (void)context;
    return elements[0] > elements[1] ? elements[0] : elements[2];
}

static weir_result run_where(const op_case *what, weir_tensor *const *in,
                             weir_tensor **out)
{
    weir_tensor *condition = NULL;
    (void)what;
    assert_ok(weir_tensor_gt(in[0], in[1], &condition));
    weir_result result = weir_tensor_where(condition, in[0], in[2], out);
    weir_tensor_drop(condition);
    return result;
}

static array expect_where(const op_case *what, const array *in)
{
    (void)what;
    return array_map(in, 3, choose, NULL);
}

static double limit(const double *elements, const void *context)
{
    (void)context;
    return fmin(fmax(elements[0], -1), 2);
}

static weir_result run_clamp(const op_case *what, weir_tensor *const *in,
                             weir_tensor **out)
{
    (void)what;
    return weir_tensor_clamp(in[0], -1, 2, out);
}

static array expect_clamp(const op_case *what, const array *in)
{
    (void)what;
    return array_map(in, 1, limit, NULL);
}

static double converted(const double *elements, const void *context)
{
    const op_case *what = context;
    return what->variant == WEIR_DTYPE_I32    ? trunc(elements[0])
           : what->variant == WEIR_DTYPE_BOOL ? elements[0] != 0
                                              : elements[0];
}

static weir_result run_cast(const op_case *what, weir_tensor *const *in,
                            weir_tensor **out)
{
    return weir_tensor_cast(in[0], (weir_dtype)what->variant, out);
}

static array expect_cast(const op_case *what, const array *in)
{
    return array_map(in, 1, converted, what);
}

static void choices_and_casts__agree_with_double(void **state)
{
    (void)state;
    skip_without_device();
    run_case(&(op_case){"where",
                        NUMBERS,
                        3,
                        {WEIR_SHAPE(3, 5, 7), WEIR_SHAPE(5, 1), WEIR_SHAPE(7)},
                        -3,
                        3,
                        0,
                        0,
                        run_where,
                        expect_where});
    run_case(&(op_case){
        "clamp", NUMBERS, 1, {WEIR_SHAPE(5, 7)}, -3, 3, 0, 0, run_clamp, expect_clamp});
    for (int32_t to = 0; to <= WEIR_DTYPE_BOOL; to++) {
        run_case(&(op_case){"cast",
                            EVERYTHING,
                            1,
                            {WEIR_SHAPE(5, 7)},
                            -3,
                            3,
                            0,
                            to,
                            run_cast,
                            expect_cast});
    }
}

/* ---- reductions ---- */

static const int32_t axes[4] = {0, 1, 2, WEIR_ALL_AXES};

/* The variant: reduction * 8 + number of the axis * 2 + keep. */
static weir_result run_reduce(const op_case *what, weir_tensor *const *in,
                              weir_tensor **out)
{
    return weir_tensor_reduce((weir_reduce)(what->variant / 8), in[0],
                              axes[what->variant / 2 % 4], what->variant % 2 != 0, out);
}

static array expect_reduce(const op_case *what, const array *in)
{
    return array_reduce(&in[0], (weir_reduce)(what->variant / 8),
                        axes[what->variant / 2 % 4], what->variant % 2 != 0);
}

static void reductions__agree_with_double(void **state)
{
    (void)state;
    skip_without_device();
#define REDUCE(a_name, number, function, domain)                                         \
    for (int32_t v = 0; v < 8; v++) {                                                    \
        run_case(&(op_case){#function,                                                   \
                            DTYPES_##domain,                                             \
                            1,                                                           \
                            {WEIR_SHAPE(3, 67, 5)},                                      \
                            -3,                                                          \
                            3,                                                           \
                            32,                                                          \
                            number * 8 + v,                                              \
                            run_reduce,                                                  \
                            expect_reduce});                                             \
    }
    WEIR_REDUCE_LIST(REDUCE)
#undef REDUCE
}

/* The variant: the axis, and 16 for the logarithm. */
static weir_result run_softmax(const op_case *what, weir_tensor *const *in,
                               weir_tensor **out)
{
    return what->variant < 16 ? weir_tensor_softmax(in[0], what->variant, out)
                              : weir_tensor_log_softmax(in[0], what->variant % 16, out);
}

static array expect_softmax(const op_case *what, const array *in)
{
    return array_softmax(&in[0], (uint32_t)what->variant % 16, what->variant >= 16);
}

/* Numbers of one tensor's elements, different ones. */
static weir_tensor *indices(const array *numbers)
{
    return plain(numbers, WEIR_DTYPE_I32);
}

static array numbers_of(weir_shape shape, uint64_t below)
{
    array made = array_make(shape);
    for (uint64_t i = 0; i < made.count; i++) {
        made.values[i] = (double)(i * 7 % below);
    }
    return made;
}

static weir_result run_cross_entropy(const op_case *what, weir_tensor *const *in,
                                     weir_tensor **out)
{
    array numbers =
        numbers_of(WEIR_SHAPE(what->shapes[0].extent[0]), what->shapes[0].extent[1]);
    weir_tensor *targets = indices(&numbers);
    weir_result result = weir_tensor_cross_entropy(in[0], targets, out);
    weir_tensor_drop(targets);
    array_free(&numbers);
    return result;
}

static array expect_cross_entropy(const op_case *what, const array *in)
{
    uint64_t rows = what->shapes[0].extent[0];
    uint64_t classes = what->shapes[0].extent[1];
    array numbers = numbers_of(WEIR_SHAPE(rows), classes);
    array logs = array_softmax(&in[0], 1, true);
    array made = array_make((weir_shape){0});
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t target = (uint64_t)numbers.values[r];
        made.values[0] -= logs.values[r * classes + target] / (double)rows;
    }
    array_free(&numbers);
    array_free(&logs);
    return made;
}

static void softmax_and_loss__agree_with_double(void **state)
{
    (void)state;
    skip_without_device();
    for (int32_t axis = 0; axis < 3; axis++) {
        run_case(&(op_case){"softmax",
                            FLOATS,
                            1,
                            {WEIR_SHAPE(3, 9, 5)},
                            -3,
                            3,
                            64,
                            axis,
                            run_softmax,
                            expect_softmax});
        run_case(&(op_case){"log_softmax",
                            FLOATS,
                            1,
                            {WEIR_SHAPE(3, 9, 5)},
                            -3,
                            3,
                            64,
                            axis + 16,
                            run_softmax,
                            expect_softmax});
    }
    run_case(&(op_case){"cross_entropy",
                        FLOATS,
                        1,
                        {WEIR_SHAPE(9, 5)},
                        -3,
                        3,
                        64,
                        0,
                        run_cross_entropy,
                        expect_cross_entropy});
}

/* ---- matrices ---- */

static weir_result run_matmul(const op_case *what, weir_tensor *const *in,
                              weir_tensor **out)
{
    (void)what;
    return weir_tensor_matmul(in[0], in[1], out);
}

static array expect_matmul(const op_case *what, const array *in)
{
    (void)what;
    return array_matmul(&in[0], &in[1]);
}

static void matmul__agrees_with_double(void **state)
{
    static const weir_shape shapes[][2] = {
        {{2, {5, 7}}, {2, {7, 3}}},          {{2, {1, 7}}, {2, {7, 1}}},
        {{2, {70, 130}}, {2, {130, 67}}},    {{3, {2, 5, 7}}, {3, {2, 7, 3}}},
        {{3, {4, 5, 7}}, {2, {7, 3}}},       {{2, {5, 7}}, {3, {4, 7, 3}}},
        {{4, {2, 1, 5, 7}}, {3, {3, 7, 3}}}, {{4, {2, 3, 1, 2}}, {4, {2, 3, 2, 5}}},
    };
    (void)state;
    skip_without_device();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        run_case(&(op_case){"matmul",
                            FLOATS,
                            2,
                            {shapes[i][0], shapes[i][1]},
                            -1,
                            1,
                            64,
                            (int32_t)i,
                            run_matmul,
                            expect_matmul});
    }
}

/* ---- selecting and joining; the variant is the axis ---- */

static weir_result run_indexed(const op_case *what, weir_tensor *const *in,
                               weir_tensor **out)
{
    weir_shape shape = what->shapes[1];
    array numbers = numbers_of(shape, what->shapes[0].extent[what->variant]);
    weir_tensor *which = indices(&numbers);
    weir_result result =
        what->shapes[2].rank > 0
            ? weir_tensor_scatter_add(in[0], what->variant, which, in[2], out)
        : shape.rank == 1 ? weir_tensor_index_select(in[0], what->variant, which, out)
                          : weir_tensor_gather(in[0], what->variant, which, out);
    weir_tensor_drop(which);
    array_free(&numbers);
    return result;
}

static array expect_indexed(const op_case *what, const array *in)
{
    array numbers = numbers_of(what->shapes[1], what->shapes[0].extent[what->variant]);
    uint32_t axis = (uint32_t)what->variant;
    array made = what->shapes[2].rank > 0
                     ? array_scatter_add(&in[0], axis, &numbers, &in[2])
                     : array_gather(&in[0], axis, &numbers);
    array_free(&numbers);
    return made;
}

static void indices__agree_with_double(void **state)
{
    (void)state;
    skip_without_device();
    for (int32_t axis = 0; axis < 3; axis++) {
        weir_shape selected = WEIR_SHAPE(3, 5, 4);
        selected.extent[axis] = 6;
        run_case(&(op_case){"index_select",
                            EVERYTHING,
                            2,
                            {WEIR_SHAPE(3, 5, 4), WEIR_SHAPE(6)},
                            -3,
                            3,
                            0,
                            axis,
                            run_indexed,
                            expect_indexed});
        run_case(&(op_case){"gather",
                            EVERYTHING,
                            2,
                            {WEIR_SHAPE(3, 5, 4), WEIR_SHAPE(2, 4, 3)},
                            -3,
                            3,
                            0,
                            axis,
                            run_indexed,
                            expect_indexed});
        run_case(&(op_case){"scatter_add",
                            NUMBERS,
                            3,
                            {WEIR_SHAPE(3, 5, 4), WEIR_SHAPE(6), selected},
                            -3,
                            3,
                            8,
                            axis,
                            run_indexed,
                            expect_indexed});
        run_case(
            &(op_case){"scatter_add",
                       NUMBERS,
                       3,
                       {WEIR_SHAPE(3, 5, 4), WEIR_SHAPE(2, 4, 3), WEIR_SHAPE(2, 4, 3)},
                       -3,
                       3,
                       8,
                       axis,
                       run_indexed,
                       expect_indexed});
    }
}

static weir_result run_concat(const op_case *what, weir_tensor *const *in,
                              weir_tensor **out)
{
    return weir_tensor_concat(in, 2, what->variant, out);
}

static array expect_concat(const op_case *what, const array *in)
{
    return array_concat(&in[0], &in[1], (uint32_t)what->variant);
}

static weir_result run_place(const op_case *what, weir_tensor *const *in,
                             weir_tensor **out)
{
    return weir_tensor_place(in[0], what->variant, 2, -1, in[1], out);
}

static array expect_place(const op_case *what, const array *in)
{
    return array_place(&in[0], (uint32_t)what->variant, 2, -1, &in[1]);
}

static void parts__agree_with_double(void **state)
{
    (void)state;
    skip_without_device();
    for (int32_t axis = 0; axis < 3; axis++) {
        weir_shape part = WEIR_SHAPE(4, 5, 6);
        part.extent[axis] = 2;
        run_case(&(op_case){"concat",
                            EVERYTHING,
                            2,
                            {WEIR_SHAPE(4, 5, 6), part},
                            -3,
                            3,
                            0,
                            axis,
                            run_concat,
                            expect_concat});
        run_case(&(op_case){"place",
                            EVERYTHING,
                            2,
                            {WEIR_SHAPE(4, 5, 6), part},
                            -3,
                            3,
                            0,
                            axis,
                            run_place,
                            expect_place});
    }
}

/* ---- views ---- */

static const uint32_t turned[3] = {2, 0, 1};

static weir_result run_view(const op_case *what, weir_tensor *const *in,
                            weir_tensor **out)
{
    switch (what->variant) {
    case 0:
        return weir_tensor_reshape(in[0], WEIR_SHAPE(6, 10, 1), out);
    case 1:
        return weir_tensor_permute(in[0], turned, out);
    case 2:
        return weir_tensor_slice(in[0], 1, 4, 3, -2, out);
    default:
        return weir_tensor_expand(in[0], WEIR_SHAPE(2, 3, 5, 4), out);
    }
}

static array expect_view(const op_case *what, const array *in)
{
    switch (what->variant) {
    case 0:
        return array_reshape(&in[0], WEIR_SHAPE(6, 10, 1));
    case 1:
        return array_permute(&in[0], turned);
    case 2:
        return array_slice(&in[0], 1, 4, 3, -2);
    default:
        return array_expand(&in[0], WEIR_SHAPE(2, 3, 5, 4));
    }
}

static void views__agree_with_double(void **state)
{
    static const char *const names[4] = {"reshape", "permute", "slice", "expand"};
    (void)state;
    skip_without_device();
    for (int32_t v = 0; v < 4; v++) {
        run_case(&(op_case){names[v],
                            EVERYTHING,
                            1,
                            {WEIR_SHAPE(3, 5, 4)},
                            -3,
                            3,
                            0,
                            v,
                            run_view,
                            expect_view});
    }
}

/* ---- random numbers: those of the host ---- */

enum {
    NUMBERS_MADE = 5003,
    SEED_OF_A_ZERO = 176669, /* its element 33 is 0, which is below any probability */
    ZERO_AT = 33,
};

static weir_result make_numbers(weir_stream *on, int kind, weir_tensor **made)
{
    weir_shape shape = WEIR_SHAPE(NUMBERS_MADE);
    switch (kind) {
    case 0:
        return weir_tensor_uniform(on, shape, -2, 3, 77, made);
    case 1:
        return weir_tensor_normal(on, shape, 1, 2, 78, made);
    case 2:
        return weir_tensor_bernoulli(on, shape, 0.3F, 79, made);
    default:
        return weir_tensor_bernoulli(on, shape, 1e-40F, SEED_OF_A_ZERO, made);
    }
}

static void random_numbers__are_those_of_the_host(void **state)
{
    (void)state;
    skip_without_device();
    weir_device *host = NULL;
    assert_ok(weir_device_open("host", &(weir_device_desc){.no_thread = true}, &host));
    for (int kind = 0; kind < 4; kind++) {
        static float got[NUMBERS_MADE];
        static float expected[NUMBERS_MADE];
        weir_tensor *here = NULL;
        weir_tensor *there = NULL;
        assert_ok(make_numbers(weir_device_default_stream(host), kind, &there));
        assert_ok(weir_tensor_into_data(there, expected, NUMBERS_MADE));
        assert_true(kind < 3 || expected[ZERO_AT] == 1.0F);
        if (!is_missing("random", make_numbers(stream, kind, &here))) {
            assert_ok(weir_tensor_into_data(here, got, NUMBERS_MADE));
            assert_memory_equal(got, expected, sizeof got);
        }
        weir_tensor_drop(here);
        weir_tensor_drop(there);
    }
    assert_ok(weir_device_close(host));
}

#define ON(driver, test)                                                                 \
    {                                                                                    \
#driver "__" #test, test, open_driver_##driver, close_driver, NULL               \
    }

#define ON_DRIVER(driver, is_complete)                                                   \
    ON(driver, elements__agree_with_double),                                             \
        ON(driver, choices_and_casts__agree_with_double),                                \
        ON(driver, reductions__agree_with_double),                                       \
        ON(driver, softmax_and_loss__agree_with_double),                                 \
        ON(driver, matmul__agrees_with_double), ON(driver, indices__agree_with_double),  \
        ON(driver, parts__agree_with_double), ON(driver, views__agree_with_double),      \
        ON(driver, random_numbers__are_those_of_the_host),

/* With an argument only the tests whose names match it, "cuda__*". */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {DRIVER_LIST(ON_DRIVER)};
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
