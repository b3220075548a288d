/* SPDX-License-Identifier: MIT */
/* The CUDA driver on a fake libcuda: which calls it makes, in which order, and what it
 * leaves behind when one of them fails. */
#define _GNU_SOURCE
#include "fake_rig.h"

#include "base/memory.h"
#include "driver/nvml.h"

#include <weir/kernel.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define GRANULE (2 * MIB)

static weir_result open_named(const char *argument)
{
    weir_driver *driver = NULL;
    const weir_driver_table *table = find_table("cuda");
    weir_result result = table->open(argument, NULL, &driver);
    if (result == WEIR_OK) {
        table->close(driver);
    }
    return result;
}

/* ---- loading ---- */

static void a_machine_without_cuda__says_what_to_do(void **state)
{
    (void)state;
    use_library(NULL);
    void *real = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (real != NULL) {
        print_message("skipped: there is a libcuda.so.1 here\n");
        skip();
    }
    assert_result(open_named(""), WEIR_NOT_FOUND);
    assert_string_equal(weir_last_error(), "cuda: libcuda.so.1 not found; install the "
                                           "NVIDIA driver, or use --device host");
}

static void a_library_that_is_not_one__is_refused_with_the_reason(void **state)
{
    (void)state;
    Dl_info cmocka;
    use_library("fake/libcuda.so.1");
    assert_result(open_named(""), WEIR_INVALID);
    assert_text("absolute path");
    use_library("/no/such/libcuda.so.1");
    assert_result(open_named(""), WEIR_NOT_FOUND);
    assert_text("/no/such/libcuda.so.1 not found");
    use_library("/proc/self/status");
    assert_result(open_named(""), WEIR_NOT_FOUND);
    assert_text("cannot be loaded");
    assert_true(dladdr((void *)(uintptr_t)_cmocka_run_group_tests, &cmocka) != 0);
    use_library(cmocka.dli_fname);
    assert_result(open_named(""), WEIR_UNSUPPORTED);
    assert_text("has no cuInit, which came with CUDA 2.0");
}

static void a_machine_without_a_gpu__is_told_apart(void **state)
{
    (void)state;
    reset_control();
    use_library(getenv("WEIR_FAKE_CUDA"));
    fail_next(FAKE_init, 1, WR_CU_NO_DEVICE);
    assert_result(open_named(""), WEIR_NOT_FOUND);
    assert_text("finds no GPU");
}

static void a_failing_open__leaves_nothing(void **state)
{
    (void)state;
    static const fake_entry entries[] = {
        FAKE_init,           FAKE_device_count, FAKE_device_get,
        FAKE_device_name,    FAKE_granularity,  FAKE_device_attribute,
        FAKE_context_retain, FAKE_context_push, FAKE_memory_info,
    };
    reset_control();
    use_library(getenv("WEIR_FAKE_CUDA"));
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        fail_next(entries[i], 1, WR_CU_INVALID_VALUE);
        assert_result(open_named(""), WEIR_DRIVER);
        assert_int_equal(control->contexts, 0);
    }
    assert_ok(open_named(""));
    assert_int_equal(control->contexts, 0);
}

static void a_device__is_named_by_its_number(void **state)
{
    (void)state;
    static const char *const refused[] = {"2",  "-1", "+1",         "1x",
                                          " 1", "x",  "99999999999"};
    assert_string_equal(rig.properties.name, "Fake GPU 0");
    assert_ok(open_named("0"));
    assert_ok(open_named("1"));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_result(open_named(refused[i]), WEIR_NOT_FOUND);
        assert_text("CUDA sees 2");
    }
}

static void a_device_without_virtual_memory__has_whole_pages_only(void **state)
{
    (void)state;
    weir_driver *driver;
    weir_driver_properties properties;
    uint64_t address;
    atomic_store(&control->lacks_virtual_memory, true);
    assert_ok(rig.table->open("", NULL, &driver));
    rig.table->properties(driver, &properties);
    assert_int_equal(properties.granule_bytes, 0);
    assert_result(rig.table->range_reserve(driver, GRANULE, &address), WEIR_UNSUPPORTED);
    assert_ok(rig.table->page_alloc(driver, 1000, &address));
    assert_ok(rig.table->page_free(driver, address, 1000));
    rig.table->close(driver);
}

