/* SPDX-License-Identifier: MIT */
/* Shared pages of the CUDA driver on a fake libcuda: what it leaves behind when a call
 * fails, and how it says so. What works is in the contract. */
#define _GNU_SOURCE
#include "contract.h"
#include "fake/fake.h"

#include "base/memory.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES (4 * MIB)

static driver_rig rig;
static fake_control *control;

static int open_fake(void **state)
{
    (void)state;
    const char *path = getenv("WEIR_FAKE_CUDA");
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    if (library == NULL) {
        print_error("WEIR_FAKE_CUDA must be the path of the fake libcuda\n");
        return 1;
    }
    fake_get_control get_control;
    *(void **)&get_control = dlsym(library, "fake_cuda_control");
    control = get_control();
    setenv("WEIR_CUDA_LIBRARY", path, 1);
    setenv("WEIR_NVML_LIBRARY", path, 1);
    rig_open(&rig, "cuda", NULL);
    return 0;
}

/* Nothing stays behind, whatever the test did. */
static int close_fake(void **state)
{
    (void)state;
    atomic_store(&control->lacks_sharing, false);
    rig_close(&rig);
    assert_int_equal(control->ranges, 0);
    assert_int_equal(control->mappings, 0);
    assert_int_equal(control->chunks, 0);
    return 0;
}

static void fail_next(fake_entry entry, wr_cu_result result)
{
    atomic_store(&control->fail_with, (int)result);
    atomic_store(&control->fail_nth[entry], 1);
}

static void assert_text(const char *part)
{
    if (strstr(weir_last_error(), part) == NULL) {
        print_error("\"%s\" is not in: %s\n", part, weir_last_error());
        fail();
    }
}

static uint64_t take_shared(void)
{
    uint64_t address = 0;
    assert_ok(rig.table->share_alloc(rig.driver, BYTES, &address));
    return address;
}

static void assert_nothing_left(void)
{
    assert_int_equal(control->ranges, 0);
    assert_int_equal(control->mappings, 0);
    assert_int_equal(control->chunks, 0);
    weir_memory_info info;
    assert_ok(rig.table->memory_info(rig.driver, &info));
    assert_int_equal(info.footprint_bytes, FAKE_CONTEXT_BYTES);
}

static void a_failed_alloc__leaves_nothing_behind(void **state)
{
    (void)state;
    static const struct {
        fake_entry entry;
        const char *call;
    } steps[] = {{FAKE_create, "cuMemCreate"},
                 {FAKE_reserve, "cuMemAddressReserve"},
                 {FAKE_map, "cuMemMap"},
                 {FAKE_set_access, "cuMemSetAccess"}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        uint64_t address = 77;
        fail_next(steps[i].entry, WR_CU_OUT_OF_MEMORY);
        assert_result(rig.table->share_alloc(rig.driver, BYTES, &address),
                      WEIR_OUT_OF_MEMORY);
        assert_text(steps[i].call);
        assert_int_equal(address, 77);
        assert_nothing_left();
    }
}

static void a_failed_import__leaves_nothing_behind(void **state)
{
    (void)state;
    static const fake_entry steps[] = {FAKE_import_handle, FAKE_reserve, FAKE_map,
                                       FAKE_set_access};
    uint64_t address = take_shared(), again = 77;
    int file = -1;
    assert_ok(rig.table->share_export(rig.driver, address, BYTES, &file));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        fail_next(steps[i], WR_CU_OUT_OF_MEMORY);
        assert_result(rig.table->share_import(rig.driver, file, BYTES, &again),
                      WEIR_OUT_OF_MEMORY);
        assert_int_equal(again, 77);
        assert_int_equal(control->mappings, 1);
        assert_int_equal(control->ranges, 1);
    }
    assert_ok(rig.table->page_free(rig.driver, address, BYTES));
    assert_int_equal(control->chunks, 1); /* the descriptor holds it still */
    close(file);
    assert_ok(rig.table->page_free(rig.driver, take_shared(), BYTES));
    assert_nothing_left();
}

