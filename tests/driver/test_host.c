/* SPDX-License-Identifier: MIT */
/* What is special to the host driver: a footprint that really falls, and kernels on
 * threads. */
#define _GNU_SOURCE
#include "contract.h"

#include "driver/host/system.h"
#include "driver/host/workers.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* What the test itself and the C library may take or give back meanwhile. */
#define NOISE_BYTES (512 * KIB)

#if defined(__SANITIZE_THREAD__)
#define HAS_SHADOW true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_SHADOW true
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW false
#endif

static driver_rig open_host(void)
{
    driver_rig rig = {0};
    rig_open(&rig, "host", NULL);
    return rig;
}

static char *pointer_to(uint64_t address)
{
    return (char *)(uintptr_t)address;
}

static uint64_t footprint_of(const driver_rig *rig)
{
    weir_memory_info info;
    assert_ok(rig->table->memory_info(rig->driver, &info));
    assert_true(info.footprint_bytes != WEIR_UNKNOWN_BYTES);
    return info.footprint_bytes;
}

static uint64_t untouched_in(const driver_rig *rig, uint64_t address, uint64_t bytes)
{
    uint64_t untouched = 0;
    assert_ok(rig->table->untouched(rig->driver, address, bytes, &untouched));
    return untouched;
}

static void skip_if(bool lacking, const char *reason)
{
    if (lacking) {
        print_message("skipped: %s\n", reason);
        skip();
    }
}

static void assert_grew(uint64_t before, uint64_t after, uint64_t bytes)
{
    if (after + NOISE_BYTES < before + bytes || after > before + bytes + NOISE_BYTES) {
        fail_msg("from %llu to %llu, expected %llu more", (unsigned long long)before,
                 (unsigned long long)after, (unsigned long long)bytes);
    }
}

/* ---- the footprint ---- */

static void the_footprint__follows_what_is_written_and_falls_at_decommit(void **state)
{
    (void)state;
    skip_if(HAS_SHADOW, "the sanitizer's shadow is memory of the process too");
    driver_rig rig = open_host();
    uint64_t bytes = 64 * MIB;
    uint64_t range = take_range(&rig, 100);
    uint64_t before = footprint_of(&rig);
    for (int round = 0; round < 3; round++) {
        assert_ok(rig.table->commit(rig.driver, range, bytes));
        assert_grew(before, footprint_of(&rig), 0);
        memset(pointer_to(range), 1, bytes);
        assert_grew(before, footprint_of(&rig), bytes);
        assert_ok(rig.table->decommit(rig.driver, range + 16 * MIB, 32 * MIB));
        assert_grew(before, footprint_of(&rig), bytes / 2);
        assert_ok(rig.table->decommit(rig.driver, range, 16 * MIB));
        assert_ok(rig.table->decommit(rig.driver, range + 48 * MIB, 16 * MIB));
        assert_grew(before, footprint_of(&rig), 0);
    }
    rig_close(&rig);
}

static void the_footprint__falls_when_a_page_is_freed_or_the_driver_closes(void **state)
{
    (void)state;
    skip_if(HAS_SHADOW, "the sanitizer's shadow is memory of the process too");
    driver_rig rig = open_host();
    driver_rig other = open_host();
    uint64_t before = footprint_of(&rig);
    uint64_t page = take_page(&rig, 20 * MIB + 1);
    memset(pointer_to(page), 1, 20 * MIB + 1);
    assert_grew(before, footprint_of(&rig), 20 * MIB);
    assert_ok(rig.table->page_free(rig.driver, page, 20 * MIB + 1));
    assert_grew(before, footprint_of(&rig), 0);

    uint64_t range = take_range(&other, 10);
    page = take_page(&other, 10 * MIB);
    assert_ok(rig.table->commit(other.driver, range, 20 * MIB));
    memset(pointer_to(range), 1, 20 * MIB);
    memset(pointer_to(page), 1, 10 * MIB);
    assert_grew(before, footprint_of(&rig), 30 * MIB);
    rig_close(&other);
    assert_grew(before, footprint_of(&rig), 0);
    rig_close(&rig);
}

static void the_context__is_the_footprint_at_open(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    assert_grew(rig.properties.context_bytes, footprint_of(&rig), 0);
    rig_close(&rig);
}

static void
both_ways_to_read_the_footprint__agree_on_kernels_that_count_exactly(void **state)
{
    (void)state;
    wr_system system;
    wr_system_init(&system);
    skip_if(!system.counts_exactly, "this kernel's quick figure lags");
    uint64_t quick = wr_system_footprint(&system);
    system.counts_exactly = false;
    assert_grew(quick, wr_system_footprint(&system), 0);
}

