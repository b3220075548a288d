/* SPDX-License-Identifier: MIT */
/* Everything at once: one process, eight threads with a stream each, which do at random
 * what the public headers allow, for WEIR_STORM_SECONDS. Each call must have one of the
 * results that its header names, each snapshot must add up, each forked child must be
 * refused; and in the end nothing is left. Threads note what they find; the main thread
 * asserts. WEIR_SEED repeats what the threads ask for, not how they interleave.
 *
 * A slot of the table holds one reference. Whoever takes a handle out owns that
 * reference. Graphs are taken out in the same way, so that nobody launches one that is
 * being destroyed. A stream is captured by its thread alone. */
#define _GNU_SOURCE
#include "child.h"
#include "storm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define DEPTH_MAX 4
#define FORK_EVERY_MS 150

#if defined(__SANITIZE_THREAD__)
#define STORM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STORM_TSAN 1
#endif
#endif

#ifdef STORM_TSAN
/* Children call what must refuse them, start no threads and end by _exit. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif

static const char *const tags[] = {"weights", "cache", "scratch", "gradients", "other"};

static weir_stream *some_stream(sailor *me)
{
    return me->extra != NULL && one_in(me, 8) ? me->extra
                                              : sea.streams[below(me, THREADS)];
}

static const char *some_tag(sailor *me)
{
    return tags[below(me, sizeof tags / sizeof tags[0])];
}

/* ---- buffers ---- */

static void check_buffer(weir_buffer made, weir_stream *stream, uint64_t bytes,
                         uint64_t alignment)
{
    uint64_t address = weir_buffer_address(made);
    expect_true(address != 0 && address % (alignment + (alignment == 0)) == 0,
                "a new buffer is aligned as asked");
    expect_true(weir_buffer_bytes(made) == bytes && weir_buffer_extent(made) >= bytes,
                "a new buffer has the bytes asked for");
    expect_true(weir_buffer_references(made) == 1, "a new buffer has one reference");
    expect_true(weir_buffer_stream(made) == stream, "a new buffer is its stream's");
}

static void check_shortage(weir_result result, uint64_t bytes)
{
    weir_shortage shortage = {.size = sizeof shortage};
    if (expect(weir_last_shortage(&shortage), WEIR_OK, "last shortage")) {
        expect_true(shortage.result == result && shortage.request_bytes == bytes,
                    "the last shortage is this thread's own");
        CHECK_SUM(&shortage, "shortage");
    }
    sea.counts.shortages++;
}

static weir_buffer create_on(sailor *me, weir_stream *stream)
{
    weir_buffer made = WEIR_NO_BUFFER;
    uint64_t bytes = some_bytes(me);
    weir_buffer_desc desc = {
        .tag = one_in(me, 2) ? some_tag(me) : NULL,
        .alignment_bytes = one_in(me, 8) ? UINT64_C(1) << below(me, 22) : 0,
        .persistent = one_in(me, 16),
    };
    weir_result result = weir_buffer_create(stream, bytes, &desc, &made);
    if (result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT) {
        check_shortage(result, bytes);
        expect_true(made.index == 0, "a failing create leaves the handle as it was");
    } else if (expect(result, WEIR_OK, "create")) {
        check_buffer(made, stream, bytes, desc.alignment_bytes);
        sea.counts.creates++;
    }
    return made;
}

static void create(sailor *me)
{
    weir_stream *stream = one_in(me, 2) ? me->stream : sea.streams[below(me, THREADS)];
    weir_buffer made = create_on(me, stream);
    if (made.index != 0) {
        put_slot(next_random(me), made);
    }
}

static void release(sailor *me)
{
    give_back(take_slot(next_random(me)));
}

