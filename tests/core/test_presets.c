/* SPDX-License-Identifier: MIT */
/* The reference system's layouts: the sizes they come to, which pool serves what, and
 * when pages go back. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "manager/preset.h"

/* ---- sizes ---- */

typedef struct rung {
    uint64_t page_bytes, max_slice_bytes;
} rung;

typedef struct ladder_case {
    uint64_t max_page_bytes;
    uint64_t idle_count;
    rung rungs[8]; /* up to a page of 0 */
} ladder_case;

static const ladder_case ladders[] = {
    {128 * MIB, 5000, {{8 * MIB, 2 * MIB}, {32 * MIB, 16 * MIB}}},
    {GIB, 10000, {{16 * MIB, 2 * MIB}, {64 * MIB, 16 * MIB}, {256 * MIB, 128 * MIB}}},
    {2 * GIB,
     15000,
     {{8 * MIB, 512 * KIB},
      {32 * MIB, 4 * MIB},
      {128 * MIB, 32 * MIB},
      {512 * MIB, 256 * MIB}}},
    {4 * GIB - 4,
     25000,
     {{16 * MIB, MIB}, {64 * MIB, 8 * MIB}, {256 * MIB, 64 * MIB}, {GIB, 512 * MIB}}},
    {6 * GIB,
     35000,
     {{24 * MIB, 1536 * KIB},
      {96 * MIB, 12 * MIB},
      {384 * MIB, 96 * MIB},
      {1536 * MIB, 768 * MIB}}},
    {16 * GIB,
     85000,
     {{16 * MIB, 512 * KIB},
      {64 * MIB, 4 * MIB},
      {256 * MIB, 32 * MIB},
      {GIB, 256 * MIB},
      {4 * GIB, 2 * GIB}}},
    {20 * GIB,
     105000,
     {{20 * MIB, 640 * KIB},
      {80 * MIB, 5 * MIB},
      {320 * MIB, 40 * MIB},
      {1280 * MIB, 320 * MIB},
      {5 * GIB, 2560 * MIB}}},
};

static void check_ladder(const ladder_case *wanted)
{
    wr_layouts layouts = {0};
    wr_preset_subslices(wanted->max_page_bytes, 512, &layouts);
    uint32_t i = 0;
    for (; wanted->rungs[i].page_bytes != 0; i++) {
        const wr_layout *layout = &layouts.at[i];
        assert_int_equal(layout->kind, WEIR_POOL_KIND_SLICED);
        assert_int_equal(layout->page_bytes, wanted->rungs[i].page_bytes);
        assert_int_equal(layout->max_bytes, wanted->rungs[i].max_slice_bytes);
    }
    assert_int_equal(layouts.count, i + 2);
    assert_int_equal(layouts.at[i].kind, WEIR_POOL_KIND_EXCLUSIVE);
    assert_true(layouts.at[i].max_bytes == UINT64_MAX);
    assert_int_equal(layouts.at[i].idle_count, wanted->idle_count);
    assert_int_equal(layouts.at[i + 1].kind, WEIR_POOL_KIND_PERSISTENT);
}

static void subslices__have_the_pages_of_the_reference_system(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ladders / sizeof ladders[0]; i++) {
        check_ladder(&ladders[i]);
    }
}

/* Sizes as people print them. */
static void assert_about(uint64_t bytes, double mib)
{
    double found = (double)bytes / (double)MIB;
    if (fabs(found - mib) > mib * 0.006) {
        fail_msg("%.4f MiB, not about %.4f", found, mib);
    }
}

static void subslices__of_an_odd_size_are_rounded_to_the_alignment(void **state)
{
    (void)state;
    const double pages[] = {8.77, 35.1, 140.4, 562, 2246, 8986};
    const double slices[] = {140.0 / 1024, 1.1, 8.77, 70.2, 562, 4493};
    wr_layouts layouts = {0};
    wr_preset_subslices((uint64_t)(35.1 * (double)GIB), 512, &layouts);
    assert_int_equal(layouts.count, 8);
    for (int i = 0; i < 6; i++) {
        assert_about(layouts.at[i].page_bytes, pages[i]);
        assert_about(layouts.at[i].max_bytes, slices[i]);
        assert_int_equal(layouts.at[i].page_bytes % 512, 0);
        assert_int_equal(layouts.at[i].max_bytes % WR_UNIT_BYTES, 0);
    }
    assert_int_equal(layouts.at[6].idle_count, 180000);
}

