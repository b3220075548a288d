/* SPDX-License-Identifier: MIT */
/* Explicit lists of pools, their caps, and replacing the layout of a device. */
#define _GNU_SOURCE
#include "support.h"

#include <string.h>
#include <time.h>

#include "base/memory.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static rig open_list(const weir_pool_desc *pools, size_t count)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = GIB;
    sim.context_bytes = 0;
    return rig_open(&sim, &(weir_device_desc){
                              .pools = pools, .pool_count = count, .no_thread = true});
}

static weir_device_report report_of(rig *r)
{
    weir_device_report report = {0};
    assert_ok(weir_device_memory_report(r->device, &report));
    return report;
}

/* The pool that the only live buffer is in. */
static size_t pool_of_one(rig *r)
{
    weir_device_report report = report_of(r);
    size_t pool = 0;
    while (pool < report.pool_count && report.pools[pool].live_count == 0) {
        pool++;
    }
    return pool;
}

static void assert_served(rig *r, uint64_t bytes, bool persistent, size_t pool)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    weir_buffer_desc desc = {.persistent = persistent};
    assert_ok(weir_buffer_create(r->stream, bytes, &desc, &buffer));
    assert_int_equal(pool_of_one(r), pool);
    assert_consistent(r);
    drop(buffer);
}

/* ---- lists ---- */

static void lists__serve_from_the_first_pool_that_takes_the_size(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {
        {.kind = WEIR_POOL_KIND_SLICED, .page_bytes = MIB, .max_slice_bytes = 64 * KIB},
        {.kind = WEIR_POOL_KIND_EXCLUSIVE, .max_slice_bytes = 4 * MIB},
        {.kind = WEIR_POOL_KIND_ARENA, .max_slice_bytes = 16 * MIB},
        {.kind = WEIR_POOL_KIND_ADAPTIVE, .max_slice_bytes = 64 * MIB},
        {.kind = WEIR_POOL_KIND_PERSISTENT},
        {.kind = WEIR_POOL_KIND_EXCLUSIVE},
    };
    rig r = open_list(pools, COUNT(pools));
    assert_string_equal(weir_device_preset(r.device), "pools");
    assert_served(&r, 1, false, 0);
    assert_served(&r, 64 * KIB, false, 0);
    assert_served(&r, 64 * KIB + 1, false, 1);
    assert_served(&r, 900 * KIB, false, 0); /* near a page */
    assert_served(&r, MIB + 1, false, 1);
    assert_served(&r, 5 * MIB, false, 2);
    assert_served(&r, 40 * MIB, false, 3);
    assert_served(&r, 65 * MIB, false, 5);
    assert_served(&r, 1, true, 4);
    assert_served(&r, 65 * MIB, true, 4);
    weir_device_report report = report_of(&r);
    assert_int_equal(report.pool_count, 6);
    const weir_pool_kind kinds[] = {WEIR_POOL_KIND_SLICED,     WEIR_POOL_KIND_EXCLUSIVE,
                                    WEIR_POOL_KIND_ARENA,      WEIR_POOL_KIND_ADAPTIVE,
                                    WEIR_POOL_KIND_PERSISTENT, WEIR_POOL_KIND_EXCLUSIVE};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(report.pools[i].kind, kinds[i]);
        /* an arena has granules where the driver does, the others whole pages */
        assert_int_equal(report.pools[i].granule_bytes, i == 2 ? 2 * MIB : 0);
    }
    rig_close(&r);
}

static void lists__get_a_persistent_pool_and_have_up_to_32(void **state)
{
    (void)state;
    weir_pool_desc pools[32];
    for (uint64_t i = 0; i < 32; i++) {
        pools[i] = (weir_pool_desc){.kind = WEIR_POOL_KIND_SLICED,
                                    .page_bytes = (i + 1) * MIB,
                                    .max_slice_bytes = (i + 1) * 100 * KIB};
    }
    rig r = open_list(pools, 31);
    weir_device_report report = report_of(&r);
    assert_int_equal(report.pool_count, 32);
    assert_int_equal(report.pools[31].kind, WEIR_POOL_KIND_PERSISTENT);
    assert_served(&r, 3300 * KIB, false, 3); /* near the fourth's page */
    assert_served(&r, 3090 * KIB, false, 30);
    assert_served(&r, 7 * MIB, false, 6);
    assert_served(&r, MIB, true, 31);
    rig_close(&r);
    pools[5] = (weir_pool_desc){.kind = WEIR_POOL_KIND_PERSISTENT};
    r = open_list(pools, 32);
    assert_int_equal(report_of(&r).pool_count, 32);
    rig_close(&r);
}

