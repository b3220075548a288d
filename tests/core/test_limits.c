/* SPDX-License-Identifier: MIT */
/* Limits of device, pools and tags, changed while buffers live. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static weir_tag_usage tag_of(const rig *r, const char *tag)
{
    weir_tag_usage usage;
    assert_ok(weir_device_tag_usage(r->device, tag, &usage));
    return usage;
}

/* An allocation that must fail with LIMIT, change no live bytes, and say why. */
static void assert_limited(rig *r, weir_stream *stream, uint64_t bytes, const char *tag,
                           const char *says)
{
    weir_usage before = usage_of(r->device);
    weir_buffer out = {77, 78};
    assert_result(weir_buffer_create(stream, bytes, &(weir_buffer_desc){.tag = tag},
                                     &out),
                  WEIR_LIMIT);
    assert_true(out.index == 77 && out.generation == 78);
    assert_says(weir_last_error(), "limit");
    assert_says(weir_last_error(), says);
    weir_usage after = usage_of(r->device);
    assert_int_equal(after.in_use_bytes, before.in_use_bytes);
    assert_int_equal(after.padding_bytes, before.padding_bytes);
    assert_int_equal(after.live_count, before.live_count);
    assert_true(after.reserved_bytes <= before.reserved_bytes);
    assert_int_equal(after.limits, before.limits + 1);
    assert_int_equal(after.ooms, before.ooms);
}

static void limits__the_device_gives_back_unheld_memory_before_it_refuses(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    rig r = rig_open(&sim, NULL);
    drop(make(r.stream, 48 * MIB, NULL));
    assert_ok(weir_device_limit(r.device, 64 * MIB));
    weir_buffer buffer = make(r.stream, 60 * MIB, NULL);
    weir_usage usage = usage_of(r.device);
    assert_int_equal(usage.reserved_bytes, 60 * MIB);
    assert_int_equal(usage.pressure_bytes, 48 * MIB);
    assert_limited(&r, r.stream, 60 * MIB, NULL, "the device");
    drop(buffer);
    assert_consistent(&r);
    rig_close(&r);
}

static void limits__a_pool_counts_over_all_streams_and_leaves_others_alone(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    assert_ok(weir_device_pool_limit(r.device, "arena", 64 * MIB));
    weir_buffer first = make(r.stream, 32 * MIB, NULL);
    weir_buffer second = make(other, 32 * MIB, NULL);
    assert_limited(&r, r.stream, 32 * MIB, NULL, "pool arena");
    assert_limited(&r, other, 32 * MIB, NULL, "67108864");
    weir_buffer small = make(r.stream, KIB, NULL);
    weir_buffer persistent = WEIR_NO_BUFFER;
    assert_ok(weir_buffer_create(r.stream, 32 * MIB,
                                 &(weir_buffer_desc){.persistent = true}, &persistent));
    assert_ok(weir_device_pool_limit(r.device, "arena", 0));
    weir_buffer third = make(r.stream, 32 * MIB, NULL);
    weir_buffer all[] = {first, second, small, persistent, third};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        drop(all[i]);
    }
    assert_ok(weir_stream_close(other));
    assert_consistent(&r);
    rig_close(&r);
}

static void limits__a_pool_gives_back_its_own_unheld_memory_first(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffers[16];
    for (size_t i = 0; i < 16; i++) {
        buffers[i] = make(r.stream, 4 * MIB, NULL);
    }
    assert_ok(weir_device_pool_limit(r.device, "arena", 64 * MIB));
    for (size_t i = 0; i < 16; i += 2) {
        drop(buffers[i]);
    }
    weir_buffer large = make(r.stream, 32 * MIB, NULL);
    assert_int_equal(usage_of(r.device).reserved_bytes, 64 * MIB);
    assert_limited(&r, r.stream, 4 * MIB, NULL, "pool arena");
    drop(large);
    for (size_t i = 1; i < 16; i += 2) {
        drop(buffers[i]);
    }
    assert_consistent(&r);
    rig_close(&r);
}

