/* SPDX-License-Identifier: MIT */
/* The end of a process, with the reclaimer's thread running, and its signals. Each test
 * runs in a child that is forked while no device is open, and that exits. */
#define _GNU_SOURCE
#include "child.h"
#include "support.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static weir_device *device;
static weir_stream *stream;
static weir_buffer global, other;
static bool in_child;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = ms * 1000000}, NULL);
}

static bool is_reclaimer(const char *task)
{
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.200s/comm", task);
    FILE *file = fopen(path, "r");
    bool is = file != NULL && fgets(name, sizeof name, file) != NULL &&
              strcmp(name, "weir-reclaim\n") == 0;
    if (file != NULL) {
        fclose(file);
    }
    return is;
}

static int count_reclaimers(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    child_expect(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        count += is_reclaimer(task->d_name);
    }
    closedir(tasks);
    return count;
}

/* A host device whose reclaimer has started. */
static void open_busy(void)
{
    in_child = true;
    child_expect(weir_device_open("host", &(weir_device_desc){.idle_ms = 50}, &device) ==
                 WEIR_OK);
    stream = weir_device_default_stream(device);
    child_expect(weir_buffer_create(stream, 4 * MIB, NULL, &global) == WEIR_OK);
    child_expect(weir_buffer_create(stream, 4 * MIB, NULL, &other) == WEIR_OK);
    child_expect(weir_buffer_release(other) == WEIR_OK);
    child_expect(count_reclaimers() == 1);
    child_expect(weir_buffer_create(stream, 4 * MIB, NULL, &other) == WEIR_OK);
}

static void release_global(void)
{
    child_expect(weir_buffer_release(global) == WEIR_OK);
    weir_usage usage = {0};
    child_expect(weir_device_memory_usage(device, &usage) == WEIR_OK);
    child_expect(usage.live_count == 1);
}

static void release_stale(void)
{
    child_expect(weir_buffer_release(global) == WEIR_STALE);
    child_expect(weir_buffer_release(other) == WEIR_STALE);
}

/* A thread that was joined may be listed for a moment yet. */
static void expect_no_reclaimer(void)
{
    for (int i = 0; i < 2000 && count_reclaimers() > 0; i++) {
        pause_ms(1);
    }
    child_expect(count_reclaimers() == 0);
}

/* Runs after all handlers of exit, like the destructors of static objects. */
static __attribute__((destructor)) void destructor(void)
{
    if (in_child) {
        weir_result result = weir_buffer_release(other);
        child_expect(result == WEIR_OK || result == WEIR_STALE);
        child_expect(weir_buffer_release(other) == WEIR_STALE);
    }
}

/* ---- releases ---- */

static void handlers_on_both_sides(void *context)
{
    (void)context;
    child_expect(atexit(release_global) == 0); /* runs after the thread was joined */
    child_expect(atexit(expect_no_reclaimer) == 0);
    open_busy();
}

static void buffers_are_released_by_handlers_and_destructors_at_exit(void **state)
{
    (void)state;
    run_child(handlers_on_both_sides, NULL);
}

static void handlers_before_the_join(void *context)
{
    (void)context;
    open_busy();
    child_expect(atexit(release_global) == 0);
}

static void buffers_are_released_at_exit_while_the_reclaimer_still_runs(void **state)
{
    (void)state;
    run_child(handlers_before_the_join, NULL);
}

static void close_device(void)
{
    child_expect(weir_device_close(device) == WEIR_BUSY);
    weir_device_abandon(device);
}

static void close_after_the_join(void *context)
{
    (void)context;
    child_expect(atexit(release_stale) == 0);
    child_expect(atexit(close_device) == 0);
    open_busy();
}

static void close_before_the_join(void *context)
{
    (void)context;
    open_busy();
    child_expect(atexit(release_stale) == 0);
    child_expect(atexit(close_device) == 0);
}

static void stale_buffers_are_released_after_the_device_was_closed_at_exit(void **state)
{
    (void)state;
    run_child(close_after_the_join, NULL);
    run_child(close_before_the_join, NULL);
}

static void *keep_releasing(void *context)
{
    (void)context;
    for (;;) {
        weir_buffer buffer;
        if (weir_buffer_create(stream, 100, NULL, &buffer) == WEIR_OK) {
            weir_buffer_release(buffer);
        }
    }
    return NULL;
}

static void exit_while_others_work(void *context)
{
    (void)context;
    open_busy();
    pthread_t thread;
    child_expect(pthread_create(&thread, NULL, keep_releasing, NULL) == 0);
    pause_ms(5);
}

static void a_process_exits_while_other_threads_allocate(void **state)
{
    (void)state;
    run_child(exit_while_others_work, NULL);
}

/* ---- signals ---- */

static _Atomic int signals_here, signals_elsewhere;
static pthread_t program;

static void on_signal(int number)
{
    (void)number;
    if (pthread_equal(pthread_self(), program)) {
        signals_here++;
    } else {
        signals_elsewhere++;
    }
}

/* While the program's thread blocks the signal, the reclaimer would be the only one left
 * to take it. */
static void send_signals(void *context)
{
    (void)context;
    open_busy();
    program = pthread_self();
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    signal(SIGUSR1, on_signal);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    child_expect(kill(getpid(), SIGUSR1) == 0);
    pause_ms(30);
    child_expect(signals_here == 0 && signals_elsewhere == 0);
    child_expect(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    child_expect(signals_here == 1 && signals_elsewhere == 0);
    close_device();
}

static void a_signal_goes_to_the_programs_thread_not_to_the_reclaimer(void **state)
{
    (void)state;
    run_child(send_signals, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_released_by_handlers_and_destructors_at_exit),
        cmocka_unit_test(buffers_are_released_at_exit_while_the_reclaimer_still_runs),
        cmocka_unit_test(stale_buffers_are_released_after_the_device_was_closed_at_exit),
        cmocka_unit_test(a_process_exits_while_other_threads_allocate),
        cmocka_unit_test(a_signal_goes_to_the_programs_thread_not_to_the_reclaimer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
