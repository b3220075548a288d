/* SPDX-License-Identifier: MIT */
#include "sim.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wr_bench_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

void wr_bench_must(weir_result result, const char *what)
{
    if (result != WEIR_OK) {
        wr_bench_fail("%s: %s: %s", what, weir_result_name(result), weir_last_error());
    }
}

void *wr_bench_memory(size_t count, size_t element_bytes)
{
    size_t bytes = (count + 1) * element_bytes;
    void *memory = malloc(bytes);
    if (memory == NULL) {
        wr_bench_fail("no host memory for %zu bytes", bytes);
    }
    return memset(memory, 0, bytes);
}

static weir_device *open_sim(uint64_t capacity_bytes, bool whole_pages,
                             uint64_t chunk_bytes)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = capacity_bytes;
    sim.context_bytes = 0;
    sim.chunk_bytes = chunk_bytes;
    weir_device_desc desc = {.size = sizeof desc,
                             .no_thread = true,
                             .no_granules = whole_pages,
                             .driver_config = &sim};
    weir_device *device = NULL;
    wr_bench_must(weir_device_open("sim", &desc, &device), "open");
    return device;
}

weir_device *wr_bench_sim_open(uint64_t capacity_bytes, bool whole_pages)
{
    return open_sim(capacity_bytes, whole_pages, 0);
}

weir_device *wr_bench_sim_open_in_chunks(uint64_t capacity_bytes, uint64_t chunk_bytes)
{
    return open_sim(capacity_bytes, false, chunk_bytes);
}

weir_stream **wr_bench_streams(weir_device *device, uint32_t count)
{
    weir_stream **streams = wr_bench_memory(count, sizeof *streams);
    streams[0] = weir_device_default_stream(device);
    for (uint32_t i = 1; i < count; i++) {
        wr_bench_must(weir_stream_create(device, NULL, &streams[i]), "stream");
    }
    return streams;
}

uint64_t wr_bench_memory_calls(weir_device *device)
{
    weir_sim_ledger ledger;
    weir_sim_read_ledger(weir_device_driver(device), &ledger);
    return ledger.calls[WEIR_SIM_OP_page_alloc] + ledger.calls[WEIR_SIM_OP_page_free] +
           ledger.calls[WEIR_SIM_OP_range_reserve] + ledger.calls[WEIR_SIM_OP_commit] +
           ledger.calls[WEIR_SIM_OP_decommit] + ledger.calls[WEIR_SIM_OP_move];
}

wr_trace wr_bench_trace(const char *path)
{
    wr_trace trace = {0};
    wr_trace_error error;
    if (!wr_trace_read(path, NULL, &trace, &error)) {
        wr_bench_fail("%s:%" PRIu64 ": %s", path, error.line, error.reason);
    }
    return trace;
}

uint64_t wr_bench_number(const char *text)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || text[0] == '-') {
        wr_bench_fail("'%s' is not a whole number", text);
    }
    return number;
}

uint64_t wr_bench_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

uint64_t wr_bench_random_size(uint64_t *state, uint64_t low, uint64_t high)
{
    double share = (double)(wr_bench_random(state) >> 11) * 0x1p-53;
    double size = (double)low * pow((double)high / (double)low, share);
    return size >= (double)high ? high : (uint64_t)size;
}
