/* SPDX-License-Identifier: MIT */
/* Kernels of the tensor layer beside plain copies on the same device.
 *
 *     bench_kernels DEVICE ELEMENTS        elementwise chains and reductions
 *     bench_kernels DEVICE products        matrix products, as in torch_products.py
 *
 * Prints a line per measurement: what, microseconds, GB/s of what is read and written
 * (GFLOP/s for matrix products), and the share of the copy's bandwidth. Each is the
 * median of rounds of launches that are waited for together. */
#define _GNU_SOURCE
#include <weir/driver.h>
#include <weir/tensor.h>
#include <weir/weir.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 9
#define LAUNCHES 20

static weir_stream *stream;
static uint64_t count;
static double copy_rate; /* bytes per second */

static void must(weir_result result)
{
    if (result != WEIR_OK) {
        fprintf(stderr, "bench_kernels: %s\n", weir_last_error());
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one;
    double b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Seconds of one `run`, which queues one launch; the first round warms up. */
static double measure(void (*run)(void *), void (*wait)(void *), void *context)
{
    double seconds[ROUNDS + 1];
    for (int round = 0; round <= ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < LAUNCHES; i++) {
            run(context);
        }
        wait(context);
        seconds[round] = (now() - start) / LAUNCHES;
    }
    qsort(seconds + 1, ROUNDS, sizeof *seconds, compare);
    return seconds[1 + ROUNDS / 2];
}

static void report(const char *what, double seconds, double bytes)
{
    double rate = bytes / seconds;
    printf("%-34s %10.1f us %9.1f GB/s %6.1f %%\n", what, seconds * 1e6, rate * 1e-9,
           copy_rate > 0 ? 100 * rate / copy_rate : 100.0);
}

/* ---- the driver's own copy ---- */

typedef struct copier {
    const weir_driver_table *table;
    weir_driver *driver;
    weir_driver_stream stream;
    uint64_t from, to, bytes;
} copier;

static void copy_once(void *context)
{
    const copier *c = context;
    must(c->table->copy(c->driver, c->stream, c->to, c->from, c->bytes));
}

static void copy_wait(void *context)
{
    const copier *c = context;
    must(c->table->stream_sync(c->driver, c->stream));
}

static void measure_copy(const char *device)
{
    copier c = {.bytes = count * sizeof(float)};
    const char *argument = strchr(device, ':');
    size_t length = argument != NULL ? (size_t)(argument - device) : strlen(device);
    for (size_t i = 0; (c.table = weir_driver_at(i)) != NULL; i++) {
        if (strlen(c.table->name) == length &&
            strncmp(c.table->name, device, length) == 0) {
            break;
        }
    }
    must(c.table->open(argument != NULL ? argument + 1 : "", NULL, &c.driver));
    must(c.table->stream_open(c.driver, NULL, &c.stream));
    must(c.table->page_alloc(c.driver, c.bytes, &c.from));
    must(c.table->page_alloc(c.driver, c.bytes, &c.to));
    double seconds = measure(copy_once, copy_wait, &c);
    report("copy by the driver", seconds, 2.0 * (double)c.bytes);
    copy_rate = 2.0 * (double)c.bytes / seconds;
    must(c.table->page_free(c.driver, c.from, c.bytes));
    must(c.table->page_free(c.driver, c.to, c.bytes));
    c.table->stream_close(c.driver, c.stream);
    c.table->close(c.driver);
}

/* ---- tensors ---- */

static weir_tensor *in[5];

static void wait_stream(void *context)
{
    (void)context;
    must(weir_stream_sync(stream));
}

/* Takes the tensor over, and has it computed. */
static void finish(weir_tensor *result)
{
    weir_buffer buffer = weir_tensor_buffer(result);
    if (buffer.generation == 0) {
        must(WEIR_DRIVER);
    }
    weir_tensor_drop(result);
}

/* Takes the tensor over: `next` takes its place. */
static void replace(weir_tensor **tensor, weir_tensor *next)
{
    weir_tensor_drop(*tensor);
    *tensor = next;
}

/* relu(a * x + b) * c - d, all of one shape, or all but x broadcast. */
static void chain(void *context)
{
    weir_tensor *const *operands = context;
    weir_tensor *y = NULL;
    weir_tensor *next = NULL;
    must(weir_tensor_mul(operands[0], operands[1], &y));
    must(weir_tensor_add(y, operands[2], &next));
    replace(&y, next);
    must(weir_tensor_relu(y, &next));
    replace(&y, next);
    must(weir_tensor_mul(y, operands[3], &next));
    replace(&y, next);
    must(weir_tensor_sub(y, operands[4], &next));
    replace(&y, next);
    finish(y);
}

static void chain_of_scalars(void *context)
{
    weir_tensor *const *operands = context;
    weir_tensor *y = NULL;
    weir_tensor *next = NULL;
    must(weir_tensor_mul_scalar(operands[0], 2, &y));
    must(weir_tensor_add_scalar(y, 3, &next));
    replace(&y, next);
    must(weir_tensor_relu(y, &next));
    replace(&y, next);
    must(weir_tensor_mul_scalar(y, 4, &next));
    replace(&y, next);
    must(weir_tensor_sub_scalar(y, 5, &next));
    replace(&y, next);
    finish(y);
}

static void sum_all(void *context)
{
    weir_tensor *result = NULL;
    must(weir_tensor_reduce(WEIR_REDUCE_SUM, *(weir_tensor **)context, WEIR_ALL_AXES,
                            false, &result));
    finish(result);
}

static void sum_rows(void *context)
{
    weir_tensor *result = NULL;
    must(
        weir_tensor_reduce(WEIR_REDUCE_SUM, *(weir_tensor **)context, 1, false, &result));
    finish(result);
}

static void sum_columns(void *context)
{
    weir_tensor *result = NULL;
    must(
        weir_tensor_reduce(WEIR_REDUCE_SUM, *(weir_tensor **)context, 0, false, &result));
    finish(result);
}

static void random_normal(void *context)
{
    (void)context;
    weir_tensor *result = NULL;
    must(weir_tensor_normal(stream, WEIR_SHAPE(count), 0, 1, 7, &result));
    finish(result);
}

static void transpose(void *context)
{
    weir_tensor *view = NULL;
    weir_tensor *result = NULL;
    must(weir_tensor_transpose(*(weir_tensor **)context, 0, 1, &view));
    must(weir_tensor_add_scalar(view, 1, &result));
    weir_tensor_drop(view);
    finish(result);
}

/* ---- matrix products ---- */

static void multiply(void *context)
{
    weir_tensor *const *operands = context;
    weir_tensor *result = NULL;
    must(weir_tensor_matmul(operands[0], operands[1], &result));
    finish(result);
}

static void measure_product(uint64_t size, weir_dtype dtype, const char *name)
{
    char what[64];
    weir_tensor *operands[2];
    for (uint32_t k = 0; k < 2; k++) {
        weir_tensor *exact = NULL;
        must(weir_tensor_normal(stream, WEIR_SHAPE(size, size), 0, 1, k, &exact));
        must(weir_tensor_cast(exact, dtype, &operands[k]));
        weir_tensor_drop(exact);
    }
    double seconds = measure(multiply, wait_stream, operands);
    snprintf(what, sizeof what, "product, %s, %u x %u x %u", name, (unsigned)size,
             (unsigned)size, (unsigned)size);
    printf("%-34s %10.1f us %9.0f GFLOP/s\n", what, seconds * 1e6,
           2.0 * (double)(size * size * size) / seconds * 1e-9);
    weir_tensor_drop(operands[0]);
    weir_tensor_drop(operands[1]);
}

static void measure_products(void)
{
    for (uint64_t size = 256; size <= 4096; size *= 4) {
        measure_product(size, WEIR_DTYPE_F32, "f32");
    }
    for (uint64_t size = 256; size <= 4096; size *= 4) {
        measure_product(size, WEIR_DTYPE_F16, "f16");
    }
}

static void make_inputs(void)
{
    for (uint32_t k = 0; k < 5; k++) {
        must(weir_tensor_uniform(stream, WEIR_SHAPE(count / 1024, 1024), -1, 1, k,
                                 &in[k]));
    }
}

static void measure_all(void)
{
    double bytes = (double)count * sizeof(float);
    weir_tensor *row = NULL;
    make_inputs();
    report("chain, 5 operands", measure(chain, wait_stream, in), 6 * bytes);
    report("chain, 1 operand and scalars", measure(chain_of_scalars, wait_stream, in),
           2 * bytes);
    must(weir_tensor_uniform(stream, WEIR_SHAPE(1024), -1, 1, 9, &row));
    weir_tensor *rows[5] = {in[0], row, row, row, row};
    report("chain, 1 operand and rows", measure(chain, wait_stream, rows), 2 * bytes);
    weir_tensor *halves[5];
    for (uint32_t k = 0; k < 5; k++) {
        must(weir_tensor_cast(in[k], WEIR_DTYPE_F16, &halves[k]));
    }
    report("chain, 5 operands of f16", measure(chain, wait_stream, halves), 3 * bytes);
    for (uint32_t k = 0; k < 5; k++) {
        weir_tensor_drop(halves[k]);
    }
    report("sum of all", measure(sum_all, wait_stream, in), bytes);
    report("sum of rows", measure(sum_rows, wait_stream, in), bytes);
    report("sum of columns", measure(sum_columns, wait_stream, in), bytes);
    report("transposed, plus 1", measure(transpose, wait_stream, in), 2 * bytes);
    report("normal numbers", measure(random_normal, wait_stream, NULL), bytes);
    weir_tensor_drop(row);
    for (uint32_t k = 0; k < 5; k++) {
        weir_tensor_drop(in[k]);
    }
}

int main(int argument_count, char **arguments)
{
    weir_device *device = NULL;
    bool products = argument_count == 3 && strcmp(arguments[2], "products") == 0;
    count = argument_count == 3 ? strtoull(arguments[2], NULL, 10) / 1024 * 1024 : 0;
    if (count == 0 && !products) {
        fprintf(stderr, "usage: bench_kernels DEVICE ELEMENTS|products\n");
        return 2;
    }
    must(weir_device_open(arguments[1], NULL, &device));
    stream = weir_device_default_stream(device);
    if (products) {
        measure_products();
    } else {
        printf("%s, %llu elements of f32\n", arguments[1], (unsigned long long)count);
        measure_copy(arguments[1]);
        measure_all();
    }
    must(weir_device_memory_cleanup(device, NULL, NULL));
    must(weir_device_close(device));
    return 0;
}
