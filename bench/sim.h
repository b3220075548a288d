/* SPDX-License-Identifier: MIT */
/* What the bench programs have in common: sim devices, traces, numbers, and giving up.
 * They print a line and exit with 2 where they cannot go on. */
#ifndef WEIR_BENCH_SIM_H
#define WEIR_BENCH_SIM_H

#include "../cli/replay/trace.h"

#include <weir/weir.h>

void wr_bench_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn, cold));

/* Fails unless the call went well. */
void wr_bench_must(weir_result result, const char *what);

/* Zeroed memory whose pages are there. */
void *wr_bench_memory(size_t count, size_t element_bytes);

/* A sim device without context and thread; default settings, with 2 MiB granules or whole
 * pages. */
weir_device *wr_bench_sim_open(uint64_t capacity_bytes, bool whole_pages);
/* The same with granules that come in chunks of at most so many bytes. */
weir_device *wr_bench_sim_open_in_chunks(uint64_t capacity_bytes, uint64_t chunk_bytes);

/* The default stream and count - 1 new ones. */
weir_stream **wr_bench_streams(weir_device *device, uint32_t count);

/* Calls for memory that the sim driver has seen. */
uint64_t wr_bench_memory_calls(weir_device *device);

/* The trace in a file. */
wr_trace wr_bench_trace(const char *path);

/* A whole number from the command line. */
uint64_t wr_bench_number(const char *text);

/* xorshift64* (Vigna 2016); the state is not 0. */
uint64_t wr_bench_random(uint64_t *state);
/* Log-uniform in [low, high]. */
uint64_t wr_bench_random_size(uint64_t *state, uint64_t low, uint64_t high);

#endif
