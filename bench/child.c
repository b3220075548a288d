/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "child.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_NUMBERS 16

static void measure_and_exit(bool (*measure)(void *context, double *numbers),
                             void *context, int out, size_t count)
{
    double numbers[MAX_NUMBERS] = {0};
    size_t bytes = count * sizeof *numbers;
    bool ok = measure(context, numbers) && write(out, numbers, bytes) == (ssize_t)bytes;
    _exit(ok ? 0 : 2);
}

bool wr_bench_child(bool (*measure)(void *context, double *numbers), void *context,
                    double *numbers, size_t count)
{
    int ends[2];
    if (count > MAX_NUMBERS || pipe(ends) != 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        measure_and_exit(measure, context, ends[1], count);
    }
    close(ends[1]);
    size_t bytes = count * sizeof *numbers;
    bool ok = child > 0 && read(ends[0], numbers, bytes) == (ssize_t)bytes;
    close(ends[0]);
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && ok && status == 0;
}

void wr_bench_pin(bool second)
{
    static cpu_set_t allowed; /* as the process found it */
    static bool is_known;
    if (!is_known && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        is_known = true;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t cpu = 0; is_known && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (second) {
                break;
            }
        }
    }
    sched_setaffinity(0, sizeof one, &one);
}

double wr_bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}
