/* SPDX-License-Identifier: MIT */
/* A host device whose launches a test can watch and refuse, driver table in hand. */
#ifndef WR_TESTS_TENSOR_COUNT_H
#define WR_TESTS_TENSOR_COUNT_H

#include "device.h"

#include <weir/kernel.h>

#include <string.h>

static weir_driver_table watched;
static const weir_driver_table *host_table;
static uint64_t launch_count;
static weir_result refuse_with;         /* what launches return instead of running */
static weir_expression last_expression; /* of the last launch */
static union {
    weir_matmul_words matmul;
    weir_move_words move;
} last_words; /* of the last launch that was no expression */
static size_t last_binding_count;
static size_t most_bindings;
static uint64_t last_argument_address;
static bool want_argument_buffers;
static bool want_exclusive_bindings;
static uint32_t want_max_bindings;

static inline weir_result watch_launch(weir_driver *driver, weir_driver_stream on,
                                       const weir_launch *launch)
{
    if (refuse_with != WEIR_OK) {
        return weir_driver_error(refuse_with, "refused by the test");
    }
    launch_count++;
    if (launch->kernel->kind == WEIR_KERNEL_EXPRESSION) {
        last_expression = *launch->kernel->expression;
    } else {
        memcpy(&last_words, launch->arguments, launch->argument_bytes);
    }
    last_binding_count = launch->binding_count;
    most_bindings =
        last_binding_count > most_bindings ? last_binding_count : most_bindings;
    last_argument_address = launch->argument_address;
    if (want_argument_buffers) {
        assert_memory_equal((void *)(uintptr_t)launch->argument_address,
                            launch->arguments, launch->argument_bytes);
    }
    return host_table->launch(driver, on, launch);
}

static inline void watch_properties(weir_driver *driver,
                                    weir_driver_properties *properties)
{
    host_table->properties(driver, properties);
    properties->argument_buffers = want_argument_buffers;
    properties->exclusive_bindings = want_exclusive_bindings;
    properties->max_bindings = want_max_bindings;
}

static inline int open_watched(void **state)
{
    (void)state;
    weir_device_desc desc = {.no_idle = true, .no_thread = true};
    for (size_t i = 0; host_table == NULL; i++) {
        const weir_driver_table *table = weir_driver_at(i);
        host_table = strcmp(table->name, "host") == 0 ? table : NULL;
    }
    watched = *host_table;
    watched.launch = watch_launch;
    watched.properties = watch_properties;
    launch_count = 0;
    most_bindings = 0;
    refuse_with = WEIR_OK;
    if (weir_device_open_driver(&watched, "", &desc, &device) != WEIR_OK) {
        print_error("%s\n", weir_last_error());
        return -1;
    }
    stream = weir_device_default_stream(device);
    return 0;
}

static inline int open_watched_with_argument_buffers(void **state)
{
    want_argument_buffers = true;
    return open_watched(state);
}

static inline int open_watched_with_exclusive_bindings(void **state)
{
    want_exclusive_bindings = true;
    return open_watched(state);
}

static inline int open_watched_with_four_bindings(void **state)
{
    want_max_bindings = 4;
    return open_watched(state);
}

static inline int close_watched(void **state)
{
    want_argument_buffers = false;
    want_exclusive_bindings = false;
    want_max_bindings = 0;
    return close_device(state);
}

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, open_watched, close_watched)
#define WATCHED_WITH(how, test)                                                          \
    cmocka_unit_test_setup_teardown(test, open_watched_with_##how, close_watched)

#endif