static void limits__a_full_pool_gives_way_to_the_next_that_serves_the_size(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    static weir_buffer buffers[64];
    assert_ok(weir_device_pool_limit(r.device, "arena small", 2 * MIB));
    for (size_t i = 0; i < 64; i++) {
        buffers[i] = make(r.stream, 64 * KIB, NULL);
    }
    weir_device_report report = {.size = sizeof report};
    assert_ok(weir_device_memory_report(r.device, &report));
    assert_string_equal(report.pools[0].name, "arena small");
    assert_int_equal(report.pools[0].reserved_bytes, 2 * MIB);
    assert_int_equal(report.pools[1].in_use_bytes, 2 * MIB);
    for (size_t i = 0; i < 64; i++) {
        drop(buffers[i]);
    }
    assert_consistent(&r);
    rig_close(&r);
}

static void limits__a_pool_that_is_not_there_is_not_found(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_result(weir_device_pool_limit(r.device, "marsh", MIB), WEIR_NOT_FOUND);
    assert_says(weir_last_error(), "\"arena small\", \"arena\", \"persistent\"");
    assert_result(weir_device_pool_limit(r.device, NULL, MIB), WEIR_INVALID);
    assert_result(weir_device_pool_limit(NULL, "arena", MIB), WEIR_INVALID);
    rig_close(&r);
}

static void limits__a_tag_counts_its_padding(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    rig r = rig_open(NULL, NULL);
    static weir_buffer buffers[COUNT];
    assert_ok(weir_device_tag_limit(r.device, "cache", COUNT * 256));
    for (size_t i = 0; i < COUNT; i++) {
        buffers[i] = make(r.stream, 100, "cache");
    }
    weir_tag_usage usage = tag_of(&r, "cache");
    assert_int_equal(usage.in_use_bytes, COUNT * 100);
    assert_int_equal(usage.padding_bytes, COUNT * 156);
    assert_int_equal(usage.limit_bytes, COUNT * 256);
    assert_limited(&r, r.stream, 1, "cache", "tag cache");
    weir_buffer other = make(r.stream, MIB, "another");
    weir_buffer untagged = make(r.stream, MIB, NULL);
    drop(buffers[0]);
    buffers[0] = make(r.stream, 256, "cache");
    assert_limited(&r, r.stream, 1, "cache", "tag cache");
    assert_ok(weir_device_tag_limit(r.device, "cache", 0));
    weir_buffer free_again = make(r.stream, MIB, "cache");
    drop(free_again);
    drop(other);
    drop(untagged);
    for (size_t i = 0; i < COUNT; i++) {
        drop(buffers[i]);
    }
    usage = tag_of(&r, "cache");
    assert_int_equal(usage.in_use_bytes + usage.padding_bytes + usage.live_count, 0);
    assert_consistent(&r);
    rig_close(&r);
}

static void limits__a_tag_limit_applies_at_once_in_scopes_and_calls(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_tag_push("scope"));
    weir_buffer scoped = make(r.stream, MIB, NULL);
    weir_buffer called = make(r.stream, MIB, "call");
    assert_ok(weir_device_tag_limit(r.device, "scope", MIB));
    assert_ok(weir_device_tag_limit(r.device, "call", MIB));
    assert_limited(&r, r.stream, MIB, NULL, "tag scope");
    assert_limited(&r, r.stream, MIB, "call", "tag call");
    assert_ok(weir_device_tag_limit(r.device, "scope", 0));
    assert_ok(weir_device_tag_limit(r.device, "call", 3 * MIB));
    weir_buffer more[] = {make(r.stream, MIB, NULL), make(r.stream, 2 * MIB, "call")};
    assert_limited(&r, r.stream, 1, "call", "tag call");
    assert_ok(weir_tag_pop());
    drop(scoped);
    drop(called);
    drop(more[0]);
    drop(more[1]);
    rig_close(&r);
}

static void limits__a_tag_limit_counts_the_whole_page_that_a_buffer_takes(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    rig r = rig_open(&sim, NULL);
    drop(make(r.stream, 40 * MIB, NULL));
    assert_ok(weir_device_tag_limit(r.device, "page", 38 * MIB));
    assert_limited(&r, r.stream, 37 * MIB, "page", "tag page");
    assert_int_equal(tag_of(&r, "page").live_count, 0);
    assert_ok(weir_device_tag_limit(r.device, "page", 40 * MIB));
    weir_buffer buffer = make(r.stream, 37 * MIB, "page");
    assert_int_equal(tag_of(&r, "page").padding_bytes, 3 * MIB);
    drop(buffer);
    rig_close(&r);
}

