/* SPDX-License-Identifier: MIT */
/* The WebGPU driver: what it loads, when memory really goes back, and what becomes of it
 * when the library says no. On Vulkan in software, and on Dawn's null device, which is
 * the one that runs out of memory. */
#define _GNU_SOURCE
#include "contract.h"

#include "base/memory.h"
#include "driver/webgpu/webgpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE (64 * MIB)
#define PAGES 4
#define SLACK (16 * MIB) /* of footprints: threads, code made at run time, staging */

/* What the address sanitizer keeps of freed memory before it is used again. */
#if defined(__SANITIZE_ADDRESS__)
#define QUARANTINE (256 * MIB)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QUARANTINE (256 * MIB)
#endif
#endif
#ifndef QUARANTINE
#define QUARANTINE 0
#endif

static driver_rig rig;
static char missing[1024]; /* why there is no device; empty: there is one */

/* ---- the rig ---- */

static int open_as(const char *argument)
{
    rig = (driver_rig){.table = find_table("webgpu")};
    missing[0] = '\0';
    weir_result result = rig.table->open(argument, NULL, &rig.driver);
    if (result == WEIR_NOT_FOUND && getenv("WEIR_WEBGPU_LIBRARY") == NULL) {
        snprintf(missing, sizeof missing, "%s", weir_last_error());
        return 0;
    }
    assert_ok(result);
    rig.table->properties(rig.driver, &rig.properties);
    return 0;
}

static int open_default(void **state)
{
    (void)state;
    return open_as("");
}

static int open_null(void **state)
{
    (void)state;
    return open_as("null");
}

static int close_rig(void **state)
{
    (void)state;
    if (rig.driver != NULL) {
        rig_close(&rig);
        rig.driver = NULL;
    }
    return 0;
}

static void need_device(void)
{
    if (missing[0] != '\0') {
        print_message("skipped: %s\n", missing);
        skip();
    }
}

static uint64_t footprint(void)
{
    weir_memory_info info;
    assert_ok(rig.table->memory_info(rig.driver, &info));
    return info.footprint_bytes;
}

/* Has the device work on a page, so that it is really there. */
static void touch(weir_driver_stream stream, uint64_t page)
{
    uint32_t word = 7;
    assert_ok(rig.table->write(rig.driver, stream, page, &word, sizeof word));
}

static void take_touched(weir_driver_stream stream, uint64_t pages[PAGES])
{
    for (int i = 0; i < PAGES; i++) {
        pages[i] = take_page(&rig, PAGE);
        touch(stream, pages[i]);
    }
    assert_ok(rig.table->stream_sync(rig.driver, stream));
}

static void give_back(const uint64_t pages[PAGES])
{
    for (int i = 0; i < PAGES; i++) {
        assert_ok(rig.table->page_free(rig.driver, pages[i], PAGE));
    }
}

/* ---- loading ---- */

static void with_library(const char *path, weir_result expected, const char *words)
{
    const char *before = getenv("WEIR_WEBGPU_LIBRARY");
    char *kept = before != NULL ? strdup(before) : NULL;
    weir_driver *driver = NULL;
    setenv("WEIR_WEBGPU_LIBRARY", path, 1);
    weir_result result = find_table("webgpu")->open("", NULL, &driver);
    if (kept != NULL) {
        setenv("WEIR_WEBGPU_LIBRARY", kept, 1);
    } else {
        unsetenv("WEIR_WEBGPU_LIBRARY");
    }
    free(kept);
    assert_result(result, expected);
    assert_null(driver);
    assert_non_null(strstr(weir_last_error(), words));
    assert_null(strchr(weir_last_error(), '\n'));
}

static void webgpu__says_in_one_line_what_it_cannot_load(void **state)
{
    (void)state;
    with_library("/no/such/library.so", WEIR_NOT_FOUND, "/no/such/library.so");
    with_library("libwebgpu_dawn.so", WEIR_INVALID, "absolute path");
}

static void webgpu__refuses_a_library_of_another_abi(void **state)
{
    (void)state;
    Dl_info info;
    assert_true(dladdr((void *)(uintptr_t)&cmocka_set_test_filter, &info) != 0);
    char *path = realpath(info.dli_fname, NULL);
    assert_non_null(path);
    with_library(path, WEIR_UNSUPPORTED, "wgpuSupportedFeaturesFreeMembers");
    free(path);
}

static void webgpu__takes_no_configuration(void **state)
{
    (void)state;
    weir_driver *driver = NULL;
    assert_result(find_table("webgpu")->open("", &rig, &driver), WEIR_INVALID);
    assert_null(driver);
}

/* ---- letting go ---- */