/* ---- granules ---- */

static void a_commit__sets_access_once_and_a_decommit_unmaps_once(void **state)
{
    (void)state;
    uint64_t range = take_range(&rig, 600);
    assert_ok(rig.table->commit(rig.driver, range + 400 * GRANULE, 100 * GRANULE));
    assert_int_equal(calls_of(FAKE_create), 100);
    assert_int_equal(calls_of(FAKE_map), 100);
    assert_int_equal(calls_of(FAKE_set_access), 1);
    /* Over the border of two tables, a part of what was committed at once. */
    assert_ok(rig.table->commit(rig.driver, range + 500 * GRANULE, 50 * GRANULE));
    assert_ok(rig.table->decommit(rig.driver, range + 450 * GRANULE, 70 * GRANULE));
    assert_int_equal(calls_of(FAKE_unmap), 1);
    assert_int_equal(calls_of(FAKE_release), 70);
    assert_int_equal(control->chunks, 80);
    assert_int_equal(control->mappings, 80);
}

static void a_commit_of_chunks__pays_by_chunk(void **state)
{
    (void)state;
    uint64_t range = take_range(&rig, 600);
    uint64_t far = range + 590 * GRANULE;
    /* Over the border of two tables. */
    assert_ok(rig.table->commit_chunks(rig.driver, range + 500 * GRANULE, 40 * GRANULE,
                                       16 * GRANULE));
    assert_int_equal(calls_of(FAKE_create), 3);
    assert_int_equal(calls_of(FAKE_map), 3);
    assert_int_equal(calls_of(FAKE_set_access), 1);
    assert_ok(rig.table->move(rig.driver, far, range + 532 * GRANULE, 8 * GRANULE));
    assert_int_equal(calls_of(FAKE_create), 3);
    assert_int_equal(calls_of(FAKE_map), 4);
    fail_next(FAKE_unmap, 1, WR_CU_INVALID_VALUE);
    assert_result(rig.table->decommit(rig.driver, far, 8 * GRANULE), WEIR_DRIVER);
    assert_result(rig.table->decommit(rig.driver, far, 4 * GRANULE), WEIR_INVALID);
    assert_ok(rig.table->decommit(rig.driver, far, 8 * GRANULE));
    assert_ok(rig.table->decommit(rig.driver, range + 500 * GRANULE, 32 * GRANULE));
    assert_int_equal(calls_of(FAKE_release), 3);
    assert_int_equal(control->chunks, 0);
}

static void a_commit_that_fails__leaves_its_granules_bare(void **state)
{
    (void)state;
    static const struct {
        fake_entry entry;
        uint64_t nth;
    } failures[] = {
        {FAKE_create, 1}, {FAKE_create, 4},     {FAKE_map, 1},
        {FAKE_map, 4},    {FAKE_set_access, 1}, {FAKE_context_push, 1},
    };
    uint64_t range = take_range(&rig, 8);
    assert_ok(rig.table->commit(rig.driver, range + 4 * GRANULE, GRANULE));
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        fail_next(failures[i].entry, failures[i].nth, WR_CU_OUT_OF_MEMORY);
        assert_result(rig.table->commit(rig.driver, range, 4 * GRANULE),
                      WEIR_OUT_OF_MEMORY);
        assert_int_equal(control->chunks, 1);
        assert_int_equal(control->mappings, 1);
    }
    wr_host_fail_nth(1);
    uint64_t other = 0;
    assert_result(rig.table->range_reserve(rig.driver, GRANULE, &other),
                  WEIR_OUT_OF_HOST_MEMORY);
    wr_host_fail_nth(0);
    assert_ok(rig.table->commit(rig.driver, range, 4 * GRANULE));
}

static void a_decommit_that_fails__can_be_done_again(void **state)
{
    (void)state;
    uint64_t range = take_range(&rig, 4);
    assert_ok(rig.table->commit(rig.driver, range, 4 * GRANULE));
    fail_next(FAKE_unmap, 1, WR_CU_INVALID_VALUE);
    assert_result(rig.table->decommit(rig.driver, range, 4 * GRANULE), WEIR_DRIVER);
    assert_int_equal(control->chunks, 4);
    assert_int_equal(control->mappings, 4);
    assert_ok(rig.table->decommit(rig.driver, range, 4 * GRANULE));
    assert_int_equal(control->chunks, 0);
    fail_next(FAKE_unreserve, 1, WR_CU_INVALID_VALUE);
    assert_result(rig.table->range_free(rig.driver, range, 4 * GRANULE), WEIR_DRIVER);
    assert_ok(rig.table->range_free(rig.driver, range, 4 * GRANULE));
}

