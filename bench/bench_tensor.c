/* SPDX-License-Identifier: MIT */
/* Tensors on the host.
 *
 *     bench_tensor chain ELEMENTS REPEATS
 *         y = relu(a * x + b) * c - d with scalars (form 0), with rows for a and b (1)
 *         and with tensors all round (2), one kernel each: GB read and written in a
 *         second of processor time, beside those of the best copy by the same threads
 *     bench_tensor matmul SIZE REPEATS
 *         a square product beside cblas_sgemm itself, in GFLOP a second of processor
 *         time
 *     bench_tensor steps COUNT
 *         a small net forward, COUNT times: bytes that reserved grew by after step 10,
 *         and driver calls for memory after it
 *
 * Buffers are warm and runs take turns. Of chains and copies the best of each counts:
 * other programs on the machine only ever make a run slower. Of products, whose caches
 * such programs empty for both ways alike, the median does. */
#define _GNU_SOURCE
#include "child.h"
#include "sim.h"

#include <weir/kernel.h>
#include <weir/tensor.h>

#include <dlfcn.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static weir_stream *stream;

static void drop(weir_tensor **tensor)
{
    weir_tensor_drop(*tensor);
    *tensor = NULL;
}

static weir_tensor *uniform(weir_shape shape, uint64_t seed)
{
    weir_tensor *made = NULL;
    wr_bench_must(weir_tensor_uniform(stream, shape, -1, 1, seed, &made), "uniform");
    return made;
}

/* Of all threads: waiting for memory counts, and what other programs take does not. */
static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- chain ---- */

static void copy_elements(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    const char *from = (const char *)(uintptr_t)launch->bindings[0].address;
    char *to = (char *)(uintptr_t)launch->bindings[1].address;
    memcpy(to + begin * 4, from + begin * 4, (end - begin) * 4);
}

/* The C library stores past the caches only what is larger than a thread's part. */
static void stream_elements(const weir_launch *launch, uint64_t begin, uint64_t end)
{
#ifdef __SSE2__
    const __m128i *from = (const __m128i *)(uintptr_t)launch->bindings[0].address;
    __m128i *to = (__m128i *)(uintptr_t)launch->bindings[1].address;
    for (uint64_t i = begin / 4; i < end / 4; i += 4) {
        __m128i values[4] = {from[i], from[i + 1], from[i + 2], from[i + 3]};
        _mm_prefetch((const char *)(from + i + 128), _MM_HINT_T0);
        for (int k = 0; k < 4; k++) {
            _mm_stream_si128(&to[i + (uint64_t)k], values[k]);
        }
    }
    _mm_sfence();
#else
    copy_elements(launch, begin, end);
#endif
}

typedef void (*copy_fn)(const weir_launch *launch, uint64_t begin, uint64_t end);

/* Seconds for a copy of the tensor's elements into the buffer. */
static double copy(const weir_tensor *from, weir_buffer to, copy_fn way)
{
    weir_buffer source = weir_tensor_buffer(from);
    const weir_kernel kernel = {.name = "copy", .host = way};
    const weir_binding bindings[2] = {
        {weir_buffer_address(source), weir_buffer_bytes(source), WEIR_ACCESS_READ},
        {weir_buffer_address(to), weir_buffer_bytes(to), WEIR_ACCESS_WRITE}};
    const weir_launch launch = {.kernel = &kernel,
                                .bindings = bindings,
                                .binding_count = 2,
                                .element_count = weir_tensor_element_count(from)};
    double begun = processor_seconds();
    wr_bench_must(weir_stream_launch(stream, &launch), "launch");
    wr_bench_must(weir_stream_sync(stream), "sync");
    return processor_seconds() - begun;
}

/* An operand for each of *, +, * and -; NULL: a number. */
typedef struct operands {
    weir_tensor *with[4];
} operands;

