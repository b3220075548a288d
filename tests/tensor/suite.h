/* SPDX-License-Identifier: MIT */
/* How a case of the suite of operations runs: on each dtype that it takes, with operands
 * that lie in order, transposed, as every other element, and still to be computed. */
#ifndef WR_TESTS_TENSOR_SUITE_H
#define WR_TESTS_TENSOR_SUITE_H

#include "drivers.h"

#include "array.h"

#include <math.h>
#include <stdlib.h>

enum { FORMS = 4, OPERANDS = 3 };

typedef struct op_case op_case;
struct op_case {
    const char *name;
    uint32_t dtypes; /* a bit for each */
    uint32_t operand_count;
    weir_shape shapes[OPERANDS];
    double low;
    double high;
    double slack; /* of the result's rounding; 0: exact */
    /* The number that the others know the variant by. */
    int32_t variant;
    weir_result (*run)(const op_case *what, weir_tensor *const *in, weir_tensor **out);
    array (*expect)(const op_case *what, const array *in);
};

#define BIT(name) (1u << WEIR_DTYPE_##name)
#define FLOATS (BIT(F32) | BIT(F16) | BIT(BF16))
#define NUMBERS (FLOATS | BIT(I32))
#define EVERYTHING (NUMBERS | BIT(BOOL))

static weir_dtype dtype_now; /* of the case that is running */

/* ---- operands ---- */

/* What a value becomes in the dtype. */
static inline void round_array(array *values, weir_dtype dtype)
{
    for (uint64_t i = 0; i < values->count; i++) {
        double value = values->values[i];
        values->values[i] = dtype == WEIR_DTYPE_I32    ? trunc(value * 4)
                            : dtype == WEIR_DTYPE_BOOL ? value > 0
                                                       : value;
    }
}

static inline weir_tensor *plain(const array *values, weir_dtype dtype)
{
    float *floats = calloc(values->count, sizeof *floats);
    weir_tensor *tensor = NULL;
    weir_tensor *cast = NULL;
    assert_non_null(floats);
    for (uint64_t i = 0; i < values->count; i++) {
        floats[i] = (float)values->values[i];
    }
    assert_ok(weir_tensor_from_floats(stream, values->shape, floats, &tensor));
    free(floats);
    assert_ok(weir_tensor_cast(tensor, dtype, &cast));
    weir_tensor_drop(tensor);
    return cast;
}

/* Lies with the first and the last dimension swapped. */
static inline weir_tensor *transposed(const array *values, weir_dtype dtype)
{
    uint32_t order[WEIR_TENSOR_MAX_RANK];
    uint32_t rank = values->shape.rank;
    weir_tensor *view = NULL;
    for (uint32_t d = 0; d < rank; d++) {
        order[d] = d;
    }
    order[0] = rank - 1;
    order[rank - 1] = 0;
    array turned = array_permute(values, order);
    weir_tensor *tensor = plain(&turned, dtype);
    assert_ok(weir_tensor_transpose(tensor, 0, -1, &view));
    weir_tensor_drop(tensor);
    array_free(&turned);
    return view;
}

/* Every other element of the last dimension, from the second on. */
static inline weir_tensor *spread(const array *values, weir_dtype dtype)
{
    uint32_t last = values->shape.rank - 1;
    weir_shape shape = values->shape;
    weir_tensor *view = NULL;
    shape.extent[last] *= 2;
    array room = array_make(shape);
    array wide = array_place(&room, last, 1, 2, values);
    weir_tensor *tensor = plain(&wide, dtype);
    assert_ok(weir_tensor_slice(tensor, -1, 1, values->shape.extent[last], 2, &view));
    weir_tensor_drop(tensor);
    array_free(&room);
    array_free(&wide);
    return view;
}

/* Whatever was recorded before has run, but for forms 3. */
static inline weir_tensor *present(const array *values, weir_dtype dtype, uint32_t form)
{
    if (form == 1 && values->shape.rank > 1) {
        return transposed(values, dtype);
    }
    return form == 2 && values->shape.rank > 0 ? spread(values, dtype)
                                               : plain(values, dtype);
}

/* ---- comparing ---- */

static inline double rounding_of(weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_BF16  ? 0x1p-8
           : dtype == WEIR_DTYPE_F16 ? 0x1p-11
           : dtype == WEIR_DTYPE_F32 ? 0x1p-24
                                     : 0;
}

static inline bool is_close(double got, double expected, double tolerance)
{
    return isnan(expected) || isinf(expected)
               ? (isnan(expected) && isnan(got)) || got == expected
               : fabs(got - expected) <= tolerance * fmax(1, fabs(expected));
}

static inline void compare(const op_case *what, weir_tensor *tensor,
                           const array *expected, uint32_t form)
{
    static const char *const names[] = {"f32", "f16", "bf16", "i32", "bool"};
    double tolerance = what->slack * rounding_of(weir_tensor_dtype(tensor));
    float *values = calloc(expected->count, sizeof *values);
    assert_non_null(values);
    assert_shape(weir_tensor_shape(tensor), expected->shape);
    if (!is_missing(what->name, weir_tensor_into_data(tensor, values, expected->count))) {
        for (uint64_t i = 0; i < expected->count; i++) {
            if (!is_close((double)values[i], expected->values[i], tolerance)) {
                fail_msg("%s (variant %d) of %s, form %u: element %llu is %.9g, not %.9g",
                         what->name, what->variant, names[dtype_now], form,
                         (unsigned long long)i, (double)values[i], expected->values[i]);
            }
        }
    }
    free(values);
}

static inline uint64_t hash_of(const char *text)
{
    uint64_t hash = 7;
    while (*text != '\0') {
        hash = hash * 31 + (unsigned char)*text++;
    }
    return hash;
}

static inline void run_form(const op_case *what, uint32_t form)
{
    uint64_t seed = hash_of(what->name);
    array in[OPERANDS] = {{{0}, 0, NULL}};
    weir_tensor *operands[OPERANDS] = {NULL};
    weir_tensor *out = NULL;
    for (uint32_t k = 0; k < what->operand_count; k++) {
        in[k] = array_grid(what->shapes[k], what->low, what->high, &seed);
        round_array(&in[k], dtype_now);
        operands[k] = present(&in[k], dtype_now, form);
    }
    weir_result ran = form == 3 ? WEIR_OK : weir_stream_sync(stream);
    if (!is_missing(what->name, ran)) {
        array expected = what->expect(what, in);
        if (what->run(what, operands, &out) != WEIR_OK) {
            fail_msg("%s: %s", what->name, weir_last_error());
        }
        compare(what, out, &expected, form);
        array_free(&expected);
    }
    weir_tensor_drop(out);
    for (uint32_t k = 0; k < what->operand_count; k++) {
        weir_tensor_drop(operands[k]);
        array_free(&in[k]);
    }
}

static inline void run_case(const op_case *what)
{
    for (uint32_t dtype = 0; dtype <= WEIR_DTYPE_BOOL; dtype++) {
        dtype_now = (weir_dtype)dtype;
        for (uint32_t form = 0; form < FORMS && (what->dtypes >> dtype & 1) != 0;
             form++) {
            run_form(what, form);
        }
    }
}

#endif
