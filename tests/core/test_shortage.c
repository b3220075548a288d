/* SPDX-License-Identifier: MIT */
/* What is told about an allocation that failed for memory or a limit. */
#include "support.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static weir_shortage last(void)
{
    weir_shortage shortage = {.size = sizeof shortage};
    assert_ok(weir_last_shortage(&shortage));
    return shortage;
}

static weir_shortage fail_for(weir_stream *stream, uint64_t bytes, const char *tag,
                              weir_result expected)
{
    weir_buffer out = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(stream, bytes, &(weir_buffer_desc){.tag = tag},
                                     &out),
                  expected);
    weir_shortage shortage = last();
    assert_int_equal(shortage.result, expected);
    assert_int_equal(shortage.request_bytes, bytes);
    assert_string_equal(shortage.stream, weir_stream_name(stream));
    assert_string_equal(shortage.tag, tag);
    assert_int_equal(shortage.reserved_bytes,
                     usage_of(weir_stream_device(stream)).reserved_bytes);
    return shortage;
}

static void *ask_without_failure(void *context)
{
    weir_shortage shortage = {.size = 0};
    *(weir_result *)context = weir_last_shortage(&shortage);
    return NULL;
}

static void shortage__a_thread_knows_only_its_own(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    fail_for(r.stream, 30 * GIB, "huge", WEIR_OUT_OF_MEMORY);
    weir_result result = WEIR_OK;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_without_failure, &result), 0);
    pthread_join(thread, NULL);
    assert_int_equal(result, WEIR_NOT_FOUND);
    weir_shortage shortage = {.size = 7};
    assert_result(weir_last_shortage(&shortage), WEIR_INVALID);
    assert_result(weir_last_shortage(NULL), WEIR_INVALID);
    rig_close(&r);
}

/* Holds buffers of 64 MiB, then asks for `bytes` and drops as many as are said to be
 * missing: one fewer would not do. */
static void assert_missing_is_exact(rig *r, uint64_t held_bytes, uint64_t bytes,
                                    weir_result expected)
{
    static weir_buffer buffers[400];
    size_t count = 0;
    while ((count + 1) * 64 * MIB <= held_bytes) {
        buffers[count++] = make(r->stream, 64 * MIB, "held");
    }
    weir_shortage shortage = fail_for(r->stream, bytes, "more", expected);
    assert_true(shortage.missing_bytes > 0);
    size_t to_drop = (size_t)((shortage.missing_bytes + 64 * MIB - 1) / (64 * MIB));
    assert_true(to_drop > 1 && to_drop < count);
    while (to_drop > 1) {
        drop(buffers[--count]);
        to_drop--;
    }
    shortage = fail_for(r->stream, bytes, "more", expected);
    assert_true(shortage.missing_bytes <= 64 * MIB);
    drop(buffers[--count]);
    weir_buffer fits = make(r->stream, bytes, "more");
    drop(fits);
    while (count > 0) {
        drop(buffers[--count]);
    }
    assert_consistent(r);
}

static void shortage__what_is_missing_on_a_full_device_is_exact(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_missing_is_exact(&r, 20 * GIB, 5 * GIB, WEIR_OUT_OF_MEMORY);
    rig_close(&r);
}

static void shortage__what_is_missing_below_a_limit_is_exact(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_ok(weir_device_limit(r.device, 4 * GIB));
    assert_missing_is_exact(&r, 3 * GIB, 2 * GIB, WEIR_LIMIT);
    assert_ok(weir_device_limit(r.device, 0));
    assert_ok(weir_device_pool_limit(r.device, "arena", 4 * GIB));
    assert_missing_is_exact(&r, 3 * GIB, 2 * GIB, WEIR_LIMIT);
    rig_close(&r);
}

