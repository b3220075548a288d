/* SPDX-License-Identifier: MIT */
/* How well one fixed arena is filled.
 *
 *     bench_packing granules|page ARENA_BYTES LIVE_BYTES LARGEST_BYTES REQUESTS SEED
 *
 * The device has ARENA_BYTES and all of them are committed before, as granules, which can
 * move, or as one page, which cannot. Requests are log-uniform from 256 B to
 * LARGEST_BYTES. Before each one, live buffers are freed at random until it and the rest
 * make at most LIVE_BYTES. Prints how many requests failed, of how many, after the first
 * filling. */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct live_set {
    weir_buffer *buffers;
    uint64_t *bytes;
    size_t count;
    uint64_t total_bytes;
} live_set;

static void drop_at(live_set *live, size_t at)
{
    wr_bench_must(weir_buffer_release(live->buffers[at]), "release");
    live->total_bytes -= live->bytes[at];
    live->count--;
    live->buffers[at] = live->buffers[live->count];
    live->bytes[at] = live->bytes[live->count];
}

/* Whether there was room. */
static bool add(live_set *live, weir_stream *stream, uint64_t bytes)
{
    weir_result result =
        weir_buffer_create(stream, bytes, NULL, &live->buffers[live->count]);
    if (result == WEIR_OUT_OF_MEMORY) {
        return false;
    }
    wr_bench_must(result, "create");
    live->bytes[live->count++] = bytes;
    live->total_bytes += bytes;
    return true;
}

static void commit_all(weir_device *device, uint64_t arena_bytes)
{
    weir_buffer all;
    weir_stream *stream = weir_device_default_stream(device);
    wr_bench_must(weir_buffer_create(stream, arena_bytes, NULL, &all),
                  "filling the arena");
    wr_bench_must(weir_buffer_release(all), "release");
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        wr_bench_fail("usage: see the top of bench_packing.c");
    }
    uint64_t granule_bytes = weir_sim_defaults().granule_bytes;
    uint64_t arena_bytes = wr_bench_number(argv[2]) / granule_bytes * granule_bytes;
    uint64_t live_bytes = wr_bench_number(argv[3]);
    uint64_t largest_bytes = wr_bench_number(argv[4]);
    uint64_t requests = wr_bench_number(argv[5]);
    uint64_t random = wr_bench_number(argv[6]);
    weir_device *device = wr_bench_sim_open(arena_bytes, strcmp(argv[1], "page") == 0);
    weir_stream *stream = weir_device_default_stream(device);
    commit_all(device, arena_bytes);
    size_t most = (size_t)(live_bytes / 256) + 1;
    live_set live = {.buffers = wr_bench_memory(most, sizeof(weir_buffer)),
                     .bytes = wr_bench_memory(most, sizeof(uint64_t))};
    uint64_t failed = 0, done = 0;
    for (bool is_full = false; done < requests;) {
        uint64_t bytes = wr_bench_random_size(&random, 256, largest_bytes);
        while (live.count > 0 && live.total_bytes + bytes > live_bytes) {
            is_full = true;
            drop_at(&live, wr_bench_random(&random) % live.count);
        }
        failed += !add(&live, stream, bytes) && is_full;
        done += is_full;
    }
    printf("packing %" PRIu64 " %" PRIu64 "\n", failed, done);
    weir_device_abandon(device);
    return 0;
}