static void
webgpu__keeps_freed_pages_pending_on_an_idle_queue_until_progress(void **state)
{
    (void)state;
    need_device();
    weir_driver_stream stream = take_stream(&rig);
    uint64_t pages[PAGES];
    uint64_t start = footprint();
    take_touched(stream, pages);
    uint64_t full = footprint();
    give_back(pages);
    assert_int_equal(rig.table->pending_bytes(rig.driver), PAGES * PAGE);
    for (int i = 0; i < 3; i++) { /* asking is no progress */
        assert_ok(rig.table->stream_sync(rig.driver, stream));
        assert_int_equal(rig.table->pending_bytes(rig.driver), PAGES * PAGE);
    }
    if (start != WEIR_UNKNOWN_BYTES) {
        assert_true(full >= start + PAGES * PAGE);
        assert_true(footprint() >= start + PAGES * PAGE);
    }
    assert_ok(rig.table->progress(rig.driver, true));
    assert_int_equal(rig.table->pending_bytes(rig.driver), 0);
    if (start != WEIR_UNKNOWN_BYTES) {
        assert_true(footprint() <= start + SLACK);
    }
    rig.table->stream_close(rig.driver, stream);
}

static void webgpu__lets_go_step_by_step_without_waiting(void **state)
{
    (void)state;
    need_device();
    weir_driver_stream stream = take_stream(&rig);
    uint64_t pages[PAGES];
    take_touched(stream, pages);
    give_back(pages);
    for (int i = 0; i < 1000 && rig.table->pending_bytes(rig.driver) > 0; i++) {
        weir_result result = rig.table->progress(rig.driver, false);
        assert_true(result == WEIR_OK || result == WEIR_NOT_READY);
        usleep(1000);
    }
    assert_int_equal(rig.table->pending_bytes(rig.driver), 0);
    rig.table->stream_close(rig.driver, stream);
}

static void webgpu__lets_go_of_freed_pages_while_work_goes_on(void **state)
{
    (void)state;
    need_device();
    weir_driver_stream stream = take_stream(&rig);
    uint64_t pages[PAGES];
    uint64_t other = take_page(&rig, MIB);
    take_touched(stream, pages);
    give_back(pages);
    assert_int_equal(rig.table->pending_bytes(rig.driver), PAGES * PAGE);
    touch(stream, other);
    assert_ok(rig.table->stream_sync(rig.driver, stream));
    assert_int_equal(rig.table->pending_bytes(rig.driver), 0);
    assert_ok(rig.table->page_free(rig.driver, other, MIB));
    rig.table->stream_close(rig.driver, stream);
}

static void webgpu__does_not_grow_over_10000_pages(void **state)
{
    (void)state;
    need_device();
    weir_driver_stream stream = take_stream(&rig);
    uint64_t start = 0;
    for (int i = 0; i < 10000; i++) {
        uint64_t page = take_page(&rig, 4 * MIB);
        if (i % 16 == 0) { /* the library clears the whole page then, which takes time */
            touch(stream, page);
        }
        assert_ok(rig.table->page_free(rig.driver, page, 4 * MIB));
        if (i % 16 == 0) {
            assert_ok(rig.table->progress(rig.driver, true));
            assert_int_equal(rig.table->pending_bytes(rig.driver), 0);
        }
        if (i == 1600) {
            start = footprint();
        }
    }
    assert_ok(rig.table->progress(rig.driver, true));
    if (start != WEIR_UNKNOWN_BYTES) {
        assert_true(footprint() <= start + SLACK + QUARANTINE);
    }
    rig.table->stream_close(rig.driver, stream);
}

/* ---- limits ---- */

static void webgpu__refuses_a_page_beyond_the_largest_buffer(void **state)
{
    (void)state;
    need_device();
    uint64_t most = ((const wr_webgpu *)(void *)rig.driver)->limits.buffer_bytes;
    uint64_t address = 77;
    assert_result(rig.table->page_alloc(rig.driver, most + 1, &address),
                  WEIR_OUT_OF_MEMORY);
    assert_int_equal(address, 77);
    assert_non_null(strstr(weir_last_error(), "at most"));
}

/* Two buffers are taken for writes, so that the books see room where there is none: the
 * refusal is the library's own. */
static void webgpu__reports_that_the_library_is_out_of_memory(void **state)
{
    (void)state;
    need_device();
    weir_driver_stream stream = take_stream(&rig);
    uint64_t pages[32];
    uint64_t none = 77;
    int count = 0;
    pages[count++] = take_page(&rig, PAGE);
    touch(stream, pages[0]);
    weir_result result;
    while ((result = rig.table->page_alloc(rig.driver, PAGE, &pages[count])) == WEIR_OK) {
        count++;
    }
    assert_result(result, WEIR_OUT_OF_MEMORY);
    assert_int_equal(count, 512 * MIB / PAGE - 1);
    assert_non_null(strstr(weir_last_error(), "out of memory"));
    assert_result(rig.table->page_alloc(rig.driver, PAGE, &none), WEIR_OUT_OF_MEMORY);
    assert_int_equal(none, 77);
    assert_ok(rig.table->stream_sync(rig.driver, stream)); /* nobody else's error */
    while (count > 0) {
        assert_ok(rig.table->page_free(rig.driver, pages[--count], PAGE));
    }
    let_go(&rig);
    assert_ok(rig.table->page_free(rig.driver, take_page(&rig, 2 * PAGE), 2 * PAGE));
    rig.table->stream_close(rig.driver, stream);
}

