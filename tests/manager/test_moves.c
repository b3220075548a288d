/* SPDX-License-Identifier: MIT */
/* Granules moved by a driver that can only decommit and commit, and what becomes of them
 * when that fails half way. */
#include "core/support.h"

#include <string.h>

#define GRANULE (2 * MIB)
#define COUNT 32

typedef struct scene {
    rig r;
    weir_driver_table table;
    weir_buffer held[COUNT];
} scene;

static void take_sim(weir_driver_table *table)
{
    const weir_driver_table *at = NULL;
    for (size_t i = 0; (at = weir_driver_at(i)) != NULL; i++) {
        if (strcmp(at->name, "sim") == 0) {
            *table = *at;
        }
    }
}

/* A full device, in which every other granule is free. */
static void open_scene(scene *s, bool can_move)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = COUNT * GRANULE;
    sim.context_bytes = 0;
    *s = (scene){0};
    take_sim(&s->table);
    s->table.move = can_move ? s->table.move : NULL;
    weir_device_desc desc = {.no_thread = true, .driver_config = &sim};
    assert_ok(weir_device_open_driver(&s->table, "", &desc, &s->r.device));
    s->r.sim = weir_device_driver(s->r.device);
    s->r.stream = weir_device_default_stream(s->r.device);
    for (int i = 0; i < COUNT; i++) {
        s->held[i] = make(s->r.stream, GRANULE, NULL);
    }
    for (int i = 0; i < COUNT; i += 2) {
        drop(s->held[i]);
    }
    assert_consistent(&s->r);
}

static void close_scene(scene *s)
{
    assert_consistent(&s->r);
    for (int i = 1; i < COUNT; i += 2) {
        drop(s->held[i]);
    }
    rig_close(&s->r);
}

static void assert_moved(scene *s)
{
    uint64_t reserved = usage_of(s->r.device).reserved_bytes;
    weir_buffer buffer = make(s->r.stream, 3 * GRANULE, NULL);
    assert_true(usage_of(s->r.device).moves >= 1);
    assert_int_equal(usage_of(s->r.device).reserved_bytes, reserved);
    assert_consistent(&s->r);
    drop(buffer);
}

static void moves__need_no_call_for_it(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, false);
    assert_moved(&s);
    assert_int_equal(ledger_of(&s.r).calls[WEIR_SIM_OP_move], 0);
    close_scene(&s);
}

static void moves__that_fail_leave_every_granule_where_it_was(void **state)
{
    (void)state;
    static const weir_sim_op ops[] = {WEIR_SIM_OP_decommit, WEIR_SIM_OP_commit,
                                      WEIR_SIM_OP_move};
    int failures = 0;
    for (size_t i = 0; i < 3; i++) {
        for (uint64_t after = 0; after < 3; after++) {
            scene s;
            weir_buffer buffer = {7, 8};
            open_scene(&s, ops[i] == WEIR_SIM_OP_move);
            uint64_t before = usage_of(s.r.device).reserved_bytes;
            weir_sim_fail(s.r.sim, ops[i], 1, after);
            weir_result result =
                weir_buffer_create(s.r.stream, 3 * GRANULE, NULL, &buffer);
            weir_sim_fail(s.r.sim, ops[i], 0, 0);
            if (result != WEIR_OK) {
                failures++;
                assert_true(buffer.index == 7 && buffer.generation == 8);
            } else {
                drop(buffer);
            }
            assert_true(usage_of(s.r.device).reserved_bytes <= before);
            assert_consistent(&s.r);
            assert_moved(&s); /* now it can be done */
            close_scene(&s);
        }
    }
    assert_true(failures >= 3); /* each sort of call at least once */
}

/* A window that is partly backed by moved granules and partly by new ones. */
static void moves__that_fail_beside_new_granules_give_those_back(void **state)
{
    (void)state;
    for (uint64_t refused = 0; refused < 2; refused++) {
        scene s;
        open_scene(&s, true);
        drop(s.held[COUNT - 1]);
        cleanup(s.r.device, &(weir_cleanup_desc){.at_most_bytes = 2 * GRANULE});
        uint64_t before = usage_of(s.r.device).reserved_bytes;
        assert_int_equal(before, (COUNT - 2) * GRANULE);
        weir_buffer buffer = {7, 8};
        weir_sim_fail(s.r.sim, WEIR_SIM_OP_move, 1, 2);
        weir_sim_fail(s.r.sim, WEIR_SIM_OP_decommit, refused, 0);
        assert_error(
            weir_buffer_create(s.r.stream, (COUNT / 2 + 1) * GRANULE, NULL, &buffer));
        weir_sim_fail(s.r.sim, WEIR_SIM_OP_move, 0, 0);
        weir_sim_fail(s.r.sim, WEIR_SIM_OP_decommit, 0, 0);
        assert_true(buffer.index == 7 && buffer.generation == 8);
        assert_int_equal(usage_of(s.r.device).reserved_bytes, before);
        assert_consistent(&s.r);
        drop(make(s.r.stream, (COUNT / 2 + 1) * GRANULE, NULL));
        s.held[COUNT - 1] = make(s.r.stream, GRANULE, NULL);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves__need_no_call_for_it),
        cmocka_unit_test(moves__that_fail_leave_every_granule_where_it_was),
        cmocka_unit_test(moves__that_fail_beside_new_granules_give_those_back),
    };
    return cmocka_run_group_tests_name("manager, moves", tests, NULL, NULL);
}
