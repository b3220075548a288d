/* SPDX-License-Identifier: MIT */
/* When does memory that was handed back really go? Pages of a driver are taken, used and
 * freed, on an idle queue and on a busy one, and after every call the process's footprint
 * is looked at. Fails if the memory is not back in the end.
 *
 *   letting_go [DEVICE]      "host" if none is named
 *
 * It calls the driver's table itself (weir/driver.h), below all of Weir's pools. */
#define _GNU_SOURCE
#include <weir/weir.h>

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MIB ((uint64_t)1 << 20)
#define PAGE (64 * MIB)
#define PAGES 4
#define SLACK (16 * MIB) /* code made at run time, threads */
#define MOST_SUBMISSIONS 64
#define MOST_DEPTH 8
#define PIECE_MS 10.0      /* at least, of work */
#define MOST_GROUPS 32768u /* of it */

static const weir_driver_table *table;
static weir_driver *driver;
static weir_driver_stream stream;
static uint64_t pages[PAGES];

static void check(weir_result result)
{
    if (result != WEIR_OK) {
        errx(1, "%s", weir_last_error());
    }
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static uint64_t footprint(void)
{
    weir_memory_info info = {.footprint_bytes = WEIR_UNKNOWN_BYTES};
    if (table->memory_info != NULL) {
        check(table->memory_info(driver, &info));
    }
    return info.footprint_bytes;
}

static uint64_t pending(void)
{
    return table->pending_bytes != NULL ? table->pending_bytes(driver) : 0;
}

static void show(const char *step)
{
    uint64_t bytes = footprint();
    printf("  %-34s", step);
    if (bytes == WEIR_UNKNOWN_BYTES) {
        printf(" %10s", "n/a");
    } else {
        printf(" %10.1f", (double)bytes / 0x1p20);
    }
    printf(" %16.1f\n", (double)pending() / 0x1p20);
}

/* ---- what is done ---- */

static void touch(uint64_t page)
{
    static char block[4096];
    for (uint64_t at = 0; at < PAGE; at += sizeof block) {
        check(table->write(driver, stream, page + at, block, sizeof block));
        if (table->pending_bytes != NULL) {
            break; /* libraries clear a page as a whole when it is first used */
        }
    }
}

static void take(void)
{
    for (int i = 0; i < PAGES; i++) {
        check(table->page_alloc(driver, PAGE, &pages[i]));
    }
}

static void use(void)
{
    for (int i = 0; i < PAGES; i++) {
        touch(pages[i]);
    }
    check(table->stream_sync(driver, stream));
}

static void free_all(void)
{
    for (int i = 0; i < PAGES; i++) {
        check(table->page_free(driver, pages[i], PAGE));
    }
}

static void rest(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* ---- an idle queue ---- */

static void try_idle(uint64_t other)
{
    printf(
        "\nidle queue                               footprint  driver_deferred   MiB\n");
    show("start");
    take();
    show("4 pages of 64 MiB");
    use();
    show("used, work done");
    free_all();
    show("freed");
    check(table->stream_sync(driver, stream));
    show("waited for the stream");
    rest(500);
    show("+500 ms");
    touch(other);
    check(table->stream_sync(driver, stream));
    show("other work, done");
}

static bool try_progress(void)
{
    take();
    use();
    uint64_t full = footprint();
    free_all();
    double start = now_ms();
    if (table->progress != NULL) {
        check(table->progress(driver, true));
    }
    double took = now_ms() - start;
    show("again, freed, progress(wait)");
    printf("  progress took %.1f ms\n", took);
    return full == WEIR_UNKNOWN_BYTES || footprint() + PAGES * PAGE <= full + SLACK;
}

/* ---- a busy queue ---- */

/* Chains of multiplications, as many workgroups as take some milliseconds. */
static weir_result write_source(const weir_kernel *kernel, weir_language language,
                                weir_write_fn write, void *context)
{
    static const char text[] =
        "@group(0) @binding(0) var<storage, read_write> b: array<u32>;\n"
        "@compute @workgroup_size(256)\n"
        "fn work(@builtin(global_invocation_id) at: vec3<u32>) {\n"
        "  var x = at.x;\n"
        "  for (var i = 0u; i < 2000u; i++) { x = x * 1664525u + 1013904223u; }\n"
        "  b[at.x] = x;\n"
        "}\n";
    if (language != WEIR_LANGUAGE_WGSL) {
        return weir_driver_error(WEIR_UNSUPPORTED, "%s: in WGSL only", kernel->name);
    }
    return write(context, text, sizeof text - 1);
}

static uint64_t groups = 16;

/* Queues one piece of work, a submission of its own. */
static weir_result submit(uint64_t page, weir_driver_fence *fence)
{
    static const weir_kernel kernel = {
        .kind = WEIR_KERNEL_CUSTOM, .name = "work", .id = 1, .source = write_source};
    const weir_binding binding = {page, PAGE, WEIR_ACCESS_READ_WRITE};
    const weir_launch launch = {.kernel = &kernel,
                                .bindings = &binding,
                                .binding_count = 1,
                                .element_count = groups * WEIR_WGSL_ELEMENTS};
    weir_result result = table->launch(driver, stream, &launch);
    return result == WEIR_OK ? table->fence_record(driver, stream, fence) : result;
}

/* Frees pages while `depth` submissions are under way, and goes on working until the
 * memory is gone. */
static void try_busy(uint64_t other, int depth)
{
    weir_driver_fence fences[MOST_DEPTH] = {0};
    take();
    use();
    uint64_t full = footprint();
    for (int i = 0; i < depth; i++) {
        check(submit(other, &fences[i]));
    }
    free_all();
    double start = now_ms();
    int count = 0;
    bool is_gone = false;
    while (!is_gone && count < MOST_SUBMISSIONS) {
        check(table->fence_wait(driver, fences[count % depth]));
        table->fence_release(driver, fences[count % depth]);
        check(submit(other, &fences[count % depth]));
        count++;
        is_gone = full != WEIR_UNKNOWN_BYTES ? footprint() + PAGES * PAGE / 2 < full
                                             : pending() == 0;
    }
    double took = now_ms() - start;
    printf("  %d under way: gone after %d more, %.1f ms\n", depth, count, took);
    check(table->stream_sync(driver, stream));
    for (int i = 0; i < depth; i++) {
        table->fence_release(driver, fences[i]);
    }
}

/* What one piece takes; less than 0 if the driver runs none. */
static double time_piece(uint64_t other)
{
    weir_driver_fence fence;
    double start = now_ms();
    if (table->launch == NULL || table->pending_bytes == NULL ||
        submit(other, &fence) != WEIR_OK) {
        return -1;
    }
    check(table->fence_wait(driver, fence));
    table->fence_release(driver, fence);
    return now_ms() - start;
}

static void try_all_depths(uint64_t other)
{
    if (time_piece(other) < 0) { /* compiles it, too */
        return;                  /* nothing can be under way here */
    }
    double took;
    while ((took = time_piece(other)) < PIECE_MS && groups < MOST_GROUPS) {
        groups *= 2;
    }
    printf("\nbusy queue: pages freed with submissions of %.1f ms under way\n", took);
    try_busy(other, 1);
    try_busy(other, 3);
    try_busy(other, MOST_DEPTH);
}

/* ---- all of it ---- */

static void open_driver(const char *name)
{
    size_t length = strcspn(name, ":");
    for (size_t i = 0; (table = weir_driver_at(i)) != NULL; i++) {
        if (strlen(table->name) == length && strncmp(table->name, name, length) == 0) {
            break;
        }
    }
    if (table == NULL) {
        errx(2, "there is no driver for \"%s\"", name);
    }
    check(table->open(name[length] == ':' ? name + length + 1 : "", NULL, &driver));
    check(table->stream_open(driver, NULL, &stream));
}

int main(int argc, char **argv)
{
    uint64_t other;
    weir_driver_properties properties;
    open_driver(argc > 1 ? argv[1] : "host");
    table->properties(driver, &properties);
    printf("%s: %s\n", table->name, properties.name);
    check(table->page_alloc(driver, PAGE, &other));
    touch(other);
    check(table->stream_sync(driver, stream));
    try_idle(other);
    bool is_back = try_progress();
    try_all_depths(other);
    check(table->page_free(driver, other, PAGE));
    table->stream_close(driver, stream);
    table->close(driver);
    printf("\n%s\n", is_back ? "all of it came back" : "memory is MISSING");
    return is_back ? 0 : 1;
}