/* Of a reference that it owns, or of a handle whose buffer may go any moment. */
static void retain(sailor *me)
{
    uint64_t slot = next_random(me);
    sea.counts.retains++;
    if (one_in(me, 2)) {
        weir_buffer seen = see_slot(slot);
        if (seen.index != 0 && expect(weir_buffer_retain(seen), WEIR_STALE, "retain")) {
            give_back(seen);
        } else {
            sea.counts.stale++;
        }
        return;
    }
    weir_buffer buffer = take_slot(slot);
    if (buffer.index != 0 && expect(weir_buffer_retain(buffer), WEIR_OK, "retain")) {
        put_slot(next_random(me), buffer);
        put_slot(next_random(me), buffer);
    }
}

static void use(sailor *me)
{
    weir_buffer buffer = take_slot(next_random(me));
    weir_stream *stream = one_in(me, 2) ? me->stream : some_stream(me);
    if (buffer.index != 0) {
        expect(weir_buffer_use(buffer, stream), WEIR_OK, "use");
        expect(weir_sim_queue(sea.r.sim, weir_stream_driver_stream(stream)), WEIR_OK,
               "queue");
        put_slot(next_random(me), buffer);
        sea.counts.uses++;
    }
}

/* ---- the device's work ---- */

static void finish(sailor *me)
{
    if (one_in(me, 16)) {
        weir_sim_finish_all(sea.r.sim);
    } else {
        weir_sim_finish(sea.r.sim, weir_stream_driver_stream(some_stream(me)));
    }
    sea.counts.finishes++;
}

static void wait_for_own(sailor *me)
{
    /* Waiting for another thread's stream races with its capture, as it does in CUDA. */
    expect(weir_stream_sync(me->stream), me->capturing > 0 ? WEIR_BUSY : WEIR_OK, "sync");
    sea.counts.syncs++;
}

/* ---- limits ---- */

static void limit(sailor *me)
{
    weir_device *device = sea.r.device;
    uint64_t bytes = one_in(me, 2) ? 0 : (16 + below(me, 240)) * MIB;
    switch (below(me, 3)) {
    case 0:
        bytes = bytes == 0 ? 0 : 512 * MIB + 4 * bytes;
        expect(weir_device_limit(device, bytes), WEIR_OK, "device limit");
        break;
    case 1:
        expect(weir_device_pool_limit(device, sea.pools[below(me, sea.pool_count)],
                                      bytes),
               WEIR_OK, "pool limit");
        break;
    default:
        expect(weir_device_tag_limit(device, some_tag(me), bytes), WEIR_OK, "tag limit");
    }
    sea.counts.limits++;
}

static void scope(sailor *me)
{
    if (me->tags < DEPTH_MAX && one_in(me, 2)) {
        me->tags += expect(weir_tag_push(some_tag(me)), WEIR_OK, "tag push");
    } else if (me->tags > 0) {
        me->tags -= expect(weir_tag_pop(), WEIR_OK, "tag pop");
    }
}

/* ---- windows, graphs ---- */

static void window(sailor *me)
{
    if (me->windows < DEPTH_MAX && one_in(me, 2)) {
        me->windows += expect(weir_window_begin(me->stream), WEIR_OK, "window begin");
        sea.counts.windows++;
    } else if (me->windows > 0) {
        me->windows -= expect(weir_window_end(me->stream), WEIR_OK, "window end");
    }
}

static void destroy_graph(weir_graph *graph)
{
    sea.counts.destroys += graph != NULL;
    expect(weir_graph_destroy(graph), WEIR_OK, "graph destroy");
}

static void put_graph(sailor *me, weir_graph *graph)
{
    destroy_graph(atomic_exchange(&sea.graphs[below(me, GRAPHS)], graph));
}

static void begin_capture(sailor *me)
{
    bool primed = one_in(me, 4);
    if (primed) {
        expect(weir_capture_prime(me->stream), WEIR_OK, "prime");
        weir_buffer warm = create_on(me, me->stream);
        give_back(warm);
    }
    weir_result began = weir_capture_begin(me->stream);
    if (began == WEIR_BUSY) { /* somebody launches a graph there, or waits */
        if (primed) {
            expect(weir_capture_abort(me->stream), WEIR_OK, "prime abort");
        }
        return;
    }
    if (expect(began, WEIR_OK, "capture begin")) {
        me->capturing = 1 + (unsigned)below(me, 40);
        sea.counts.captures++;
    }
}

