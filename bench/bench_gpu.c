/* SPDX-License-Identifier: MIT */
/* What only a GPU can show, one word each; ends with 1 if something does not hold.
 *
 *   bench_gpu busy             memory comes back while an unrelated kernel runs
 *   bench_gpu storm [SECONDS]  8 threads, 8 streams, kernels that fill and verify
 *   bench_gpu graph            a captured step replayed 1,000 times
 *   bench_gpu churn [COUNT] [DEVICE]  random operations on 4 streams, 2e8 if not said */
#define _GNU_SOURCE
#include "kernels.h"

#include <weir/weir.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB ((uint64_t)1 << 20)
#define THREADS 8
#define STORM_BUFFERS 32
#define CHURN_STREAMS 4
#define CHURN_BUFFERS 2000
#define CHURN_PARTS 10

static weir_device *device;
static int failures;

static void check(weir_result result)
{
    if (result != WEIR_OK) {
        errx(1, "bench_gpu: %s", weir_last_error());
    }
}

static void expect(bool holds, const char *what)
{
    printf("  %s: %s\n", holds ? "yes" : "NO", what);
    failures += !holds;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void open_all(const char *name)
{
    const char *what;
    if (strncmp(name, "cuda", 4) == 0 && !kernels_open(&what)) {
        errx(1, "bench_gpu: %s", what);
    }
    check(weir_device_open(name, &(weir_device_desc){.no_idle = true}, &device));
}

static weir_usage usage(void)
{
    weir_usage now = {.size = sizeof now};
    check(weir_device_memory_usage(device, &now));
    return now;
}

static uint64_t footprint(void)
{
    weir_device_report now = {.size = sizeof now};
    check(weir_device_memory_report(device, &now));
    return now.footprint_bytes;
}

static bool sums_hold(const weir_usage *u)
{
    return u->in_use_bytes + u->padding_bytes + u->deferred_bytes + u->releasable_bytes +
               u->pinned_bytes ==
           u->reserved_bytes;
}

static void clean_up(bool wait)
{
    check(weir_device_memory_cleanup(device, &(weir_cleanup_desc){.wait = wait}, NULL));
}

/* ---- busy ---- */

static void make_and_drop(weir_stream *stream, int count, uint64_t bytes)
{
    weir_buffer buffers[4];
    void *native = weir_stream_native(stream);
    for (int i = 0; i < count; i++) {
        check(weir_buffer_create(stream, bytes, NULL, &buffers[i]));
        kernels_fill(native, weir_buffer_address(buffers[i]), bytes / 4, 7);
    }
    for (int i = 0; i < count; i++) {
        check(weir_buffer_release(buffers[i]));
    }
    check(weir_stream_sync(stream));
}

static void busy(void)
{
    open_all("cuda");
    weir_stream *stream = weir_device_default_stream(device);
    make_and_drop(stream, 4, 64 * MIB); /* warm-up */
    clean_up(true);
    uint64_t start = footprint();
    kernels_spin(3000000000u);
    make_and_drop(stream, 4, 64 * MIB);
    make_and_drop(stream, 4, MIB / 4);
    double before = now_s();
    clean_up(false);
    double took = now_s() - before;
    uint64_t reserved = usage().reserved_bytes, end = footprint();
    bool spins = kernels_is_spinning();
    printf("  cleanup %.3f ms; footprint %.1f MiB at the start, %.1f after\n", took * 1e3,
           (double)start / 0x1p20, (double)end / 0x1p20);
    expect(spins, "the unrelated kernel was running all the time");
    expect(reserved == 0, "nothing is reserved after the cleanup");
    expect(start != WEIR_UNKNOWN_BYTES && end <= start + 2 * MIB,
           "the footprint is back within 2 MiB");
    check(weir_device_close(device));
}

/* ---- storm ---- */

typedef struct held {
    weir_buffer buffer;
    uint32_t value;
    uint64_t words;
} held;

static weir_stream *streams[THREADS];
static double storm_end;
static _Atomic uint64_t storm_count;

static void storm_make(held *one, weir_stream *stream, uint64_t *seed)
{
    one->words = (next_random(seed) & 3) == 0 ? next_random(seed) % (4 * MIB)
                                              : next_random(seed) % (16 * 1024);
    one->words++;
    one->value = (uint32_t)next_random(seed);
    check(weir_buffer_create(stream, one->words * 4, NULL, &one->buffer));
    kernels_fill(weir_stream_native(stream), weir_buffer_address(one->buffer), one->words,
                 one->value);
}

/* On its own stream, or on another one that is declared. */
static void storm_drop(held *one, weir_stream *stream, uint64_t *seed)
{
    weir_stream *on = stream;
    if ((next_random(seed) & 3) == 0) {
        on = streams[next_random(seed) % THREADS];
        check(weir_buffer_use(one->buffer, on));
    }
    kernels_verify(weir_stream_native(on), weir_buffer_address(one->buffer), one->words,
                   one->value);
    check(weir_buffer_release(one->buffer));
    *one = (held){.words = 0};
}

static void *storm_thread(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    uint64_t seed = 88172645463325252u + number;
    held all[STORM_BUFFERS] = {{.words = 0}};
    for (uint64_t i = 0; (i & 15) != 0 || now_s() < storm_end; i++) {
        held *one = &all[next_random(&seed) % STORM_BUFFERS];
        if (one->words == 0) {
            storm_make(one, streams[number], &seed);
        } else {
            storm_drop(one, streams[number], &seed);
        }
        if (next_random(&seed) % 512 == 0) {
            clean_up(false);
        }
        atomic_fetch_add(&storm_count, 1);
    }
    for (size_t i = 0; i < STORM_BUFFERS; i++) {
        if (all[i].words != 0) {
            storm_drop(&all[i], streams[number], &seed);
        }
    }
    return NULL;
}

static void storm(double seconds)
{
    pthread_t threads[THREADS];
    open_all("cuda");
    for (size_t i = 0; i < THREADS; i++) {
        check(weir_stream_create(device, NULL, &streams[i]));
    }
    storm_end = now_s() + seconds;
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, storm_thread, (void *)(uintptr_t)i);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    uint64_t wrong = kernels_errors();
    weir_usage now = usage();
    printf("  %llu steps, %llu moves, %llu lends, %llu commits, %llu decommits\n",
           (unsigned long long)storm_count, (unsigned long long)now.moves,
           (unsigned long long)now.lends, (unsigned long long)now.commits,
           (unsigned long long)now.decommits);
    expect(wrong == 0, "every word was what its owner had written");
    expect(sums_hold(&now) && weir_device_check(device) == WEIR_OK, "the books hold");
    clean_up(true);
    expect(usage().reserved_bytes == 0, "nothing is reserved after the cleanup");
    for (size_t i = 0; i < THREADS; i++) {
        check(weir_stream_close(streams[i]));
    }
    check(weir_device_close(device));
}