static void others__are_what_all_processes_have_less_this_one(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    weir_memory_info info;
    wr_system system;
    assert_ok(rig.table->memory_info(rig.driver, &info));
    assert_true(info.others_bytes != WEIR_UNKNOWN_BYTES);
    wr_system_init(&system);
    assert_int_equal(wr_system_others(&system, WEIR_UNKNOWN_BYTES), WEIR_UNKNOWN_BYTES);
    assert_int_equal(wr_system_others(&system, UINT64_MAX / 2), 0);
    rig_close(&rig);
}

/* ---- untouched ---- */

static void untouched__counts_committed_bytes_that_were_never_written(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t range = take_range(&rig, 10);
    assert_int_equal(untouched_in(&rig, range, 20 * MIB), 0);
    assert_ok(rig.table->commit(rig.driver, range + 2 * MIB, 4 * MIB));
    assert_ok(rig.table->commit(rig.driver, range + 10 * MIB, 2 * MIB));
    assert_int_equal(untouched_in(&rig, range, 20 * MIB), 6 * MIB);
    pointer_to(range)[2 * MIB] = 1;
    pointer_to(range)[6 * MIB - 1] = 1;
    for (uint64_t at = 10 * MIB; at < 11 * MIB; at += 4 * page) {
        pointer_to(range)[at + 7] = 1;
    }
    uint64_t written = 2 * page + MIB / (4 * page) * page;
    assert_int_equal(untouched_in(&rig, range, 20 * MIB), 6 * MIB - written);
    assert_int_equal(untouched_in(&rig, range + 2 * MIB, page), 0);
    assert_int_equal(untouched_in(&rig, range + 2 * MIB + 100, page), 100);
    assert_int_equal(untouched_in(&rig, range + 2 * MIB + 100, 10), 0);
    assert_int_equal(untouched_in(&rig, range + 4 * MIB, 0), 0);
    assert_ok(rig.table->decommit(rig.driver, range + 10 * MIB, 2 * MIB));
    assert_ok(rig.table->commit(rig.driver, range + 10 * MIB, 2 * MIB));
    assert_int_equal(untouched_in(&rig, range, 20 * MIB), 6 * MIB - 2 * page);
    rig_close(&rig);
}

static void untouched__counts_in_pages_to_the_byte(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    uint64_t system_page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = 100 * system_page + 10;
    uint64_t page = take_page(&rig, bytes);
    uint64_t untouched = 77;
    assert_int_equal(untouched_in(&rig, page, bytes), bytes);
    pointer_to(page)[bytes - 1] = 1;
    assert_int_equal(untouched_in(&rig, page, bytes), bytes - 10);
    pointer_to(page)[0] = 1;
    assert_int_equal(untouched_in(&rig, page, bytes), bytes - 10 - system_page);
    assert_ok(rig.table->page_free(rig.driver, page, bytes));
    assert_result(rig.table->untouched(rig.driver, page, bytes, &untouched),
                  WEIR_INVALID);
    assert_int_equal(untouched, 77);
    rig_close(&rig);
}

static void untouched__counts_bytes_that_were_only_read(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    uint64_t page = take_page(&rig, MIB);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < MIB; i++) {
        sum += (uint64_t)((volatile char *)pointer_to(page))[i];
    }
    assert_int_equal(sum, 0);
    bool told_apart = wr_system_backed(page, MIB) != wr_system_resident(page, MIB);
    uint64_t untouched = untouched_in(&rig, page, MIB);
    rig_close(&rig);
    skip_if(!told_apart, "this kernel does not tell read pages from written ones");
    assert_int_equal(untouched, MIB);
}

static void both_ways_to_ask_what_is_backed__agree_on_written_bytes(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    uint64_t page = take_page(&rig, 40 * MIB);
    for (uint64_t at = 0; at < 40 * MIB; at += 12345) {
        pointer_to(page)[at] = 1;
        at += at % 7 * 4096;
    }
    for (uint64_t offset = 0; offset < 30 * MIB; offset += 3333333) {
        assert_int_equal(wr_system_backed(page + offset, 9 * MIB + 5),
                         wr_system_resident(page + offset, 9 * MIB + 5));
    }
    rig_close(&rig);
}

/* ---- contents ---- */

static bool can_be_written(uint64_t address)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    ssize_t got = read(ends[0], pointer_to(address), 1);
    assert_true(got == 1 || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return got == 1;
}