static void a_move__carries_the_memory_and_creates_none(void **state)
{
    (void)state;
    weir_driver_stream stream = take_stream(&rig);
    uint64_t range = take_range(&rig, 8);
    uint64_t to = range + 5 * GRANULE;
    char got[4] = "";
    assert_ok(rig.table->commit(rig.driver, range, 3 * GRANULE));
    assert_ok(rig.table->write(rig.driver, stream, range + 2 * GRANULE, "weir", 4));
    assert_ok(rig.table->move(rig.driver, to, range, 3 * GRANULE));
    assert_int_equal(calls_of(FAKE_create), 3);
    assert_int_equal(calls_of(FAKE_release), 0);
    assert_int_equal(calls_of(FAKE_set_access), 2);
    assert_int_equal(calls_of(FAKE_unmap), 1);
    assert_ok(rig.table->read(rig.driver, stream, to + 2 * GRANULE, got, 4));
    assert_memory_equal(got, "weir", 4);
    assert_int_equal(control->mappings, 3);
    assert_ok(rig.table->decommit(rig.driver, to, 3 * GRANULE));
    assert_int_equal(control->chunks, 0);
}

static void a_move_that_fails__leaves_the_memory_where_it_was(void **state)
{
    (void)state;
    static const fake_entry entries[] = {FAKE_map,        FAKE_map,   FAKE_map,
                                         FAKE_set_access, FAKE_unmap, FAKE_context_push};
    static const uint64_t nths[] = {1, 2, 3, 1, 1, 1};
    weir_driver_stream stream = take_stream(&rig);
    uint64_t range = take_range(&rig, 8);
    uint64_t to = range + 5 * GRANULE;
    char got[4] = "";
    assert_ok(rig.table->commit(rig.driver, range, 3 * GRANULE));
    assert_ok(rig.table->write(rig.driver, stream, range + 2 * GRANULE, "weir", 4));
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        fail_next(entries[i], nths[i], WR_CU_INVALID_VALUE);
        assert_result(rig.table->move(rig.driver, to, range, 3 * GRANULE), WEIR_DRIVER);
        assert_int_equal(control->mappings, 3);
        assert_int_equal(control->chunks, 3);
        assert_ok(rig.table->read(rig.driver, stream, range + 2 * GRANULE, got, 4));
        assert_memory_equal(got, "weir", 4);
    }
    /* Places that overlap are not all bare, or not all committed. */
    assert_result(rig.table->move(rig.driver, range + GRANULE, range, 3 * GRANULE),
                  WEIR_INVALID);
    assert_result(rig.table->move(rig.driver, range + 3 * GRANULE, range + 2 * GRANULE,
                                  2 * GRANULE),
                  WEIR_INVALID);
    assert_ok(rig.table->move(rig.driver, to, range, 3 * GRANULE));
}

static void a_page_that_cannot_be_freed__stays_a_page(void **state)
{
    (void)state;
    uint64_t page = take_page(&rig, 1000);
    fail_next(FAKE_page_free, 1, WR_CU_INVALID_VALUE);
    assert_result(rig.table->page_free(rig.driver, page, 1000), WEIR_DRIVER);
    assert_ok(rig.table->page_free(rig.driver, page, 1000));
}

/* ---- contexts and errors ---- */

