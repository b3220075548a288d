/* SPDX-License-Identifier: MIT */
/* The CUDA driver on the fake libcuda: a driver for each test, after which nothing may be
 * left, and what the fake is asked and told. */
#ifndef TESTS_DRIVER_FAKE_RIG_H
#define TESTS_DRIVER_FAKE_RIG_H

#include "contract.h"
#include "fake/fake.h"

#include <dlfcn.h>
#include <stdlib.h>

static driver_rig rig;
static fake_control *control;
static void *library;

static inline void use_library(const char *path)
{
    if (path == NULL) {
        unsetenv("WEIR_CUDA_LIBRARY");
        unsetenv("WEIR_NVML_LIBRARY");
        unsetenv("WEIR_NVRTC_LIBRARY");
    } else {
        setenv("WEIR_CUDA_LIBRARY", path, 1);
        setenv("WEIR_NVML_LIBRARY", path, 1);
        setenv("WEIR_NVRTC_LIBRARY", path, 1);
    }
}

static inline int load_fake(void **state)
{
    (void)state;
    const char *path = getenv("WEIR_FAKE_CUDA");
    library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    if (library == NULL) {
        print_error("WEIR_FAKE_CUDA must be the path of the fake libcuda\n");
        return 1;
    }
    fake_get_control get_control;
    *(void **)&get_control = dlsym(library, "fake_cuda_control");
    control = get_control();
    return 0;
}

static inline void reset_control(void)
{
    for (int i = 0; i < FAKE_COUNT; i++) {
        atomic_store(&control->calls[i], 0);
        atomic_store(&control->fail_nth[i], 0);
    }
    atomic_store(&control->hold, false);
    atomic_store(&control->lacks_virtual_memory, false);
    atomic_store(&control->capability, 0);
    atomic_store(&control->process, 0);
    atomic_store(&control->process_bytes, 0);
}

static inline int open_fake(void **state)
{
    (void)state;
    use_library(getenv("WEIR_FAKE_CUDA"));
    reset_control();
    rig_open(&rig, "cuda", NULL);
    return 0;
}

/* Nothing stays behind, whatever the test did. */
static inline int close_fake(void **state)
{
    (void)state;
    reset_control();
    rig_close(&rig);
    assert_int_equal(control->contexts, 0);
    assert_int_equal(control->graphs, 0);
    assert_int_equal(control->ranges, 0);
    assert_int_equal(control->chunks, 0);
    assert_int_equal(control->mappings, 0);
    assert_int_equal(control->pages, 0);
    assert_int_equal(control->streams, 0);
    assert_int_equal(control->events, 0);
    assert_int_equal(control->modules, 0);
    return 0;
}

static inline void fail_next(fake_entry entry, uint64_t nth, wr_cu_result result)
{
    atomic_store(&control->fail_with, (int)result);
    atomic_store(&control->fail_nth[entry], nth);
}

static inline uint64_t calls_of(fake_entry entry)
{
    return atomic_load(&control->calls[entry]);
}

static inline void assert_text(const char *part)
{
    if (strstr(weir_last_error(), part) == NULL) {
        print_error("\"%s\" is not in: %s\n", part, weir_last_error());
        fail();
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, close_fake)

#endif