static void end_capture(sailor *me)
{
    weir_graph *graph = NULL;
    me->capturing = 0;
    if (one_in(me, 3)) {
        expect(weir_capture_abort(me->stream), WEIR_OK, "capture abort");
        sea.counts.aborts++;
    } else if (expect(weir_capture_end(me->stream, one_in(me, 2) ? "step" : NULL, &graph),
                      WEIR_OK, "capture end")) {
        put_graph(me, graph);
        sea.counts.graphs++;
    }
}

static void launch(sailor *me)
{
    weir_graph *graph = atomic_exchange(&sea.graphs[below(me, GRAPHS)], NULL);
    if (graph == NULL) {
        return;
    }
    if (one_in(me, 4)) {
        destroy_graph(graph);
        return;
    }
    expect_true(weir_graph_name(graph)[0] != 0, "a graph has a name");
    sea.counts.launches +=
        expect(weir_graph_launch(graph, some_stream(me)), WEIR_BUSY, "launch");
    put_graph(me, graph);
}

/* ---- callbacks ---- */

/* May run on any thread that allocates; the context's own numbers are its thread's. */
static bool reclaim(void *context, weir_device *device, uint64_t needed_bytes)
{
    sailor *owner = context;
    uint64_t released = 0;
    uint64_t start = needed_bytes / 256;
    for (uint64_t i = 0; i < 16 && released < needed_bytes; i++) {
        weir_buffer buffer = take_slot(start + i);
        released += weir_buffer_extent(buffer);
        give_back(buffer);
    }
    weir_usage usage = {0};
    if (expect(weir_device_memory_usage(device, &usage), WEIR_OK, "usage inside")) {
        check_usage(&usage, "usage inside");
    }
    if (start % 64 == 0) { /* itself */
        expect(weir_device_reclaim_remove(device, reclaim, owner), WEIR_NOT_FOUND,
               "remove itself");
        atomic_store(&owner->reclaims, false);
    }
    sea.counts.reclaims++;
    return released > 0;
}

static void change_callback(sailor *me)
{
    weir_device *device = sea.r.device;
    if (atomic_exchange(&me->reclaims, false)) {
        expect(weir_device_reclaim_remove(device, reclaim, me), WEIR_NOT_FOUND,
               "reclaim remove");
    } else {
        atomic_store(&me->reclaims, true);
        expect(weir_device_reclaim_add(device, reclaim, me), WEIR_LIMIT, "reclaim add");
    }
    sea.counts.callbacks++;
}

static void empty_a_slot(void *context, weir_stream *stream)
{
    (void)stream;
    _Atomic uint64_t *turn = context;
    give_back(take_slot(atomic_fetch_add(turn, 1)));
    sea.counts.hooks++;
}

/* ---- giving back ---- */

static void clean_up(sailor *me)
{
    weir_cleanup_desc desc = {
        .keep_bytes = one_in(me, 2) ? 0 : below(me, GIB),
        .at_most_bytes = one_in(me, 2) ? 0 : below(me, 256 * MIB),
        .wait = one_in(me, 2),
        .no_drain = one_in(me, 2),
        .keep_none = one_in(me, 2),
    };
    weir_cleanup_outcome outcome = {0};
    bool done = expect(weir_device_memory_cleanup(sea.r.device, &desc, &outcome),
                       WEIR_BUSY, "cleanup");
    expect_true(!done || desc.at_most_bytes == 0 ||
                    outcome.returned_bytes <= desc.at_most_bytes,
                "cleanup returns at most what it may");
    sea.counts.cleanups++;
    sea.counts.busy += !done;
}

static void tick(sailor *me)
{
    weir_sim_advance(sea.r.sim, below(me, 4000));
    expect(weir_device_tick(sea.r.device, 0), WEIR_OK, "tick");
    sea.counts.ticks++;
}

/* ---- looking ---- */

