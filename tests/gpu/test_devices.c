/* SPDX-License-Identifier: MIT */
/* Two GPUs in one process: each has its own memory, work and books, whichever device is
 * current in the thread that calls, and one cleanup gives all of it back. Where there is
 * one GPU, or none, this is skipped with the reason. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#define MIB ((uint64_t)1 << 20)
#define GPUS 2
#define ROUNDS 200
#define HELD 16

typedef struct gpu {
    weir_device *device;
    weir_stream *stream;
    uint64_t start_bytes; /* the process's on this device, when nothing is reserved */
} gpu;

static gpu gpus[GPUS];

static void check(weir_result result, const char *call, int line)
{
    if (result != WEIR_OK) {
        print_error("%s: %s: %s\n", call, weir_result_name(result), weir_last_error());
        _fail(__FILE__, line);
    }
}
#define assert_ok(call) check((call), #call, __LINE__)

static uint64_t footprint_of(const gpu *one)
{
    weir_device_report report = {0};
    assert_ok(weir_device_memory_report(one->device, &report));
    return report.footprint_bytes;
}

static void cleanup_all(void)
{
    assert_ok(weir_devices_memory_cleanup(&(weir_cleanup_desc){.wait = true}, NULL));
}

/* A first buffer warms each device up. */
static void warm_up(gpu *one)
{
    weir_buffer first;
    one->stream = weir_device_default_stream(one->device);
    assert_ok(weir_buffer_create(one->stream, 64 * MIB, NULL, &first));
    assert_ok(weir_buffer_release(first));
    cleanup_all();
    one->start_bytes = footprint_of(one);
}

static void open_or_skip(void)
{
    const weir_device_desc desc = {.no_thread = true};
    for (int i = 0; i < GPUS; i++) {
        const char *name = i == 0 ? "cuda:0" : "cuda:1";
        weir_result result = weir_device_open(name, &desc, &gpus[i].device);
        if (result == WEIR_NOT_FOUND) {
            print_message("skipped: %s\n", weir_last_error());
            assert_ok(weir_device_close(i > 0 ? gpus[0].device : NULL));
            skip();
        }
        check(result, name, __LINE__);
    }
    for (int i = 0; i < GPUS; i++) {
        warm_up(&gpus[i]);
    }
}

static void close_both(void)
{
    for (int i = 0; i < GPUS; i++) {
        assert_ok(weir_device_close(gpus[i].device));
    }
}

static uint64_t reserved_of(const gpu *one)
{
    weir_usage usage = {0};
    assert_ok(weir_device_memory_usage(one->device, &usage));
    return usage.reserved_bytes;
}

static void devices__give_back_in_one_cleanup(void **state)
{
    (void)state;
    open_or_skip();
    for (int i = 0; i < GPUS; i++) {
        weir_buffer buffer;
        assert_ok(weir_buffer_create(gpus[i].stream, (uint64_t)(i + 1) * 64 * MIB, NULL,
                                     &buffer));
        assert_int_equal(reserved_of(&gpus[i]), (uint64_t)(i + 1) * 64 * MIB);
        assert_ok(weir_buffer_release(buffer));
    }
    weir_cleanup_outcome outcome = {0};
    weir_cleanup_desc desc = {.wait = true};
    assert_ok(weir_devices_memory_cleanup(&desc, &outcome));
    assert_int_equal(outcome.returned_bytes, 192 * MIB);
    for (int i = 0; i < GPUS; i++) {
        assert_int_equal(reserved_of(&gpus[i]), 0);
        assert_true(footprint_of(&gpus[i]) <= gpus[i].start_bytes + 2 * MIB);
    }
    close_both();
}

/* ---- whose context is current ---- */

static void *find(const char *symbol)
{
    const char *path = getenv("WEIR_CUDA_LIBRARY");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    void *found = library != NULL ? dlsym(library, symbol) : NULL;
    assert_non_null(found);
    return found;
}

static void *current_context(void)
{
    int (*get_current)(void **context);
    void *context = NULL;
    *(void **)&get_current = find("cuCtxGetCurrent");
    assert_int_equal(get_current(&context), 0);
    return context;
}

