/* SPDX-License-Identifier: MIT */
/* The tag table: many tags, exact counts, and what threads remember of it. */
#define _GNU_SOURCE
#include "support.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static weir_tag_usage tag_of(weir_device *device, const char *tag)
{
    weir_tag_usage usage;
    assert_ok(weir_device_tag_usage(device, tag, &usage));
    return usage;
}

static void tags__ten_thousand_of_them_are_bounded_and_none_is_lost(void **state)
{
    (void)state;
    enum { COUNT = 10000 };
    rig r = rig_open(NULL, NULL);
    static weir_buffer buffers[COUNT];
    static weir_tag_usage tags[300];
    char tag[32];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(tag, sizeof tag, "tag %u", i);
        buffers[i] = make(r.stream, 256 + i, tag);
    }
    size_t count = 0;
    assert_ok(weir_device_tags(r.device, tags, 300, &count));
    assert_int_equal(count, 255); /* 254 named ones and "other" */
    assert_string_equal(tags[0].tag, "other");
    uint64_t in_use = 0, padding = 0, live = 0;
    for (size_t i = 0; i < count; i++) {
        in_use += tags[i].in_use_bytes;
        padding += tags[i].padding_bytes;
        live += tags[i].live_count;
    }
    weir_usage usage = usage_of(r.device);
    assert_int_equal(in_use, usage.in_use_bytes);
    assert_int_equal(padding, usage.padding_bytes);
    assert_int_equal(live, COUNT);
    assert_int_equal(tag_of(r.device, "tag 0").in_use_bytes, 256);
    assert_int_equal(tag_of(r.device, "tag 9999").in_use_bytes, 0);
    assert_result(weir_device_tag_limit(r.device, "tag 9999", MIB), WEIR_LIMIT);
    assert_ok(weir_device_tag_limit(r.device, "tag 0", MIB));
    assert_ok(weir_device_tag_limit(r.device, "other", in_use));
    for (unsigned i = 0; i < COUNT; i++) {
        drop(buffers[i]);
    }
    assert_int_equal(tag_of(r.device, "other").in_use_bytes, 0);
    assert_int_equal(tag_of(r.device, "other").padding_bytes, 0);
    rig_close(&r);
}

static void tags__the_peak_is_the_most_at_one_time(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer one = make(r.stream, 3 * MIB, "a"), two = make(r.stream, 4 * MIB, "a");
    assert_int_equal(tag_of(r.device, "a").peak_in_use_bytes, 7 * MIB);
    drop(one);
    assert_int_equal(tag_of(r.device, "a").peak_in_use_bytes, 7 * MIB);
    one = make(r.stream, 2 * MIB, "a");
    assert_int_equal(tag_of(r.device, "a").peak_in_use_bytes, 7 * MIB);
    weir_buffer three = make(r.stream, 2 * MIB, "a");
    assert_int_equal(tag_of(r.device, "a").peak_in_use_bytes, 8 * MIB);
    drop(one);
    drop(two);
    drop(three);
    assert_int_equal(tag_of(r.device, "a").peak_in_use_bytes, 8 * MIB);
    assert_int_equal(tag_of(r.device, "a").in_use_bytes, 0);
    rig_close(&r);
}

/* ---- threads ---- */

enum { ROUNDS = 2000 };

typedef struct pair {
    weir_stream *stream;
    pthread_barrier_t *barrier;
} pair;

/* In each round both threads hold 1 + round KiB at one moment, and more never. */
static void *hold_in_turn(void *context)
{
    pair *p = context;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        weir_buffer buffer = WEIR_NO_BUFFER;
        weir_buffer_create(p->stream, (1 + i) * KIB, &(weir_buffer_desc){.tag = "both"},
                           &buffer);
        pthread_barrier_wait(p->barrier);
        weir_buffer_release(buffer);
        pthread_barrier_wait(p->barrier);
    }
    return NULL;
}