static void every_call__leaves_the_current_context_as_it_was(void **state)
{
    (void)state;
    wr_cu_result (*push)(wr_cu_context);
    wr_cu_result (*pop)(wr_cu_context *);
    *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(library, "cuCtxPopCurrent_v2");
    int somebody_elses;
    wr_cu_context current = (wr_cu_context)(void *)&somebody_elses;
    weir_memory_info info;
    weir_driver_fence fence;
    assert_int_equal(push(current), WR_CU_SUCCESS);
    weir_driver_stream stream = take_stream(&rig);
    uint64_t range = take_range(&rig, 4);
    uint64_t page = take_page(&rig, MIB);
    assert_ok(rig.table->commit(rig.driver, range, GRANULE));
    assert_ok(rig.table->move(rig.driver, range + GRANULE, range, GRANULE));
    assert_ok(rig.table->write(rig.driver, stream, page, "weir", 4));
    assert_ok(rig.table->fence_record(rig.driver, stream, &fence));
    assert_ok(rig.table->stream_wait(rig.driver, stream, fence));
    assert_ok(rig.table->fence_test(rig.driver, fence));
    assert_ok(rig.table->fence_wait(rig.driver, fence));
    assert_ok(rig.table->memory_info(rig.driver, &info));
    fail_next(FAKE_create, 1, WR_CU_OUT_OF_MEMORY);
    assert_result(rig.table->commit(rig.driver, range, GRANULE), WEIR_OUT_OF_MEMORY);
    assert_ok(rig.table->decommit(rig.driver, range + GRANULE, GRANULE));
    assert_ok(rig.table->page_free(rig.driver, page, MIB));
    rig.table->stream_close(rig.driver, stream);
    assert_ok(open_named("1"));
    current = NULL;
    assert_int_equal(pop(&current), WR_CU_SUCCESS);
    assert_ptr_equal(current, &somebody_elses);
    assert_int_equal(pop(&current), WR_CU_INVALID_CONTEXT);
}

static void every_error__has_its_result_and_tells_cudas_name_for_it(void **state)
{
    (void)state;
    static const struct {
        wr_cu_result error;
        weir_result result;
    } rows[] = {
        {WR_CU_OUT_OF_MEMORY, WEIR_OUT_OF_MEMORY},
        {WR_CU_ILLEGAL_ADDRESS, WEIR_DEVICE_LOST},
        {WR_CU_LAUNCH_FAILED, WEIR_DEVICE_LOST},
        {WR_CU_DEINITIALIZED, WEIR_DEVICE_LOST},
        {WR_CU_ECC_UNCORRECTABLE, WEIR_DEVICE_LOST},
        {WR_CU_NOT_SUPPORTED, WEIR_UNSUPPORTED},
        {WR_CU_INVALID_VALUE, WEIR_DRIVER},
        {(wr_cu_result)999, WEIR_DRIVER},
    };
    uint64_t address;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char number[16];
        fail_next(FAKE_page_alloc, 1, rows[i].error);
        assert_result(rig.table->page_alloc(rig.driver, 12345, &address), rows[i].result);
        snprintf(number, sizeof number, "(%d)", (int)rows[i].error);
        assert_text(number);
        assert_text("page_alloc of 12345 bytes: cuMemAlloc says ");
    }
    fail_next(FAKE_page_alloc, 1, WR_CU_OUT_OF_MEMORY);
    assert_result(rig.table->page_alloc(rig.driver, 1, &address), WEIR_OUT_OF_MEMORY);
    assert_text("CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
}

/* ---- streams and fences ---- */

static void fences__recycle_their_events(void **state)
{
    (void)state;
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence last = 0;
    for (int i = 0; i < 1000; i++) {
        weir_driver_fence fence;
        assert_ok(rig.table->fence_record(rig.driver, stream, &fence));
        assert_true(fence != 0 && fence != last);
        rig.table->fence_release(rig.driver, fence);
        last = fence;
    }
    assert_int_equal(calls_of(FAKE_event_create), 1);
    assert_int_equal(calls_of(FAKE_event_record), 1000);
}

static void a_fence__passes_with_the_work_before_it(void **state)
{
    (void)state;
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_stream other = take_stream(&rig);
    uint64_t page = take_page(&rig, MIB);
    weir_driver_fence fence;
    atomic_store(&control->hold, true);
    assert_ok(rig.table->copy(rig.driver, stream, page, page + 4096, 4096));
    assert_ok(rig.table->fence_record(rig.driver, stream, &fence));
    assert_result(rig.table->fence_test(rig.driver, fence), WEIR_NOT_READY);
    assert_result(rig.table->stream_test(rig.driver, stream), WEIR_NOT_READY);
    assert_ok(rig.table->stream_test(rig.driver, other));
    assert_ok(rig.table->stream_wait(rig.driver, other, fence));
    assert_result(rig.table->stream_test(rig.driver, other), WEIR_NOT_READY);
    assert_ok(rig.table->fence_wait(rig.driver, fence));
    assert_ok(rig.table->fence_test(rig.driver, fence));
    assert_ok(rig.table->stream_test(rig.driver, other));
}