static void subslices__of_a_small_device_are_a_tail_only(void **state)
{
    (void)state;
    wr_layouts layouts = {0};
    wr_preset_subslices(32 * MIB - 512, 512, &layouts);
    assert_int_equal(layouts.count, 2);
    assert_int_equal(layouts.at[0].kind, WEIR_POOL_KIND_EXCLUSIVE);
}

static void subslices__of_the_largest_device_fit_the_table(void **state)
{
    (void)state;
    wr_layouts layouts = {0};
    wr_preset_subslices((uint64_t)1 << 44, 512, &layouts);
    assert_true(layouts.count <= 16);
}

static void exclusive__has_the_buckets_of_the_reference_system(void **state)
{
    (void)state;
    const double kib[] = {32,    51.8,   84,     136,    220,    357,    578,    936,
                          1516,  2458,   3973,   6441,   10445,  16896,  27341,  44339,
                          71782, 115712, 188416, 305152, 493568, 799744, 1300234};
    wr_layouts layouts = {0};
    wr_preset_exclusive(2 * GIB, 512, &layouts);
    assert_int_equal(layouts.count, 25);
    for (int i = 0; i < 23; i++) {
        assert_int_equal(layouts.at[i].kind, WEIR_POOL_KIND_EXCLUSIVE);
        assert_about(layouts.at[i].max_bytes, kib[i] / 1024);
        assert_int_equal(layouts.at[i].max_bytes % 512, 0);
        assert_int_equal(layouts.at[i].idle_count, i < 21 ? 5000 : 10000);
    }
    assert_true(layouts.at[23].max_bytes == UINT64_MAX);
    assert_int_equal(layouts.at[23].idle_count, 15000);
}

static void exclusive__buckets_grow_whatever_the_device(void **state)
{
    (void)state;
    for (uint64_t most = KIB; most <= (uint64_t)1 << 44; most += most / 3 + 1) {
        wr_layouts layouts = {0};
        wr_preset_exclusive(most, 4096, &layouts);
        assert_true(layouts.count >= 2 && layouts.count <= 25);
        for (uint32_t i = 1; i + 1 < layouts.count; i++) {
            assert_true(layouts.at[i].max_bytes > layouts.at[i - 1].max_bytes);
        }
    }
}

/* ---- which pool serves what ---- */

static rig open_preset(const char *preset, uint64_t capacity_bytes)
{
    weir_sim_desc sim = weir_sim_defaults(); /* with granules, which they do not use */
    sim.capacity_bytes = capacity_bytes;
    sim.context_bytes = 0;
    return rig_open(&sim, &(weir_device_desc){.preset = preset, .no_thread = true});
}

static weir_device_report report_of(rig *r)
{
    weir_device_report report = {0};
    assert_ok(weir_device_memory_report(r->device, &report));
    return report;
}

static const weir_pool_report *pool_named(const weir_device_report *report,
                                          const char *name)
{
    for (size_t i = 0; i < report->pool_count; i++) {
        if (strcmp(report->pools[i].name, name) == 0) {
            return &report->pools[i];
        }
    }
    fail_msg("there is no pool \"%s\"", name);
    return NULL;
}

/* A buffer of that size comes from that pool. */
static void assert_served(rig *r, uint64_t bytes, const char *pool)
{
    weir_buffer buffer = make(r->stream, bytes, NULL);
    weir_device_report report = report_of(r);
    assert_int_equal(pool_named(&report, pool)->live_count, 1);
    assert_consistent(r);
    drop(buffer);
}

static void subslices__serve_what_is_near_a_page_from_that_page(void **state)
{
    (void)state;
    rig r = open_preset("subslices", 8 * GIB);
    assert_served(&r, 1, "sliced 8.0 MiB");
    assert_served(&r, 512 * KIB, "sliced 8.0 MiB");
    assert_served(&r, 512 * KIB + 1, "sliced 32.0 MiB");
    assert_served(&r, 5 * MIB, "sliced 128.0 MiB");
    /* four fifths of 8 MiB are not near it, a byte more is */
    assert_served(&r, 8 * MIB / 5 * 4 - KIB, "sliced 128.0 MiB");
    assert_served(&r, 8 * MIB / 5 * 4 + KIB, "sliced 8.0 MiB");
    assert_served(&r, 8 * MIB, "sliced 8.0 MiB");
    assert_served(&r, 8 * MIB + 1, "sliced 128.0 MiB");
    assert_served(&r, 30 * MIB, "sliced 32.0 MiB");
    assert_served(&r, 300 * MIB, "tail");
    assert_served(&r, 500 * MIB, "sliced 512.0 MiB");
    assert_served(&r, 3 * GIB, "tail");
    rig_close(&r);
}

