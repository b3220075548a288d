/* SPDX-License-Identifier: MIT */
/* Several threads on one device: every snapshot obeys the sums exactly, nothing is lost,
 * and in the end everything goes back. Threads note what they find; the main thread
 * asserts. */
#define _GNU_SOURCE
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WORKERS 4
#define SLOTS 48

/* The first thing that a thread found wrong; the others are its echoes. */
static _Atomic bool is_wrong;
static char wrong[256];

static void note(const char *what, const char *detail)
{
    if (!atomic_exchange(&is_wrong, true)) {
        snprintf(wrong, sizeof wrong, "%s: %s", what, detail);
    }
}

static bool expect(weir_result result, const char *what)
{
    if (result != WEIR_OK) {
        note(what, weir_last_error());
    }
    return result == WEIR_OK;
}

static void assert_nothing_wrong(void)
{
    if (atomic_exchange(&is_wrong, false)) {
        fail_msg("%s", wrong);
    }
}

static void start(pthread_t *thread, void *(*run)(void *), void *context)
{
    assert_int_equal(pthread_create(thread, NULL, run, context), 0);
}

static void join(pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static uint64_t rounds(uint64_t few)
{
    return environment_number("WEIR_SOAK", 0) != 0 ? few * 100 : few;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- sums in every snapshot ---- */

/* Four threads, each with a stream, that swap buffers through shared slots: what one has
 * made, any other releases. */
typedef struct exchange {
    rig *r;
    weir_stream *streams[WORKERS];
    _Atomic uint64_t slots[SLOTS]; /* a handle, or 0 */
    _Atomic uint64_t snapshots;
    _Atomic bool stop;
    uint64_t rounds;
} exchange;

typedef struct worker {
    exchange *shared;
    unsigned number;
} worker;

static uint64_t pack(weir_buffer buffer)
{
    return (uint64_t)buffer.index << 32 | buffer.generation;
}

static weir_buffer unpack(uint64_t packed)
{
    return (weir_buffer){(uint32_t)(packed >> 32), (uint32_t)packed};
}

static uint64_t some_bytes(uint64_t *random)
{
    uint64_t bit = next_random(random) % 15;
    return ((uint64_t)256 << bit) + next_random(random) % ((uint64_t)256 << bit);
}

static void *swap_buffers(void *context)
{
    worker *me = context;
    exchange *shared = me->shared;
    uint64_t random = 0x1234567 + me->number;
    weir_stream *stream = shared->streams[me->number];
    weir_driver *sim = shared->r->sim;
    for (uint64_t i = 0; i < shared->rounds; i++) {
        weir_buffer made = WEIR_NO_BUFFER;
        weir_buffer_desc desc = {.tag = me->number % 2 == 0 ? "even" : "odd"};
        if (!expect(weir_buffer_create(stream, some_bytes(&random), &desc, &made),
                    "create")) {
            break;
        }
        weir_stream *other = shared->streams[next_random(&random) % WORKERS];
        if (next_random(&random) % 8 == 0) {
            expect(weir_buffer_use(made, other), "use");
            expect(weir_sim_queue(sim, weir_stream_driver_stream(other)), "queue");
        }
        uint64_t old =
            atomic_exchange(&shared->slots[next_random(&random) % SLOTS], pack(made));
        if (old != 0) {
            expect(weir_buffer_release(unpack(old)), "release");
        }
        if (next_random(&random) % 64 == 0) {
            weir_sim_finish(sim, weir_stream_driver_stream(other));
        }
        if (next_random(&random) % 512 == 0) {
            expect(weir_device_memory_cleanup(shared->r->device, NULL, NULL), "cleanup");
        }
    }
    return NULL;
}

static void check_sum(const weir_usage *usage)
{
    uint64_t sum = usage->in_use_bytes + usage->padding_bytes + usage->deferred_bytes +
                   usage->releasable_bytes + usage->pinned_bytes;
    char text[192];
    if (sum != usage->reserved_bytes || usage->padding_bytes > usage->reserved_bytes ||
        usage->in_use_bytes > usage->reserved_bytes) {
        snprintf(text, sizeof text, "%llu + %llu + %llu + %llu + %llu is not %llu",
                 (unsigned long long)usage->in_use_bytes,
                 (unsigned long long)usage->padding_bytes,
                 (unsigned long long)usage->deferred_bytes,
                 (unsigned long long)usage->releasable_bytes,
                 (unsigned long long)usage->pinned_bytes,
                 (unsigned long long)usage->reserved_bytes);
        note("snapshot", text);
    }
}

static void check_snapshot(const weir_usage *usage)
{
    check_sum(usage);
    if (usage->peak_reserved_bytes < usage->reserved_bytes ||
        usage->peak_in_use_bytes < usage->in_use_bytes) {
        note("snapshot", "a peak is below its value");
    }
}

static void *read_snapshots(void *context)
{
    exchange *shared = context;
    while (!atomic_load(&shared->stop)) {
        weir_usage usage = {0};
        if (expect(weir_device_memory_usage(shared->r->device, &usage), "usage")) {
            check_snapshot(&usage);
        }
        for (unsigned i = 0; i < WORKERS; i++) {
            expect(weir_stream_memory_usage(shared->streams[i], &usage), "usage");
            check_sum(&usage);
        }
        weir_tag_usage tag;
        expect(weir_device_tag_usage(shared->r->device, "even", &tag), "tag usage");
        atomic_fetch_add(&shared->snapshots, 1);
        sched_yield();
    }
    return NULL;
}

static void release_slots(exchange *shared)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        uint64_t old = atomic_exchange(&shared->slots[i], 0);
        if (old != 0) {
            drop(unpack(old));
        }
    }
}