static void a_released_fence__is_no_fence_any_more(void **state)
{
    (void)state;
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence fence;
    assert_ok(rig.table->fence_record(rig.driver, stream, &fence));
    rig.table->fence_release(rig.driver, fence);
    assert_result(rig.table->fence_test(rig.driver, fence), WEIR_INVALID);
    assert_result(rig.table->fence_wait(rig.driver, fence), WEIR_INVALID);
    assert_result(rig.table->stream_wait(rig.driver, stream, fence), WEIR_INVALID);
    assert_result(rig.table->fence_test(rig.driver, 77), WEIR_INVALID);
    rig.table->fence_release(rig.driver, fence);
}

static void a_fence_that_cannot_be_recorded__leaves_nothing(void **state)
{
    (void)state;
    static const fake_entry entries[] = {FAKE_event_create, FAKE_event_record,
                                         FAKE_context_push};
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence fence = 77;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        fail_next(entries[i], 1, WR_CU_INVALID_VALUE);
        assert_result(rig.table->fence_record(rig.driver, stream, &fence), WEIR_DRIVER);
        assert_int_equal(fence, 77);
    }
    assert_ok(rig.table->fence_record(rig.driver, stream, &fence));
    assert_int_equal(control->events, 1);
}

static void an_adopted_stream__is_not_destroyed(void **state)
{
    (void)state;
    int native;
    weir_driver_stream stream;
    assert_ok(rig.table->stream_open(rig.driver, &native, &stream));
    rig.table->stream_close(rig.driver, stream);
    assert_int_equal(calls_of(FAKE_stream_create), 0);
    assert_int_equal(calls_of(FAKE_stream_destroy), 0);
}

static void copies__may_overlap(void **state)
{
    (void)state;
    weir_driver_stream stream = take_stream(&rig);
    uint64_t page = take_page(&rig, 100);
    char got[10];
    assert_ok(rig.table->write(rig.driver, stream, page, "abcdefghij", 10));
    assert_ok(rig.table->copy(rig.driver, stream, page + 3, page, 7));
    assert_ok(rig.table->read(rig.driver, stream, page, got, 10));
    assert_memory_equal(got, "abcabcdefg", 10);
    assert_ok(rig.table->copy(rig.driver, stream, page, page + 3, 7));
    assert_ok(rig.table->read(rig.driver, stream, page, got, 10));
    assert_memory_equal(got, "abcdefgefg", 10);
    assert_ok(rig.table->copy(rig.driver, stream, page, page, 10));
}

/* ---- accounting ---- */

static weir_memory_info info_of(int process, uint64_t bytes)
{
    weir_memory_info info;
    atomic_store(&control->process, process);
    atomic_store(&control->process_bytes, bytes);
    assert_ok(rig.table->memory_info(rig.driver, &info));
    assert_int_equal(info.capacity_bytes, rig.properties.capacity_bytes);
    return info;
}

static void the_footprint__is_what_nvml_says_of_this_process(void **state)
{
    (void)state;
    assert_int_equal(rig.properties.context_bytes, FAKE_CONTEXT_BYTES);
    take_page(&rig, MIB);
    weir_memory_info info = info_of(0, 0);
    assert_int_equal(info.footprint_bytes, FAKE_CONTEXT_BYTES + MIB);
    assert_int_equal(info.others_bytes, 0);
    info = info_of(getpid(), MIB);
    assert_int_equal(info.footprint_bytes, MIB);
}

static void a_footprint_that_cannot_be_ours__is_unknown(void **state)
{
    (void)state;
    take_page(&rig, 4 * MIB);
    const weir_memory_info found[] = {
        info_of(getpid() + 1, 0),       /* another process */
        info_of(0, WEIR_UNKNOWN_BYTES), /* not available */
        info_of(0, 3 * MIB),            /* less than we hold */
        info_of(0, (uint64_t)1 << 50),  /* more than there is */
    };
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        assert_int_equal(found[i].footprint_bytes, WEIR_UNKNOWN_BYTES);
        assert_int_equal(found[i].others_bytes, WEIR_UNKNOWN_BYTES);
    }
}