static void granules__are_closed_while_bare_and_zero_when_committed(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    uint64_t range = take_range(&rig, 3);
    assert_false(can_be_written(range + 2 * MIB));
    assert_ok(rig.table->commit(rig.driver, range + 2 * MIB, 2 * MIB));
    assert_true(can_be_written(range + 2 * MIB));
    assert_false(can_be_written(range + 2 * MIB - 1));
    assert_false(can_be_written(range + 4 * MIB));
    assert_ok(rig.table->decommit(rig.driver, range + 2 * MIB, 2 * MIB));
    assert_false(can_be_written(range + 2 * MIB));
    assert_ok(rig.table->commit(rig.driver, range + 2 * MIB, 2 * MIB));
    assert_int_equal(pointer_to(range)[2 * MIB], 0);
    rig_close(&rig);
}

static void a_range_larger_than_the_address_space__is_out_of_memory(void **state)
{
    (void)state;
    const uint64_t sizes[] = {(uint64_t)1 << 50, (uint64_t)1 << 63};
    driver_rig rig = open_host();
    for (size_t i = 0; i < 2; i++) {
        uint64_t address = 77;
        weir_result result = rig.table->range_reserve(rig.driver, sizes[i], &address);
        assert_result(result, WEIR_OUT_OF_MEMORY);
        assert_int_equal(address, 77);
    }
    rig_close(&rig);
}

static void the_host__takes_no_configuration(void **state)
{
    (void)state;
    weir_driver *driver = NULL;
    assert_result(find_table("host")->open("", &driver, &driver), WEIR_INVALID);
    assert_null(driver);
}

/* ---- kernels ---- */

/* A byte for each element, and what was wrong with the ranges. */
typedef struct coverage {
    unsigned char *seen;
    uint64_t element_count;
    _Atomic uint64_t wrong;
} coverage;

static void cover(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    coverage *work = *(coverage *const *)launch->arguments;
    if (begin % WR_WORKERS_GRAIN != 0 || end > work->element_count || begin >= end ||
        (end % WR_WORKERS_GRAIN != 0 && end != work->element_count)) {
        atomic_fetch_add(&work->wrong, 1);
        return;
    }
    for (uint64_t i = begin; i < end; i++) {
        work->seen[i]++;
    }
}

static const weir_kernel cover_kernel = {.name = "cover", .host = cover};

static void cover_once(driver_rig *rig, weir_driver_stream stream, uint64_t element_count)
{
    uint64_t page = take_page(rig, element_count + 1);
    coverage work = {.seen = (unsigned char *)pointer_to(page),
                     .element_count = element_count};
    coverage *arguments = &work;
    assert_ok(rig->table->launch(rig->driver, stream,
                                 &(weir_launch){.kernel = &cover_kernel,
                                                .arguments = &arguments,
                                                .argument_bytes = sizeof arguments,
                                                .element_count = element_count}));
    assert_int_equal(work.wrong, 0);
    for (uint64_t i = 0; i < element_count; i++) {
        assert_int_equal(work.seen[i], 1);
    }
    assert_int_equal(work.seen[element_count], 0);
    assert_ok(rig->table->page_free(rig->driver, page, element_count + 1));
}

static void a_launch__covers_every_element_exactly_once(void **state)
{
    (void)state;
    const uint64_t counts[] = {0,     1,     4095,       4096,    4097,          65535,
                               65536, 65537, 16 * 65536, 1000003, 5 * 65536 - 1, 131072};
    driver_rig rig = open_host();
    weir_driver_stream stream = take_stream(&rig);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        cover_once(&rig, stream, counts[i]);
    }
    rig_close(&rig);
}

static void *launch_on_own_stream(void *argument)
{
    driver_rig *rig = argument;
    weir_driver_stream stream = take_stream(rig);
    for (int i = 0; i < 10; i++) {
        cover_once(rig, stream, 200000);
    }
    rig->table->stream_close(rig->driver, stream);
    return NULL;
}

static void run_threads(void *(*body)(void *), void *argument)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, body, argument), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void launches_of_several_threads__share_the_workers(void **state)
{
    (void)state;
    driver_rig rig = open_host();
    run_threads(launch_on_own_stream, &rig);
    rig_close(&rig);
}

static void add_one(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    uint64_t *sum = *(uint64_t *const *)launch->arguments;
    *sum += end - begin;
}

typedef struct shared_stream {
    driver_rig rig;
    weir_driver_stream stream;
    uint64_t sum; /* not atomic: the stream's order is what protects it */
} shared_stream;

static void *launch_on_shared_stream(void *argument)
{
    shared_stream *shared = argument;
    const weir_kernel kernel = {.name = "add_one", .host = add_one};
    uint64_t *sum = &shared->sum;
    for (int i = 0; i < 1000; i++) {
        assert_ok(shared->rig.table->launch(
            shared->rig.driver, shared->stream,
            &(weir_launch){.kernel = &kernel, .arguments = &sum, .element_count = 1}));
    }
    return NULL;
}

