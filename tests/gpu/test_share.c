/* SPDX-License-Identifier: MIT */
/* Two processes and one GPU: what one writes the other reads, what was released stays
 * deferred while the other has it, and comes back when that one releases it or dies. The
 * other process is this program again. Skipped, with the reason, where there is no GPU;
 * WEIR_GPU_DEVICE names another device than "cuda". */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/peer.h"

#define MIB ((uint64_t)1 << 20)
#define COUNT (UINT64_C(40) << 17) /* numbers: 40 MiB */
#define BYTES (COUNT * sizeof(uint64_t))
#define PEER_SECONDS 120

static uint64_t numbers[COUNT];

static const char *device_name(void)
{
    const char *name = getenv("WEIR_GPU_DEVICE");
    return name != NULL ? name : "cuda";
}

static weir_result open_device(weir_device **device)
{
    weir_device_desc desc = {.no_thread = true};
    return weir_device_open(device_name(), &desc, device);
}

static void check(weir_result result, const char *call, int line)
{
    if (result != WEIR_OK) {
        print_error("%s: %s: %s\n", call, weir_result_name(result), weir_last_error());
        _fail(__FILE__, line);
    }
}
#define assert_ok(call) check((call), #call, __LINE__)

static void fill(uint64_t seed)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        numbers[i] = (i + seed) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* The first number that is not as filled, or COUNT. */
static uint64_t first_wrong(uint64_t seed)
{
    uint64_t i = 0;
    while (i < COUNT && numbers[i] == (i + seed) * UINT64_C(0x9e3779b97f4a7c15)) {
        i++;
    }
    return i;
}

/* ---- the other process ---- */

static void peer_wait(int socket, char say, int code)
{
    char word = 0;
    peer_expect(write(socket, &say, 1) == 1 && read(socket, &word, 1) == 1, code);
}

static int run_peer(int socket)
{
    alarm(PEER_SECONDS);
    weir_device *device = NULL;
    weir_share share = {0};
    weir_buffer buffer;
    peer_expect(open_device(&device) == WEIR_OK, 10);
    peer_expect(weir_share_receive(socket, &share) == WEIR_OK, 11);
    peer_expect(weir_buffer_import(weir_device_default_stream(device), &share, NULL,
                                   &buffer) == WEIR_OK,
                12);
    weir_share_close(&share);
    peer_expect(weir_buffer_read(buffer, 0, numbers, BYTES) == WEIR_OK, 13);
    peer_expect(first_wrong(1) == COUNT, 14);
    fill(2);
    peer_expect(weir_buffer_write(buffer, 0, numbers, BYTES) == WEIR_OK, 15);
    peer_expect(weir_device_sync(device) == WEIR_OK, 16);
    peer_wait(socket, 'i', 17);
    peer_expect(weir_buffer_release(buffer) == WEIR_OK, 18);
    peer_expect(weir_device_memory_cleanup(device, NULL, NULL) == WEIR_OK, 19);
    peer_wait(socket, 'r', 20);
    peer_expect(weir_device_close(device) == WEIR_OK, 21);
    return 0;
}

/* ---- this one ---- */

static weir_device *device;

static void open_or_skip(void)
{
    weir_result result = open_device(&device);
    if (result == WEIR_NOT_FOUND) {
        print_message("skipped: %s\n", weir_last_error());
        skip();
    }
    check(result, device_name(), __LINE__);
}

/* A released buffer that the peer has imported and changed. */
static peer share_and_release(void)
{
    weir_buffer buffer;
    weir_share share = {0};
    weir_buffer_desc desc = {.exportable = true, .tag = "shared"};
    assert_ok(
        weir_buffer_create(weir_device_default_stream(device), BYTES, &desc, &buffer));
    fill(1);
    assert_ok(weir_buffer_write(buffer, 0, numbers, BYTES));
    assert_ok(weir_device_sync(device));
    assert_ok(weir_buffer_export(buffer, &share));
    peer p = start_peer();
    assert_ok(weir_share_send(&share, p.socket));
    weir_share_close(&share);
    expect_word(&p, 'i');
    assert_ok(weir_buffer_read(buffer, 0, numbers, BYTES));
    assert_int_equal(first_wrong(2), COUNT);
    assert_ok(weir_buffer_release(buffer));
    return p;
}

static weir_cleanup_outcome clean(void)
{
    weir_cleanup_outcome outcome = {0};
    assert_ok(
        weir_device_memory_cleanup(device, &(weir_cleanup_desc){.wait = true}, &outcome));
    return outcome;
}

static void expect_exported(void)
{
    weir_cleanup_outcome outcome = clean();
    assert_int_equal(outcome.returned_bytes, 0);
    assert_int_equal(outcome.deferred_bytes, BYTES);
    assert_string_equal(outcome.deferred_stream, "exported");
}

static void close_empty(void)
{
    weir_usage usage = {0};
    assert_ok(weir_device_memory_usage(device, &usage));
    assert_int_equal(usage.reserved_bytes, 0);
    assert_ok(weir_device_close(device));
}

static void share__is_the_same_gpu_memory_in_two_processes(void **state)
{
    (void)state;
    open_or_skip();
    peer p = share_and_release();
    expect_exported();
    assert_int_equal(write(p.socket, "g", 1), 1);
    expect_word(&p, 'r');
    assert_int_equal(clean().returned_bytes, BYTES);
    assert_int_equal(write(p.socket, "g", 1), 1);
    assert_int_equal(end_peer(&p), 0);
    close_empty();
}

static void share__of_gpu_memory_comes_back_from_the_dead(void **state)
{
    (void)state;
    open_or_skip();
    peer p = share_and_release();
    expect_exported();
    kill(p.process, SIGKILL);
    assert_true(WIFSIGNALED(end_peer(&p)));
    assert_int_equal(clean().returned_bytes, BYTES);
    close_empty();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "peer") == 0) {
        return run_peer(atoi(argv[2]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share__is_the_same_gpu_memory_in_two_processes),
        cmocka_unit_test(share__of_gpu_memory_comes_back_from_the_dead),
    };
    return cmocka_run_group_tests_name("gpu, share", tests, NULL, NULL);
}