/* The program's own context stays current, and Weir's calls go to their own device. */
static void devices__leave_the_current_context_alone(void **state)
{
    (void)state;
    open_or_skip();
    int (*push)(void *context), (*pop)(void **context), (*retain)(void **context, int);
    *(void **)&push = find("cuCtxPushCurrent_v2");
    *(void **)&pop = find("cuCtxPopCurrent_v2");
    *(void **)&retain = find("cuDevicePrimaryCtxRetain");
    assert_null(current_context());
    void *contexts[GPUS], *popped;
    for (int own = 0; own < GPUS; own++) {
        assert_int_equal(retain(&contexts[own], own), 0);
        assert_int_equal(push(contexts[own]), 0);
        for (int i = 0; i < GPUS; i++) {
            uint64_t written = 0x5eed + (uint64_t)i, read = 0;
            weir_buffer buffer;
            assert_ok(weir_buffer_create(gpus[i].stream, 8 * MIB, NULL, &buffer));
            assert_ok(weir_buffer_write(buffer, MIB, &written, sizeof written));
            assert_ok(weir_buffer_read(buffer, MIB, &read, sizeof read));
            assert_int_equal(read, written);
            assert_ok(weir_buffer_release(buffer));
            assert_ok(weir_stream_sync(gpus[i].stream));
            assert_ptr_equal(current_context(), contexts[own]);
        }
        cleanup_all();
        assert_ptr_equal(current_context(), contexts[own]);
        assert_int_equal(pop(&popped), 0);
    }
    int (*release)(int device);
    *(void **)&release = find("cuDevicePrimaryCtxRelease_v2");
    for (int i = 0; i < GPUS; i++) {
        assert_int_equal(release(i), 0);
    }
    assert_null(current_context());
    close_both();
}

/* ---- both at once ---- */

typedef struct part {
    int number;
    weir_stream *streams[GPUS];
    const char *failure;
} part;

static uint32_t pattern(const part *me, int on, int slot)
{
    return (uint32_t)(me->number << 24 | on << 16 | slot);
}

/* Whether the first and last words are still what was written there. */
static bool is_whole(weir_buffer buffer, uint64_t bytes, uint32_t wanted)
{
    uint32_t first = 0, last = 0;
    return weir_buffer_read(buffer, 0, &first, 4) == WEIR_OK &&
           weir_buffer_read(buffer, bytes - 4, &last, 4) == WEIR_OK && first == wanted &&
           last == wanted;
}

static bool fill(weir_buffer buffer, uint64_t bytes, uint32_t with)
{
    uint32_t words[1024];
    for (size_t i = 0; i < 1024; i++) {
        words[i] = with;
    }
    return weir_buffer_write(buffer, 0, words, sizeof words) == WEIR_OK &&
           weir_buffer_write(buffer, bytes - sizeof words, words, sizeof words) ==
               WEIR_OK;
}

static void *alternate(void *argument)
{
    part *me = argument;
    weir_buffer held[HELD] = {{0, 0}};
    uint64_t bytes[HELD] = {0};
    uint64_t seed = 88172645463325252u + (uint64_t)me->number;
    for (int i = 0; i < ROUNDS && me->failure == NULL; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int slot = (int)(seed >> 33) % HELD, on = slot % GPUS;
        if (bytes[slot] != 0) {
            if (!is_whole(held[slot], bytes[slot], pattern(me, on, slot))) {
                me->failure = "a buffer has other bytes than were written";
            }
            weir_buffer_release(held[slot]);
            bytes[slot] = 0;
        }
        uint64_t wanted = 4096 + (seed >> 40) % (8 * MIB) / 256 * 256;
        if (weir_buffer_create(me->streams[on], wanted, NULL, &held[slot]) != WEIR_OK ||
            !fill(held[slot], wanted, pattern(me, on, slot))) {
            me->failure = "a buffer cannot be made or written";
            break;
        }
        bytes[slot] = wanted;
        if (i % 64 == 63 && weir_devices_memory_cleanup(NULL, NULL) != WEIR_OK) {
            me->failure = "cleanup failed";
        }
    }
    for (int slot = 0; slot < HELD; slot++) {
        if (bytes[slot] != 0) {
            weir_buffer_release(held[slot]);
        }
    }
    return NULL;
}

static void devices__serve_threads_that_use_both(void **state)
{
    (void)state;
    open_or_skip();
    part parts[4] = {{0}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        parts[i].number = i + 1;
        for (int g = 0; g < GPUS; g++) {
            assert_ok(weir_stream_create(gpus[g].device, NULL, &parts[i].streams[g]));
        }
        assert_int_equal(pthread_create(&threads[i], NULL, alternate, &parts[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_null(parts[i].failure);
        for (int g = 0; g < GPUS; g++) {
            assert_ok(weir_stream_close(parts[i].streams[g]));
        }
    }
    cleanup_all();
    for (int g = 0; g < GPUS; g++) {
        assert_ok(weir_device_check(gpus[g].device));
        assert_int_equal(reserved_of(&gpus[g]), 0);
        assert_true(footprint_of(&gpus[g]) <= gpus[g].start_bytes + 2 * MIB);
    }
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices__give_back_in_one_cleanup),
        cmocka_unit_test(devices__leave_the_current_context_alone),
        cmocka_unit_test(devices__serve_threads_that_use_both),
    };
    return cmocka_run_group_tests_name("gpu, devices", tests, NULL, NULL);
}
