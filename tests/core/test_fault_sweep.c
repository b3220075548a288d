/* SPDX-License-Identifier: MIT */
/* Small programs, run again and again while the 1st, 2nd, 3rd... driver call or host
 * allocation fails, until none is left to fail. Whatever failed, the sums hold, a failed
 * request has changed nothing, and in the end everything goes back. */
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define HELD_MAX 96
#define STREAMS_MAX 4

/* One run of a program. A program goes on after a failure, as users' programs do. */
typedef struct trial {
    rig r;
    weir_stream *streams[STREAMS_MAX];
    weir_buffer held[HELD_MAX];
    unsigned held_count;
    bool failed; /* some call did */
} trial;

static void note_failure(trial *t, weir_result result)
{
    if (result != WEIR_OK) {
        assert_true(weir_last_error()[0] != '\0');
        t->failed = true;
    }
}

static uint64_t giving_calls(trial *t)
{
    weir_sim_ledger ledger = ledger_of(&t->r);
    return ledger.calls[WEIR_SIM_OP_decommit] + ledger.calls[WEIR_SIM_OP_page_free];
}

/* A request that may fail, and then leaves everything as it was. */
static weir_buffer try_make(trial *t, unsigned stream, uint64_t bytes, bool persistent)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    if (t->streams[stream] == NULL) {
        return buffer;
    }
    weir_usage before = usage_of(t->r.device);
    uint64_t gave_back = giving_calls(t);
    weir_buffer_desc desc = {.tag = "swept", .persistent = persistent};
    weir_result result = weir_buffer_create(t->streams[stream], bytes, &desc, &buffer);
    weir_usage after = usage_of(t->r.device);
    assert_sums(&after);
    if (result == WEIR_OK) {
        assert_true(t->held_count < HELD_MAX);
        t->held[t->held_count++] = buffer;
        return buffer;
    }
    note_failure(t, result);
    assert_int_equal(buffer.generation, 0);
    assert_int_equal(after.in_use_bytes, before.in_use_bytes);
    assert_int_equal(after.padding_bytes, before.padding_bytes);
    assert_int_equal(after.live_count, before.live_count);
    /* What was taken in vain goes back, unless that call is the one that fails. */
    assert_true(after.reserved_bytes <= before.reserved_bytes ||
                giving_calls(t) != gave_back);
    return buffer;
}

/* Releases a buffer if it was made. It cannot fail. */
static void let_go(trial *t, weir_buffer buffer)
{
    for (unsigned i = 0; i < t->held_count; i++) {
        if (buffer.generation != 0 && t->held[i].index == buffer.index &&
            t->held[i].generation == buffer.generation) {
            drop(buffer);
            t->held[i] = t->held[--t->held_count];
            return;
        }
    }
}

static void try_use(trial *t, weir_buffer buffer, unsigned stream)
{
    if (buffer.generation != 0 && t->streams[stream] != NULL) {
        note_failure(t, weir_buffer_use(buffer, t->streams[stream]));
        queue_work(&t->r, t->streams[stream]);
    }
}

static void try_cleanup(trial *t, const weir_cleanup_desc *desc)
{
    note_failure(t, weir_device_memory_cleanup(t->r.device, desc, NULL));
    weir_usage usage = usage_of(t->r.device);
    assert_sums(&usage);
}

static void try_stream(trial *t, unsigned number)
{
    weir_stream *stream = NULL;
    note_failure(t, weir_stream_create(t->r.device, NULL, &stream));
    t->streams[number] = stream;
}

/* ---- the programs ---- */

static void program_sizes(trial *t)
{
    weir_buffer buffers[24];
    for (unsigned i = 0; i < 24; i++) {
        buffers[i] = try_make(t, 0, (uint64_t)100 << i % 20, false);
    }
    for (unsigned i = 0; i < 24; i += 2) {
        let_go(t, buffers[i]);
    }
    try_cleanup(t, NULL);
    for (unsigned i = 0; i < 6; i++) {
        try_make(t, 0, 7 * MIB, false);
    }
    try_cleanup(t, &(weir_cleanup_desc){.wait = true, .at_most_bytes = 8 * MIB});
}