static void exchange_on(const weir_sim_desc *sim, const char *preset)
{
    weir_device_desc options = {.preset = preset, .idle_ms = 20};
    rig r = rig_open(sim, &options);
    static exchange shared;
    memset(&shared, 0, sizeof shared);
    shared.r = &r;
    shared.rounds = rounds(10000);
    worker workers[WORKERS];
    pthread_t threads[WORKERS], reader;
    for (unsigned i = 0; i < WORKERS; i++) {
        shared.streams[i] = open_stream(r.device, NULL);
        workers[i] = (worker){&shared, i};
    }
    start(&reader, read_snapshots, &shared);
    for (unsigned i = 0; i < WORKERS; i++) {
        start(&threads[i], swap_buffers, &workers[i]);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        join(threads[i]);
    }
    atomic_store(&shared.stop, true);
    join(reader);
    assert_nothing_wrong();
    assert_true(atomic_load(&shared.snapshots) > 0);
    release_slots(&shared);
    assert_consistent(&r);
    weir_sim_finish_all(r.sim);
    for (unsigned i = 0; i < WORKERS; i++) {
        assert_ok(weir_stream_close(shared.streams[i]));
    }
    rig_close(&r);
}

static void threads__every_snapshot_adds_up_with_granules(void **state)
{
    (void)state;
    exchange_on(NULL, NULL);
}

static void threads__every_snapshot_adds_up_with_whole_pages(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    exchange_on(&sim, NULL);
}

static void threads__every_snapshot_adds_up_with_adaptive(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    exchange_on(&sim, "adaptive");
}

static void threads__every_snapshot_adds_up_with_subslices_and_exclusive(void **state)
{
    (void)state;
    exchange_on(NULL, "subslices");
    exchange_on(NULL, "exclusive");
}

/* ---- releases from elsewhere ---- */

#define HANDED 2000

typedef struct handed {
    weir_buffer buffers[HANDED];
    _Atomic unsigned made; /* how many may be released */
} handed;

static void *release_what_is_made(void *context)
{
    handed *line = context;
    for (unsigned i = 0; i < HANDED; i++) {
        while (atomic_load(&line->made) <= i) {
            sched_yield();
        }
        expect(weir_buffer_release(line->buffers[i]), "release");
    }
    return NULL;
}

static void threads__a_buffer_may_be_released_by_any_thread(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    static handed line;
    memset(&line, 0, sizeof line);
    pthread_t other;
    start(&other, release_what_is_made, &line);
    for (unsigned i = 0; i < HANDED; i++) {
        line.buffers[i] = make(r.stream, 1000 + i * 37, NULL);
        atomic_store(&line.made, i + 1);
    }
    join(other);
    assert_nothing_wrong();
    assert_int_equal(usage_of(r.device).in_use_bytes, 0);
    assert_consistent(&r);
    weir_usage settled = settled_usage(r.device);
    assert_int_equal(settled.releasable_bytes, settled.reserved_bytes);
    rig_close(&r);
}

typedef struct last_reference {
    weir_buffer buffer;
    pthread_barrier_t *barrier;
    _Atomic unsigned ok, stale;
} last_reference;

static void *release_once(void *context)
{
    last_reference *last = context;
    pthread_barrier_wait(last->barrier);
    weir_result result = weir_buffer_release(last->buffer);
    if (result == WEIR_OK) {
        atomic_fetch_add(&last->ok, 1);
    } else if (result == WEIR_STALE) {
        atomic_fetch_add(&last->stale, 1);
    }
    return NULL;
}

static void threads__of_many_releases_at_once_only_the_references_count(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, WORKERS), 0);
    for (uint64_t i = 0; i < rounds(100); i++) {
        last_reference last = {.buffer = make(r.stream, MIB, NULL), .barrier = &barrier};
        assert_ok(weir_buffer_retain(last.buffer));
        pthread_t threads[WORKERS];
        for (unsigned t = 0; t < WORKERS; t++) {
            start(&threads[t], release_once, &last);
        }
        for (unsigned t = 0; t < WORKERS; t++) {
            join(threads[t]);
        }
        assert_int_equal(atomic_load(&last.ok), 2);
        assert_int_equal(atomic_load(&last.stale), WORKERS - 2);
        assert_int_equal(usage_of(r.device).live_count, 0);
    }
    pthread_barrier_destroy(&barrier);
    assert_consistent(&r);
    rig_close(&r);
}

