/* SPDX-License-Identifier: MIT */
/* Buffers that several processes map. The other process is this program again, executed
 * with a socket as its argument; where it does not matter, a second device of this
 * process stands for it. */
#define _GNU_SOURCE
#include "support.h"

#include "base/memory.h"
#include "support/peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (5 * MIB + 100) /* of the buffers; their pages have 6 MiB */
#define PAGE_BYTES (6 * MIB)

static const weir_buffer_desc exportable = {.exportable = true, .tag = "shared"};

static weir_device *open_host(void)
{
    weir_device *device = NULL;
    weir_device_desc desc = {.no_thread = true};
    assert_ok(weir_device_open("host", &desc, &device));
    return device;
}

static weir_buffer make_exportable(weir_device *device)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_ok(weir_buffer_create(weir_device_default_stream(device), BYTES, &exportable,
                                 &buffer));
    return buffer;
}

static weir_share export_of(weir_buffer buffer)
{
    weir_share share = {0};
    assert_ok(weir_buffer_export(buffer, &share));
    assert_int_equal(share.bytes, BYTES);
    return share;
}

static unsigned char *bytes_of(weir_buffer buffer)
{
    return (unsigned char *)(uintptr_t)weir_buffer_address(buffer);
}

/* Gives all back, expects nothing to be left. */
static void close_empty(weir_device *device)
{
    cleanup(device, NULL);
    cleanup(device,
            NULL); /* what the device imported from itself went in the first one */
    weir_usage left = usage_of(device);
    assert_int_equal(left.reserved_bytes, 0);
    assert_ok(weir_device_check(device));
    assert_ok(weir_device_close(device));
}

static int count_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

/* ---- the other process ---- */

#define PEER_SECONDS 60

/* A peer imports what it receives, compares and changes it, and says what it found. */
static int run_peer(int socket)
{
    alarm(PEER_SECONDS);
    weir_device *device = NULL;
    weir_share share = {0};
    weir_buffer buffer;
    peer_expect(weir_device_open("host", NULL, &device) == WEIR_OK, 10);
    peer_expect(weir_share_receive(socket, &share) == WEIR_OK, 11);
    peer_expect(weir_buffer_import(weir_device_default_stream(device), &share, NULL,
                                   &buffer) == WEIR_OK,
                12);
    weir_share_close(&share);
    unsigned char *bytes = (unsigned char *)(uintptr_t)weir_buffer_address(buffer);
    peer_expect(weir_buffer_bytes(buffer) == BYTES, 13);
    for (uint64_t i = 0; i < BYTES; i++) {
        peer_expect(bytes[i] == (unsigned char)(i % 251), 14);
    }
    memset(bytes, 0xAB, BYTES);
    peer_expect(write(socket, "i", 1) == 1, 15); /* imported */
    char word = 0;
    peer_expect(read(socket, &word, 1) == 1, 16);
    peer_expect(weir_buffer_release(buffer) == WEIR_OK, 17);
    peer_expect(weir_device_memory_cleanup(device, NULL, NULL) == WEIR_OK, 18);
    peer_expect(write(socket, "r", 1) == 1, 19); /* released */
    peer_expect(read(socket, &word, 1) == 1, 20);
    peer_expect(weir_device_close(device) == WEIR_OK, 21);
    return 0;
}

static void say(const peer *p)
{
    assert_int_equal(write(p->socket, "g", 1), 1);
}

