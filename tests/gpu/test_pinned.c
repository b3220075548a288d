/* SPDX-License-Identifier: MIT */
/* Pinned host memory on a GPU: bytes survive the way there and back, all of it goes back,
 * and, for people to read, how fast copies are beside those of ordinary memory. Skipped,
 * with the reason, where there is no GPU. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

#define BYTES ((uint64_t)256 << 20)
#define ROUNDS 8

static weir_device *gpu, *pinned;
static weir_stream *queue, *staging;

static void check(weir_result result, const char *call, int line)
{
    if (result != WEIR_OK) {
        print_error("%s: %s: %s\n", call, weir_result_name(result), weir_last_error());
        _fail(__FILE__, line);
    }
}
#define assert_ok(call) check((call), #call, __LINE__)

static void open_or_skip(void)
{
    const char *name = getenv("WEIR_GPU_DEVICE");
    weir_device_desc desc = {.no_thread = true};
    weir_result result = weir_device_open(name != NULL ? name : "cuda", &desc, &gpu);
    if (result == WEIR_NOT_FOUND) {
        print_message("skipped: %s\n", weir_last_error());
        skip();
    }
    check(result, "open", __LINE__);
    assert_ok(weir_device_open_pinned(gpu, &desc, &pinned));
    queue = weir_device_default_stream(gpu);
    weir_stream_desc adopt = {.native = weir_stream_native(queue)};
    assert_ok(weir_stream_create(pinned, &adopt, &staging));
}

static void close_empty(void)
{
    weir_cleanup_desc desc = {.wait = true};
    weir_usage usage = {0};
    assert_ok(weir_stream_close(staging));
    assert_ok(weir_device_memory_cleanup(pinned, &desc, NULL));
    assert_ok(weir_device_memory_usage(pinned, &usage));
    assert_int_equal(usage.reserved_bytes, 0);
    assert_ok(weir_device_close(pinned));
    assert_ok(weir_device_close(gpu));
}

static weir_buffer make(weir_stream *stream)
{
    weir_buffer buffer;
    assert_ok(weir_buffer_create(stream, BYTES, NULL, &buffer));
    return buffer;
}

static uint64_t *numbers_of(weir_buffer buffer)
{
    return (uint64_t *)(uintptr_t)weir_buffer_address(buffer);
}

/* Queued only. */
static void copy(weir_buffer to, weir_buffer from)
{
    weir_driver *driver = weir_device_driver(gpu);
    assert_ok(driver->table->copy(driver, weir_stream_driver_stream(queue),
                                  weir_buffer_address(to), weir_buffer_address(from),
                                  BYTES));
}

static void pinned__bytes_survive_the_way_there_and_back(void **state)
{
    (void)state;
    open_or_skip();
    weir_buffer from = make(staging), there = make(queue), back = make(staging);
    for (uint64_t i = 0; i < BYTES / 8; i++) {
        numbers_of(from)[i] = i * UINT64_C(0x9e3779b97f4a7c15);
        numbers_of(back)[i] = 0;
    }
    copy(there, from);
    copy(back, there);
    assert_ok(weir_buffer_release(from)); /* queued work still uses it */
    assert_ok(weir_stream_sync(queue));
    for (uint64_t i = 0; i < BYTES / 8; i++) {
        if (numbers_of(back)[i] != i * UINT64_C(0x9e3779b97f4a7c15)) {
            fail_msg("number %llu is wrong", (unsigned long long)i);
        }
    }
    assert_ok(weir_buffer_release(there));
    assert_ok(weir_buffer_release(back));
    close_empty();
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double gigabytes_per_second(weir_buffer to, const void *from)
{
    double start = now_seconds();
    for (int i = 0; i < ROUNDS; i++) {
        assert_ok(weir_buffer_write(to, 0, from, BYTES));
    }
    return ROUNDS * (double)BYTES / (now_seconds() - start) / 1e9;
}

/* For people to read; nothing is decided by time. */
static void pinned__copies_are_timed_beside_ordinary_ones(void **state)
{
    (void)state;
    open_or_skip();
    weir_buffer from = make(staging), to = make(queue);
    void *ordinary = malloc(BYTES);
    assert_non_null(ordinary);
    memset(ordinary, 1, BYTES);
    memset(numbers_of(from), 2, BYTES);
    gigabytes_per_second(to, ordinary); /* warms up */
    print_message("write of %d MiB: %.1f GB/s from ordinary memory, %.1f from pinned\n",
                  (int)(BYTES >> 20), gigabytes_per_second(to, ordinary),
                  gigabytes_per_second(to, numbers_of(from)));
    double start = now_seconds();
    weir_buffer fresh = make(staging);
    print_message("a new pinned page of %d MiB: %.1f ms\n", (int)(BYTES >> 20),
                  (now_seconds() - start) * 1e3);
    assert_ok(weir_buffer_release(fresh));
    assert_ok(weir_stream_sync(queue));
    start = now_seconds();
    assert_ok(weir_device_memory_cleanup(pinned, NULL, NULL));
    print_message("giving it back: %.1f ms\n", (now_seconds() - start) * 1e3);
    free(ordinary);
    assert_ok(weir_buffer_release(from));
    assert_ok(weir_buffer_release(to));
    close_empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned__bytes_survive_the_way_there_and_back),
        cmocka_unit_test(pinned__copies_are_timed_beside_ordinary_ones),
    };
    return cmocka_run_group_tests_name("gpu, pinned", tests, NULL, NULL);
}