static void subslices__of_small_buffers_share_a_page(void **state)
{
    (void)state;
    rig r = open_preset("subslices", 8 * GIB);
    weir_buffer buffers[16];
    for (int i = 0; i < 16; i++) {
        buffers[i] = make(r.stream, 512 * KIB, NULL);
    }
    assert_int_equal(usage_of(r.device).reserved_bytes, 8 * MIB);
    weir_buffer more = make(r.stream, 1, NULL);
    assert_int_equal(usage_of(r.device).reserved_bytes, 16 * MIB);
    assert_int_equal(ledger_of(&r).calls[WEIR_SIM_OP_commit], 0);
    assert_consistent(&r);
    drop(more);
    for (int i = 0; i < 16; i++) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

static void subslices__have_a_tail_of_exact_pages(void **state)
{
    (void)state;
    rig r = open_preset("subslices", 80 * GIB);
    weir_buffer tail = make(r.stream, 3 * GIB, NULL);
    assert_int_equal(usage_of(r.device).reserved_bytes, 3 * GIB);
    drop(tail);
    rig_close(&r);
}

static void exclusive__has_a_page_of_its_size_for_each_buffer(void **state)
{
    (void)state;
    rig r = open_preset("exclusive", 8 * GIB);
    const uint64_t sizes[] = {4, 256, 100 * KIB, 100 * KIB, 64 * MIB, 3 * GIB};
    weir_buffer buffers[6];
    uint64_t reserved = 0;
    for (int i = 0; i < 6; i++) {
        buffers[i] = make(r.stream, sizes[i], NULL);
        reserved += (sizes[i] + 255) / 256 * 256;
        assert_int_equal(usage_of(r.device).reserved_bytes, reserved);
    }
    assert_int_equal(usage_of(r.device).page_allocs, 6);
    assert_consistent(&r);
    for (int i = 0; i < 6; i++) {
        drop(buffers[i]);
    }
    rig_close(&r);
}

static void exclusive__takes_the_tightest_page_not_the_one_used_most(void **state)
{
    (void)state;
    rig r = open_preset("exclusive", 8 * GIB);
    weir_buffer tight = make(r.stream, 58 * MIB, NULL);
    weir_buffer wide = make(r.stream, 66 * MIB, NULL);
    drop(tight);
    drop(wide);
    for (int i = 0; i < 10; i++) {
        drop(make(r.stream, 66 * MIB, NULL));
    }
    weir_buffer buffer = make(r.stream, 57 * MIB, NULL);
    assert_int_equal(weir_buffer_extent(buffer), 58 * MIB);
    assert_int_equal(usage_of(r.device).page_allocs, 2);
    drop(buffer);
    rig_close(&r);
}

/* ---- the time of exclusive pools ---- */

/* Requests of another bucket. */
static void request(rig *r, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        drop(make(r->stream, KIB, NULL));
    }
}

static void exclusive__gives_a_page_back_after_its_period_of_requests(void **state)
{
    (void)state;
    rig r = open_preset("exclusive", 8 * GIB);
    weir_buffer held = make(r.stream, 50 * MIB, NULL);
    drop(make(r.stream, 64 * MIB, NULL));
    request(&r, 900);
    assert_int_equal(usage_of(r.device).reserved_bytes, 114 * MIB + KIB);
    request(&r, 200); /* used once, it needs one check of five */
    assert_int_equal(usage_of(r.device).reserved_bytes, 50 * MIB + KIB);
    assert_int_equal(usage_of(r.device).periodic_bytes, 64 * MIB);
    assert_consistent(&r);
    drop(held);
    rig_close(&r);
}

