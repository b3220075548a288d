/* SPDX-License-Identifier: MIT */
/* Time and instructions of allocators on one trace.
 *
 *  - bench_pairs time TRACE REPEATS PEER...: nanoseconds per pair, each repeat in turn
 *  - bench_pairs instructions TRACE OPERATIONS PEER: of so many, under callgrind
 *  - bench_pairs later TRACE PEER: under callgrind, all of a second pass
 *  - bench_pairs threads TRACE REPEATS PEER: one thread, two on two streams, and two in
 *    processes of their own, which share nothing but the machine
 *  - bench_pairs latency TRACE PEER: p99.9 of single calls, nanoseconds
 *
 * Time, instructions and threads are those of the second half: in the first the
 * allocator gets its memory. Prints a line per measurement: words, then numbers. A pair
 * is two operations. */
#define _GNU_SOURCE
#include "child.h"
#include "peer.h"
#include "sim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_STOP_INSTRUMENTATION ((void)0)
#endif

static wr_trace trace;

/* Plays [begin, end) with one peer; false if an allocation fails. A nonzero `stream`
 * takes the place of the trace's stream 0. */
static bool play(const wr_bench_peer *peer, wr_bench_slot *slots, size_t begin,
                 size_t end, uint32_t stream)
{
    for (const wr_trace_op *op = &trace.ops[begin]; op < &trace.ops[end]; op++) {
        if (op->kind == WR_TRACE_KIND_ALLOC) {
            if (!peer->alloc(&slots[op->slot], op->bytes, op->stream + stream)) {
                return false;
            }
        } else if (op->kind == WR_TRACE_KIND_FREE) {
            peer->free(&slots[op->slot]);
        }
    }
    return true;
}

static const wr_bench_peer *find_peer(const char *name)
{
    const wr_bench_peer *peer = wr_bench_peer_find(name);
    if (peer == NULL) {
        wr_bench_fail("no peer %s", name);
    }
    return peer;
}

/* Behind so many operations. */
static size_t end_of(uint64_t operations)
{
    size_t end = 0;
    for (uint64_t seen = 0; end < trace.op_count && seen < operations; end++) {
        seen += trace.ops[end].kind != WR_TRACE_KIND_MARK;
    }
    return end;
}

static size_t half_of(uint64_t operations)
{
    return end_of(operations / 2);
}

static double pairs_behind_half(uint64_t operations)
{
    return (double)(operations - operations / 2) / 2;
}

/* ---- time ---- */

static bool measure_time(void *context, double *numbers)
{
    const wr_bench_peer *peer = context;
    wr_bench_slot *slots = wr_bench_memory(trace.slot_count, sizeof *slots);
    wr_bench_pin(false);
    if (!peer->open(trace.stream_count)) {
        return false;
    }
    size_t half = half_of(trace.operation_count);
    if (!play(peer, slots, 0, half, 0)) {
        return false;
    }
    double start = wr_bench_now_ns();
    bool ok = play(peer, slots, half, trace.op_count, 0);
    *numbers = (wr_bench_now_ns() - start) / pairs_behind_half(trace.operation_count);
    return ok;
}

static void print_times(uint64_t repeats, char **names)
{
    for (uint64_t i = 0; i < repeats; i++) {
        for (char **name = names; *name != NULL; name++) {
            double ns;
            const wr_bench_peer *peer = find_peer(*name);
            if (wr_bench_child(measure_time, (void *)(uintptr_t)peer, &ns, 1)) {
                printf("time %s %.2f\n", *name, ns);
            }
        }
    }
}

/* ---- instructions ---- */

/* Plays [begin, end) with callgrind looking. */
static void count(const wr_bench_peer *peer, wr_bench_slot *slots, size_t begin,
                  size_t end, double pairs)
{
    CALLGRIND_START_INSTRUMENTATION;
    bool ok = play(peer, slots, begin, end, 0);
    CALLGRIND_STOP_INSTRUMENTATION;
    if (!ok) {
        wr_bench_fail("%s cannot play the trace", peer->name);
    }
    printf("pairs %s %.1f\n", peer->name, pairs);
}

/* A peer that has played up to `end`. */
static const wr_bench_peer *warm_up(const char *name, wr_bench_slot *slots, size_t end)
{
    const wr_bench_peer *peer = find_peer(name);
    if (!peer->open(trace.stream_count) || !play(peer, slots, 0, end, 0)) {
        wr_bench_fail("%s cannot play the trace", name);
    }
    return peer;
}