static void expect_end(const peer *p, bool killed)
{
    int status = end_peer(p);
    if (killed) {
        assert_true(WIFSIGNALED(status));
    } else {
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* A buffer with a pattern in it, which a new peer has imported and changed. */
static weir_buffer share_with(weir_device *device, peer *p)
{
    weir_buffer buffer = make_exportable(device);
    unsigned char *bytes = bytes_of(buffer);
    for (uint64_t i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i % 251);
    }
    weir_share share = export_of(buffer);
    *p = start_peer();
    assert_ok(weir_share_send(&share, p->socket));
    weir_share_close(&share);
    expect_word(p, 'i');
    for (uint64_t i = 0; i < BYTES; i++) {
        assert_int_equal(bytes[i], 0xAB);
    }
    return buffer;
}

/* ---- two processes ---- */

static void share__is_the_same_memory_in_both_processes(void **state)
{
    (void)state;
    weir_device *device = open_host();
    peer p;
    weir_buffer buffer = share_with(device, &p);
    say(&p);
    expect_word(&p, 'r');
    assert_int_equal(bytes_of(buffer)[BYTES - 1], 0xAB);
    say(&p);
    expect_end(&p, false);
    drop(buffer);
    close_empty(device);
}

static void expect_exported(weir_device *device)
{
    weir_cleanup_outcome outcome = cleanup(device, NULL);
    assert_int_equal(outcome.returned_bytes, 0);
    assert_int_equal(outcome.deferred_bytes, PAGE_BYTES);
    assert_string_equal(outcome.deferred_stream, "exported");
    weir_usage usage = usage_of(device);
    assert_int_equal(usage.deferred_bytes, PAGE_BYTES);
    assert_int_equal(usage.reserved_bytes, PAGE_BYTES);
    assert_sums(&usage);
    assert_says(explain(device), "exported 6.0 MiB");
    assert_says(explain(device), "other processes release");
    assert_ok(weir_device_check(device));
}

static void share__stays_deferred_until_the_other_process_releases_it(void **state)
{
    (void)state;
    weir_device *device = open_host();
    peer p;
    drop(share_with(device, &p));
    expect_exported(device);
    say(&p);
    expect_word(&p, 'r');
    weir_cleanup_outcome outcome = cleanup(device, NULL);
    assert_int_equal(outcome.returned_bytes, PAGE_BYTES);
    say(&p);
    expect_end(&p, false);
    close_empty(device);
}

static void share__comes_back_when_the_other_process_dies(void **state)
{
    (void)state;
    weir_device *device = open_host();
    peer p;
    drop(share_with(device, &p));
    expect_exported(device);
    kill(p.process, SIGKILL);
    expect_end(&p, true);
    weir_cleanup_outcome outcome = cleanup(device, NULL);
    assert_int_equal(outcome.returned_bytes, PAGE_BYTES);
    close_empty(device);
}

static void share__of_a_dead_process_comes_back_by_time_too(void **state)
{
    (void)state;
    weir_device *device = open_host();
    peer p;
    drop(share_with(device, &p));
    assert_ok(weir_device_tick(device, 1));
    kill(p.process, SIGKILL);
    expect_end(&p, true);
    const uint64_t later = UINT64_C(1) << 40;
    assert_ok(weir_device_tick(device, later));
    assert_int_equal(usage_of(device).reserved_bytes, 0);
    assert_ok(weir_device_close(device));
}

static void share__outlives_the_process_that_made_it(void **state)
{
    (void)state;
    weir_device *device = open_host();
    peer p;
    weir_buffer buffer = share_with(device, &p);
    (void)buffer;
    weir_device_abandon(device);
    say(&p);
    expect_word(&p, 'r');
    say(&p);
    expect_end(&p, false);
}

/* ---- one process, two devices ---- */

static void share__can_be_imported_many_times_and_by_its_own_device(void **state)
{
    (void)state;
    weir_device *device = open_host(), *other = open_host();
    weir_buffer buffer = make_exportable(device), first, second;
    weir_share share = export_of(buffer), again = export_of(buffer);
    assert_ok(weir_buffer_import(weir_device_default_stream(other), &share, &exportable,
                                 &first));
    assert_ok(
        weir_buffer_import(weir_device_default_stream(device), &again, NULL, &second));
    weir_share_close(&share);
    weir_share_close(&again);
    memset(bytes_of(buffer), 7, BYTES);
    assert_memory_equal(bytes_of(first), bytes_of(buffer), BYTES);
    bytes_of(second)[100] = 9;
    assert_int_equal(bytes_of(first)[100], 9);
    weir_tag_usage tag;
    assert_ok(weir_device_tag_usage(other, "shared", &tag));
    assert_int_equal(tag.in_use_bytes, BYTES);
    assert_int_equal(usage_of(other).reserved_bytes, PAGE_BYTES);
    assert_int_equal(usage_of(device).reserved_bytes, 2 * PAGE_BYTES);
    drop(buffer);
    assert_int_equal(cleanup(device, NULL).returned_bytes, 0);
    drop(second);
    drop(first);
    close_empty(other);
    close_empty(device);
}

static void share__that_was_closed_unused_holds_nothing(void **state)
{
    (void)state;
    weir_device *device = open_host();
    int files = count_files();
    weir_buffer buffer = make_exportable(device);
    weir_share share = export_of(buffer);
    drop(buffer);
    assert_int_equal(cleanup(device, NULL).deferred_bytes, PAGE_BYTES);
    weir_share_close(&share);
    weir_share_close(&share);
    assert_int_equal(cleanup(device, NULL).returned_bytes, PAGE_BYTES);
    assert_int_equal(count_files(), files);
    close_empty(device);
}

static void share__has_pages_that_serve_one_buffer_once(void **state)
{
    (void)state;
    weir_device *device = open_host();
    weir_buffer buffer = make_exportable(device);
    uint64_t begin = weir_buffer_address(buffer), extent = weir_buffer_extent(buffer);
    assert_int_equal(begin % (2 * MIB), 0);
    assert_int_equal(extent, PAGE_BYTES);
    drop(buffer); /* nobody has it, but it is not for reuse */
    weir_buffer next = make_exportable(device);
    weir_buffer small = make(weir_device_default_stream(device), BYTES, NULL);
    assert_true(apart(next, begin, extent));
    assert_true(apart(small, begin, extent));
    drop(next);
    drop(small);
    close_empty(device);
}

static void share__follows_a_stream_that_ends_into_the_bank(void **state)
{
    (void)state;
    weir_device *device = open_host();
    weir_stream *stream = open_stream(device, "short");
    weir_buffer buffer;
    assert_ok(weir_buffer_create(stream, BYTES, &exportable, &buffer));
    weir_share share = export_of(buffer);
    drop(buffer);
    assert_ok(weir_stream_close(stream));
    expect_exported(device);
    weir_buffer next = make_exportable(device); /* the bank lends no such page */
    assert_int_equal(usage_of(device).reserved_bytes, 2 * PAGE_BYTES);
    weir_share_close(&share);
    assert_int_equal(cleanup(device, NULL).returned_bytes, PAGE_BYTES);
    drop(next);
    close_empty(device);
}

static void share__closes_with_a_device_that_is_still_exported(void **state)
{
    (void)state;
    int files = count_files();
    weir_device *device = open_host(), *other = open_host();
    weir_buffer buffer = make_exportable(device), imported;
    weir_share share = export_of(buffer);
    memset(bytes_of(buffer), 3, BYTES);
    drop(buffer);
    assert_ok(weir_device_close(device));
    assert_ok(
        weir_buffer_import(weir_device_default_stream(other), &share, NULL, &imported));
    weir_share_close(&share);
    assert_int_equal(bytes_of(imported)[BYTES - 1], 3);
    drop(imported);
    close_empty(other);
    assert_int_equal(count_files(), files);
}

static void share__is_not_poisoned_in_checked_mode(void **state)
{
    (void)state;
    weir_device *device = NULL, *other = open_host();
    weir_device_desc desc = {.no_thread = true, .checked = true};
    assert_ok(weir_device_open("host", &desc, &device));
    weir_buffer buffer = make_exportable(device), imported;
    weir_share share = export_of(buffer);
    memset(bytes_of(buffer), 3, BYTES);
    assert_ok(
        weir_buffer_import(weir_device_default_stream(other), &share, NULL, &imported));
    drop(buffer);
    for (uint64_t i = 0; i < BYTES; i++) {
        assert_int_equal(bytes_of(imported)[i], 3);
    }
    drop(imported);
    weir_share_close(&share);
    close_empty(other);
    close_empty(device);
}

static void share__pages_count_towards_footprint_and_sums(void **state)
{
    (void)state;
    weir_device *device = open_host();
    weir_device_report before = {0}, after = {0};
    assert_ok(weir_device_memory_report(device, &before));
    weir_buffer buffer = make_exportable(device);
    assert_ok(weir_device_memory_report(device, &after));
    assert_int_equal(after.untouched_bytes, PAGE_BYTES);
    memset(bytes_of(buffer), 1, BYTES);
    assert_ok(weir_device_memory_report(device, &after));
    assert_true(after.untouched_bytes < MIB);
    assert_true(after.footprint_bytes >= before.footprint_bytes + BYTES);
    assert_string_equal(after.pools[after.pool_count - 1].name, "shared");
    assert_int_equal(after.pools[after.pool_count - 1].reserved_bytes, PAGE_BYTES);
    assert_int_equal(before.pool_count + 1, after.pool_count); /* shown once used */
    drop(buffer);
    close_empty(device);
}

/* ---- limits and faults ---- */

static void share__obeys_the_limits(void **state)
{
    (void)state;
    weir_device *device = open_host(), *other = open_host();
    weir_buffer buffer = make_exportable(device), next = WEIR_NO_BUFFER;
    weir_share share = export_of(buffer);
    assert_ok(weir_device_limit(device, PAGE_BYTES));
    assert_result(weir_buffer_create(weir_device_default_stream(device), BYTES,
                                     &exportable, &next),
                  WEIR_LIMIT);
    assert_ok(weir_device_limit(other, PAGE_BYTES - 1));
    assert_result(weir_buffer_import(weir_device_default_stream(other), &share, NULL,
                                     &next),
                  WEIR_LIMIT);
    assert_int_equal(usage_of(other).reserved_bytes, 0);
    assert_ok(weir_device_limit(other, 0));
    assert_ok(weir_device_tag_limit(other, "shared", PAGE_BYTES - 1));
    assert_result(weir_buffer_import(weir_device_default_stream(other), &share,
                                     &exportable, &next),
                  WEIR_LIMIT);
    assert_int_equal(usage_of(other).live_count, 0);
    weir_share_close(&share);
    drop(buffer);
    close_empty(other);
    close_empty(device);
}

/* One whole life of a share, in which the nth call for host memory fails. */
static weir_result live_once(uint64_t nth)
{
    weir_device *device = open_host(), *other = open_host();
    weir_buffer buffer = WEIR_NO_BUFFER, imported = WEIR_NO_BUFFER;
    weir_share share = {0};
    wr_host_fail_nth(nth);
    weir_result result = weir_buffer_create(weir_device_default_stream(device), BYTES,
                                            &exportable, &buffer);
    if (result == WEIR_OK) {
        result = weir_buffer_export(buffer, &share);
    }
    if (result == WEIR_OK) {
        result = weir_buffer_import(weir_device_default_stream(other), &share, NULL,
                                    &imported);
    }
    wr_host_fail_nth(0);
    if (imported.index != 0) {
        drop(imported);
    }
    weir_share_close(&share);
    if (buffer.index != 0) {
        drop(buffer);
    }
    close_empty(other);
    close_empty(device);
    return result;
}

static void share__without_host_memory_leaves_all_as_it_was(void **state)
{
    (void)state;
    int files = count_files();
    uint64_t nth = 1;
    while (live_once(nth) != WEIR_OK) {
        assert_int_equal(count_files(), files);
        nth++;
    }
    assert_true(nth > 5); /* it did fail */
    assert_int_equal(count_files(), files);
}

/* ---- wrong use ---- */

static void share__needs_a_buffer_that_was_made_for_it(void **state)
{
    (void)state;
    weir_device *device = open_host();
    weir_stream *stream = weir_device_default_stream(device);
    weir_buffer plain = make(stream, BYTES, NULL), gone = make_exportable(device);
    drop(gone);
    weir_share share = {.memory_file = 77};
    assert_result(weir_buffer_export(plain, &share), WEIR_INVALID);
    assert_says(weir_last_error(), "exportable");
    assert_result(weir_buffer_export(gone, &share), WEIR_STALE);
    assert_result(weir_buffer_export(WEIR_NO_BUFFER, &share), WEIR_STALE);
    assert_result(weir_buffer_export(plain, NULL), WEIR_INVALID);
    assert_int_equal(share.memory_file, 77);
    weir_buffer made = make_exportable(device), imported;
    share = export_of(made);
    assert_ok(weir_buffer_import(stream, &share, NULL, &imported));
    weir_share again = {0};
    assert_result(weir_buffer_export(imported, &again), WEIR_INVALID);
    assert_says(weir_last_error(), "another process's");
    drop(imported);
    weir_share_close(&share);
    drop(made);
    drop(plain);
    close_empty(device);
}

static void share__is_unsupported_where_the_driver_has_none(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = WEIR_NO_BUFFER;
    weir_share share = {.bytes = MIB, .memory_file = 0, .lives_file = 1};
    assert_result(weir_buffer_create(r.stream, MIB, &exportable, &buffer),
                  WEIR_UNSUPPORTED);
    assert_says(weir_last_error(), "sim");
    assert_result(weir_buffer_import(r.stream, &share, NULL, &buffer), WEIR_UNSUPPORTED);
    assert_int_equal(buffer.index, 0);
    rig_close(&r);
}

/* A file of memory as somebody else might make it. */
static int memory_file(uint64_t bytes, bool sealed)
{
    int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)bytes), 0);
    assert_int_equal(sealed ? fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) : 0, 0);
    return file;
}