static void limits__untagged_buffers_have_no_limit_of_their_own(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_result(weir_device_tag_limit(r.device, "", MIB), WEIR_INVALID);
    assert_result(weir_device_tag_limit(r.device, NULL, MIB), WEIR_INVALID);
    assert_result(weir_device_tag_limit(NULL, "tag", MIB), WEIR_INVALID);
    rig_close(&r);
}

static void limits__a_failed_request_leaves_nothing_charged(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer out = WEIR_NO_BUFFER;
    assert_ok(weir_device_tag_limit(r.device, "huge", 100 * GIB));
    for (int i = 0; i < 5; i++) {
        assert_result(weir_buffer_create(r.stream, 30 * GIB,
                                         &(weir_buffer_desc){.tag = "huge"}, &out),
                      WEIR_OUT_OF_MEMORY);
    }
    weir_tag_usage usage = tag_of(&r, "huge");
    assert_int_equal(usage.in_use_bytes + usage.padding_bytes + usage.live_count, 0);
    rig_close(&r);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 3000, HELD = 4, SLICE = 256 };

typedef struct worker {
    rig *r;
    weir_stream *stream;
    atomic_uint *refused;
} worker;

static void *churn(void *context)
{
    worker *w = context;
    weir_buffer held[HELD];
    for (int i = 0; i < ROUNDS; i++) {
        int got = 0;
        for (; got < HELD; got++) {
            if (weir_buffer_create(w->stream, SLICE, &(weir_buffer_desc){.tag = "shared"},
                                   &held[got]) != WEIR_OK) {
                atomic_fetch_add(w->refused, 1);
                break;
            }
        }
        weir_tag_usage usage;
        weir_device_tag_usage(w->r->device, "shared", &usage);
        if (usage.in_use_bytes > usage.limit_bytes && usage.limit_bytes != 0) {
            atomic_fetch_add(w->refused, 1000000);
        }
        while (got > 0) {
            weir_buffer_release(held[--got]);
        }
    }
    return NULL;
}

static unsigned run_workers(rig *r, uint64_t limit_bytes)
{
    atomic_uint refused = 0;
    worker workers[THREADS];
    pthread_t threads[THREADS];
    assert_ok(weir_device_tag_limit(r->device, "shared", limit_bytes));
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){r, open_stream(r->device, NULL), &refused};
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_ok(weir_stream_close(workers[i].stream));
    }
    return refused;
}

static void limits__threads_that_stay_within_a_tag_limit_are_never_refused(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_int_equal(run_workers(&r, THREADS * HELD * SLICE), 0);
    weir_tag_usage usage = tag_of(&r, "shared");
    assert_int_equal(usage.in_use_bytes + usage.padding_bytes + usage.live_count, 0);
    rig_close(&r);
}

static void limits__threads_never_pass_a_tag_limit_together(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_true(run_workers(&r, 2 * HELD * SLICE) < 1000000);
    weir_tag_usage usage = tag_of(&r, "shared");
    assert_int_equal(usage.in_use_bytes + usage.padding_bytes + usage.live_count, 0);
    assert_true(usage.peak_in_use_bytes <= 2 * HELD * SLICE);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits__the_device_gives_back_unheld_memory_before_it_refuses),
        cmocka_unit_test(limits__a_pool_counts_over_all_streams_and_leaves_others_alone),
        cmocka_unit_test(limits__a_pool_gives_back_its_own_unheld_memory_first),
        cmocka_unit_test(limits__a_full_pool_gives_way_to_the_next_that_serves_the_size),
        cmocka_unit_test(limits__a_pool_that_is_not_there_is_not_found),
        cmocka_unit_test(limits__a_tag_counts_its_padding),
        cmocka_unit_test(limits__a_tag_limit_applies_at_once_in_scopes_and_calls),
        cmocka_unit_test(limits__a_tag_limit_counts_the_whole_page_that_a_buffer_takes),
        cmocka_unit_test(limits__untagged_buffers_have_no_limit_of_their_own),
        cmocka_unit_test(limits__a_failed_request_leaves_nothing_charged),
        cmocka_unit_test(limits__threads_that_stay_within_a_tag_limit_are_never_refused),
        cmocka_unit_test(limits__threads_never_pass_a_tag_limit_together),
    };
    return cmocka_run_group_tests_name("core, limits", tests, NULL, NULL);
}