static void look(sailor *me)
{
    weir_usage usage = {0}, own = {0};
    weir_tag_usage tag, holders[8];
    size_t count = 0;
    if (expect(weir_device_memory_usage(sea.r.device, &usage), WEIR_OK, "usage")) {
        check_usage(&usage, "snapshot of the device");
        expect_true(usage.reserved_bytes <= 2 * GIB, "reserved is below the capacity");
    }
    if (expect(weir_stream_memory_usage(some_stream(me), &own), WEIR_OK, "usage")) {
        CHECK_SUM(&own, "snapshot of a stream");
    }
    expect(weir_device_tag_usage(sea.r.device, some_tag(me), &tag), WEIR_OK, "tag usage");
    expect(weir_device_tags(sea.r.device, holders, 8, &count), WEIR_OK, "tags");
    sea.counts.snapshots += 2;
}

static void check_report(const weir_device_report *report)
{
    weir_usage sum = {0};
    for (size_t i = 0; i < report->pool_count; i++) {
        CHECK_SUM(&report->pools[i], "report of a pool");
        sum.reserved_bytes += report->pools[i].reserved_bytes;
        sum.in_use_bytes += report->pools[i].in_use_bytes;
    }
    check_usage(&report->usage, "report of the device");
    expect_true(sum.reserved_bytes == report->usage.reserved_bytes &&
                    sum.in_use_bytes >= report->usage.in_use_bytes,
                "the pools of a report add up to its usage");
}

static weir_result swallow(void *context, const char *text, size_t text_bytes)
{
    (void)text;
    *(size_t *)context += text_bytes;
    return WEIR_OK;
}

static void report(sailor *me)
{
    weir_device *device = sea.r.device;
    weir_device_report all = {0};
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    size_t written = 0;
    weir_format format = one_in(me, 2) ? WEIR_FORMAT_TEXT : WEIR_FORMAT_JSON;
    if (expect(weir_device_memory_report(device, &all), WEIR_OK, "report")) {
        check_report(&all);
    }
    expect(weir_device_write_report(device, format, swallow, &written), WEIR_OK,
           "write report");
    expect(weir_device_explain_lines(device, lines), WEIR_OK, "explain lines");
    expect(weir_device_explain(device, swallow, &written), WEIR_OK, "explain");
    expect(weir_device_explain_json(device, swallow, &written), WEIR_OK, "explain json");
    expect_true(written > 0, "a report has a text");
    sea.counts.reports++;
}

static void check_all(sailor *me)
{
    (void)me;
    expect(weir_device_check(sea.r.device), WEIR_OK, "check");
    sea.counts.checks++;
}

/* ---- streams that come and go ---- */

static void open_extra(sailor *me)
{
    if (expect(weir_stream_create(sea.r.device, NULL, &me->extra), WEIR_OK,
               "stream create")) {
        sea.counts.streams++;
    }
}

/* What its own thread records may hold its buffers longer than it lives. */
static void work_on_extra(sailor *me)
{
    weir_buffer made = create_on(me, me->extra);
    if (made.index != 0) {
        expect(weir_sim_queue(sea.r.sim, weir_stream_driver_stream(me->extra)), WEIR_OK,
               "queue");
        expect(weir_buffer_use(made, me->stream), WEIR_OK, "use");
        give_back(made);
    }
}

static void close_extra(sailor *me)
{
    if (expect(weir_stream_close(me->extra), WEIR_OK, "stream close")) {
        me->extra = NULL;
    }
}

static void change_stream(sailor *me)
{
    if (me->extra == NULL) {
        open_extra(me);
    } else if (one_in(me, 4)) {
        close_extra(me);
    } else {
        work_on_extra(me);
    }
}

/* ---- children ---- */

#define expect_forked(call) child_expect((call) == WEIR_FORKED)

