/* SPDX-License-Identifier: MIT */
/* Measurements in child processes: each starts from the same state of the parent, so that
 * no allocator finds what another one, or its own last run, has left. */
#ifndef WEIR_BENCH_CHILD_H
#define WEIR_BENCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* Runs `measure` in a child, which writes `count` numbers. False if it could not. */
bool wr_bench_child(bool (*measure)(void *context, double *numbers), void *context,
                    double *numbers, size_t count);

/* Keeps the calling thread on one processor: the last one the process may use or, for a
 * second thread, the first one, since neighbours may be two halves of one core. Fails
 * quietly where there is none. */
void wr_bench_pin(bool second);

/* Nanoseconds of a clock that never goes back. */
double wr_bench_now_ns(void);

#endif