/* ---- graph ---- */

/* What a step does: a temporary is filled and verified, twice in the same room. */
static void record(weir_stream *stream)
{
    void *native = weir_stream_native(stream);
    for (uint32_t i = 0; i < 4; i++) {
        weir_buffer scratch;
        check(weir_buffer_create(stream, 8 * MIB, NULL, &scratch));
        kernels_fill(native, weir_buffer_address(scratch), 2 * MIB, i);
        kernels_verify(native, weir_buffer_address(scratch), 2 * MIB, i);
        check(weir_buffer_release(scratch));
    }
}

static void graph(void)
{
    weir_graph *step = NULL;
    open_all("cuda");
    weir_stream *stream = weir_device_default_stream(device), *other = NULL;
    check(weir_stream_create(device, NULL, &other));
    check(weir_capture_begin(stream));
    record(stream);
    weir_buffer beside; /* work on other streams goes on meanwhile */
    check(weir_buffer_create(other, 64 * MIB, NULL, &beside));
    kernels_fill(weir_stream_native(other), weir_buffer_address(beside), 16 * MIB, 9);
    check(weir_stream_sync(other));
    check(weir_capture_end(stream, "step", &step));
    uint64_t before = usage().reserved_bytes;
    for (int i = 0; i < 1000; i++) {
        check(weir_graph_launch(step, stream));
        kernels_verify(weir_stream_native(other), weir_buffer_address(beside), 16 * MIB,
                       9);
    }
    uint64_t wrong = kernels_errors();
    expect(usage().reserved_bytes == before, "1,000 launches reserve nothing more");
    expect(wrong == 0, "no launch met other memory");
    check(weir_capture_begin(stream));
    record(stream);
    check(weir_capture_abort(stream));
    check(weir_graph_destroy(step));
    check(weir_buffer_release(beside));
    clean_up(true);
    expect(usage().reserved_bytes == 0, "nothing is reserved after the cleanup");
    check(weir_stream_close(other));
    check(weir_device_close(device));
}

/* ---- churn ---- */

