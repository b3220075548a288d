/* SPDX-License-Identifier: MIT */
/* Host memory that Weir needs for its books.
 *
 *     bench_host growth OPERATIONS     the most in the second half of a long churn, less
 * the most in the first half after its first tenth, in bytes bench_host overhead LIVE
 * bytes per live buffer after a churn
 *
 * It is the anonymous resident memory of the process, as the system counts it. */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STREAM_COUNT 4

static uint64_t resident_bytes(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "RssAnon: %" SCNu64, &kib) == 1) {
            break;
        }
    }
    if (file == NULL || kib == 0) {
        wr_bench_fail("/proc/self/status has no RssAnon");
    }
    fclose(file);
    return kib * 1024;
}

static weir_buffer make(weir_stream **streams, uint64_t *random)
{
    weir_buffer buffer;
    weir_stream *stream = streams[wr_bench_random(random) % STREAM_COUNT];
    uint64_t bytes = wr_bench_random_size(random, 256, 1 << 20);
    wr_bench_must(weir_buffer_create(stream, bytes, NULL, &buffer), "create");
    return buffer;
}

/* `pairs` times one buffer at random is released and another one made. */
static void churn(weir_stream **streams, weir_buffer *live, uint64_t count,
                  uint64_t pairs, uint64_t *random)
{
    for (uint64_t i = 0; i < pairs; i++) {
        weir_buffer *one = &live[wr_bench_random(random) % count];
        wr_bench_must(weir_buffer_release(*one), "release");
        *one = make(streams, random);
    }
}

static void fill(weir_stream **streams, weir_buffer *live, uint64_t count,
                 uint64_t *random)
{
    for (uint64_t i = 0; i < count; i++) {
        live[i] = make(streams, random);
    }
}

static void print_growth(uint64_t operations)
{
    enum { LIVE = 10000, PARTS = 100 };
    uint64_t random = 7, most[2] = {0, 0};
    weir_buffer *live = wr_bench_memory(LIVE, sizeof *live);
    weir_device *device = wr_bench_sim_open(UINT64_C(192) << 30, false);
    weir_stream **streams = wr_bench_streams(device, STREAM_COUNT);
    fill(streams, live, LIVE, &random);
    for (unsigned part = 0; part < PARTS; part++) {
        churn(streams, live, LIVE, operations / 2 / PARTS, &random);
        wr_bench_must(weir_device_memory_cleanup(device, NULL, NULL), "cleanup");
        uint64_t now = resident_bytes();
        uint64_t *half = &most[part >= PARTS / 2];
        *half = part >= PARTS / 10 && now > *half ? now : *half;
    }
    printf("growth %" PRId64 " %" PRIu64 "\n", (int64_t)(most[1] - most[0]), most[0]);
    weir_device_abandon(device);
}

static void print_overhead(uint64_t count)
{
    uint64_t random = 7;
    weir_buffer *live = wr_bench_memory(count, sizeof *live);
    uint64_t before = resident_bytes();
    weir_device *device = wr_bench_sim_open(UINT64_C(192) << 30, false);
    weir_stream **streams = wr_bench_streams(device, STREAM_COUNT);
    fill(streams, live, count, &random);
    churn(streams, live, count, 4 * count, &random);
    printf("overhead %.1f\n", (double)(resident_bytes() - before) / (double)count);
    weir_device_abandon(device);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "growth") == 0) {
        print_growth(wr_bench_number(argv[2]));
    } else if (argc == 3 && strcmp(argv[1], "overhead") == 0 &&
               wr_bench_number(argv[2]) > 0) {
        print_overhead(wr_bench_number(argv[2]));
    } else {
        wr_bench_fail("usage: see the top of bench_host.c");
    }
    return 0;
}