static void share__of_something_else_is_refused(void **state)
{
    (void)state;
    weir_device *device = open_host();
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const struct {
        int file;
        const char *says;
    } wrong[] = {
        {-1, "no memory of a host device"},
        {ends[0], "no memory of a host device"},
        {memory_file(PAGE_BYTES, false), "no memory of a host device"},
        {memory_file(PAGE_BYTES - 4096, true), "the memory has"},
    };
    int files = count_files();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weir_share share = {
            .bytes = BYTES, .memory_file = wrong[i].file, .lives_file = ends[1]};
        weir_buffer buffer = WEIR_NO_BUFFER;
        assert_result(weir_buffer_import(weir_device_default_stream(device), &share, NULL,
                                         &buffer),
                      WEIR_INVALID);
        assert_says(weir_last_error(), wrong[i].says);
        assert_int_equal(usage_of(device).reserved_bytes, 0);
        assert_int_equal(count_files(), files);
    }
    close(wrong[2].file);
    close(wrong[3].file);
    close(ends[0]);
    close(ends[1]);
    close_empty(device);
}

static void share__arguments_are_checked(void **state)
{
    (void)state;
    weir_device *device = open_host();
    weir_stream *stream = weir_device_default_stream(device);
    weir_share share = {.bytes = 0}, huge = {.bytes = UINT64_C(1) << 50};
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_result(weir_buffer_import(NULL, &huge, NULL, &buffer), WEIR_INVALID);
    assert_result(weir_buffer_import(stream, NULL, NULL, &buffer), WEIR_INVALID);
    assert_result(weir_buffer_import(stream, &huge, NULL, NULL), WEIR_INVALID);
    assert_result(weir_buffer_import(stream, &share, NULL, &buffer), WEIR_INVALID);
    assert_result(weir_buffer_import(stream, &huge, NULL, &buffer), WEIR_INVALID);
    assert_result(weir_share_send(NULL, 0), WEIR_INVALID);
    share = (weir_share){.bytes = 1, .memory_file = -1, .lives_file = -1};
    assert_result(weir_share_send(&share, 0), WEIR_INVALID);
    assert_result(weir_share_receive(0, NULL), WEIR_INVALID);
    weir_share_close(NULL);
    weir_share_close(&share);
    close_empty(device);
}