static void count_instructions(uint64_t operations, const char *name)
{
    if (operations > trace.operation_count) {
        operations = trace.operation_count;
    }
    size_t half = half_of(operations);
    wr_bench_slot *slots = wr_bench_memory(trace.slot_count, sizeof *slots);
    const wr_bench_peer *peer = warm_up(name, slots, half);
    count(peer, slots, half, end_of(operations), pairs_behind_half(operations));
}

/* Releases what the trace does not. */
static void release_rest(const wr_bench_peer *peer, wr_bench_slot *slots)
{
    bool *live = wr_bench_memory(trace.slot_count, sizeof *live);
    for (const wr_trace_op *op = trace.ops; op < &trace.ops[trace.op_count]; op++) {
        if (op->kind != WR_TRACE_KIND_MARK) {
            live[op->slot] = op->kind == WR_TRACE_KIND_ALLOC;
        }
    }
    for (uint32_t slot = 0; slot < trace.slot_count; slot++) {
        if (live[slot]) {
            peer->free(&slots[slot]);
        }
    }
    free(live);
}

static void count_later(const char *name)
{
    wr_bench_slot *slots = wr_bench_memory(trace.slot_count, sizeof *slots);
    const wr_bench_peer *peer = warm_up(name, slots, trace.op_count);
    release_rest(peer, slots);
    count(peer, slots, 0, trace.op_count, (double)trace.operation_count / 2);
}

/* ---- latency ---- */

/* Ticks of the fastest clock there is, and not before what stands above is done. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    unsigned processor;
    uint64_t now = __builtin_ia32_rdtscp(&processor);
    __builtin_ia32_lfence();
    return now;
#else
    return (uint64_t)wr_bench_now_ns();
#endif
}

typedef struct latencies {
    uint64_t *ticks;
    size_t count;
} latencies;

static int compare_ticks(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static double per_mille(latencies *of, double permille, double ns_per_tick)
{
    if (of->count == 0) {
        return 0;
    }
    qsort(of->ticks, of->count, sizeof *of->ticks, compare_ticks);
    size_t at = (size_t)((double)of->count * permille / 1000);
    return (double)of->ticks[at < of->count ? at : of->count - 1] * ns_per_tick;
}

enum { QUIET_ALLOC, QUIET_FREE, CALLING_ALLOC, CALLING_FREE, LATENCY_KINDS };

static bool time_each(const wr_bench_peer *peer, wr_bench_slot *slots, latencies *of)
{
    uint64_t calls = peer->driver_calls == NULL ? 0 : peer->driver_calls();
    for (const wr_trace_op *op = trace.ops; op < &trace.ops[trace.op_count]; op++) {
        if (op->kind != WR_TRACE_KIND_ALLOC && op->kind != WR_TRACE_KIND_FREE) {
            continue;
        }
        bool is_free = op->kind == WR_TRACE_KIND_FREE;
        bool ok = true;
        uint64_t start = ticks();
        if (is_free) {
            peer->free(&slots[op->slot]);
        } else {
            ok = peer->alloc(&slots[op->slot], op->bytes, op->stream);
        }
        uint64_t spent = ticks() - start;
        uint64_t calls_now = peer->driver_calls == NULL ? 0 : peer->driver_calls();
        latencies *kind =
            &of[(calls_now > calls ? CALLING_ALLOC : QUIET_ALLOC) + is_free];
        kind->ticks[kind->count++] = spent;
        calls = calls_now;
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Numbers: p99.9 of quiet allocations and frees, the same of those that called the
 * driver, and how many those were. */
static bool measure_latency(void *context, double *numbers)
{
    const wr_bench_peer *peer = context;
    wr_bench_slot *slots = wr_bench_memory(trace.slot_count, sizeof *slots);
    latencies of[LATENCY_KINDS] = {{0}};
    for (int kind = 0; kind < LATENCY_KINDS; kind++) {
        of[kind].ticks = wr_bench_memory(trace.operation_count, sizeof(uint64_t));
    }
    wr_bench_pin(false);
    double start_ns = wr_bench_now_ns();
    uint64_t start = ticks();
    if (!peer->open(trace.stream_count) || !time_each(peer, slots, of)) {
        return false;
    }
    double ns_per_tick = (wr_bench_now_ns() - start_ns) / (double)(ticks() - start);
    for (int kind = 0; kind < LATENCY_KINDS; kind++) {
        numbers[kind] = per_mille(&of[kind], 999, ns_per_tick);
    }
    numbers[LATENCY_KINDS] = (double)(of[CALLING_ALLOC].count + of[CALLING_FREE].count);
    return true;
}