/* ---- streams come and go ---- */

static void *open_and_close_streams(void *context)
{
    rig *r = context;
    for (uint64_t i = 0; i < rounds(200); i++) {
        weir_stream *stream = NULL;
        if (!expect(weir_stream_create(r->device, NULL, &stream), "stream create")) {
            break;
        }
        for (uint64_t b = 1; b <= 10; b++) {
            weir_buffer buffer = WEIR_NO_BUFFER;
            if (expect(weir_buffer_create(stream, b * 300 * KIB, NULL, &buffer),
                       "create")) {
                expect(weir_sim_queue(r->sim, weir_stream_driver_stream(stream)),
                       "queue");
                expect(weir_buffer_release(buffer), "release");
            }
        }
        weir_sim_finish(r->sim, weir_stream_driver_stream(stream));
        expect(weir_stream_close(stream), "stream close");
    }
    return NULL;
}

static void threads__streams_open_and_close_beside_each_other(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    pthread_t threads[WORKERS];
    for (unsigned t = 0; t < WORKERS; t++) {
        start(&threads[t], open_and_close_streams, &r);
    }
    for (int i = 0; i < 200; i++) {
        weir_usage usage = usage_of(r.device);
        assert_sums(&usage);
        sched_yield();
    }
    for (unsigned t = 0; t < WORKERS; t++) {
        join(threads[t]);
    }
    assert_nothing_wrong();
    weir_usage most = usage_of(r.device);
    /* What a closed stream had serves the next: no more than all at once ever held. */
    assert_true(most.peak_reserved_bytes <= WORKERS * 24 * MIB);
    assert_int_equal(most.in_use_bytes, 0);
    assert_consistent(&r);
    rig_close(&r);
}

/* ---- hooks ---- */

typedef struct slow_hook {
    rig *r;
    _Atomic bool entered, may_leave, left;
} slow_hook;

static void run_slowly(void *context, weir_stream *stream)
{
    (void)stream;
    slow_hook *me = context;
    atomic_store(&me->entered, true);
    while (!atomic_load(&me->may_leave)) {
        sched_yield();
    }
    atomic_store(&me->left, true);
}

static void *clean_up(void *context)
{
    slow_hook *me = context;
    expect(weir_device_memory_cleanup(me->r->device, NULL, NULL), "cleanup");
    return NULL;
}

static void *allow_after_a_moment(void *context)
{
    slow_hook *me = context;
    struct timespec moment = {0, 20000000};
    nanosleep(&moment, NULL);
    atomic_store(&me->may_leave, true);
    return NULL;
}

static void threads__a_removed_hook_is_not_running_any_more(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    slow_hook slow = {.r = &r};
    weir_stream_hook hook = {.context = &slow, .before_cleanup = run_slowly};
    assert_ok(weir_stream_hook_add(r.stream, &hook));
    pthread_t cleaner, helper;
    start(&cleaner, clean_up, &slow);
    while (!atomic_load(&slow.entered)) {
        sched_yield();
    }
    start(&helper, allow_after_a_moment, &slow);
    assert_ok(weir_stream_hook_remove(r.stream, &slow));
    assert_true(atomic_load(&slow.left));
    join(cleaner);
    join(helper);
    assert_nothing_wrong();
    rig_close(&r);
}

/* ---- the reclaimer ---- */

static void threads__the_reclaimer_gives_idle_memory_back_by_itself(void **state)
{
    (void)state;
    weir_device_desc options = {.idle_ms = 50};
    weir_device *device = NULL;
    assert_ok(weir_device_open("host", &options, &device));
    weir_stream *stream = weir_device_default_stream(device);
    weir_buffer buffer = make(stream, 16 * MIB, NULL);
    char byte = 1;
    assert_ok(weir_buffer_write(buffer, 0, &byte, 1));
    drop(buffer);
    uint64_t left = UINT64_MAX;
    for (int i = 0; i < 200 && left != 0; i++) {
        struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
        left = usage_of(device).reserved_bytes;
    }
    assert_int_equal(left, 0);
    assert_true(usage_of(device).idle_bytes >= 16 * MIB);
    assert_ok(weir_device_close(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads__every_snapshot_adds_up_with_granules),
        cmocka_unit_test(threads__every_snapshot_adds_up_with_whole_pages),
        cmocka_unit_test(threads__every_snapshot_adds_up_with_adaptive),
        cmocka_unit_test(threads__every_snapshot_adds_up_with_subslices_and_exclusive),
        cmocka_unit_test(threads__a_buffer_may_be_released_by_any_thread),
        cmocka_unit_test(threads__of_many_releases_at_once_only_the_references_count),
        cmocka_unit_test(threads__streams_open_and_close_beside_each_other),
        cmocka_unit_test(threads__a_removed_hook_is_not_running_any_more),
        cmocka_unit_test(threads__the_reclaimer_gives_idle_memory_back_by_itself),
    };
    return cmocka_run_group_tests_name("core, threads", tests, NULL, NULL);
}