static void lists__refuse_sizes_that_no_pool_takes(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {{.kind = WEIR_POOL_KIND_SLICED, .page_bytes = MIB}};
    rig r = open_list(pools, 1);
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(r.stream, MIB + 1, NULL, &buffer), WEIR_INVALID);
    assert_says(weir_last_error(), "no pool");
    /* so does an alignment that no page has room for */
    weir_buffer_desc desc = {.alignment_bytes = 2 * MIB};
    assert_result(weir_buffer_create(r.stream, 512 * KIB, &desc, &buffer), WEIR_INVALID);
    desc.alignment_bytes = 64 * KIB;
    assert_ok(weir_buffer_create(r.stream, 512 * KIB, &desc, &buffer));
    drop(buffer);
    rig_close(&r);
}

static void lists__round_sizes_up_to_the_alignment(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {
        {.kind = WEIR_POOL_KIND_SLICED, .page_bytes = 99999, .max_slice_bytes = 1000},
        {.kind = WEIR_POOL_KIND_EXCLUSIVE, .max_slice_bytes = 12345},
    };
    rig r = open_list(pools, 2);
    weir_device_report report = report_of(&r);
    assert_int_equal(report.pools[0].page_bytes, 100096);
    assert_int_equal(report.pools[0].max_slice_bytes, 1024);
    assert_int_equal(report.pools[1].max_slice_bytes, 12544);
    rig_close(&r);
}

typedef struct bad_list {
    weir_pool_desc pools[3];
    size_t count;
    const char *says[2];
} bad_list;

#define SLICED WEIR_POOL_KIND_SLICED
#define EXCLUSIVE WEIR_POOL_KIND_EXCLUSIVE

static const bad_list bad_lists[] = {
    {{{.kind = SLICED}}, 1, {"pools[0] (sliced)", "page_bytes is 0"}},
    {{{.kind = EXCLUSIVE}, {.kind = SLICED, .max_slice_bytes = 1}},
     2,
     {"pools[1]", "page_bytes is 0"}},
    {{{.kind = SLICED, .page_bytes = 4096, .max_slice_bytes = 4097}},
     1,
     {"4097", "4096"}},
    {{{.kind = SLICED, .page_bytes = 2 * MIB, .cap_bytes = MIB}},
     1,
     {"cap of 1048576", "page of 2097152"}},
    {{{.kind = SLICED, .page_bytes = 2 * GIB}}, 1, {"2147483648", "1073741824"}},
    {{{.kind = EXCLUSIVE, .page_bytes = MIB}},
     1,
     {"pools[0] (exclusive)", "only sliced"}},
    {{{.kind = WEIR_POOL_KIND_ARENA, .page_bytes = MIB}}, 1, {"(arena)", "only sliced"}},
    {{{.kind = WEIR_POOL_KIND_ADAPTIVE, .page_bytes = MIB}},
     1,
     {"(adaptive)", "only sliced"}},
    {{{.kind = WEIR_POOL_KIND_ARENA, .idle_count = 5}}, 1, {"idle_count", "exclusive"}},
    {{{.kind = WEIR_POOL_KIND_ARENA},
      {.kind = WEIR_POOL_KIND_PERSISTENT, .max_slice_bytes = 1}},
     2,
     {"(persistent)", "any size"}},
    {{{.kind = WEIR_POOL_KIND_PERSISTENT}}, 1, {"1 of the 1 pools", "persistent"}},
    {{{.kind = WEIR_POOL_KIND_ARENA},
      {.kind = WEIR_POOL_KIND_PERSISTENT},
      {.kind = WEIR_POOL_KIND_PERSISTENT}},
     3,
     {"2 of the 3 pools", "at most one"}},
    {{{.kind = (weir_pool_kind)9}}, 1, {"pools[0]", "no kind 9"}},
    {{{.kind = EXCLUSIVE}}, 0, {"empty", "preset"}},
};

static void assert_refused(weir_result result, const char *const says[2])
{
    assert_int_equal(result, WEIR_INVALID);
    assert_says(weir_last_error(), says[0]);
    assert_says(weir_last_error(), says[1]);
}

static weir_result try_list(const weir_pool_desc *pools, size_t count, const char *preset)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = GIB;
    weir_device_desc desc = {.preset = preset,
                             .pools = pools,
                             .pool_count = count,
                             .no_thread = true,
                             .driver_config = &sim};
    weir_device *device = NULL;
    weir_result result = weir_device_open("sim", &desc, &device);
    assert_true((device == NULL) == (result != WEIR_OK));
    assert_ok(weir_device_close(device));
    return result;
}

