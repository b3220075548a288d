/* SPDX-License-Identifier: MIT */
/* Graphs: what they hold, and launching and destroying them, alone and beside others. */
#include "recording.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- what a graph holds ---- */

static void graph__holds_exactly_what_it_made_and_used(const weir_sim_desc *sim)
{
    rig r = rig_open(sim, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    weir_buffer weights = make(r.stream, 3 * MIB, "weights");
    weir_buffer own = make(decode, 5 * MIB, "own");
    weir_buffer idle = make(decode, 7 * MIB, "idle");
    assert_ok(weir_capture_begin(decode));
    weir_buffer made = make(decode, 1 * MIB, "made");
    assert_ok(weir_buffer_use(weights, decode));
    assert_ok(weir_buffer_use(own, decode));
    assert_ok(weir_buffer_use(own, decode));
    assert_consistent(&r);
    weir_graph *graph = end_capture(decode, "decode");
    uint64_t extents =
        weir_buffer_extent(made) + weir_buffer_extent(own) + weir_buffer_extent(weights);
    drop(weights), drop(own), drop(idle), drop(made);
    weir_sim_finish_all(r.sim);
    cleanup(r.device, NULL);
    assert_consistent(&r);
    assert_int_equal(waiting_for(&r, "graph decode"), extents);
    assert_int_equal(usage_of(r.device).deferred_bytes, extents);
    assert_says(explain(r.device), "graph decode");
    assert_ok(weir_graph_destroy(graph));
    end_stream(decode);
    rig_close(&r);
}

static void graph__holds_exactly_what_it_made_and_used_in_granules(void **state)
{
    (void)state;
    graph__holds_exactly_what_it_made_and_used(NULL);
}

static void graph__holds_exactly_what_it_made_and_used_in_pages(void **state)
{
    (void)state;
    weir_sim_desc plain = plain_sim();
    graph__holds_exactly_what_it_made_and_used(&plain);
}

static void graph__leaves_buffers_valid_that_the_program_still_holds(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_begin(r.stream));
    weir_buffer made = make(r.stream, 1 * MIB, NULL);
    weir_graph *graph = end_capture(r.stream, "g");
    uint64_t address = weir_buffer_address(made);
    assert_ok(weir_graph_destroy(graph));
    assert_int_equal(weir_buffer_address(made), address);
    assert_int_equal(usage_of(r.device).in_use_bytes, 1 * MIB);
    drop(made);
    rig_close(&r);
}

static void graph__shares_a_buffer_with_another_until_both_are_gone(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer shared = make(r.stream, 4 * MIB, NULL);
    weir_graph *graphs[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(weir_capture_begin(r.stream));
        assert_ok(weir_buffer_use(shared, r.stream));
        graphs[i] = end_capture(r.stream, i == 0 ? "first" : "second");
    }
    drop(shared);
    assert_consistent(&r);
    assert_ok(weir_graph_destroy(graphs[1]));
    assert_int_equal(waiting_for(&r, "graph first"), 4 * MIB);
    assert_int_equal(cleanup(r.device, NULL).deferred_bytes, 4 * MIB);
    assert_ok(weir_graph_destroy(graphs[0]));
    assert_int_equal(cleanup(r.device, NULL).deferred_bytes, 0);
    rig_close(&r);
}

static void graph__is_named_by_the_outcome_of_a_cleanup(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_begin(r.stream));
    drop(make(r.stream, 64 * MIB, NULL));
    weir_graph *graph = end_capture(r.stream, "decode");
    weir_cleanup_outcome done = cleanup(r.device, &(weir_cleanup_desc){.wait = true});
    assert_int_equal(done.returned_bytes, 0);
    assert_int_equal(done.deferred_bytes, 64 * MIB);
    assert_string_equal(done.deferred_stream, "graph decode");
    assert_ok(weir_graph_destroy(graph));
    rig_close(&r);
}

/* ---- launching ---- */

