/* SPDX-License-Identifier: MIT */
/* Cleanup over all devices of the process. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define ROUNDS 200

static weir_cleanup_outcome cleanup_all(void)
{
    weir_cleanup_outcome outcome = {0};
    assert_ok(weir_devices_memory_cleanup(&(weir_cleanup_desc){.wait = true}, &outcome));
    return outcome;
}

static void devices__all_give_back_in_one_cleanup(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL), two = rig_open(NULL, NULL);
    drop(make(one.stream, 64 * MIB, NULL));
    drop(make(two.stream, 32 * MIB, NULL));
    weir_cleanup_outcome outcome = cleanup_all();
    assert_int_equal(outcome.returned_bytes, 96 * MIB);
    assert_int_equal(usage_of(one.device).reserved_bytes, 0);
    assert_int_equal(usage_of(two.device).reserved_bytes, 0);
    rig_close(&two);
    rig_close(&one);
    outcome = cleanup_all(); /* of none */
    assert_int_equal(outcome.returned_bytes, 0);
}

static void devices__the_outcome_names_what_pins_most(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL), two = rig_open(NULL, NULL);
    weir_buffer little = make(one.stream, 2 * MIB - 4096, "little");
    weir_buffer much = make(two.stream, MIB, "much");
    weir_cleanup_outcome outcome = cleanup_all();
    assert_int_equal(outcome.pinned_bytes, MIB + 4096);
    assert_string_equal(outcome.pinned_by_tag, "much");
    assert_int_equal(outcome.pinned_by_bytes, MIB);
    drop(little);
    drop(much);
    rig_close(&two);
    rig_close(&one);
}

static void devices__a_capture_on_one_keeps_none_of_the_others(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL), two = rig_open(NULL, NULL),
        three = rig_open(NULL, NULL);
    drop(make(one.stream, 64 * MIB, NULL));
    drop(make(three.stream, 64 * MIB, NULL));
    assert_ok(weir_capture_begin(two.stream));
    weir_cleanup_outcome outcome = {.returned_bytes = 7};
    assert_int_equal(weir_devices_memory_cleanup(NULL, &outcome), WEIR_BUSY);
    assert_int_equal(outcome.returned_bytes, 7);
    assert_int_equal(usage_of(one.device).reserved_bytes, 0);
    assert_int_equal(usage_of(three.device).reserved_bytes, 0);
    assert_ok(weir_capture_abort(two.stream));
    rig_close(&three);
    rig_close(&two);
    rig_close(&one);
}

static void devices__options_of_another_size_are_refused(void **state)
{
    (void)state;
    weir_cleanup_desc desc = {.size = 1};
    assert_int_equal(weir_devices_memory_cleanup(&desc, NULL), WEIR_INVALID);
    weir_cleanup_outcome outcome = {.size = 1};
    assert_int_equal(weir_devices_memory_cleanup(NULL, &outcome), WEIR_INVALID);
}

/* What a program may do inside a hook. */
typedef struct inside {
    rig *own, *other;
    int calls;
} inside;

static void before_cleanup(void *context, weir_stream *stream)
{
    inside *me = context;
    (void)stream;
    if (me->calls++ > 0) {
        return;
    }
    assert_int_equal(weir_device_close(me->own->device), WEIR_BUSY);
    assert_says(weir_last_error(), "hook");
    drop(make(me->other->stream, 32 * MIB, NULL));
    assert_int_equal(cleanup_all().returned_bytes, 32 * MIB); /* passes over its own */
    rig_close(me->other);
}

static void devices__hooks_may_close_others_and_clean_up(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL), two = rig_open(NULL, NULL);
    inside me = {.own = &one, .other = &two};
    weir_stream_hook hook = {.context = &me, .before_cleanup = before_cleanup};
    assert_ok(weir_stream_hook_add(one.stream, &hook));
    drop(make(one.stream, 64 * MIB, NULL));
    assert_int_equal(cleanup_all().returned_bytes, 64 * MIB);
    assert_int_equal(me.calls, 1);
    assert_ok(weir_stream_hook_remove(one.stream, &me));
    rig_close(&one);
}

static atomic_bool is_over;

static void *clean_up_until_over(void *argument)
{
    (void)argument;
    while (!atomic_load(&is_over)) {
        weir_devices_memory_cleanup(NULL, NULL);
    }
    return NULL;
}

static void devices__open_and_close_beside_cleanups_of_all(void **state)
{
    (void)state;
    pthread_t threads[2];
    atomic_store(&is_over, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, clean_up_until_over, NULL), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        rig one = rig_open(NULL, NULL), two = rig_open(NULL, NULL);
        drop(make(one.stream, 4 * MIB, NULL));
        assert_ok(weir_device_close(one.device));
        drop(make(two.stream, 4 * MIB, NULL));
        assert_ok(weir_device_close(two.device));
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices__all_give_back_in_one_cleanup),
        cmocka_unit_test(devices__the_outcome_names_what_pins_most),
        cmocka_unit_test(devices__a_capture_on_one_keeps_none_of_the_others),
        cmocka_unit_test(devices__options_of_another_size_are_refused),
        cmocka_unit_test(devices__hooks_may_close_others_and_clean_up),
        cmocka_unit_test(devices__open_and_close_beside_cleanups_of_all),
    };
    return cmocka_run_group_tests_name("core, devices", tests, NULL, NULL);
}