static void shortage__the_limit_that_decided_is_named(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, 32 * MIB, "cache");
    assert_ok(weir_device_tag_limit(r.device, "cache", 40 * MIB));
    weir_shortage shortage = fail_for(r.stream, 32 * MIB, "cache", WEIR_LIMIT);
    assert_int_equal(shortage.limit_kind, WEIR_LIMIT_KIND_TAG);
    assert_string_equal(shortage.limit_name, "cache");
    assert_int_equal(shortage.limit_bytes, 40 * MIB);
    assert_int_equal(shortage.limited_bytes, 32 * MIB);
    assert_int_equal(shortage.missing_bytes, 24 * MIB);
    assert_says(weir_last_error(), "limit reached: 32.0 MiB (33554432) requested");
    assert_says(weir_last_error(), "the limit of tag cache is 40.0 MiB (41943040), "
                                   "it has 32.0 MiB (33554432)");
    assert_ok(weir_device_pool_limit(r.device, "arena", 48 * MIB));
    shortage = fail_for(r.stream, 32 * MIB, "other", WEIR_LIMIT);
    assert_int_equal(shortage.limit_kind, WEIR_LIMIT_KIND_POOL);
    assert_string_equal(shortage.limit_name, "arena");
    assert_int_equal(shortage.missing_bytes, 16 * MIB);
    assert_ok(weir_device_pool_limit(r.device, "arena", 0));
    assert_ok(weir_device_limit(r.device, 8 * MIB));
    shortage = fail_for(r.stream, 32 * MIB, "other", WEIR_LIMIT);
    assert_int_equal(shortage.limit_kind, WEIR_LIMIT_KIND_DEVICE);
    assert_string_equal(shortage.limit_name, "");
    assert_int_equal(shortage.missing_bytes, 56 * MIB);
    assert_ok(weir_device_limit(r.device, 0));
    shortage = fail_for(r.stream, 30 * GIB, "other", WEIR_OUT_OF_MEMORY);
    assert_int_equal(shortage.limit_kind, WEIR_LIMIT_KIND_NONE);
    assert_int_equal(shortage.limit_bytes, 0);
    drop(held);
    rig_close(&r);
}

static void shortage__streams_and_tags_come_largest_first(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    rig r = rig_open(NULL, NULL);
    weir_stream *streams[COUNT];
    weir_buffer buffers[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "owner %u", i);
        streams[i] = open_stream(r.device, name);
        buffers[i] = make(streams[i], (i + 1) * 2 * MIB, name);
    }
    weir_shortage s = fail_for(r.stream, 30 * GIB, "huge", WEIR_OUT_OF_MEMORY);
    for (unsigned i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "owner %u", COUNT - 1 - i);
        assert_string_equal(s.streams[i].name, name);
        assert_string_equal(s.tags[i].tag, name);
        assert_int_equal(s.streams[i].in_use_bytes, (COUNT - i) * 2 * MIB);
        assert_int_equal(s.streams[i].reserved_bytes, (COUNT - i) * 2 * MIB);
        assert_int_equal(s.tags[i].in_use_bytes, (COUNT - i) * 2 * MIB);
    }
    assert_int_equal(s.in_use_bytes, usage_of(r.device).in_use_bytes);
    assert_int_equal(s.capacity_bytes, 24 * GIB);
    for (unsigned i = 0; i < COUNT; i++) {
        drop(buffers[i]);
        assert_ok(weir_stream_close(streams[i]));
    }
    rig_close(&r);
}

static void shortage__what_waits_and_what_is_pinned_is_told_apart(void **state)
{
    (void)state;
    rig r = rig_open(NULL, &(weir_device_desc){.no_thread = true, .no_wait = true});
    weir_stream *busy = open_stream(r.device, "busy");
    weir_buffer pins = make(r.stream, 3 * MIB, "pins"); /* of two granules */
    weir_buffer waits = make(busy, 8 * GIB, "waits");
    queue_work(&r, busy);
    drop(waits);
    weir_shortage s = fail_for(r.stream, 20 * GIB, "huge", WEIR_OUT_OF_MEMORY);
    assert_int_equal(s.deferred_bytes, 8 * GIB);
    assert_int_equal(s.pinned_bytes, MIB);
    assert_int_equal(s.largest_hole_bytes, 8 * GIB);
    assert_says(weir_last_error(), "deferred 8.0 GiB (8589934592)");
    assert_says(weir_last_error(), "pinned 1.0 MiB");
    assert_says(weir_last_error(), "busy 8.0 GiB");
    drop(pins);
    finish_work(&r, busy);
    assert_ok(weir_stream_close(busy));
    rig_close(&r);
}

static bool count_call(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)device;
    (void)needed_bytes;
    ++*(int *)context;
    return false;
}

static void shortage__a_capturing_stream_is_named_and_callbacks_stay_away(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *recorder = open_stream(r.device, "recorder");
    int calls = 0;
    assert_ok(weir_device_reclaim_add(r.device, count_call, &calls));
    assert_ok(weir_capture_begin(recorder));
    weir_shortage s =
        fail_for(r.stream, 23 * GIB + 900 * MIB, "huge", WEIR_OUT_OF_MEMORY);
    assert_string_equal(s.capturing, "recorder");
    assert_says(weir_last_error(), "stream recorder has been capturing");
    assert_int_equal(calls, 0);
    assert_ok(weir_capture_abort(recorder));
    s = fail_for(r.stream, 23 * GIB + 900 * MIB, "huge", WEIR_OUT_OF_MEMORY);
    assert_string_equal(s.capturing, "");
    assert_int_equal(calls, 1);
    assert_ok(weir_stream_close(recorder));
    rig_close(&r);
}