static void program_many_small(trial *t)
{
    for (unsigned i = 0; i < 90; i++) {
        try_make(t, 0, 40 * KIB + i, false);
    }
    while (t->held_count > 10) {
        let_go(t, t->held[t->held_count / 2]);
    }
    try_cleanup(t, NULL);
}

static void program_streams(trial *t)
{
    for (unsigned s = 1; s < STREAMS_MAX; s++) {
        try_stream(t, s);
    }
    weir_buffer buffers[12];
    for (unsigned i = 0; i < 12; i++) {
        buffers[i] = try_make(t, i % STREAMS_MAX, (1 + i) * MIB, false);
        try_use(t, buffers[i], (i + 1) % STREAMS_MAX);
        try_use(t, buffers[i], (i + 2) % STREAMS_MAX);
    }
    for (unsigned i = 0; i < 12; i++) {
        let_go(t, buffers[i]);
    }
    try_make(t, 1, 5 * MIB, false);
    try_cleanup(t, NULL);
    weir_sim_finish(t->r.sim, weir_stream_driver_stream(t->streams[0]));
    try_make(t, 0, 20 * MIB, false);
    note_failure(t, weir_device_tick(t->r.device, 1000));
    note_failure(t, weir_device_tick(t->r.device, 20000));
    note_failure(t, weir_device_sync(t->r.device));
    try_cleanup(t, &(weir_cleanup_desc){.wait = true});
}

static void program_pressure(trial *t)
{
    try_stream(t, 1);
    weir_buffer first[8];
    for (unsigned i = 0; i < 8; i++) {
        first[i] = try_make(t, i % 2, 30 * MIB, false);
        try_use(t, first[i], i % 2);
    }
    for (unsigned i = 0; i < 8; i += 2) {
        let_go(t, first[i]);
    }
    weir_buffer big = try_make(t, 1, 100 * MIB, false);
    for (unsigned i = 1; i < 8; i += 2) {
        let_go(t, first[i]);
    }
    try_make(t, 0, 240 * MIB, false); /* fits only if big is not there */
    let_go(t, big);
    try_make(t, 0, 200 * MIB, false);
    note_failure(t, weir_device_limit(t->r.device, 16 * MIB));
    try_make(t, 0, 10 * MIB, false);
    note_failure(t, weir_device_limit(t->r.device, 0));
}

static void program_persistent(trial *t)
{
    weir_buffer weights[6];
    for (unsigned i = 0; i < 6; i++) {
        weights[i] = try_make(t, 0, (3 + i % 3) * MIB + 100, true);
    }
    for (unsigned i = 0; i < 6; i += 2) {
        let_go(t, weights[i]);
    }
    try_make(t, 0, 3 * MIB + 100, true);
    try_cleanup(t, NULL);
    try_make(t, 0, 5 * MIB, true);
}

static void program_closing(trial *t)
{
    for (unsigned s = 1; s < STREAMS_MAX; s++) {
        try_stream(t, s);
        let_go(t, try_make(t, s, 9 * MIB, false));
        try_use(t, try_make(t, s, MIB, false), 0);
    }
    while (t->held_count > 0) {
        let_go(t, t->held[0]);
    }
    for (unsigned s = 1; s < STREAMS_MAX; s++) {
        if (t->streams[s] == NULL) {
            continue;
        }
        queue_work(&t->r, t->streams[s]);
        weir_result result = weir_stream_close(t->streams[s]);
        note_failure(t, result);
        t->streams[s] = result == WEIR_OK ? NULL : t->streams[s];
    }
    try_make(t, 0, 30 * MIB, false);
    try_cleanup(t, &(weir_cleanup_desc){.wait = true});
}