/* ---- handles, loss and the end ---- */

static void webgpu__shows_its_own_objects_between_enter_and_leave(void **state)
{
    (void)state;
    need_device();
    weir_webgpu_handles handles;
    void *buffer = NULL;
    uint64_t offset = 0;
    uint64_t page = take_page(&rig, PAGE);
    assert_ok(weir_webgpu_enter(rig.driver, &handles));
    assert_non_null(handles.instance);
    assert_non_null(handles.device);
    assert_non_null(handles.queue);
    assert_ok(weir_webgpu_place(rig.driver, page + 512, 256, &buffer, &offset));
    assert_non_null(buffer);
    assert_int_equal(offset, 512);
    assert_result(weir_webgpu_place(rig.driver, page, PAGE + 1, &buffer, &offset),
                  WEIR_INVALID);
    weir_webgpu_leave(rig.driver);
    weir_driver other = {.table = find_table("sim")};
    assert_result(weir_webgpu_enter(&other, &handles), WEIR_INVALID);
    assert_ok(rig.table->page_free(rig.driver, page, PAGE));
}

/* What a driver's crash looks like to a program: Dawn can be told to have one. */
static void lose_device(void)
{
    void *library = dlopen(getenv("WEIR_WEBGPU_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void (*force)(void *device, uint32_t reason, wr_wg_text text) = NULL;
    *(void **)(void *)&force = dlsym(library, "wgpuDeviceForceLoss");
    assert_non_null(force);
    weir_webgpu_handles handles;
    assert_ok(weir_webgpu_enter(rig.driver, &handles));
    force(handles.device, 1, (wr_wg_text){"lost on purpose", SIZE_MAX});
    weir_webgpu_leave(rig.driver);
    dlclose(library);
}

static void webgpu__reports_a_device_lost_during_work(void **state)
{
    (void)state;
    need_device();
    weir_driver_stream stream = take_stream(&rig);
    uint64_t page = take_page(&rig, PAGE);
    uint64_t none = 77;
    uint32_t word;
    weir_driver_fence fence;
    touch(stream, page);
    lose_device();
    assert_result(rig.table->stream_sync(rig.driver, stream), WEIR_DEVICE_LOST);
    assert_non_null(strstr(weir_last_error(), "lost on purpose"));
    assert_result(rig.table->page_alloc(rig.driver, PAGE, &none), WEIR_DEVICE_LOST);
    assert_result(rig.table->write(rig.driver, stream, page, &word, 4), WEIR_DEVICE_LOST);
    assert_result(rig.table->read(rig.driver, stream, page, &word, 4), WEIR_DEVICE_LOST);
    assert_result(rig.table->copy(rig.driver, stream, page, page + 64, 4),
                  WEIR_DEVICE_LOST);
    assert_result(rig.table->fence_record(rig.driver, stream, &fence), WEIR_DEVICE_LOST);
    assert_result(rig.table->page_free(rig.driver, page, PAGE), WEIR_DEVICE_LOST);
    assert_result(rig.table->progress(rig.driver, true), WEIR_DEVICE_LOST);
    assert_int_equal(none, 77);
    rig.table->stream_close(rig.driver, stream);
}

/* Through the public interface: what gives back stays quiet. */
static void webgpu__closes_a_device_that_was_lost_with_buffers_alive(void **state)
{
    (void)state;
    need_device();
    weir_device *device = NULL;
    weir_buffer buffers[2];
    assert_ok(weir_device_open("webgpu", NULL, &device));
    weir_stream *stream = weir_device_default_stream(device);
    assert_ok(weir_buffer_create(stream, 8 * MIB, NULL, &buffers[0]));
    assert_ok(weir_buffer_create(stream, 8 * MIB, NULL, &buffers[1]));
    driver_rig kept = rig;
    rig.driver = weir_device_driver(device);
    lose_device();
    rig = kept;
    assert_result(weir_device_sync(device), WEIR_DEVICE_LOST);
    weir_buffer late;
    assert_result(weir_buffer_create(stream, 99 * MIB, NULL, &late), WEIR_DEVICE_LOST);
    assert_ok(weir_buffer_release(buffers[0]));
    assert_ok(weir_buffer_release(buffers[1]));
    assert_ok(
        weir_device_memory_cleanup(device, &(weir_cleanup_desc){.wait = true}, NULL));
    assert_ok(weir_device_close(device));
}

/* A program that cleans up without waiting and then does nothing. */
static void webgpu__lets_go_by_time_too(void **state)
{
    (void)state;
    need_device();
    weir_device *device = NULL;
    weir_buffer buffer;
    weir_usage usage = {.size = sizeof usage};
    assert_ok(weir_device_open("webgpu", &(weir_device_desc){.idle_ms = 200}, &device));
    assert_ok(
        weir_buffer_create(weir_device_default_stream(device), PAGE, NULL, &buffer));
    assert_ok(weir_buffer_release(buffer));
    assert_ok(weir_device_memory_cleanup(device, NULL, NULL));
    do {
        usleep(10000);
        assert_ok(weir_device_memory_usage(device, &usage));
    } while (usage.driver_deferred_bytes > 0); /* a test that fails here times out */
    assert_int_equal(usage.reserved_bytes, 0);
    assert_ok(weir_device_close(device));
}

static void webgpu__cleanup_with_wait_returns_when_all_is_gone(void **state)
{
    (void)state;
    need_device();
    weir_device *device = NULL;
    weir_buffer buffers[PAGES];
    weir_memory_info before, after;
    assert_ok(rig.table->memory_info(rig.driver, &before));
    assert_ok(weir_device_open("webgpu", &(weir_device_desc){.no_idle = true}, &device));
    for (int i = 0; i < PAGES; i++) {
        uint32_t word = 1;
        assert_ok(weir_buffer_create(weir_device_default_stream(device), PAGE, NULL,
                                     &buffers[i]));
        assert_ok(weir_buffer_write(buffers[i], 0, &word, sizeof word));
        assert_ok(weir_buffer_release(buffers[i]));
    }
    weir_cleanup_outcome outcome = {.size = sizeof outcome};
    assert_ok(weir_device_sync(device));
    assert_ok(weir_device_memory_cleanup(device, NULL, &outcome));
    assert_true(outcome.driver_deferred_bytes > 0);
    assert_ok(
        weir_device_memory_cleanup(device, &(weir_cleanup_desc){.wait = true}, &outcome));
    assert_int_equal(outcome.driver_deferred_bytes, 0);
    assert_ok(rig.table->memory_info(rig.driver, &after));
    assert_true(after.footprint_bytes == WEIR_UNKNOWN_BYTES ||
                after.footprint_bytes <= before.footprint_bytes + 2 * SLACK);
    assert_ok(weir_device_close(device));
}

static void webgpu__ends_well_with_a_device_open_and_work_queued(void **state)
{
    (void)state;
    need_device();
    rig_close(&rig); /* a child must not inherit the library's threads */
    rig.driver = NULL;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test.driver.webgpu", "exit", (char *)NULL);
        _exit(99);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int exit_at_work(void)
{
    weir_device *device = NULL;
    weir_buffer buffer;
    char data[4096] = {0};
    if (weir_device_open("webgpu", NULL, &device) != WEIR_OK) {
        return 1;
    }
    weir_stream *stream = weir_device_default_stream(device);
    if (weir_buffer_create(stream, 8 * MIB, NULL, &buffer) != WEIR_OK ||
        weir_buffer_write(buffer, 0, data, sizeof data) != WEIR_OK) {
        return 2;
    }
    return 0;
}

#define ON(test, opener) cmocka_unit_test_setup_teardown(test, opener, close_rig)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exit") == 0) {
        return exit_at_work();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(webgpu__says_in_one_line_what_it_cannot_load),
        cmocka_unit_test(webgpu__refuses_a_library_of_another_abi),
        cmocka_unit_test(webgpu__takes_no_configuration),
        ON(webgpu__keeps_freed_pages_pending_on_an_idle_queue_until_progress,
           open_default),
        ON(webgpu__lets_go_step_by_step_without_waiting, open_default),
        ON(webgpu__lets_go_of_freed_pages_while_work_goes_on, open_default),
        ON(webgpu__does_not_grow_over_10000_pages, open_default),
        ON(webgpu__refuses_a_page_beyond_the_largest_buffer, open_default),
        ON(webgpu__reports_that_the_library_is_out_of_memory, open_null),
        ON(webgpu__shows_its_own_objects_between_enter_and_leave, open_default),
        ON(webgpu__reports_a_device_lost_during_work, open_default),
        ON(webgpu__closes_a_device_that_was_lost_with_buffers_alive, open_default),
        ON(webgpu__lets_go_by_time_too, open_default),
        ON(webgpu__cleanup_with_wait_returns_when_all_is_gone, open_default),
        ON(webgpu__ends_well_with_a_device_open_and_work_queued, open_default),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("webgpu driver", tests, NULL, NULL);
}
