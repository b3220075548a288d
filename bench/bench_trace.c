/* SPDX-License-Identifier: MIT */
/* What stays and what is called while a trace runs on sim.
 *
 *     bench_trace steady TRACE MARK        calls for memory from that mark (from 0) to
 * the end bench_trace survivors TRACE SEED     at the peak, 99 % freed at random,
 * cleanup: the bytes reserved, the survivors' granules, and their own */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wr_trace trace;
static weir_device *device;
static weir_stream **streams;
static weir_buffer *slots;

static void play(const wr_trace_op *op)
{
    if (op->kind == WR_TRACE_KIND_ALLOC) {
        wr_bench_must(weir_buffer_create(streams[op->stream], op->bytes, NULL,
                                         &slots[op->slot]),
                      "create");
    } else if (op->kind == WR_TRACE_KIND_FREE) {
        wr_bench_must(weir_buffer_release(slots[op->slot]), "release");
        slots[op->slot] = WEIR_NO_BUFFER;
    }
}

static void print_steady(uint64_t from_mark)
{
    uint64_t marks = 0, calls = 0;
    for (size_t i = 0; i < trace.op_count; i++) {
        if (trace.ops[i].kind == WR_TRACE_KIND_MARK && marks++ == from_mark) {
            calls = wr_bench_memory_calls(device);
        }
        play(&trace.ops[i]);
    }
    if (marks <= from_mark) {
        wr_bench_fail("the trace has only %" PRIu64 " marks", marks);
    }
    printf("steady %" PRIu64 " %" PRIu64 "\n", wr_bench_memory_calls(device) - calls,
           calls);
}

/* Releases all but one in a hundred, at least one; what stays is moved to the front. */
static size_t thin_out(weir_buffer *live, size_t count, uint64_t seed)
{
    size_t kept = count / 100 > 0 ? count / 100 : 1;
    for (size_t i = 0; i + 1 < count; i++) {
        size_t other = i + (size_t)(wr_bench_random(&seed) % (count - i));
        weir_buffer swapped = live[i];
        live[i] = live[other];
        live[other] = swapped;
    }
    for (size_t i = kept; i < count; i++) {
        wr_bench_must(weir_buffer_release(live[i]), "release");
    }
    return kept < count ? kept : count;
}

static int compare_numbers(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The bytes of the granules in which the buffers lie. */
static uint64_t granule_bytes_of(const weir_buffer *live, size_t count,
                                 uint64_t granule_bytes)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += (size_t)(weir_buffer_extent(live[i]) / granule_bytes) + 2;
    }
    uint64_t *granules = wr_bench_memory(total, sizeof *granules);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = weir_buffer_address(live[i]);
        uint64_t last = (address + weir_buffer_extent(live[i]) - 1) / granule_bytes;
        for (uint64_t granule = address / granule_bytes; granule <= last; granule++) {
            granules[used++] = granule;
        }
    }
    qsort(granules, used, sizeof *granules, compare_numbers);
    size_t distinct = 0;
    for (size_t i = 0; i < used; i++) {
        distinct += i == 0 || granules[i] != granules[i - 1];
    }
    free(granules);
    return distinct * granule_bytes;
}

static void print_survivors(uint64_t seed)
{
    for (size_t i = 0; i <= trace.peak_op && i < trace.op_count; i++) {
        play(&trace.ops[i]);
    }
    size_t count = 0;
    for (uint32_t i = 0; i < trace.slot_count; i++) {
        if (slots[i].generation != 0) {
            slots[count++] = slots[i];
        }
    }
    if (count == 0) {
        wr_bench_fail("nothing is live at the peak");
    }
    size_t kept = thin_out(slots, count, seed);
    weir_usage usage = {.size = sizeof usage};
    wr_bench_must(weir_device_memory_cleanup(device, NULL, NULL), "cleanup");
    wr_bench_must(weir_device_memory_usage(device, &usage), "usage");
    printf("survivors %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", usage.reserved_bytes,
           granule_bytes_of(slots, kept, weir_sim_defaults().granule_bytes),
           usage.in_use_bytes);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        wr_bench_fail("usage: see the top of bench_trace.c");
    }
    trace = wr_bench_trace(argv[2]);
    device = wr_bench_sim_open(UINT64_C(192) << 30, false);
    streams = wr_bench_streams(device, trace.stream_count);
    slots = wr_bench_memory(trace.slot_count, sizeof *slots);
    if (strcmp(argv[1], "steady") == 0) {
        print_steady(wr_bench_number(argv[3]));
    } else if (strcmp(argv[1], "survivors") == 0) {
        print_survivors(wr_bench_number(argv[3]));
    } else {
        wr_bench_fail("usage: see the top of bench_trace.c");
    }
    weir_device_abandon(device);
    wr_trace_finish(&trace);
    return 0;
}