static void be_a_child(sailor *me)
{
    weir_buffer made = WEIR_NO_BUFFER, seen = see_slot(0);
    weir_usage usage = {0};
    weir_graph *graph = NULL;
    expect_forked(weir_buffer_create(me->stream, 4096, NULL, &made));
    expect_forked(weir_buffer_retain(seen));
    expect_forked(weir_buffer_release(seen));
    expect_forked(weir_buffer_use(seen, me->stream));
    expect_forked(weir_device_memory_usage(sea.r.device, &usage));
    expect_forked(weir_device_memory_cleanup(sea.r.device, NULL, NULL));
    expect_forked(weir_device_tick(sea.r.device, 0));
    expect_forked(weir_capture_begin(me->stream));
    expect_forked(weir_capture_end(me->stream, NULL, &graph));
    expect_forked(weir_stream_close(me->stream));
    expect_forked(weir_device_check(sea.r.device));
    expect_forked(weir_device_close(sea.r.device));
    child_expect(weir_buffer_address(seen) == 0);
    child_expect(made.index == 0 && graph == NULL);
    _exit(0);
}

static void fork_a_child(sailor *me)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        be_a_child(me);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
        char text[80];
        snprintf(text, sizeof text, "wait status 0x%x (exit: a line modulo 251, plus 1)",
                 (unsigned)status);
        note("a child", text);
    }
    sea.counts.forks++;
}

/* ---- a thread ---- */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

typedef struct operation {
    uint64_t weight;
    void (*run)(sailor *me);
} operation;

static const operation operations[] = {
    {3000, create},      {2000, release},       {400, retain}, {1200, use},
    {500, finish},       {60, wait_for_own},    {60, limit},   {100, scope},
    {60, window},        {200, launch},         {30, tick},    {40, clean_up},
    {60, change_stream}, {20, change_callback}, {400, look},   {8, report},
    {8, check_all},
};

#define OPERATIONS (sizeof operations / sizeof operations[0])

static uint64_t all_weights(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < OPERATIONS; i++) {
        sum += operations[i].weight;
    }
    return sum;
}

static void run_one(sailor *me, uint64_t weights)
{
    uint64_t choice = below(me, weights);
    size_t i = 0;
    for (; choice >= operations[i].weight; i++) {
        choice -= operations[i].weight;
    }
    operations[i].run(me);
    if (me->capturing > 0 && --me->capturing == 0) {
        end_capture(me);
    } else if (me->capturing == 0 && one_in(me, 600)) {
        begin_capture(me);
    }
}

static void leave(sailor *me)
{
    if (me->capturing > 0) {
        end_capture(me);
    }
    if (me->extra != NULL) {
        close_extra(me);
    }
    while (me->windows > 0 && expect(weir_window_end(me->stream), WEIR_OK, "end")) {
        me->windows--;
    }
    while (me->tags > 0 && expect(weir_tag_pop(), WEIR_OK, "pop")) {
        me->tags--;
    }
}

static void *sail(void *context)
{
    sailor *me = context;
    uint64_t weights = all_weights();
    uint64_t now = now_ms();
    while (now < sea.end_ms && !atomic_load(&sea.is_wrong)) {
        for (int i = 0; i < 16 && !atomic_load(&sea.is_wrong); i++) {
            run_one(me, weights);
        }
        now = now_ms();
        uint64_t due = atomic_load(&sea.fork_ms);
        if (now >= due &&
            atomic_compare_exchange_strong(&sea.fork_ms, &due, now + FORK_EVERY_MS)) {
            fork_a_child(me);
        }
    }
    leave(me);
    return NULL;
}

/* ---- the whole ---- */

static void read_pools(void)
{
    weir_device_report all = {0};
    assert_ok(weir_device_memory_report(sea.r.device, &all));
    assert_true(all.pool_count > 0);
    sea.pool_count = all.pool_count;
    for (size_t i = 0; i < all.pool_count; i++) {
        memcpy(sea.pools[i], all.pools[i].name, sizeof sea.pools[i]);
    }
}