static void lists__that_are_wrong_say_which_pool_and_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_lists); i++) {
        const bad_list *bad = &bad_lists[i];
        assert_refused(try_list(bad->pools, bad->count, NULL), bad->says);
        assert_says(weir_last_error(), "weir_device_open");
    }
    weir_pool_desc many[40] = {{.kind = WEIR_POOL_KIND_ARENA}};
    assert_refused(try_list(many, 32, NULL), (const char *[]){"32 pools", "persistent"});
    assert_refused(try_list(many, 40, NULL), (const char *[]){"40 pools", "32"});
    assert_refused(try_list(NULL, 3, NULL), (const char *[]){"empty", "preset"});
    assert_refused(try_list(many, 1, "elastic"),
                   (const char *[]){"a preset and a list", "one of them"});
}

/* ---- caps ---- */

static const weir_pool_desc capped[] = {
    {.kind = SLICED, .page_bytes = MIB, .cap_bytes = 2 * MIB + 500 * KIB},
    {.kind = EXCLUSIVE},
};

static void caps__are_whole_pages_and_send_the_rest_to_the_next_pool(void **state)
{
    (void)state;
    rig r = open_list(capped, 2);
    weir_buffer buffers[5];
    for (int i = 0; i < 5; i++) {
        buffers[i] = make(r.stream, 600 * KIB, NULL);
    }
    weir_device_report report = report_of(&r);
    assert_int_equal(report.pools[0].limit_bytes, 2 * MIB + 500 * KIB);
    assert_int_equal(report.pools[0].live_count, 2);
    assert_int_equal(report.pools[0].reserved_bytes, 2 * MIB);
    assert_int_equal(report.pools[0].spills, 3);
    assert_int_equal(report.pools[1].live_count, 3);
    assert_int_equal(report.pools[1].spills, 0);
    assert_consistent(&r);
    /* what fits beside them still goes there */
    weir_buffer small = make(r.stream, 400 * KIB, NULL);
    assert_int_equal(report_of(&r).pools[0].live_count, 3);
    drop(small);
    drop(buffers[0]);
    buffers[0] = make(r.stream, 600 * KIB, NULL);
    report = report_of(&r);
    assert_int_equal(report.pools[0].live_count, 2);
    assert_int_equal(report.pools[0].spills, 3);
    for (int i = 0; i < 5; i++) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

/* What a report writes. */
static weir_result append(void *context, const char *text, size_t text_bytes)
{
    char *all = context;
    size_t used = strlen(all);
    memcpy(all + used, text, text_bytes);
    all[used + text_bytes] = '\0';
    return WEIR_OK;
}

static void caps__warn_once_in_the_report_however_often_they_spill(void **state)
{
    (void)state;
    static char before[1 << 16], after[1 << 16];
    before[0] = after[0] = '\0';
    rig r = open_list(capped, 2);
    weir_buffer full[2] = {make(r.stream, MIB, NULL), make(r.stream, MIB, NULL)};
    assert_ok(weir_device_write_report(r.device, WEIR_FORMAT_TEXT, append, before));
    assert_null(strstr(before, "is full"));
    for (int i = 0; i < 7; i++) {
        drop(make(r.stream, KIB, NULL));
    }
    assert_ok(weir_device_write_report(r.device, WEIR_FORMAT_TEXT, append, after));
    char *first = strstr(after, "is full");
    assert_non_null(first);
    assert_null(strstr(first + 1, "is full"));
    assert_says(after, "pool \"sliced 1.0 MiB\" is full at 2.5 MiB: other pools served 7 "
                       "requests for it");
    drop(full[0]);
    drop(full[1]);
    rig_close(&r);
}

static void caps__of_all_pools_that_serve_a_size_fail_with_limit(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {
        {.kind = SLICED, .page_bytes = MIB, .cap_bytes = 2 * MIB},
        {.kind = EXCLUSIVE, .cap_bytes = 1500 * KIB},
    };
    rig r = open_list(pools, 2);
    weir_buffer buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = make(r.stream, MIB, "weights");
    }
    weir_usage before = usage_of(r.device);
    weir_buffer more = WEIR_NO_BUFFER;
    assert_result(weir_buffer_create(r.stream, MIB, NULL, &more), WEIR_LIMIT);
    assert_says(weir_last_error(), "weights");
    assert_says(weir_last_error(), "sliced 1.0 MiB");
    weir_usage after = usage_of(r.device);
    assert_same_bytes(&before, &after);
    assert_int_equal(after.limits, 1);
    assert_consistent(&r);
    drop(buffers[1]);
    buffers[1] = make(r.stream, MIB, NULL);
    assert_int_equal(report_of(&r).pools[0].live_count, 2);
    for (int i = 0; i < 3; i++) {
        drop(buffers[i]);
    }
    /* the caps are there after everything has gone back, too */
    cleanup(r.device, NULL);
    for (int i = 0; i < 3; i++) {
        buffers[i] = make(r.stream, MIB, NULL);
    }
    assert_result(weir_buffer_create(r.stream, MIB, NULL, &more), WEIR_LIMIT);
    for (int i = 0; i < 3; i++) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

static void caps__of_exclusive_pools_let_pages_of_other_sizes_go_first(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {{.kind = EXCLUSIVE, .cap_bytes = 10 * MIB}};
    rig r = open_list(pools, 1);
    weir_buffer other = WEIR_NO_BUFFER;
    weir_buffer_desc persistent = {.persistent = true};
    assert_ok(weir_buffer_create(r.stream, 5 * MIB, &persistent, &other));
    drop(other); /* another pool's unheld memory has nothing to do with it */
    drop(make(r.stream, 6 * MIB, NULL));
    weir_buffer buffer = make(r.stream, 7 * MIB, NULL);
    assert_int_equal(usage_of(r.device).reserved_bytes, 12 * MIB);
    assert_int_equal(usage_of(r.device).pressure_bytes, 6 * MIB);
    drop(buffer);
    rig_close(&r);
}

static void caps__wait_for_queued_work_before_they_fail(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {
        {.kind = SLICED, .page_bytes = MIB, .cap_bytes = MIB}};
    rig r = open_list(pools, 1);
    weir_stream *other = open_stream(r.device, "other");
    weir_buffer buffer = make(r.stream, MIB, NULL);
    queue_work(&r, other);
    assert_ok(weir_buffer_use(buffer, other));
    queue_work(&r, other);
    drop(buffer);
    buffer = make(r.stream, MIB, NULL);
    assert_true(usage_of(r.device).fence_waits > 0);
    assert_int_equal(usage_of(r.device).reserved_bytes, MIB);
    drop(buffer);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void caps__count_all_streams_together(void **state)
{
    (void)state;
    rig r = open_list(capped, 2);
    weir_stream *other = open_stream(r.device, "other");
    weir_buffer one = make(r.stream, MIB, NULL), two = make(other, MIB, NULL);
    weir_buffer three = make(other, MIB, NULL);
    weir_device_report report = report_of(&r);
    assert_int_equal(report.pools[0].reserved_bytes, 2 * MIB);
    assert_int_equal(report.pools[1].reserved_bytes, MIB);
    /* a page that one stream leaves is lent to the other */
    drop(one);
    one = make(other, MIB, NULL);
    report = report_of(&r);
    assert_int_equal(report.pools[0].live_count, 2);
    assert_int_equal(report.pools[0].spills, 1);
    drop(one);
    drop(two);
    drop(three);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void caps__keep_requests_near_a_page_out(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {
        {.kind = SLICED,
         .page_bytes = MIB,
         .max_slice_bytes = 64 * KIB,
         .cap_bytes = 2 * MIB},
        {.kind = EXCLUSIVE},
    };
    rig r = open_list(pools, 2);
    assert_served(&r, MIB, false, 1);
    assert_served(&r, 64 * KIB, false, 0);
    rig_close(&r);
}

static void caps__hold_for_granules_as_well(void **state)
{
    (void)state;
    const weir_pool_desc pools[] = {
        {.kind = WEIR_POOL_KIND_ARENA, .max_slice_bytes = 32 * MIB, .cap_bytes = 9 * MIB},
        {.kind = WEIR_POOL_KIND_ARENA},
    };
    rig r = open_list(pools, 2);
    weir_buffer unheld = make(r.stream, 40 * MIB, NULL);
    drop(unheld); /* granules that could be moved count, too */
    weir_buffer buffers[4];
    for (int i = 0; i < 4; i++) {
        buffers[i] = make(r.stream, 3 * MIB, NULL);
        weir_device_report report = report_of(&r);
        assert_true(report.pools[0].reserved_bytes <= 9 * MIB);
        assert_consistent(&r);
    }
    weir_device_report report = report_of(&r);
    assert_int_equal(report.pools[0].reserved_bytes, 6 * MIB);
    assert_int_equal(report.pools[0].live_count, 2);
    assert_int_equal(report.pools[0].spills, 2);
    for (int i = 0; i < 4; i++) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

/* ---- replacing ---- */

static void replacing__a_preset_needs_a_device_that_holds_nothing(void **state)
{
    (void)state;
    rig r = open_list(capped, 2);
    weir_buffer held = make(r.stream, 300 * KIB, "weights");
    weir_buffer another = make(r.stream, 3 * MIB, "cache");
    drop(make(r.stream, MIB, NULL));
    weir_usage before = usage_of(r.device);
    assert_result(weir_device_preset_replace(r.device, "exclusive", NULL, 0), WEIR_BUSY);
    assert_says(weir_last_error(), "3.3 MiB in 2 buffers");
    assert_says(weir_last_error(), "weights 300.0 KiB");
    assert_says(weir_last_error(), "cache 3.0 MiB");
    weir_usage after = usage_of(r.device);
    assert_same_bytes(&before, &after);
    assert_string_equal(weir_device_preset(r.device), "pools");
    assert_consistent(&r);
    drop(held);
    drop(another);
    assert_ok(weir_device_preset_replace(r.device, "exclusive", NULL, 0));
    assert_string_equal(weir_device_preset(r.device), "exclusive");
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    assert_consistent(&r);
    rig_close(&r);
}

static void use_everything(rig *r, weir_stream *other)
{
    weir_buffer kept[6], persistent = WEIR_NO_BUFFER;
    for (int i = 0; i < 6; i++) {
        weir_stream *stream = i % 2 == 0 ? r->stream : other;
        kept[i] = make(stream, KIB << (3 * i), "all");
    }
    weir_buffer_desc desc = {.persistent = true};
    assert_ok(weir_buffer_create(other, MIB, &desc, &persistent));
    assert_consistent(r);
    for (int i = 0; i < 6; i++) {
        drop(kept[i]);
    }
    drop(persistent);
    assert_consistent(r);
}

static void replacing__works_from_each_layout_to_each_other(void **state)
{
    (void)state;
    const char *const presets[] = {"elastic",   "adaptive",  "subslices", "exclusive",
                                   NULL,        "exclusive", "subslices", "elastic",
                                   "subslices", "adaptive",  NULL,        "elastic"};
    rig r = open_list(capped, 2);
    weir_stream *other = open_stream(r.device, "other");
    uint64_t allocations = 0;
    for (size_t i = 0; i < COUNT(presets); i++) {
        const weir_pool_desc *list = presets[i] == NULL ? capped : NULL;
        assert_ok(
            weir_device_preset_replace(r.device, presets[i], list, list == NULL ? 0 : 2));
        assert_string_equal(weir_device_preset(r.device),
                            list == NULL ? presets[i] : "pools");
        weir_device_report report = report_of(&r);
        assert_int_equal(report.pools[0].pages_peak, 0);
        assert_int_equal(report.pools[0].spills, 0);
        use_everything(&r, other);
        allocations += 7;
        weir_usage usage = usage_of(r.device);
        assert_int_equal(usage.allocations, allocations);
        assert_int_equal(usage.releases, allocations);
    }
    assert_true(report_of(&r).pools[1].granule_bytes == 2 * MIB);
    weir_usage stream;
    memset(&stream, 0, sizeof stream);
    assert_ok(weir_stream_memory_usage(other, &stream));
    assert_int_equal(stream.allocations, COUNT(presets) * 4);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void replacing__waits_for_queued_work(void **state)
{
    (void)state;
    rig r = open_list(capped, 2);
    weir_stream *other = open_stream(r.device, "other");
    weir_buffer buffer = make(r.stream, MIB, NULL);
    assert_ok(weir_buffer_use(buffer, other));
    queue_work(&r, other);
    queue_work(&r, r.stream);
    drop(buffer);
    assert_ok(weir_device_preset_replace(r.device, NULL, NULL, 0));
    assert_string_equal(weir_device_preset(r.device), "elastic");
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    use_everything(&r, other);
    assert_ok(weir_stream_close(other));
    rig_close(&r);
}

static void replacing__is_busy_while_the_driver_keeps_memory(void **state)
{
    (void)state;
    rig r = open_list(capped, 2);
    drop(make(r.stream, MIB, NULL));
    weir_sim_fail(r.sim, WEIR_SIM_OP_page_free, 1, 0);
    assert_result(weir_device_preset_replace(r.device, "subslices", NULL, 0), WEIR_BUSY);
    assert_says(weir_last_error(), "1.0 MiB");
    assert_string_equal(weir_device_preset(r.device), "pools");
    assert_consistent(&r);
    assert_ok(weir_device_preset_replace(r.device, "subslices", NULL, 0));
    rig_close(&r);
}

static void replacing__by_what_is_wrong_changes_nothing(void **state)
{
    (void)state;
    rig r = open_list(capped, 2);
    drop(make(r.stream, MIB, NULL));
    for (size_t i = 0; i < COUNT(bad_lists); i++) {
        const bad_list *bad = &bad_lists[i];
        assert_refused(weir_device_preset_replace(r.device, NULL, bad->pools, bad->count),
                       bad->says);
        assert_says(weir_last_error(), "weir_device_preset_replace");
    }
    assert_refused(weir_device_preset_replace(r.device, "baroque", NULL, 0),
                   (const char *[]){"baroque", "subslices"});
    assert_result(weir_device_preset_replace(NULL, "elastic", NULL, 0), WEIR_INVALID);
    assert_int_equal(usage_of(r.device).reserved_bytes, MIB);
    rig_close(&r);
}

static void replacing__without_host_memory_leaves_a_device_that_works(void **state)
{
    (void)state;
    weir_result result = WEIR_OUT_OF_HOST_MEMORY;
    uint64_t nth = 1;
    for (; result != WEIR_OK; nth++) {
        rig r = open_list(capped, 2);
        weir_stream *other = open_stream(r.device, "other");
        use_everything(&r, other);
        wr_host_fail_nth(nth);
        result = weir_device_preset_replace(r.device, "exclusive", NULL, 0);
        wr_host_fail_nth(0);
        assert_true(result == WEIR_OK || result == WEIR_OUT_OF_HOST_MEMORY ||
                    result == WEIR_BUSY);
        assert_string_equal(weir_device_preset(r.device),
                            result == WEIR_OK ? "exclusive" : "pools");
        use_everything(&r, other);
        assert_ok(weir_stream_close(other));
        rig_close(&r);
    }
    assert_true(nth > 5);
}

static void replacing__keeps_the_reclaimer_at_work(void **state)
{
    (void)state;
    weir_sim_desc sim = plain_sim();
    rig r = rig_open(&sim, &(weir_device_desc){.idle_ms = 20});
    drop(make(r.stream, MIB, NULL));
    assert_ok(weir_device_preset_replace(r.device, "exclusive", NULL, 0));
    drop(make(r.stream, MIB, NULL));
    weir_sim_advance(r.sim, 10000);
    for (int i = 0; i < 2000 && usage_of(r.device).reserved_bytes > 0; i++) {
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists__serve_from_the_first_pool_that_takes_the_size),
        cmocka_unit_test(lists__get_a_persistent_pool_and_have_up_to_32),
        cmocka_unit_test(lists__refuse_sizes_that_no_pool_takes),
        cmocka_unit_test(lists__round_sizes_up_to_the_alignment),
        cmocka_unit_test(lists__that_are_wrong_say_which_pool_and_why),
        cmocka_unit_test(caps__are_whole_pages_and_send_the_rest_to_the_next_pool),
        cmocka_unit_test(caps__warn_once_in_the_report_however_often_they_spill),
        cmocka_unit_test(caps__of_all_pools_that_serve_a_size_fail_with_limit),
        cmocka_unit_test(caps__of_exclusive_pools_let_pages_of_other_sizes_go_first),
        cmocka_unit_test(caps__wait_for_queued_work_before_they_fail),
        cmocka_unit_test(caps__count_all_streams_together),
        cmocka_unit_test(caps__keep_requests_near_a_page_out),
        cmocka_unit_test(caps__hold_for_granules_as_well),
        cmocka_unit_test(replacing__a_preset_needs_a_device_that_holds_nothing),
        cmocka_unit_test(replacing__works_from_each_layout_to_each_other),
        cmocka_unit_test(replacing__waits_for_queued_work),
        cmocka_unit_test(replacing__is_busy_while_the_driver_keeps_memory),
        cmocka_unit_test(replacing__by_what_is_wrong_changes_nothing),
        cmocka_unit_test(replacing__without_host_memory_leaves_a_device_that_works),
        cmocka_unit_test(replacing__keeps_the_reclaimer_at_work),
    };
    return cmocka_run_group_tests_name("core, lists of pools", tests, NULL, NULL);
}