static void without_nvml__the_footprint_is_unknown_and_no_failure(void **state)
{
    (void)state;
    weir_driver *driver;
    weir_memory_info info;
    weir_driver_properties properties;
    setenv("WEIR_NVML_LIBRARY", "/no/such/libnvidia-ml.so.1", 1);
    assert_result(open_named("x"), WEIR_NOT_FOUND);
    assert_ok(rig.table->open("", NULL, &driver));
    assert_text("there is no device \"x\"");
    rig.table->properties(driver, &properties);
    assert_int_equal(properties.context_bytes, 0);
    assert_ok(rig.table->memory_info(driver, &info));
    assert_int_equal(info.footprint_bytes, WEIR_UNKNOWN_BYTES);
    rig.table->close(driver);
}

/* ---- the whole of Weir on it ---- */

static void a_device__gives_all_memory_back_after_a_cleanup(void **state)
{
    (void)state;
    weir_device *device;
    weir_buffer buffers[4];
    char got[5] = "";
    assert_ok(weir_device_open("cuda:0", NULL, &device));
    weir_stream *stream = weir_device_default_stream(device);
    for (size_t i = 0; i < 4; i++) {
        assert_ok(weir_buffer_create(stream, 64 * MIB, NULL, &buffers[i]));
        assert_ok(weir_buffer_write(buffers[i], 64 * MIB - 5, "weir", 5));
    }
    assert_ok(weir_buffer_read(buffers[3], 64 * MIB - 5, got, 5));
    assert_string_equal(got, "weir");
    assert_int_equal(control->chunks, 4); /* one for each */
    for (size_t i = 0; i < 4; i++) {
        assert_ok(weir_buffer_release(buffers[i]));
    }
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    assert_int_equal(control->chunks, 0);
    assert_int_equal(control->pages, 0);
    assert_ok(weir_device_close(device));
}

static void a_graph__is_captured_launched_and_destroyed(void **state)
{
    (void)state;
    weir_device *device;
    weir_graph *graph = NULL;
    weir_buffer older;
    assert_ok(weir_device_open("cuda:0", NULL, &device));
    weir_stream *stream = weir_device_default_stream(device);
    assert_ok(weir_buffer_create(stream, MIB, NULL, &older));
    assert_ok(weir_capture_begin(stream));
    weir_buffer scratch;
    assert_ok(weir_buffer_create(stream, 8 * MIB, NULL, &scratch));
    assert_ok(weir_buffer_release(scratch));
    assert_result(weir_stream_sync(stream), WEIR_BUSY);
    char byte = 0;
    assert_result(weir_buffer_write(older, 0, &byte, 1), WEIR_BUSY);
    assert_result(weir_buffer_read(older, 0, &byte, 1), WEIR_BUSY);
    assert_result(weir_device_memory_cleanup(device, NULL, NULL), WEIR_BUSY);
    assert_ok(weir_capture_end(stream, "step", &graph));
    assert_int_equal(control->graphs, 1);
    weir_usage before = {0}, after = {0};
    assert_ok(weir_device_memory_usage(device, &before));
    for (int i = 0; i < 1000; i++) {
        assert_ok(weir_graph_launch(graph, stream));
    }
    assert_ok(weir_stream_sync(stream));
    assert_ok(weir_device_memory_usage(device, &after));
    assert_int_equal(after.reserved_bytes, before.reserved_bytes);
    assert_int_equal(calls_of(FAKE_graph_launch), 1000);
    assert_ok(weir_graph_destroy(graph));
    assert_ok(weir_buffer_release(older));
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    assert_int_equal(control->chunks, 0);
    assert_ok(weir_device_close(device));
}

