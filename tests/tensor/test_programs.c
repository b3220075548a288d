/* SPDX-License-Identifier: MIT */
/* Random programs of 50 operations, on every driver, against arrays of double: once as
 * they are fused, once operation by operation. All operations keep numbers in [-1, 1] and
 * do not spread what they are given, so errors add up and do not multiply: the tolerance
 * is some roundings for each operation. WEIR_SEED=N runs the program of one seed. */
#include "drivers.h"

#include "array.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 50, SLOTS = 5, ROWS = 8, COLUMNS = 12, PROGRAMS = 12 };

/* Numbers in [-1, 1], [ROWS, COLUMNS], as a tensor and as an array. */
typedef struct slot {
    weir_tensor *tensor;
    array values;
} slot;

static uint64_t seed;
static weir_dtype dtype;
static weir_result trouble; /* the first */

/* ---- tensors: each call's operand is dropped ---- */

static weir_tensor *made(weir_result result, weir_tensor *operand, weir_tensor *result_of)
{
    trouble = trouble == WEIR_OK ? result : trouble;
    weir_tensor_drop(operand);
    return result_of;
}

static weir_tensor *unary(weir_op op, weir_tensor *operand)
{
    weir_tensor *next = NULL;
    weir_result result = weir_tensor_unary(op, operand, &next);
    return made(result, operand, next);
}

static weir_tensor *scalar(weir_op op, weir_tensor *operand, double number)
{
    weir_tensor *next = NULL;
    weir_result result = weir_tensor_binary_scalar(op, operand, number, &next);
    return made(result, operand, next);
}

static weir_tensor *binary(weir_op op, weir_tensor *operand, weir_tensor *right)
{
    weir_tensor *next = NULL;
    weir_result result = weir_tensor_binary(op, operand, right, &next);
    return made(result, operand, next);
}

static weir_tensor *halved(weir_tensor *operand)
{
    return scalar(WEIR_OP_MUL, operand, 0.5);
}

/* ---- steps: of slots a and b, and numbers to choose by ---- */

typedef struct step {
    const slot *a;
    const slot *b;
    uint64_t number;
} step;

typedef double (*element_fn)(double a, double b);

static double of_elements(const double *elements, const void *context)
{
    element_fn const *function = context;
    return (*function)(elements[0], elements[1]);
}

static array mapped(const step *what, element_fn function)
{
    const array operands[2] = {what->a->values, what->b->values};
    return array_map(operands, 2, of_elements, &function);
}

static weir_tensor *own(const slot *from)
{
    return weir_tensor_clone(from->tensor);
}

/* name, the tensor's formula, the element's formula in a and b */
#define ELEMENT_STEPS(X)                                                                 \
    X(neg, unary(WEIR_OP_NEG, own(s->a)), -a)                                            \
    X(abs, unary(WEIR_OP_ABS, own(s->a)), fabs(a))                                       \
    X(relu, unary(WEIR_OP_RELU, own(s->a)), fmax(a, 0))                                  \
    X(tanh, unary(WEIR_OP_TANH, own(s->a)), tanh(a))                                     \
    X(sigmoid, unary(WEIR_OP_SIGMOID, own(s->a)), 1 / (1 + exp(-a)))                     \
    X(sin, unary(WEIR_OP_SIN, own(s->a)), sin(a))                                        \
    X(cos, unary(WEIR_OP_COS, own(s->a)), cos(a))                                        \
    X(exp, scalar(WEIR_OP_MUL, unary(WEIR_OP_EXP, own(s->a)), 0.25), exp(a) / 4)         \
    X(log, halved(unary(WEIR_OP_LOG, scalar(WEIR_OP_ADD, own(s->a), 2))),                \
      log(a + 2) / 2)                                                                    \
    X(recip, unary(WEIR_OP_RECIP, scalar(WEIR_OP_ADD, own(s->a), 2)), 1 / (a + 2))       \
    X(gelu, halved(unary(WEIR_OP_GELU, own(s->a))), a / 4 * (1 + erf(a / sqrt(2))))      \
    X(add, halved(binary(WEIR_OP_ADD, own(s->a), s->b->tensor)), (a + b) / 2)            \
    X(sub, halved(binary(WEIR_OP_SUB, own(s->a), s->b->tensor)), (a - b) / 2)            \
    X(mul, halved(binary(WEIR_OP_MUL, own(s->a), s->b->tensor)), a *b / 2)               \
    X(min, binary(WEIR_OP_MIN, own(s->a), s->b->tensor), fmin(a, b))                     \
    X(max, binary(WEIR_OP_MAX, own(s->a), s->b->tensor), fmax(a, b))

