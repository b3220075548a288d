/* SPDX-License-Identifier: MIT */
#include "device.h"

#include <stdio.h>
#include <string.h>

static char written[8192];
static size_t written_bytes;
static size_t room;

static weir_result collect(void *context, const char *text, size_t text_bytes)
{
    (void)context;
    if (written_bytes + text_bytes > room) {
        return WEIR_IO;
    }
    memcpy(written + written_bytes, text, text_bytes);
    written_bytes += text_bytes;
    written[written_bytes] = '\0';
    return WEIR_OK;
}

static weir_result format(weir_tensor *tensor)
{
    written_bytes = 0;
    return weir_tensor_format(tensor, collect, NULL);
}

static int open_with_room(void **state)
{
    room = sizeof written - 1;
    return open_host(state);
}

static void format__lines_columns_up_and_says_what_it_is(void **state)
{
    (void)state;
    const float values[8] = {1, -2.5F, 1000, 0.125F, 3, 4, 5, 6};
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(2, 2, 2), values, &tensor));
    assert_ok(format(tensor));
    assert_string_equal(written, "[[[    1,  -2.5],\n"
                                 "  [ 1000, 0.125]],\n"
                                 "\n"
                                 " [[    3,     4],\n"
                                 "  [    5,     6]]]\n"
                                 "tensor [2, 2, 2] f32 on host\n");
    weir_tensor_drop(tensor);
}

static void format__shows_integers_truth_and_scalars(void **state)
{
    (void)state;
    const int32_t values[2] = {INT32_MAX, INT32_MIN};
    weir_tensor *tensor = NULL;
    weir_tensor *positive = NULL;
    weir_tensor *sum = NULL;
    assert_ok(
        weir_tensor_from_data(stream, WEIR_SHAPE(2), WEIR_DTYPE_I32, values, &tensor));
    assert_ok(format(tensor));
    assert_string_equal(written, "[ 2147483647, -2147483648]\ntensor [2] i32 on host\n");
    assert_ok(weir_tensor_gt_scalar(tensor, 0, &positive));
    assert_ok(format(positive));
    assert_string_equal(written, "[ true, false]\ntensor [2] bool on host\n");
    assert_ok(weir_tensor_reduce_sum(tensor, WEIR_ALL_AXES, false, &sum));
    assert_ok(format(sum));
    assert_string_equal(written, "-1\ntensor [] i32 on host\n");
    weir_tensor_drop(sum);
    weir_tensor_drop(positive);
    weir_tensor_drop(tensor);
}

static void format__shows_only_the_ends_of_what_is_long(void **state)
{
    (void)state;
    static float values[2000];
    weir_tensor *tensor = NULL;
    for (int i = 0; i < 2000; i++) {
        values[i] = (float)i;
    }
    assert_ok(weir_tensor_from_floats(stream, WEIR_SHAPE(2, 1000), values, &tensor));
    assert_ok(format(tensor));
    assert_string_equal(written, "[[   0,    1,    2, ...,  997,  998,  999],\n"
                                 " [1000, 1001, 1002, ..., 1997, 1998, 1999]]\n"
                                 "tensor [2, 1000] f32 on host\n");
    weir_tensor_drop(tensor);
    assert_int_equal(in_use_bytes(), 0);
}

static void format__stops_where_the_writer_does(void **state)
{
    (void)state;
    weir_tensor *tensor = NULL;
    assert_ok(weir_tensor_zeros(stream, WEIR_SHAPE(3), &tensor));
    assert_ok(format(tensor));
    size_t whole = written_bytes;
    for (room = 0; room < whole; room++) {
        assert_int_equal(format(tensor), WEIR_IO);
    }
    assert_ok(format(tensor));
    assert_int_equal(weir_tensor_format(NULL, collect, NULL), WEIR_INVALID);
    assert_int_equal(weir_tensor_format(tensor, NULL, NULL), WEIR_INVALID);
    weir_tensor_drop(tensor);
}

#define WITH_ROOM(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, open_with_room, close_device)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOM(format__lines_columns_up_and_says_what_it_is),
        WITH_ROOM(format__shows_integers_truth_and_scalars),
        WITH_ROOM(format__shows_only_the_ends_of_what_is_long),
        WITH_ROOM(format__stops_where_the_writer_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