/* ---- writing ---- */

typedef struct text {
    char bytes[8192];
    size_t used;
} text;

static weir_result collect(void *context, const char *piece, size_t piece_bytes)
{
    text *t = context;
    assert_true(t->used + piece_bytes < sizeof t->bytes);
    memcpy(t->bytes + t->used, piece, piece_bytes);
    t->used += piece_bytes;
    return WEIR_OK;
}

static void shortage__the_error_text_is_the_report_in_words(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, 20 * GIB, "decoder");
    weir_buffer out = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(r.stream, 5 * GIB, NULL, &out), WEIR_OUT_OF_MEMORY);
    char error[2048];
    snprintf(error, sizeof error, "%s", weir_last_error());
    weir_shortage shortage = last();
    text t = {.used = 0};
    assert_ok(weir_shortage_write(&shortage, WEIR_FORMAT_TEXT, collect, &t));
    assert_memory_equal(error, t.bytes, t.used);
    assert_says(error, "out of memory: 5.0 GiB (5368709120) requested on stream default");
    assert_says(error, "capacity 24.0 GiB (25769803776), reserved 20.0 GiB");
    assert_says(error, "would have to go for it to fit");
    assert_says(error, "largest holders: decoder 20.0 GiB in 1 buffer;");
    drop(held);
    rig_close(&r);
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static void shortage__the_json_has_every_field(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, 32 * MIB, "he\"ld");
    assert_ok(weir_device_tag_limit(r.device, "he\"ld", 40 * MIB));
    weir_shortage s = fail_for(r.stream, 16 * MIB, "he\"ld", WEIR_LIMIT);
    text t = {.used = 0};
    assert_ok(weir_shortage_write(&s, WEIR_FORMAT_JSON, collect, &t));
    cJSON *json = cJSON_ParseWithLength(t.bytes, t.used);
    assert_non_null(json);
    assert_string_equal(cJSON_GetObjectItem(json, "result")->valuestring, "LIMIT");
    assert_string_equal(cJSON_GetObjectItem(json, "limit_kind")->valuestring, "tag");
    assert_string_equal(cJSON_GetObjectItem(json, "limit_name")->valuestring, "he\"ld");
    assert_true(number(json, "limit_bytes") == 40.0 * MIB);
    assert_true(number(json, "limited_bytes") == 32.0 * MIB);
    assert_true(number(json, "missing_bytes") == 8.0 * MIB);
    assert_true(number(json, "request_bytes") == 16.0 * MIB);
    assert_true(number(json, "reserved_bytes") == 32.0 * MIB);
    assert_true(number(json, "largest_hole_bytes") == 0.0);
    const cJSON *stream = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "streams"), 0);
    assert_true(number(stream, "in_use_bytes") == 32.0 * MIB);
    const cJSON *tag = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "tags"), 0);
    assert_true(number(tag, "live_count") == 1.0);
    assert_true(number(tag, "padding_bytes") == 0.0);
    cJSON_Delete(json);
    drop(held);
    rig_close(&r);
}

static void shortage__a_writer_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    weir_shortage s = {.size = 0};
    text t = {.used = 0};
    assert_result(weir_shortage_write(NULL, WEIR_FORMAT_TEXT, collect, &t), WEIR_INVALID);
    assert_result(weir_shortage_write(&s, WEIR_FORMAT_TEXT, NULL, &t), WEIR_INVALID);
    assert_result(weir_shortage_write(&s, (weir_format)9, collect, &t), WEIR_INVALID);
    s.size = 3;
    assert_result(weir_shortage_write(&s, WEIR_FORMAT_TEXT, collect, &t), WEIR_INVALID);
    assert_int_equal(t.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortage__a_thread_knows_only_its_own),
        cmocka_unit_test(shortage__what_is_missing_on_a_full_device_is_exact),
        cmocka_unit_test(shortage__what_is_missing_below_a_limit_is_exact),
        cmocka_unit_test(shortage__the_limit_that_decided_is_named),
        cmocka_unit_test(shortage__streams_and_tags_come_largest_first),
        cmocka_unit_test(shortage__what_waits_and_what_is_pinned_is_told_apart),
        cmocka_unit_test(shortage__a_capturing_stream_is_named_and_callbacks_stay_away),
        cmocka_unit_test(shortage__the_error_text_is_the_report_in_words),
        cmocka_unit_test(shortage__the_json_has_every_field),
        cmocka_unit_test(shortage__a_writer_refuses_what_it_does_not_know),
    };
    return cmocka_run_group_tests_name("core, shortages", tests, NULL, NULL);
}