static void set_sail(const weir_sim_desc *sim, uint64_t seed, uint64_t seconds)
{
    memset(&sea, 0, sizeof sea);
    sea.seed = seed;
    sea.r = rig_open(sim, &(weir_device_desc){.idle_ms = 1000});
    read_pools();
    for (unsigned i = 0; i < THREADS; i++) {
        sea.streams[i] = open_stream(sea.r.device, NULL);
        sea.crew[i] = (sailor){.random = (seed + i + 1) * UINT64_C(0x9E3779B97F4A7C15),
                               .stream = sea.streams[i]};
    }
    sea.fork_ms = now_ms() + FORK_EVERY_MS;
    sea.end_ms = now_ms() + seconds * 1000;
}

static void let_go_of_everything(void)
{
    for (unsigned i = 0; i < GRAPHS; i++) {
        destroy_graph(sea.graphs[i]);
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        give_back(take_slot(i));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        while (weir_device_reclaim_remove(sea.r.device, reclaim, &sea.crew[i]) ==
               WEIR_OK) {
        }
    }
    assert_ok(weir_device_limit(sea.r.device, 0));
    assert_nothing_wrong();
}

static void expect_nothing_left(void)
{
    assert_int_equal(usage_of(sea.r.device).in_use_bytes, 0);
    assert_consistent(&sea.r);
    weir_sim_finish_all(sea.r.sim);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_ok(weir_stream_close(sea.streams[i]));
    }
    cleanup(sea.r.device, &(weir_cleanup_desc){.wait = true, .keep_none = true});
    weir_usage left = usage_of(sea.r.device);
    assert_int_equal(left.live_count, 0);
    assert_int_equal(left.in_use_bytes, 0);
    assert_int_equal(left.reserved_bytes, 0);
    assert_int_equal(left.allocations, left.releases);
    weir_sim_ledger ledger = ledger_of(&sea.r);
    assert_true(ledger.handed_out_bytes > 0);
    assert_int_equal(ledger.handed_out_bytes, ledger.handed_back_bytes);
    assert_int_equal(ledger.pending_bytes, 0);
    assert_ok(weir_device_check(sea.r.device));
    assert_ok(weir_device_close(sea.r.device));
}

static void storm_over(const weir_sim_desc *sim, const char *name)
{
    uint64_t seed = environment_number("WEIR_SEED", now_ms());
    uint64_t soak = environment_number("WEIR_SOAK", 0) != 0 ? 60 : 3;
    uint64_t seconds = environment_number("WEIR_STORM_SECONDS", soak);
    static _Atomic uint64_t turn;
    pthread_t threads[THREADS];
    print_message("storm on %s: WEIR_SEED=%llu\n", name, (unsigned long long)seed);
    alarm((unsigned)(seconds * 3 + 60)); /* a deadlock ends as a failure */
    set_sail(sim, seed, seconds);
    weir_stream_hook hook = {.context = &turn, .before_cleanup = empty_a_slot};
    assert_ok(weir_stream_hook_add(sea.r.stream, &hook));
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, sail, &sea.crew[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    print_counts(name);
    assert_nothing_wrong();
    assert_ok(weir_stream_hook_remove(sea.r.stream, &turn));
    let_go_of_everything();
    expect_nothing_left();
    alarm(0);
}

static weir_sim_desc stormy_sim(uint64_t granule_bytes)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = 2 * GIB;
    sim.granule_bytes = granule_bytes;
    sim.lets_go = WEIR_SIM_LETS_GO_AT_ONCE;
    return sim;
}

static void storm__leaves_nothing_behind_with_granules(void **state)
{
    (void)state;
    weir_sim_desc sim = stormy_sim(2 * MIB);
    storm_over(&sim, "granules");
}

static void storm__leaves_nothing_behind_with_whole_pages(void **state)
{
    (void)state;
    weir_sim_desc sim = stormy_sim(0);
    storm_over(&sim, "whole pages");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storm__leaves_nothing_behind_with_granules),
        cmocka_unit_test(storm__leaves_nothing_behind_with_whole_pages),
    };
    return cmocka_run_group_tests_name("core, storm", tests, NULL, NULL);
}