static void launch__never_changes_reserved(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    assert_ok(weir_capture_begin(r.stream));
    run_steps(r.stream);
    weir_graph *graph = end_capture(r.stream, "g");
    weir_usage before = usage_of(r.device);
    weir_sim_ledger calls = ledger_of(&r);
    for (int i = 0; i < 1000; i++) {
        assert_ok(weir_graph_launch(graph, i % 2 == 0 ? r.stream : other));
        assert_int_equal(usage_of(r.device).reserved_bytes, before.reserved_bytes);
    }
    weir_sim_ledger after = ledger_of(&r);
    assert_int_equal(memory_calls(&after), memory_calls(&calls));
    assert_consistent(&r);
    assert_ok(weir_graph_destroy(graph));
    weir_sim_finish_all(r.sim);
    end_stream(other);
    rig_close(&r);
}

static void launch__makes_memory_wait_for_the_streams_it_ran_on(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *runner = open_stream(r.device, "runner");
    queue_work(&r, r.stream);
    assert_ok(weir_capture_begin(r.stream));
    drop(make(r.stream, 4 * MIB, NULL));
    weir_graph *graph = end_capture(r.stream, "g");
    assert_ok(weir_graph_launch(graph, runner));
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_stream_wait], 1); /* ordered */
    assert_ok(weir_graph_launch(graph, runner));
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_stream_wait], 1);
    finish_work(&r, r.stream);
    assert_ok(weir_graph_destroy(graph));
    assert_int_equal(usage_of(r.device).deferred_bytes, 4 * MIB);
    assert_int_equal(waiting_for(&r, "stream runner"), 4 * MIB);
    cleanup(r.device, NULL);
    assert_true(usage_of(r.device).reserved_bytes >= 4 * MIB);
    finish_work(&r, runner);
    cleanup(r.device, NULL);
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    end_stream(runner);
    rig_close(&r);
}

static void launch__on_its_own_stream_defers_until_that_has_passed(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_begin(r.stream));
    drop(make(r.stream, 4 * MIB, NULL));
    weir_graph *graph = end_capture(r.stream, "g");
    assert_ok(weir_graph_launch(graph, r.stream));
    assert_ok(weir_graph_destroy(graph));
    assert_int_equal(cleanup(r.device, NULL).returned_bytes, 0);
    finish_work(&r, r.stream);
    assert_int_equal(cleanup(r.device, NULL).returned_bytes, 4 * MIB);
    rig_close(&r);
}

static void launch__is_refused_on_a_stream_that_captures_or_is_foreign(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL), foreign = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    assert_ok(weir_capture_begin(r.stream));
    weir_graph *graph = end_capture(r.stream, "g");
    assert_ok(weir_capture_begin(other));
    assert_result(weir_graph_launch(graph, other), WEIR_BUSY);
    assert_says(weir_last_error(), "other");
    assert_result(weir_graph_launch(graph, foreign.stream), WEIR_INVALID);
    assert_ok(weir_graph_launch(graph, r.stream));
    assert_ok(weir_capture_abort(other));
    assert_ok(weir_graph_destroy(graph));
    weir_sim_finish_all(r.sim);
    end_stream(other);
    rig_close(&r), rig_close(&foreign);
}

/* ---- ends ---- */

static void
graph__keeps_the_device_from_closing_but_not_from_being_abandoned(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_capture_begin(r.stream));
    drop(make(r.stream, 4 * MIB, NULL));
    (void)end_capture(r.stream, "decode");
    assert_result(weir_device_close(r.device), WEIR_BUSY);
    assert_says(weir_last_error(), "decode");
    assert_ok(weir_capture_begin(r.stream));
    drop(make(r.stream, 4 * MIB, NULL));
    weir_device_abandon(r.device);
}

static void graph__outlives_its_stream(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    assert_ok(weir_capture_begin(decode));
    drop(make(decode, 4 * MIB, NULL));
    weir_graph *graph = end_capture(decode, "g");
    end_stream(decode);
    assert_int_equal(cleanup(r.device, NULL).deferred_bytes, 4 * MIB);
    assert_ok(weir_graph_launch(graph, r.stream));
    assert_ok(weir_graph_destroy(graph));
    assert_int_equal(usage_of(r.device).deferred_bytes, 4 * MIB);
    assert_consistent(&r);
    rig_close(&r);
}