static void program_reports(trial *t)
{
    try_make(t, 0, 3 * MIB, false);
    let_go(t, try_make(t, 0, 9 * MIB, false));
    weir_device_report report = {0};
    note_failure(t, weir_device_memory_report(t->r.device, &report));
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    note_failure(t, weir_device_explain_lines(t->r.device, lines));
    weir_tag_usage tags[4];
    size_t count = 0;
    note_failure(t, weir_device_tags(t->r.device, tags, 4, &count));
}

/* ---- the sweep ---- */

typedef struct program {
    const char *name;
    void (*run)(trial *t);
    uint64_t capacity_bytes;
} program;

static const program programs[] = {
    {"sizes", program_sizes, GIB},           {"many small", program_many_small, GIB},
    {"streams", program_streams, GIB},       {"pressure", program_pressure, 320 * MIB},
    {"persistent", program_persistent, GIB}, {"closing", program_closing, GIB},
    {"reports", program_reports, GIB},
};

typedef struct layout {
    const char *preset;
    uint64_t granule_bytes;
    weir_sim_lets_go lets_go;
} layout;

static const layout layouts[] = {
    {"elastic", 2 * MIB, WEIR_SIM_LETS_GO_AT_ONCE},
    {"elastic", 2 * MIB, WEIR_SIM_LETS_GO_ON_PROGRESS},
    {"elastic", 0, WEIR_SIM_LETS_GO_AT_ONCE},
    {"adaptive", 0, WEIR_SIM_LETS_GO_AT_ONCE},
    {"subslices", 0, WEIR_SIM_LETS_GO_AT_ONCE},
    {"exclusive", 0, WEIR_SIM_LETS_GO_AT_ONCE},
};

static weir_result open_trial(trial *t, const program *p, const layout *l)
{
    memset(t, 0, sizeof *t);
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = p->capacity_bytes;
    sim.context_bytes = 0;
    sim.granule_bytes = l->granule_bytes;
    sim.lets_go = l->lets_go;
    weir_device_desc options = {
        .preset = l->preset, .no_thread = true, .driver_config = &sim};
    weir_result result = weir_device_open("sim", &options, &t->r.device);
    if (result == WEIR_OK) {
        t->r.sim = weir_device_driver(t->r.device);
        t->r.stream = weir_device_default_stream(t->r.device);
        t->streams[0] = t->r.stream;
    }
    return result;
}

/* No more failures: what is left can always be given back. */
static void end_trial(trial *t)
{
    wr_host_fail_nth(0);
    weir_sim_fail_nth(t->r.sim, 0);
    assert_consistent(&t->r);
    while (t->held_count > 0) {
        drop(t->held[--t->held_count]);
    }
    assert_int_equal(usage_of(t->r.device).in_use_bytes, 0);
    assert_consistent(&t->r);
    weir_sim_finish_all(t->r.sim);
    for (unsigned s = 1; s < STREAMS_MAX; s++) {
        if (t->streams[s] != NULL) {
            assert_ok(weir_stream_close(t->streams[s]));
        }
    }
    weir_cleanup_desc desc = {.wait = true};
    assert_ok(weir_device_memory_cleanup(t->r.device, &desc, NULL));
    assert_consistent(&t->r);
    assert_int_equal(usage_of(t->r.device).reserved_bytes, 0);
    assert_int_equal(ledger_of(&t->r).pending_bytes, 0);
    assert_ok(weir_device_close(t->r.device));
}

/* Where a sweep is, for the message when it fails. */
static char at[128];

static void locate(const char *what, const program *p, const layout *l, uint64_t nth)
{
    snprintf(at, sizeof at, "%s %llu of \"%s\" (%s, granule %llu, lets go %d)", what,
             (unsigned long long)nth, p->name, l->preset,
             (unsigned long long)l->granule_bytes, l->lets_go);
}

static int print_place(void **state)
{
    (void)state;
    if (at[0] != '\0') {
        print_message("last: %s\n", at);
        at[0] = '\0';
    }
    wr_host_fail_nth(0);
    return 0;
}