static void share__that_does_not_arrive_whole_is_refused(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    int files = count_files();
    weir_share share = {.memory_file = 77};
    assert_int_equal(write(ends[0], "sixteen bytes...", 16), 16);
    assert_result(weir_share_receive(ends[1], &share), WEIR_INVALID);
    assert_says(weir_last_error(), "no share");
    assert_int_equal(share.memory_file, 77);
    weir_share zeroed = {.bytes = 5, .memory_file = 1, .lives_file = 2};
    assert_ok(weir_share_send(&zeroed, ends[0]));
    weir_share got = {0};
    assert_ok(weir_share_receive(ends[1], &got));
    assert_int_equal(got.bytes, 5);
    weir_share_close(&got);
    assert_int_equal(count_files(), files);
    close(ends[0]);
    assert_result(weir_share_receive(ends[1], &share), WEIR_DRIVER);
    assert_says(weir_last_error(), "closed");
    close(ends[1]);
    assert_result(weir_share_send(&zeroed, -1), WEIR_DRIVER);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "peer") == 0) {
        return run_peer(atoi(argv[2]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share__is_the_same_memory_in_both_processes),
        cmocka_unit_test(share__stays_deferred_until_the_other_process_releases_it),
        cmocka_unit_test(share__comes_back_when_the_other_process_dies),
        cmocka_unit_test(share__of_a_dead_process_comes_back_by_time_too),
        cmocka_unit_test(share__outlives_the_process_that_made_it),
        cmocka_unit_test(share__can_be_imported_many_times_and_by_its_own_device),
        cmocka_unit_test(share__that_was_closed_unused_holds_nothing),
        cmocka_unit_test(share__has_pages_that_serve_one_buffer_once),
        cmocka_unit_test(share__follows_a_stream_that_ends_into_the_bank),
        cmocka_unit_test(share__closes_with_a_device_that_is_still_exported),
        cmocka_unit_test(share__is_not_poisoned_in_checked_mode),
        cmocka_unit_test(share__pages_count_towards_footprint_and_sums),
        cmocka_unit_test(share__obeys_the_limits),
        cmocka_unit_test(share__without_host_memory_leaves_all_as_it_was),
        cmocka_unit_test(share__needs_a_buffer_that_was_made_for_it),
        cmocka_unit_test(share__is_unsupported_where_the_driver_has_none),
        cmocka_unit_test(share__of_something_else_is_refused),
        cmocka_unit_test(share__arguments_are_checked),
        cmocka_unit_test(share__that_does_not_arrive_whole_is_refused),
    };
    return cmocka_run_group_tests_name("core, share", tests, NULL, NULL);
}