static void captures__of_several_streams_run_side_by_side(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *a = open_stream(r.device, "a"), *b = open_stream(r.device, "b");
    assert_ok(weir_capture_begin(a));
    assert_ok(weir_capture_begin(b));
    weir_buffer shared = make(a, 2 * MIB, NULL);
    assert_ok(weir_buffer_use(shared, b));
    drop(shared);
    weir_graph *first = end_capture(a, "a");
    assert_result(weir_device_memory_cleanup(r.device, NULL, NULL), WEIR_BUSY);
    weir_graph *second = end_capture(b, "b");
    assert_ok(weir_graph_destroy(first));
    assert_int_equal(cleanup(r.device, NULL).deferred_bytes, 2 * MIB);
    assert_ok(weir_graph_destroy(second));
    assert_int_equal(cleanup(r.device, NULL).deferred_bytes, 0);
    end_stream(a), end_stream(b);
    rig_close(&r);
}

/* ---- threads ---- */

typedef struct busy {
    rig *r;
    weir_stream *stream;
    _Atomic bool *stop;
    _Atomic uint64_t *failures;
} busy;

static void *allocate(void *context)
{
    busy *b = context;
    uint64_t random = 88172645463325252u + (uint64_t)(uintptr_t)b;
    weir_buffer held[8] = {{0}};
    while (!*b->stop) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        weir_buffer *slot = &held[random % 8];
        weir_buffer_release(*slot);
        *slot = WEIR_NO_BUFFER;
        *b->failures +=
            weir_buffer_create(b->stream, 1 + random % (9 * MIB), NULL, slot) != WEIR_OK;
        if (random % 64 == 0) {
            weir_result result =
                weir_device_memory_cleanup(b->r->device,
                                           &(weir_cleanup_desc){.wait = true}, NULL);
            *b->failures += result != WEIR_OK && result != WEIR_BUSY;
        }
    }
    for (int i = 0; i < 8; i++) {
        weir_buffer_release(held[i]);
    }
    return NULL;
}

static void capture__goes_on_while_others_allocate_and_clean_up(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *decode = open_stream(r.device, "decode");
    _Atomic bool stop = false;
    _Atomic uint64_t failures = 0;
    busy others[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "other %d", i);
        others[i] = (busy){&r, open_stream(r.device, name), &stop, &failures};
        assert_int_equal(pthread_create(&threads[i], NULL, allocate, &others[i]), 0);
    }
    uint64_t rounds = environment_number("WEIR_SOAK", 0) != 0 ? 5000 : 100;
    for (uint64_t i = 0; i < rounds; i++) {
        assert_ok(weir_capture_begin(decode));
        uint64_t before = forbidden_calls(&r);
        run_steps(decode);
        assert_int_equal(forbidden_calls(&r), before);
        weir_graph *graph = end_capture(decode, "g");
        assert_ok(weir_graph_launch(graph, i % 2 == 0 ? decode : r.stream));
        assert_ok(weir_graph_destroy(graph));
    }
    stop = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        end_stream(others[i].stream);
    }
    assert_int_equal(failures, 0);
    weir_sim_finish_all(r.sim);
    assert_consistent(&r);
    end_stream(decode);
    rig_close(&r);
}

/* ---- at random ---- */

#define RANDOM_BUFFERS 24
#define RANDOM_GRAPHS 3

typedef struct chaos {
    rig r;
    uint64_t random;
    weir_stream *streams[3];
    weir_buffer held[RANDOM_BUFFERS];
    weir_graph *graphs[RANDOM_GRAPHS];
    int recording[3]; /* 0 no, 1 primed, 2 capturing */
} chaos;

static uint64_t pick(chaos *c, uint64_t below)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return (c->random >> 11) % below;
}

static void change_recording(chaos *c, uint64_t at)
{
    weir_stream *stream = c->streams[at];
    uint64_t place = pick(c, RANDOM_GRAPHS);
    if (c->recording[at] == 0 && pick(c, 4) == 0) {
        assert_ok(weir_capture_prime(stream));
        c->recording[at] = 1;
    } else if (c->recording[at] < 2) {
        assert_ok(weir_capture_begin(stream));
        c->recording[at] = 2;
    } else if (pick(c, 3) == 0) {
        assert_ok(weir_capture_abort(stream));
        c->recording[at] = 0;
    } else {
        assert_ok(weir_graph_destroy(c->graphs[place]));
        c->graphs[place] = end_capture(stream, "g");
        c->recording[at] = 0;
    }
}