/* Fails the nth driver call; false once the program makes fewer. */
static bool sweep_driver(const program *p, const layout *l, uint64_t nth)
{
    locate("driver call", p, l, nth);
    trial t;
    assert_ok(open_trial(&t, p, l));
    weir_sim_ledger before = ledger_of(&t.r);
    weir_sim_fail_nth(t.r.sim, nth);
    p->run(&t);
    weir_sim_ledger after = ledger_of(&t.r);
    end_trial(&t);
    return all_calls(&after) - all_calls(&before) >= nth;
}

/* Fails the nth host allocation, those of opening included; false once there are fewer.
 */
static bool sweep_host(const program *p, const layout *l, uint64_t nth)
{
    locate("host allocation", p, l, nth);
    trial t;
    uint64_t before = wr_host_calls();
    wr_host_fail_nth(nth);
    weir_result result = open_trial(&t, p, l);
    if (result != WEIR_OK) {
        assert_int_equal(result, WEIR_OUT_OF_HOST_MEMORY);
        assert_null(t.r.device);
        wr_host_fail_nth(0);
        return true;
    }
    p->run(&t);
    bool hit = wr_host_calls() - before >= nth;
    end_trial(&t);
    return hit;
}

static void sweep_all(bool (*sweep)(const program *p, const layout *l, uint64_t nth))
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        for (size_t k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
            uint64_t nth = 1;
            while (sweep(&programs[i], &layouts[k], nth)) {
                nth++;
                assert_true(nth < 10000);
            }
        }
    }
    at[0] = '\0';
}

static void faults__any_driver_call_may_fail(void **state)
{
    (void)state;
    sweep_all(sweep_driver);
}

static void faults__any_host_allocation_may_fail(void **state)
{
    (void)state;
    sweep_all(sweep_host);
}

/* A device that dies while everything is held is left quietly. */
static void faults__a_lost_driver_is_left_quietly(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
        trial t;
        assert_ok(open_trial(&t, &programs[0], &layouts[k]));
        weir_buffer one = try_make(&t, 0, 3 * MIB, false);
        weir_buffer two = try_make(&t, 0, 1000, false);
        try_make(&t, 0, MIB, true);
        drop(one);
        weir_sim_ledger before = ledger_of(&t.r);
        weir_sim_shutdown(t.r.sim);
        drop(two);
        assert_int_equal(weir_buffer_create(t.r.stream, 900 * MIB, NULL, &one),
                         WEIR_DEVICE_LOST);
        weir_sim_ledger after = ledger_of(&t.r);
        assert_int_equal(after.handed_back_bytes, before.handed_back_bytes);
        weir_device_abandon(t.r.device);
    }
}

/* Every driver call fails from some point on: abandoning still works and leaks nothing
 * here. */
static void faults__a_device_whose_driver_only_fails_can_be_abandoned(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof layouts / sizeof layouts[0]; k++) {
        trial t;
        assert_ok(open_trial(&t, &programs[2], &layouts[k]));
        program_streams(&t);
        for (int op = 0; op < WEIR_SIM_OP_COUNT; op++) {
            weir_sim_fail(t.r.sim, (weir_sim_op)op, UINT64_MAX, 0);
        }
        weir_buffer out = WEIR_NO_BUFFER;
        assert_int_not_equal(weir_buffer_create(t.r.stream, 900 * MIB, NULL, &out),
                             WEIR_OK);
        weir_usage usage = usage_of(t.r.device);
        assert_sums(&usage);
        weir_device_abandon(t.r.device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(faults__any_driver_call_may_fail, print_place),
        cmocka_unit_test_teardown(faults__any_host_allocation_may_fail, print_place),
        cmocka_unit_test(faults__a_lost_driver_is_left_quietly),
        cmocka_unit_test(faults__a_device_whose_driver_only_fails_can_be_abandoned),
    };
    return cmocka_run_group_tests_name("core, faults", tests, NULL, NULL);
}
