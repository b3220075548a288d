/* SPDX-License-Identifier: MIT */
#include "tensor/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir/weir.h>

static void shape__of_rank_zero_has_one_element(void **state)
{
    (void)state;
    weir_shape scalar = {0};
    uint64_t count = 0;
    assert_int_equal(wr_shape_count("test", &scalar, &count), WEIR_OK);
    assert_int_equal(count, 1);
}

static void shape__counts_the_product_of_its_extents(void **state)
{
    (void)state;
    uint64_t count = 0;
    assert_int_equal(wr_shape_count("test", &WEIR_SHAPE(2, 3, 5, 7, 1, 1, 1, 11), &count),
                     WEIR_OK);
    assert_int_equal(count, 2310);
}

static void shape__refuses_zero_extents_high_ranks_and_overflow(void **state)
{
    (void)state;
    weir_shape too_many = {.rank = 9};
    weir_shape most = WEIR_SHAPE(UINT64_MAX / 8);
    uint64_t count = 77;
    assert_int_equal(wr_shape_count("who", &WEIR_SHAPE(4, 0), &count), WEIR_INVALID);
    assert_string_equal(weir_last_error(), "who: shape [4, 0] has no elements");
    assert_int_equal(wr_shape_count("who", &too_many, &count), WEIR_INVALID);
    assert_string_equal(weir_last_error(), "who: rank 9, but at most 8");
    assert_int_equal(wr_shape_count("who", &WEIR_SHAPE(UINT64_MAX / 8 + 1), &count),
                     WEIR_INVALID);
    assert_int_equal(
        wr_shape_count("who", &WEIR_SHAPE(UINT64_C(1) << 32, UINT64_C(1) << 32), &count),
        WEIR_INVALID);
    assert_string_equal(weir_last_error(),
                        "who: the bytes of shape [4294967296, 4294967296] overflow");
    assert_int_equal(count, 77);
    assert_int_equal(wr_shape_count("who", &most, &count), WEIR_OK);
}

static void shape__equals_compares_rank_and_extents_only(void **state)
{
    (void)state;
    weir_shape with_rest = WEIR_SHAPE(2, 3);
    with_rest.extent[5] = 9;
    assert_true(wr_shape_equals(&WEIR_SHAPE(2, 3), &with_rest));
    assert_false(wr_shape_equals(&WEIR_SHAPE(2, 3), &WEIR_SHAPE(3, 2)));
    assert_false(wr_shape_equals(&WEIR_SHAPE(6), &WEIR_SHAPE(6, 1)));
}

static void shape__format_fits_the_longest_shape(void **state)
{
    (void)state;
    uint64_t m = UINT64_MAX;
    char text[WR_SHAPE_TEXT_BYTES];
    wr_shape_format(&WEIR_SHAPE(m, m, m, m, m, m, m, m), text);
    assert_int_equal(strlen(text), 8 * 20 + 7 * 2 + 2);
    assert_int_equal(text[strlen(text) - 1], ']');
    assert_string_equal(wr_shape_format(&(weir_shape){0}, text), "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape__of_rank_zero_has_one_element),
        cmocka_unit_test(shape__counts_the_product_of_its_extents),
        cmocka_unit_test(shape__refuses_zero_extents_high_ranks_and_overflow),
        cmocka_unit_test(shape__equals_compares_rank_and_extents_only),
        cmocka_unit_test(shape__format_fits_the_longest_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