static void print_latency(const char *name)
{
    double numbers[LATENCY_KINDS + 1];
    const wr_bench_peer *peer = find_peer(name);
    if (wr_bench_child(measure_latency, (void *)(uintptr_t)peer, numbers,
                       LATENCY_KINDS + 1)) {
        printf("latency %s %.0f %.0f %.0f %.0f %.0f\n", name, numbers[QUIET_ALLOC],
               numbers[QUIET_FREE], numbers[CALLING_ALLOC], numbers[CALLING_FREE],
               numbers[LATENCY_KINDS]);
    }
}

/* ---- two threads ---- */

typedef struct worker {
    const wr_bench_peer *peer;
    pthread_barrier_t *barrier;
    bool second;
    uint32_t stream;
    double spent_ns;
    bool ok;
} worker;

static void *work(void *argument)
{
    worker *me = argument;
    wr_bench_slot *slots = wr_bench_memory(trace.slot_count, sizeof *slots);
    wr_bench_pin(me->second);
    size_t half = half_of(trace.operation_count);
    pthread_barrier_wait(me->barrier);
    me->ok = play(me->peer, slots, 0, half, me->stream);
    pthread_barrier_wait(me->barrier);
    double start = wr_bench_now_ns();
    me->ok = me->ok && play(me->peer, slots, half, trace.op_count, me->stream);
    me->spent_ns = wr_bench_now_ns() - start;
    return NULL;
}

typedef struct team {
    const wr_bench_peer *peer;
    uint32_t size;
} team;

static bool measure_team(void *context, double *numbers)
{
    const team *asked = context;
    pthread_barrier_t barrier;
    pthread_t threads[2];
    worker workers[2];
    wr_bench_pin(false); /* learns the processors before any thread narrows its own */
    if (!asked->peer->open(2) || pthread_barrier_init(&barrier, NULL, asked->size) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < asked->size; i++) {
        workers[i] = (worker){
            .peer = asked->peer, .barrier = &barrier, .second = i == 1, .stream = i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            return false;
        }
    }
    bool ok = true;
    for (uint32_t i = 0; i < asked->size; i++) {
        pthread_join(threads[i], NULL);
        ok = ok && workers[i].ok;
        *numbers = workers[i].spent_ns > *numbers ? workers[i].spent_ns : *numbers;
    }
    *numbers /= pairs_behind_half(trace.operation_count);
    return ok;
}

typedef struct pair_of_processes {
    pthread_barrier_t barrier;
    worker workers[2];
} pair_of_processes;

static bool measure_processes(void *context, double *numbers)
{
    const wr_bench_peer *peer = context;
    pair_of_processes *both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (both == MAP_FAILED || pthread_barrier_init(&both->barrier, &shared, 2) != 0) {
        return false;
    }
    wr_bench_pin(false);
    pid_t child = fork();
    if (child < 0 || !peer->open(1)) {
        return false;
    }
    worker *me = &both->workers[child == 0];
    *me = (worker){.peer = peer, .barrier = &both->barrier, .second = child == 0};
    work(me);
    if (child == 0) {
        _exit(0);
    }
    waitpid(child, NULL, 0);
    double one = both->workers[0].spent_ns, other = both->workers[1].spent_ns;
    *numbers = (one > other ? one : other) / pairs_behind_half(trace.operation_count);
    return both->workers[0].ok && both->workers[1].ok;
}

static void print_teams(uint64_t repeats, const char *name)
{
    if (trace.stream_count != 1) {
        wr_bench_fail("two threads need a trace of one stream");
    }
    const wr_bench_peer *peer = find_peer(name);
    for (uint64_t i = 0; i < repeats; i++) {
        double ns;
        for (uint32_t size = 1; size <= 2; size++) {
            if (wr_bench_child(measure_team, &(team){peer, size}, &ns, 1)) {
                printf("threads%u %s %.2f\n", (unsigned)size, name, ns);
            }
        }
        if (wr_bench_child(measure_processes, (void *)(uintptr_t)peer, &ns, 1)) {
            printf("processes2 %s %.2f\n", name, ns);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        wr_bench_fail("usage: see the top of bench_pairs.c");
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *what = argv[1];
    trace = wr_bench_trace(argv[2]);
    if (strcmp(what, "latency") == 0) {
        print_latency(argv[3]);
    } else if (strcmp(what, "later") == 0) {
        count_later(argv[3]);
    } else if (argc > 4 && strcmp(what, "time") == 0) {
        print_times(wr_bench_number(argv[3]), &argv[4]);
    } else if (argc > 4 && strcmp(what, "instructions") == 0) {
        count_instructions(wr_bench_number(argv[3]), argv[4]);
    } else if (argc > 4 && strcmp(what, "threads") == 0) {
        print_teams(wr_bench_number(argv[3]), argv[4]);
    } else {
        wr_bench_fail("usage: see the top of bench_pairs.c");
    }
    wr_trace_finish(&trace);
    return 0;
}