/* Records the chain; nothing runs. */
static weir_tensor *record_chain(weir_tensor *x, const operands *given)
{
    static const weir_op ops[4] = {WEIR_OP_MUL, WEIR_OP_ADD, WEIR_OP_MUL, WEIR_OP_SUB};
    weir_tensor *y = weir_tensor_clone(x);
    for (int i = 0; i < 4; i++) {
        weir_tensor *next = NULL;
        wr_bench_must(given->with[i] != NULL
                          ? weir_tensor_binary(ops[i], y, given->with[i], &next)
                          : weir_tensor_binary_scalar(ops[i], y, 0.5 + i, &next),
                      "binary");
        drop(&y);
        y = next;
        if (i == 1) {
            wr_bench_must(weir_tensor_relu(y, &next), "relu");
            drop(&y);
            y = next;
        }
    }
    return y;
}

static double run_chain(weir_tensor *x, const operands *given)
{
    weir_tensor *y = record_chain(x, given);
    double begun = processor_seconds();
    wr_bench_must(weir_stream_sync(stream), "sync");
    double taken = processor_seconds() - begun;
    drop(&y);
    return taken;
}

static operands operands_of(int form, uint64_t count)
{
    uint64_t columns = 1024;
    operands made = {{NULL}};
    for (int i = 0; i < 4 && form > 0; i++) {
        bool is_row = form == 1;
        if (!is_row || i < 2) {
            made.with[i] = uniform(is_row ? WEIR_SHAPE(columns)
                                          : WEIR_SHAPE(count / columns, columns),
                                   (uint64_t)i + 2);
        }
    }
    return made;
}

static void measure_chain(uint64_t count, uint64_t repeats)
{
    weir_buffer to;
    weir_tensor *x = uniform(WEIR_SHAPE(count / 1024, 1024), 1);
    wr_bench_must(weir_buffer_create(stream, count * 4, NULL, &to), "buffer");
    for (int form = 0; form < 3; form++) {
        operands given = operands_of(form, count);
        double best[2] = {INFINITY, INFINITY};
        for (uint64_t i = 0; i < repeats + 2; i++) {
            double copied =
                fmin(copy(x, to, copy_elements), copy(x, to, stream_elements));
            double chained = run_chain(x, &given);
            best[0] = i >= 2 ? fmin(best[0], copied) : best[0];
            best[1] = i >= 2 ? fmin(best[1], chained) : best[1];
        }
        double moved = form == 2 ? 6 : 2; /* tensors read and written */
        printf("chain %d %.2f %.2f\n", form, (double)count * 4 * moved / best[1] / 1e9,
               (double)count * 4 * 2 / best[0] / 1e9);
        for (int i = 0; i < 4; i++) {
            drop(&given.with[i]);
        }
    }
    weir_buffer_release(to);
    drop(&x);
}

/* ---- matmul ---- */

typedef void (*sgemm_fn)(int order, int left_form, int right_form, int rows, int columns,
                         int inner, float factor, const float *left, int left_lead,
                         const float *right, int right_lead, float keep, float *result,
                         int result_lead);

static sgemm_fn find_sgemm(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    void *symbol = library != NULL ? dlsym(library, "cblas_sgemm") : NULL;
    sgemm_fn found = NULL;
    if (symbol == NULL) {
        wr_bench_fail("libopenblas.so.0 is not there");
    }
    memcpy(&found, &symbol, sizeof found);
    return found;
}

static float *elements_of(const weir_tensor *tensor)
{
    return (float *)(uintptr_t)weir_buffer_address(weir_tensor_buffer(tensor));
}

static double run_direct(sgemm_fn sgemm, weir_tensor *const given[3], int size)
{
    double begun = processor_seconds();
    sgemm(101, 111, 111, size, size, size, 1, elements_of(given[0]), size,
          elements_of(given[1]), size, 0, elements_of(given[2]), size);
    return processor_seconds() - begun;
}

static double run_matmul(weir_tensor *const given[3])
{
    weir_tensor *y = NULL;
    double begun = processor_seconds();
    wr_bench_must(weir_tensor_matmul(given[0], given[1], &y), "matmul");
    wr_bench_must(weir_stream_sync(stream), "sync");
    double taken = processor_seconds() - begun;
    drop(&y);
    return taken;
}