static void exclusive__keeps_a_page_longer_the_more_it_was_used(void **state)
{
    (void)state;
    rig r = open_preset("exclusive", 8 * GIB);
    for (int i = 0; i < 5; i++) {
        drop(make(r.stream, 64 * MIB, NULL));
    }
    request(&r, 3900);
    assert_int_equal(usage_of(r.device).reserved_bytes, 64 * MIB + KIB);
    request(&r, 1200);
    assert_int_equal(usage_of(r.device).reserved_bytes, KIB);
    rig_close(&r);
}

static void exclusive__never_gives_back_what_a_steady_loop_uses(void **state)
{
    (void)state;
    rig r = open_preset("exclusive", 8 * GIB);
    for (int i = 0; i < 30; i++) {
        weir_buffer buffer = make(r.stream, 64 * MIB, NULL);
        request(&r, 500);
        drop(buffer);
        request(&r, 300);
    }
    assert_int_equal(usage_of(r.device).page_allocs, 2);
    rig_close(&r);
}

static void exclusive__gives_back_by_time_too(void **state)
{
    (void)state;
    rig r = open_preset("exclusive", 8 * GIB);
    drop(make(r.stream, 64 * MIB, NULL));
    weir_sim_advance(r.sim, 4000);
    assert_ok(weir_device_tick(r.device, 0));
    assert_int_equal(usage_of(r.device).reserved_bytes, 64 * MIB);
    weir_sim_advance(r.sim, 2000);
    assert_ok(weir_device_tick(r.device, 0));
    assert_int_equal(usage_of(r.device).reserved_bytes, 0);
    rig_close(&r);
}

static void exclusive__gives_a_page_that_is_too_small_back_before_it_fails(void **state)
{
    (void)state;
    rig r = open_preset("exclusive", 80 * GIB);
    drop(make(r.stream, 60 * GIB, NULL));
    weir_buffer buffer = make(r.stream, 70 * GIB, NULL);
    assert_int_equal(usage_of(r.device).ooms, 0);
    assert_int_equal(usage_of(r.device).reserved_bytes, 70 * GIB);
    drop(buffer);
    rig_close(&r);
}

static void presets__serve_aligned_buffers_of_any_size(void **state)
{
    (void)state;
    const char *const names[] = {"subslices", "exclusive", "adaptive", "elastic"};
    for (int i = 0; i < 4; i++) {
        rig r = open_preset(names[i], 8 * GIB);
        for (uint64_t bytes = 1; bytes < GIB; bytes = bytes * 7 + 1) {
            weir_buffer buffer = WEIR_NO_BUFFER;
            weir_buffer_desc desc = {.alignment_bytes = 2 * MIB};
            assert_ok(weir_buffer_create(r.stream, bytes, &desc, &buffer));
            assert_int_equal(weir_buffer_address(buffer) % (2 * MIB), 0);
            drop(buffer);
        }
        assert_consistent(&r);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subslices__have_the_pages_of_the_reference_system),
        cmocka_unit_test(subslices__of_an_odd_size_are_rounded_to_the_alignment),
        cmocka_unit_test(subslices__of_a_small_device_are_a_tail_only),
        cmocka_unit_test(subslices__of_the_largest_device_fit_the_table),
        cmocka_unit_test(exclusive__has_the_buckets_of_the_reference_system),
        cmocka_unit_test(exclusive__buckets_grow_whatever_the_device),
        cmocka_unit_test(subslices__serve_what_is_near_a_page_from_that_page),
        cmocka_unit_test(subslices__of_small_buffers_share_a_page),
        cmocka_unit_test(subslices__have_a_tail_of_exact_pages),
        cmocka_unit_test(exclusive__has_a_page_of_its_size_for_each_buffer),
        cmocka_unit_test(exclusive__takes_the_tightest_page_not_the_one_used_most),
        cmocka_unit_test(exclusive__gives_a_page_back_after_its_period_of_requests),
        cmocka_unit_test(exclusive__keeps_a_page_longer_the_more_it_was_used),
        cmocka_unit_test(exclusive__never_gives_back_what_a_steady_loop_uses),
        cmocka_unit_test(exclusive__gives_back_by_time_too),
        cmocka_unit_test(exclusive__gives_a_page_that_is_too_small_back_before_it_fails),
        cmocka_unit_test(presets__serve_aligned_buffers_of_any_size),
    };
    return cmocka_run_group_tests_name("core, presets", tests, NULL, NULL);
}