static void step(chaos *c)
{
    uint64_t at = pick(c, 3);
    weir_stream *stream = c->streams[at];
    weir_buffer *buffer = &c->held[pick(c, RANDOM_BUFFERS)];
    weir_graph *graph = c->graphs[pick(c, RANDOM_GRAPHS)];
    switch (pick(c, 10)) {
    case 0:
        change_recording(c, at);
        break;
    case 1:
        if (graph != NULL && c->recording[at] < 2) {
            assert_ok(weir_graph_launch(graph, stream));
        }
        break;
    case 2:
        weir_device_memory_cleanup(c->r.device, NULL, NULL);
        break;
    case 3:
        finish_work(&c->r, stream);
        break;
    case 4:
    case 5:
        if (buffer->index != 0) {
            assert_ok(weir_buffer_use(*buffer, stream));
            queue_work(&c->r, stream);
        }
        break;
    default:
        weir_buffer_release(*buffer);
        *buffer = WEIR_NO_BUFFER;
        assert_ok(weir_buffer_create(
            stream, 1 + pick(c, UINT64_C(1) << (8 + pick(c, 16))), NULL, buffer));
        break;
    }
    assert_consistent(&c->r);
}

static void end_chaos(chaos *c)
{
    for (int i = 0; i < 3; i++) {
        if (c->recording[i] != 0) {
            assert_ok(weir_capture_abort(c->streams[i]));
        }
    }
    for (int i = 0; i < RANDOM_BUFFERS; i++) {
        weir_buffer_release(c->held[i]);
    }
    for (int i = 0; i < RANDOM_GRAPHS; i++) {
        assert_ok(weir_graph_destroy(c->graphs[i]));
    }
    weir_sim_finish_all(c->r.sim);
    end_stream(c->streams[1]), end_stream(c->streams[2]);
    rig_close(&c->r);
}

static void graphs__keep_every_sum_right_at_random(void **state)
{
    (void)state;
    uint64_t seeds = environment_number("WEIR_SOAK", 0) != 0 ? 400 : 8;
    uint64_t first = environment_number("WEIR_SEED", 1);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        print_message("seed %llu\n", (unsigned long long)seed);
        weir_sim_desc plain = plain_sim();
        chaos c = {.r = rig_open(seed % 2 == 0 ? &plain : NULL, NULL),
                   .random = seed * UINT64_C(0x9e3779b97f4a7c15)};
        c.streams[0] = c.r.stream;
        c.streams[1] = open_stream(c.r.device, "one");
        c.streams[2] = open_stream(c.r.device, "two");
        for (int i = 0; i < 600; i++) {
            step(&c);
        }
        end_chaos(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graph__holds_exactly_what_it_made_and_used_in_granules),
        cmocka_unit_test(graph__holds_exactly_what_it_made_and_used_in_pages),
        cmocka_unit_test(graph__leaves_buffers_valid_that_the_program_still_holds),
        cmocka_unit_test(graph__shares_a_buffer_with_another_until_both_are_gone),
        cmocka_unit_test(graph__is_named_by_the_outcome_of_a_cleanup),
        cmocka_unit_test(launch__never_changes_reserved),
        cmocka_unit_test(launch__makes_memory_wait_for_the_streams_it_ran_on),
        cmocka_unit_test(launch__on_its_own_stream_defers_until_that_has_passed),
        cmocka_unit_test(launch__is_refused_on_a_stream_that_captures_or_is_foreign),
        cmocka_unit_test(
            graph__keeps_the_device_from_closing_but_not_from_being_abandoned),
        cmocka_unit_test(graph__outlives_its_stream),
        cmocka_unit_test(captures__of_several_streams_run_side_by_side),
        cmocka_unit_test(capture__goes_on_while_others_allocate_and_clean_up),
        cmocka_unit_test(graphs__keep_every_sum_right_at_random),
    };
    return cmocka_run_group_tests_name("core, graphs", tests, NULL, NULL);
}
