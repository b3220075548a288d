/* SPDX-License-Identifier: MIT */
/* A device for each test, which must be empty again at its end. */
#ifndef WR_TESTS_TENSOR_DEVICE_H
#define WR_TESTS_TENSOR_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/tensor.h>
#include <weir/weir.h>

static weir_device *device;
static weir_stream *stream;

static inline int open_device(const char *name)
{
    weir_device_desc desc = {.no_idle = true, .no_thread = true};
    if (weir_device_open(name, &desc, &device) != WEIR_OK) {
        print_error("%s\n", weir_last_error());
        return -1;
    }
    stream = weir_device_default_stream(device);
    return 0;
}

static inline int open_host(void **state)
{
    (void)state;
    return open_device("host");
}

static inline int open_sim(void **state)
{
    (void)state;
    return open_device("sim");
}

static inline uint64_t in_use_bytes(void)
{
    weir_usage usage = {.size = sizeof usage};
    assert_int_equal(weir_device_memory_usage(device, &usage), WEIR_OK);
    return usage.in_use_bytes;
}

/* Fails while anything is live. */
static inline int close_device(void **state)
{
    (void)state;
    if (weir_device_close(device) != WEIR_OK) {
        print_error("%s\n", weir_last_error());
        return -1;
    }
    return 0;
}

/* All extents count, those past the rank too. */
static inline void assert_shape(weir_shape shape, weir_shape expected)
{
    assert_int_equal(shape.rank, expected.rank);
    assert_memory_equal(shape.extent, expected.extent, sizeof shape.extent);
}

#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, open_host, close_device)
#define ON_SIM(test) cmocka_unit_test_setup_teardown(test, open_sim, close_device)

#define assert_ok(call) assert_int_equal((call), WEIR_OK)

#endif