#define ELEMENT_STEP(name, tensor, element)                                              \
    static double element_##name(double a, double b)                                     \
    {                                                                                    \
        (void)a, (void)b;                                                                \
        return element;                                                                  \
    }                                                                                    \
    static slot step_##name(const step *s)                                               \
    {                                                                                    \
        return (slot){tensor, mapped(s, element_##name)};                                \
    }
ELEMENT_STEPS(ELEMENT_STEP)
#undef ELEMENT_STEP

/* (a + its reduction along an axis) / 2, broadcast. */
static slot step_reduce(const step *s)
{
    static const weir_reduce kinds[3] = {WEIR_REDUCE_MEAN, WEIR_REDUCE_MAX,
                                         WEIR_REDUCE_MIN};
    weir_reduce kind = kinds[s->number % 3];
    int32_t axis = (int32_t)(s->number / 3 % 2);
    weir_tensor *reduced = NULL;
    weir_result result = weir_tensor_reduce(kind, s->a->tensor, axis, true, &reduced);
    reduced = made(result, NULL, reduced);
    weir_tensor *sum = binary(WEIR_OP_ADD, own(s->a), reduced);
    weir_tensor_drop(reduced);
    const array operands[2] = {s->a->values,
                               array_reduce(&s->a->values, kind, axis, true)};
    element_fn function = element_add;
    array expected = array_map(operands, 2, of_elements, &function);
    free(operands[1].values);
    return (slot){scalar(WEIR_OP_MUL, sum, 0.5), expected};
}

static slot step_softmax(const step *s)
{
    uint32_t axis = s->number % 2;
    weir_tensor *y = NULL;
    weir_result result = weir_tensor_softmax(s->a->tensor, (int32_t)axis, &y);
    return (slot){made(result, NULL, y), array_softmax(&s->a->values, axis, false)};
}

/* a b^T a, divided by what it could grow by, twice. */
static slot step_matmul(const step *s)
{
    weir_tensor *turned = NULL;
    weir_tensor *square = NULL;
    weir_tensor *y = NULL;
    made(weir_tensor_transpose(s->b->tensor, 0, 1, &turned), NULL, NULL);
    made(weir_tensor_matmul(s->a->tensor, turned, &square), turned, NULL);
    square = scalar(WEIR_OP_MUL, square, 0.5 / COLUMNS);
    made(weir_tensor_matmul(square, s->a->tensor, &y), square, NULL);
    array b_turned = array_permute(&s->b->values, (const uint32_t[2]){1, 0});
    array squared = array_matmul(&s->a->values, &b_turned);
    array expected = array_matmul(&squared, &s->a->values);
    for (uint64_t i = 0; i < expected.count; i++) {
        expected.values[i] *= 0.5 / COLUMNS * 0.5 / ROWS;
    }
    array_free(&b_turned);
    array_free(&squared);
    return (slot){scalar(WEIR_OP_MUL, y, 0.5 / ROWS), expected};
}

/* The left columns of a and the right ones of b, each backwards. */
static slot step_concat(const step *s)
{
    uint64_t left = 1 + s->number % (COLUMNS - 1);
    weir_tensor *parts[2] = {NULL, NULL};
    weir_tensor *y = NULL;
    made(weir_tensor_slice(s->a->tensor, 1, left - 1, left, -1, &parts[0]), NULL, NULL);
    made(weir_tensor_slice(s->b->tensor, 1, left, COLUMNS - left, 1, &parts[1]), NULL,
         NULL);
    made(weir_tensor_concat(parts, 2, 1, &y), parts[0], NULL);
    weir_tensor_drop(parts[1]);
    array one = array_slice(&s->a->values, 1, left - 1, left, -1);
    array other = array_slice(&s->b->values, 1, left, COLUMNS - left, 1);
    array expected = array_concat(&one, &other, 1);
    array_free(&one);
    array_free(&other);
    return (slot){y, expected};
}

/* Column c is column 5 c + k of a. */
static slot step_select(const step *s)
{
    array numbers = array_make(WEIR_SHAPE(COLUMNS));
    int32_t integers[COLUMNS];
    weir_tensor *which = NULL;
    weir_tensor *y = NULL;
    for (uint64_t i = 0; i < COLUMNS; i++) {
        integers[i] = (int32_t)((5 * i + s->number % COLUMNS) % COLUMNS);
        numbers.values[i] = integers[i];
    }
    made(weir_tensor_from_data(stream, numbers.shape, WEIR_DTYPE_I32, integers, &which),
         NULL, NULL);
    made(weir_tensor_index_select(s->a->tensor, 1, which, &y), which, NULL);
    array expected = array_gather(&s->a->values, 1, &numbers);
    array_free(&numbers);
    return (slot){y, expected};
}

/* a read in the order of its transpose, which is copied for that. */
static slot step_reshape(const step *s)
{
    weir_tensor *turned = NULL;
    weir_tensor *y = NULL;
    made(weir_tensor_transpose(s->a->tensor, 0, 1, &turned), NULL, NULL);
    made(weir_tensor_reshape(turned, WEIR_SHAPE(ROWS, COLUMNS), &y), turned, NULL);
    array a_turned = array_permute(&s->a->values, (const uint32_t[2]){1, 0});
    array expected = array_reshape(&a_turned, WEIR_SHAPE(ROWS, COLUMNS));
    array_free(&a_turned);
    return (slot){y, expected};
}

typedef slot (*step_fn)(const step *what);

static const step_fn steps[] = {
#define STEP(name, tensor, element) step_##name,
    ELEMENT_STEPS(STEP)
#undef STEP
        step_reduce,
    step_softmax,
    step_matmul,
    step_concat,
    step_select,
    step_reshape};

#define STEP_COUNT (sizeof steps / sizeof steps[0])

/* ---- programs ---- */

static slot first_slot(uint64_t *random)
{
    slot fresh = {NULL, array_grid(WEIR_SHAPE(ROWS, COLUMNS), -1, 1, random)};
    float floats[ROWS * COLUMNS];
    weir_tensor *plain = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        floats[i] = (float)fresh.values.values[i];
    }
    assert_ok(weir_tensor_from_floats(stream, fresh.values.shape, floats, &plain));
    assert_ok(weir_tensor_cast(plain, dtype, &fresh.tensor));
    weir_tensor_drop(plain);
    return fresh;
}

static void drop_slot(slot *gone)
{
    weir_tensor_drop(gone->tensor);
    array_free(&gone->values);
}

static double tolerance(void)
{
    double rounding = dtype == WEIR_DTYPE_F32 ? 0x1p-24 : 0x1p-11;
    return 4 * STEPS * rounding;
}

/* The values of all slots, one after the other. */
static void check_slots(const slot slots[SLOTS], float *values)
{
    for (int k = 0; k < SLOTS; k++) {
        float *at = values + k * ROWS * COLUMNS;
        weir_result result = weir_tensor_into_data(slots[k].tensor, at, ROWS * COLUMNS);
        trouble = trouble == WEIR_OK ? result : trouble;
        for (int i = 0; trouble == WEIR_OK && i < ROWS * COLUMNS; i++) {
            double expected = slots[k].values.values[i];
            if (!(fabs((double)at[i] - expected) <= tolerance())) {
                fail_msg("WEIR_SEED=%llu: slot %d, element %d: %.9g, not %.9g",
                         (unsigned long long)seed, k, i, (double)at[i], expected);
            }
        }
    }
}

/* False if the driver lacks an operation. */
static bool run_program(bool step_by_step, float *values)
{
    uint64_t random = seed;
    slot slots[SLOTS];
    trouble = WEIR_OK;
    for (int k = 0; k < SLOTS; k++) {
        slots[k] = first_slot(&random);
    }
    for (int i = 0; i < STEPS; i++) {
        uint64_t number = array_random(&random);
        const step what = {&slots[number % SLOTS], &slots[number / 8 % SLOTS],
                           number >> 32};
        slot fresh = steps[(number >> 16) % STEP_COUNT](&what);
        slot *to = &slots[number / 64 % SLOTS];
        drop_slot(to);
        *to = fresh;
        if (step_by_step && trouble == WEIR_OK) {
            trouble = weir_stream_sync(stream);
        }
    }
    check_slots(slots, values);
    for (int k = 0; k < SLOTS; k++) {
        drop_slot(&slots[k]);
    }
    return !is_missing("a program", trouble);
}

/* Both ways, against each other too; false if the driver lacks an operation. */
static bool run_both(void)
{
    static float fused[SLOTS * ROWS * COLUMNS];
    static float stepped[SLOTS * ROWS * COLUMNS];
    weir_tensor_counters before = {.size = sizeof before};
    weir_tensor_counters after = {.size = sizeof after};
    assert_ok(weir_stream_tensor_counters(stream, &before));
    if (!run_program(false, fused) || !run_program(true, stepped)) {
        return false;
    }
    assert_ok(weir_stream_tensor_counters(stream, &after));
    assert_true(after.fused > before.fused);
    for (int i = 0; i < SLOTS * ROWS * COLUMNS; i++) {
        if (!(fabs((double)fused[i] - (double)stepped[i]) <= tolerance())) {
            fail_msg("WEIR_SEED=%llu: element %d: %.9g fused, %.9g step by step",
                     (unsigned long long)seed, i, (double)fused[i], (double)stepped[i]);
        }
    }
    return true;
}

static void run_programs(weir_dtype of)
{
    const char *given = getenv("WEIR_SEED");
    const char *soak = getenv("WEIR_SOAK");
    uint64_t first = given != NULL ? strtoull(given, NULL, 0) : 1000;
    uint64_t count = given != NULL ? 1 : soak != NULL ? 100 * PROGRAMS : PROGRAMS;
    skip_without_device();
    dtype = of;
    print_message("WEIR_SEED=%llu and %llu after it\n", (unsigned long long)first,
                  (unsigned long long)count - 1);
    bool goes_on = true;
    for (uint64_t i = 0; goes_on && i < count; i++) {
        seed = first + i;
        goes_on = run_both();
    }
}

static void programs_of_f32__agree_with_double(void **state)
{
    (void)state;
    run_programs(WEIR_DTYPE_F32);
}

static void programs_of_f16__agree_with_double(void **state)
{
    (void)state;
    run_programs(WEIR_DTYPE_F16);
}

#define ON(driver, test)                                                                 \
    {                                                                                    \
#driver "__" #test, test, open_driver_##driver, close_driver, NULL               \
    }

#define ON_DRIVER(driver, is_complete)                                                   \
    ON(driver, programs_of_f32__agree_with_double),                                      \
        ON(driver, programs_of_f16__agree_with_double),

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {DRIVER_LIST(ON_DRIVER)};
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