static void a_capture_that_fails__leaves_nothing(void **state)
{
    (void)state;
    static const fake_entry entries[] = {FAKE_capture_begin, FAKE_capture_end,
                                         FAKE_graph_instantiate, FAKE_context_push};
    weir_driver_stream stream = take_stream(&rig);
    uint64_t graph = 77;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        fail_next(entries[i], 1, WR_CU_INVALID_VALUE);
        weir_result result = rig.table->capture_begin(rig.driver, stream);
        if (result == WEIR_OK) {
            assert_result(rig.table->capture_end(rig.driver, stream, &graph),
                          WEIR_DRIVER);
        }
        if (entries[i] == FAKE_capture_end) { /* only here is it still capturing */
            assert_ok(rig.table->capture_abort(rig.driver, stream));
        }
        assert_int_equal(control->graphs, 0);
    }
    assert_int_equal(graph, 77);
    /* Spoiled by somebody else: aborting it is no failure. */
    assert_ok(rig.table->capture_begin(rig.driver, stream));
    assert_result(rig.table->stream_test(rig.driver, stream), WEIR_DRIVER);
    assert_ok(rig.table->capture_abort(rig.driver, stream));
    assert_result(rig.table->graph_launch(rig.driver, stream, 0), WEIR_INVALID);
}

static void a_call__is_not_held_against_captures_of_the_program(void **state)
{
    (void)state;
    int (*exchange)(int *mode) = NULL;
    *(void **)&exchange = dlsym(library, "cuThreadExchangeStreamCaptureMode");
    int mode = 1; /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
    exchange(&mode);
    uint64_t before = calls_of(FAKE_capture_mode);
    uint64_t page = take_page(&rig, MIB);
    assert_ok(rig.table->page_free(rig.driver, page, MIB));
    int after = 0;
    exchange(&after);
    assert_int_equal(after, 1);
    assert_int_equal(calls_of(FAKE_capture_mode), before + 2 * 2 + 1);
}

static void a_lost_device__lets_go_of_everything_quietly(void **state)
{
    (void)state;
    weir_device *device;
    weir_buffer buffer;
    assert_ok(weir_device_open("cuda", NULL, &device));
    weir_stream *stream = weir_device_default_stream(device);
    assert_ok(weir_buffer_create(stream, 64 * MIB, NULL, &buffer));
    fail_next(FAKE_write, 1, WR_CU_ILLEGAL_ADDRESS);
    assert_result(weir_buffer_write(buffer, 0, "weir", 4), WEIR_DEVICE_LOST);
    assert_ok(weir_buffer_release(buffer));
    assert_ok(weir_device_close(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_cuda__says_what_to_do),
        cmocka_unit_test(a_library_that_is_not_one__is_refused_with_the_reason),
        cmocka_unit_test(a_machine_without_a_gpu__is_told_apart),
        cmocka_unit_test(a_failing_open__leaves_nothing),
        TEST(a_device__is_named_by_its_number),
        TEST(a_device_without_virtual_memory__has_whole_pages_only),
        TEST(a_commit__sets_access_once_and_a_decommit_unmaps_once),
        TEST(a_commit_of_chunks__pays_by_chunk),
        TEST(a_commit_that_fails__leaves_its_granules_bare),
        TEST(a_decommit_that_fails__can_be_done_again),
        TEST(a_move__carries_the_memory_and_creates_none),
        TEST(a_move_that_fails__leaves_the_memory_where_it_was),
        TEST(a_page_that_cannot_be_freed__stays_a_page),
        TEST(every_call__leaves_the_current_context_as_it_was),
        TEST(every_error__has_its_result_and_tells_cudas_name_for_it),
        TEST(fences__recycle_their_events),
        TEST(a_fence__passes_with_the_work_before_it),
        TEST(a_released_fence__is_no_fence_any_more),
        TEST(a_fence_that_cannot_be_recorded__leaves_nothing),
        TEST(an_adopted_stream__is_not_destroyed),
        TEST(copies__may_overlap),
        TEST(the_footprint__is_what_nvml_says_of_this_process),
        TEST(a_footprint_that_cannot_be_ours__is_unknown),
        TEST(without_nvml__the_footprint_is_unknown_and_no_failure),
        TEST(a_device__gives_all_memory_back_after_a_cleanup),
        TEST(a_graph__is_captured_launched_and_destroyed),
        TEST(a_capture_that_fails__leaves_nothing),
        TEST(a_call__is_not_held_against_captures_of_the_program),
        TEST(a_lost_device__lets_go_of_everything_quietly),
    };
    return cmocka_run_group_tests_name("driver cuda", tests, load_fake, NULL);
}