static int compare(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static double median(double *seconds, uint64_t count)
{
    qsort(seconds, count, sizeof *seconds, compare);
    return seconds[count / 2];
}

static void measure_matmul(uint64_t size, uint64_t repeats)
{
    sgemm_fn sgemm = find_sgemm();
    weir_tensor *given[3];
    double *seconds[2];
    for (uint64_t i = 0; i < 3; i++) {
        given[i] = uniform(WEIR_SHAPE(size, size), i + 1);
    }
    for (int way = 0; way < 2; way++) {
        seconds[way] = calloc(repeats, sizeof *seconds[way]);
        if (seconds[way] == NULL) {
            wr_bench_fail("no memory for the times");
        }
        run_direct(sgemm, given, (int)size);
        run_matmul(given);
    }
    for (uint64_t i = 0; i < repeats; i++) {
        seconds[0][i] = run_direct(sgemm, given, (int)size);
        seconds[1][i] = run_matmul(given);
    }
    double work = 2e-9 * (double)size * (double)size * (double)size;
    printf("matmul %" PRIu64 " %.2f %.2f\n", size, work / median(seconds[1], repeats),
           work / median(seconds[0], repeats));
    for (int i = 0; i < 3; i++) {
        drop(&given[i]);
    }
    free(seconds[0]);
    free(seconds[1]);
}

/* ---- steps ---- */

/* softmax(relu(x w) v), and its largest class. */
static void forward(weir_tensor *x, weir_tensor *w, weir_tensor *v)
{
    weir_tensor *hidden = NULL;
    weir_tensor *active = NULL;
    weir_tensor *logits = NULL;
    weir_tensor *classes = NULL;
    weir_tensor *best = NULL;
    float numbers[32];
    wr_bench_must(weir_tensor_matmul(x, w, &hidden), "matmul");
    wr_bench_must(weir_tensor_relu(hidden, &active), "relu");
    wr_bench_must(weir_tensor_matmul(active, v, &logits), "matmul");
    wr_bench_must(weir_tensor_softmax(logits, 1, &classes), "softmax");
    wr_bench_must(weir_tensor_reduce_argmax(classes, 1, false, &best), "argmax");
    wr_bench_must(weir_tensor_into_data(best, numbers, 32), "into_data");
    drop(&hidden);
    drop(&active);
    drop(&logits);
    drop(&classes);
    drop(&best);
}

static weir_usage usage_now(void)
{
    weir_usage usage = {.size = sizeof usage};
    wr_bench_must(weir_device_memory_usage(weir_stream_device(stream), &usage), "usage");
    return usage;
}

static uint64_t driver_calls(const weir_usage *usage)
{
    return usage->page_allocs + usage->page_frees + usage->commits + usage->decommits +
           usage->moves;
}

static void measure_steps(uint64_t count)
{
    weir_tensor *x = uniform(WEIR_SHAPE(32, 64), 1);
    weir_tensor *w = uniform(WEIR_SHAPE(64, 128), 2);
    weir_tensor *v = uniform(WEIR_SHAPE(128, 10), 3);
    weir_usage warm = {0};
    for (uint64_t i = 0; i < count; i++) {
        forward(x, w, v);
        warm = i == 10 ? usage_now() : warm;
    }
    weir_usage end = usage_now();
    printf("steps %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", count,
           end.peak_reserved_bytes - warm.reserved_bytes,
           driver_calls(&end) - driver_calls(&warm));
    drop(&x);
    drop(&w);
    drop(&v);
}

int main(int argc, char **argv)
{
    weir_device *device = NULL;
    const weir_device_desc desc = {.no_idle = true};
    wr_bench_must(weir_device_open("host", &desc, &device), "open");
    stream = weir_device_default_stream(device);
    if (argc == 4 && strcmp(argv[1], "chain") == 0) {
        measure_chain(wr_bench_number(argv[2]), wr_bench_number(argv[3]));
    } else if (argc == 4 && strcmp(argv[1], "matmul") == 0) {
        measure_matmul(wr_bench_number(argv[2]), wr_bench_number(argv[3]));
    } else if (argc == 3 && strcmp(argv[1], "steps") == 0) {
        measure_steps(wr_bench_number(argv[2]));
    } else {
        wr_bench_fail("bench_tensor chain ELEMENTS REPEATS | matmul SIZE REPEATS | steps "
                      "COUNT");
    }
    wr_bench_must(weir_device_close(device), "close");
    return 0;
}