static void launches_on_one_stream__run_one_after_another(void **state)
{
    (void)state;
    shared_stream shared = {.rig = open_host()};
    shared.stream = take_stream(&shared.rig);
    run_threads(launch_on_shared_stream, &shared);
    assert_ok(shared.rig.table->stream_sync(shared.rig.driver, shared.stream));
    assert_int_equal(shared.sum, 4000);
    rig_close(&shared.rig);
}

/* Who took part in a launch, and whether it would have taken signals. */
typedef struct party {
    pthread_t caller;
    _Atomic unsigned helpers;
    _Atomic unsigned open_to_signals;
    time_t deadline;
} party;

/* The caller waits, for some seconds, until a helper has come. */
static void meet(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    party *work = *(party *const *)launch->arguments;
    sigset_t blocked;
    (void)begin;
    (void)end;
    if (!pthread_equal(pthread_self(), work->caller)) {
        pthread_sigmask(SIG_BLOCK, NULL, &blocked);
        atomic_fetch_add(&work->open_to_signals, !sigismember(&blocked, SIGTERM));
        atomic_fetch_add(&work->helpers, 1);
        return;
    }
    while (atomic_load(&work->helpers) == 0 && time(NULL) < work->deadline) {
        sched_yield();
    }
}

static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        count += task->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

static void
a_large_launch__is_shared_by_threads_that_take_no_signals_and_end_at_close(void **state)
{
    (void)state;
    const weir_kernel kernel = {.name = "meet", .host = meet};
    driver_rig rig = open_host();
    weir_driver_stream stream = take_stream(&rig);
    party work = {.caller = pthread_self(), .deadline = time(NULL) + 20};
    party *arguments = &work;
    weir_launch launch = {
        .kernel = &kernel, .arguments = &arguments, .element_count = 4096};
    unsigned before = count_threads();
    work.deadline = 0;
    assert_ok(rig.table->launch(rig.driver, stream, &launch));
    assert_int_equal(count_threads(), before);
    launch.element_count = 1 << 20;
    work.deadline = time(NULL) + 20;
    skip_if(sysconf(_SC_NPROCESSORS_ONLN) < 2, "there is one processor only");
    assert_ok(rig.table->launch(rig.driver, stream, &launch));
    assert_true(work.helpers > 0);
    assert_int_equal(work.open_to_signals, 0);
    assert_true(count_threads() > before);
    assert_true(count_threads() < before + WR_WORKERS_MOST);
    rig_close(&rig);
    assert_int_equal(count_threads(), before);
}

static void a_kernel_without_a_host_form__is_refused_by_name(void **state)
{
    (void)state;
    const weir_kernel kernel = {.name = "only_cuda"};
    driver_rig rig = open_host();
    weir_driver_stream stream = take_stream(&rig);
    assert_result(
        rig.table->launch(rig.driver, stream,
                          &(weir_launch){.kernel = &kernel, .element_count = 1}),
        WEIR_UNSUPPORTED);
    assert_non_null(strstr(weir_last_error(), "only_cuda"));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_footprint__follows_what_is_written_and_falls_at_decommit),
        cmocka_unit_test(the_footprint__falls_when_a_page_is_freed_or_the_driver_closes),
        cmocka_unit_test(the_context__is_the_footprint_at_open),
        cmocka_unit_test(
            both_ways_to_read_the_footprint__agree_on_kernels_that_count_exactly),
        cmocka_unit_test(others__are_what_all_processes_have_less_this_one),
        cmocka_unit_test(untouched__counts_committed_bytes_that_were_never_written),
        cmocka_unit_test(untouched__counts_in_pages_to_the_byte),
        cmocka_unit_test(untouched__counts_bytes_that_were_only_read),
        cmocka_unit_test(both_ways_to_ask_what_is_backed__agree_on_written_bytes),
        cmocka_unit_test(granules__are_closed_while_bare_and_zero_when_committed),
        cmocka_unit_test(a_range_larger_than_the_address_space__is_out_of_memory),
        cmocka_unit_test(the_host__takes_no_configuration),
        cmocka_unit_test(a_launch__covers_every_element_exactly_once),
        cmocka_unit_test(launches_of_several_threads__share_the_workers),
        cmocka_unit_test(launches_on_one_stream__run_one_after_another),
        cmocka_unit_test(
            a_large_launch__is_shared_by_threads_that_take_no_signals_and_end_at_close),
        cmocka_unit_test(a_kernel_without_a_host_form__is_refused_by_name),
    };
    return cmocka_run_group_tests_name("driver host", tests, NULL, NULL);
}