typedef struct churn_part {
    weir_stream *stream;
    weir_buffer live[CHURN_BUFFERS];
    uint64_t count, seed;
} churn_part;

static void *churn_thread(void *argument)
{
    churn_part *part = argument;
    for (uint64_t i = 0; i < part->count; i++) {
        uint64_t r = next_random(&part->seed);
        weir_buffer *one = &part->live[r % CHURN_BUFFERS];
        if (one->generation != 0) {
            check(weir_buffer_release(*one));
            *one = WEIR_NO_BUFFER;
            continue;
        }
        uint64_t bits = 8 + (r >> 20) % 13; /* 256 B to 2 MiB */
        uint64_t bytes = ((uint64_t)1 << bits) + (r >> 40) % ((uint64_t)1 << bits);
        check(weir_buffer_create(part->stream, bytes, NULL, one));
    }
    return NULL;
}

/* Kilobytes of the process in memory. */
static uint64_t host_kib(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%llu %llu", &pages, &resident) != 2) {
        errx(1, "bench_gpu: /proc/self/statm cannot be read");
    }
    fclose(file);
    return resident * 4;
}

static void churn_round(churn_part *parts, uint64_t count)
{
    pthread_t threads[CHURN_STREAMS];
    for (size_t i = 0; i < CHURN_STREAMS; i++) {
        parts[i].count = count / CHURN_STREAMS;
        pthread_create(&threads[i], NULL, churn_thread, &parts[i]);
    }
    for (size_t i = 0; i < CHURN_STREAMS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void churn(uint64_t count, const char *name)
{
    static churn_part parts[CHURN_STREAMS];
    open_all(name);
    for (size_t i = 0; i < CHURN_STREAMS; i++) {
        parts[i].seed = 1234567 + i;
        check(weir_stream_create(device, NULL, &parts[i].stream));
    }
    uint64_t host[CHURN_PARTS], reserved[CHURN_PARTS];
    bool hold = true;
    double start = now_s();
    printf("  %12s %12s %12s %12s\n", "operations", "host KiB", "reserved", "in_use MiB");
    for (uint64_t i = 0; i < CHURN_PARTS; i++) {
        churn_round(parts, count / CHURN_PARTS);
        weir_usage now = usage();
        hold = hold && sums_hold(&now);
        host[i] = host_kib();
        reserved[i] = now.reserved_bytes;
        printf("  %12llu %12llu %12.1f %12.1f\n",
               (unsigned long long)(count / CHURN_PARTS * (i + 1)),
               (unsigned long long)host[i], (double)reserved[i] / 0x1p20,
               (double)now.in_use_bytes / 0x1p20);
    }
    double took = now_s() - start;
    weir_usage now = usage();
    printf(
        "  %.1f s, %.0f ns an operation and thread; peak reserved %.1f MiB, in_use %.1f;"
        " %llu commits, %llu moves, %llu lends\n",
        took, took * 1e9 * CHURN_STREAMS / (double)count,
        (double)now.peak_reserved_bytes / 0x1p20, (double)now.peak_in_use_bytes / 0x1p20,
        (unsigned long long)now.commits, (unsigned long long)now.moves,
        (unsigned long long)now.lends);
    expect(hold && weir_device_check(device) == WEIR_OK, "all sums are exact");
    expect(host[CHURN_PARTS - 1] <= host[1] + host[1] / 50, "host memory does not grow");
    expect(reserved[CHURN_PARTS - 1] <= reserved[1] + reserved[1] / 20,
           "device memory does not grow");
    for (size_t i = 0; i < CHURN_STREAMS; i++) {
        for (size_t k = 0; k < CHURN_BUFFERS; k++) {
            if (parts[i].live[k].generation != 0) {
                check(weir_buffer_release(parts[i].live[k]));
            }
        }
        check(weir_stream_close(parts[i].stream));
    }
    clean_up(true);
    expect(usage().reserved_bytes == 0, "nothing is reserved after the cleanup");
    check(weir_device_close(device));
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "busy") == 0) {
        busy();
    } else if (strcmp(word, "storm") == 0) {
        storm(argc > 2 ? atof(argv[2]) : 20);
    } else if (strcmp(word, "graph") == 0) {
        graph();
    } else if (strcmp(word, "churn") == 0) {
        churn(argc > 2 ? (uint64_t)atof(argv[2]) : 200000000u,
              argc > 3 ? argv[3] : "cuda");
    } else {
        errx(2, "bench_gpu: busy, storm, graph or churn?");
    }
    return failures == 0 ? 0 : 1;
}