static void tags__two_threads_on_one_tag_count_exactly(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    pair pairs[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pairs[i] = (pair){open_stream(r.device, NULL), &barrier};
        assert_int_equal(pthread_create(&threads[i], NULL, hold_in_turn, &pairs[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_ok(weir_stream_close(pairs[i].stream));
    }
    pthread_barrier_destroy(&barrier);
    weir_tag_usage usage = tag_of(r.device, "both");
    assert_int_equal(usage.peak_in_use_bytes, 2 * ROUNDS * KIB);
    assert_int_equal(usage.in_use_bytes + usage.padding_bytes + usage.live_count, 0);
    rig_close(&r);
}

/* ---- what threads remember ---- */

static void tags__a_text_is_read_anew_where_another_one_lay(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    char place[64];
    for (size_t offset = 0; offset < 16; offset++) {
        for (size_t length = 1; length < 40; length++) {
            char *text = place + offset;
            weir_buffer buffers[3];
            memset(text, 'a', length);
            text[length] = '\0';
            buffers[0] = make(r.stream, KIB, text);
            text[length - 1] = 'b';
            buffers[1] = make(r.stream, 2 * KIB, text);
            text[length - 1] = 'a';
            buffers[2] = make(r.stream, 4 * KIB, text);
            bool cut = length > 31; /* then they are one */
            assert_int_equal(tag_of(r.device, text).in_use_bytes,
                             cut ? 7 * KIB : 5 * KIB);
            text[length - 1] = 'b';
            assert_int_equal(tag_of(r.device, text).in_use_bytes,
                             cut ? 7 * KIB : 2 * KIB);
            text[length - 1] = '\0'; /* shorter at the same place */
            weir_buffer shorter = make(r.stream, 8 * KIB, text);
            if (!cut && length > 1) {
                assert_int_equal(tag_of(r.device, text).in_use_bytes, 8 * KIB);
            }
            drop(shorter);
            for (int i = 0; i < 3; i++) {
                drop(buffers[i]);
            }
        }
    }
    rig_close(&r);
}

static void tags__nothing_behind_a_text_is_read(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    char *pages =
        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    for (size_t length = 1; length < 31; length++) {
        char *text = pages + 4096 - 1 - length;
        memset(text, 'x', length);
        weir_buffer one = make(r.stream, KIB, text), two = make(r.stream, KIB, text);
        assert_int_equal(tag_of(r.device, text).live_count, 2);
        drop(one);
        drop(two);
        /* A shorter one that ends where the page does, where a longer one was known. */
        char *same = pages + 4096 - 32;
        memset(same, 'y', 31);
        drop(make(r.stream, KIB, same));
        memset(same, 'z', length);
        same[length] = '\0';
        drop(make(r.stream, KIB, same));
        memset(pages, 0, 4096);
    }
    munmap(pages, 8192);
    rig_close(&r);
}

/* More texts than a thread remembers, short and long ones, at places that meet. */
static void tags__many_texts_by_turns_keep_counts_of_their_own(void **state)
{
    (void)state;
    enum { TEXTS = 60, ROUNDS_BY_TURNS = 5 };
    rig r = rig_open(NULL, NULL);
    static char texts[TEXTS][40];
    static weir_buffer buffers[ROUNDS_BY_TURNS][TEXTS];
    for (int round = 0; round < ROUNDS_BY_TURNS; round++) {
        for (int i = 0; i < TEXTS; i++) {
            if (round == ROUNDS_BY_TURNS - 1) { /* the last time at another's place */
                memcpy(texts[i], texts[(i + 1) % TEXTS], i + 1 < TEXTS ? 40 : 0);
            } else {
                snprintf(texts[i], sizeof texts[i], "%s %d",
                         i % 3 == 0 ? "of a long name, tag" : "tag", i);
            }
            buffers[round][i] = make(r.stream, KIB, texts[i]);
        }
    }
    for (int i = 0; i < TEXTS; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s %d", i % 3 == 0 ? "of a long name, tag" : "tag",
                 i);
        uint64_t last = i == 0 ? 0 : i < TEXTS - 1 ? 1 : 2;
        assert_int_equal(tag_of(r.device, name).live_count, ROUNDS_BY_TURNS - 1 + last);
    }
    for (int i = 0; i < ROUNDS_BY_TURNS * TEXTS; i++) {
        drop(buffers[i / TEXTS][i % TEXTS]);
    }
    rig_close(&r);
}

/* What a thread remembers of a tag without a limit must not outlive its getting one. */
static void tags__a_limit_holds_for_texts_that_are_known_already(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    const char *names[] = {"short", "of a name that is rather long"};
    for (int i = 0; i < 2; i++) {
        weir_buffer buffer = make(r.stream, KIB, names[i]), none = WEIR_NO_BUFFER;
        weir_buffer_desc desc = {.tag = names[i]};
        assert_ok(weir_device_tag_limit(r.device, names[i], KIB));
        assert_result(weir_buffer_create(r.stream, KIB, &desc, &none), WEIR_LIMIT);
        assert_ok(weir_device_tag_limit(r.device, names[i], 0));
        drop(make(r.stream, KIB, names[i]));
        drop(buffer);
    }
    rig_close(&r);
}

static void tags__devices_do_not_share_numbers(void **state)
{
    (void)state;
    rig one = rig_open(NULL, NULL), two = rig_open(NULL, NULL);
    weir_buffer first = make(two.stream, KIB, "only in two");
    assert_ok(weir_tag_push("scope"));
    for (int i = 0; i < 3; i++) {
        weir_buffer buffers[] = {make(one.stream, KIB, NULL), make(two.stream, KIB, NULL),
                                 make(one.stream, KIB, "c"), make(two.stream, KIB, "c")};
        assert_int_equal(tag_of(one.device, "scope").live_count, 1);
        assert_int_equal(tag_of(two.device, "scope").live_count, 1);
        assert_int_equal(tag_of(one.device, "c").live_count, 1);
        assert_int_equal(tag_of(two.device, "c").live_count, 1);
        for (int b = 0; b < 4; b++) {
            drop(buffers[b]);
        }
    }
    drop(first);
    rig_close(&one);
    rig_close(&two);
    for (int i = 0; i < 4; i++) { /* maybe at the same address */
        rig next = rig_open(NULL, NULL);
        weir_buffer before = make(next.stream, KIB, i % 2 == 0 ? "x" : "y");
        weir_buffer scoped = make(next.stream, KIB, NULL),
                    called = make(next.stream, KIB, "c");
        assert_int_equal(tag_of(next.device, "scope").live_count, 1);
        assert_int_equal(tag_of(next.device, "c").live_count, 1);
        drop(before);
        drop(scoped);
        drop(called);
        rig_close(&next);
    }
    assert_ok(weir_tag_pop());
}

static void tags__a_scope_entered_again_may_have_another_name(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    const char *names[] = {"a", "b", "a", "a", "c"};
    weir_buffer buffers[10];
    assert_ok(weir_tag_push("outer"));
    for (int i = 0; i < 5; i++) {
        assert_ok(weir_tag_push(names[i]));
        buffers[2 * i] = make(r.stream, KIB, NULL);
        assert_ok(weir_tag_pop());
        buffers[2 * i + 1] = make(r.stream, KIB, NULL);
    }
    assert_ok(weir_tag_pop());
    assert_int_equal(tag_of(r.device, "outer").live_count, 5);
    assert_int_equal(tag_of(r.device, "a").live_count, 3);
    assert_int_equal(tag_of(r.device, "b").live_count, 1);
    assert_int_equal(tag_of(r.device, "c").live_count, 1);
    for (int i = 0; i < 10; i++) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags__ten_thousand_of_them_are_bounded_and_none_is_lost),
        cmocka_unit_test(tags__the_peak_is_the_most_at_one_time),
        cmocka_unit_test(tags__two_threads_on_one_tag_count_exactly),
        cmocka_unit_test(tags__a_text_is_read_anew_where_another_one_lay),
        cmocka_unit_test(tags__nothing_behind_a_text_is_read),
        cmocka_unit_test(tags__many_texts_by_turns_keep_counts_of_their_own),
        cmocka_unit_test(tags__a_limit_holds_for_texts_that_are_known_already),
        cmocka_unit_test(tags__devices_do_not_share_numbers),
        cmocka_unit_test(tags__a_scope_entered_again_may_have_another_name),
    };
    return cmocka_run_group_tests_name("core, tag table", tests, NULL, NULL);
}