static void a_failed_export__gives_no_descriptor(void **state)
{
    (void)state;
    uint64_t address = take_shared();
    int file = 77;
    fail_next(FAKE_export_handle, WR_CU_OUT_OF_MEMORY);
    assert_result(rig.table->share_export(rig.driver, address, BYTES, &file),
                  WEIR_OUT_OF_MEMORY);
    assert_int_equal(file, 77);
    assert_ok(rig.table->page_free(rig.driver, address, BYTES));
    assert_nothing_left();
}

static void a_failed_free__can_be_tried_again(void **state)
{
    (void)state;
    static const fake_entry steps[] = {FAKE_unmap, FAKE_release};
    uint64_t address = take_shared();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        fail_next(steps[i], WR_CU_INVALID_VALUE);
        assert_result(rig.table->page_free(rig.driver, address, BYTES), WEIR_DRIVER);
    }
    assert_ok(rig.table->page_free(rig.driver, address, BYTES));
    assert_nothing_left();
}

static void what_cuda_says_of_a_wrong_descriptor__is_invalid(void **state)
{
    (void)state;
    static const wr_cu_result answers[] = {WR_CU_INVALID_VALUE, WR_CU_INVALID_HANDLE,
                                           WR_CU_OPERATING_SYSTEM, WR_CU_UNKNOWN};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        uint64_t address = 77;
        fail_next(FAKE_import_handle, answers[i]);
        assert_result(rig.table->share_import(rig.driver, 0, BYTES, &address),
                      WEIR_INVALID);
        assert_text("no memory of a GPU");
    }
    assert_nothing_left();
}

static void a_device_that_cannot_share__says_so(void **state)
{
    (void)state;
    uint64_t address = 77;
    atomic_store(&control->lacks_sharing, true);
    assert_result(rig.table->share_alloc(rig.driver, BYTES, &address), WEIR_UNSUPPORTED);
    assert_result(rig.table->share_import(rig.driver, 0, BYTES, &address),
                  WEIR_UNSUPPORTED);
    assert_text("cannot share memory");
    assert_int_equal(address, 77);
    assert_nothing_left();
}

static void imported_memory__is_not_counted_as_this_processs(void **state)
{
    (void)state;
    uint64_t address = take_shared(), again = 0;
    int file = -1;
    assert_ok(rig.table->share_export(rig.driver, address, BYTES, &file));
    assert_ok(rig.table->share_import(rig.driver, file, BYTES, &again));
    close(file);
    weir_memory_info info;
    assert_ok(rig.table->memory_info(rig.driver, &info));
    assert_int_equal(info.footprint_bytes, FAKE_CONTEXT_BYTES + BYTES); /* is known */
    assert_ok(rig.table->page_free(rig.driver, address, BYTES));
    assert_ok(rig.table->page_free(rig.driver, again, BYTES));
    assert_nothing_left();
}

static void without_host_memory__nothing_is_left(void **state)
{
    (void)state;
    weir_result result = WEIR_OUT_OF_HOST_MEMORY;
    uint64_t nth = 1, address = 0;
    for (; result != WEIR_OK; nth++) {
        wr_host_fail_nth(nth);
        result = rig.table->share_alloc(rig.driver, BYTES, &address);
        wr_host_fail_nth(0);
        assert_true(result == WEIR_OK || result == WEIR_OUT_OF_HOST_MEMORY);
        if (result != WEIR_OK) {
            assert_nothing_left();
        }
    }
    assert_int_equal(nth, 4); /* the region and the record, then none */
    assert_ok(rig.table->page_free(rig.driver, address, BYTES));
    assert_nothing_left();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, close_fake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_failed_alloc__leaves_nothing_behind),
        TEST(a_failed_import__leaves_nothing_behind),
        TEST(a_failed_export__gives_no_descriptor),
        TEST(a_failed_free__can_be_tried_again),
        TEST(what_cuda_says_of_a_wrong_descriptor__is_invalid),
        TEST(a_device_that_cannot_share__says_so),
        TEST(imported_memory__is_not_counted_as_this_processs),
        TEST(without_host_memory__nothing_is_left),
    };
    return cmocka_run_group_tests_name("driver, cuda ipc", tests, NULL, NULL);
}
