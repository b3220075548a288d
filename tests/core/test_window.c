/* SPDX-License-Identifier: MIT */
/* Persistent windows: what is made inside, on the stream, is persistent. */
#include "recording.h"

/* ---- persistent windows ---- */

static uint64_t persistent_live(rig *r)
{
    weir_device_report report = {0};
    assert_ok(weir_device_memory_report(r->device, &report));
    for (size_t i = 0; i < report.pool_count; i++) {
        if (report.pools[i].kind == WEIR_POOL_KIND_PERSISTENT) {
            return report.pools[i].live_count;
        }
    }
    return 0;
}

static void window__sends_its_streams_buffers_to_the_persistent_pool(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *other = open_stream(r.device, "other");
    weir_buffer before = make(r.stream, 4096, NULL);
    assert_ok(weir_window_begin(r.stream));
    weir_buffer inside = make(r.stream, 4096, NULL);
    weir_buffer elsewhere = make(other, 4096, NULL);
    assert_int_equal(persistent_live(&r), 1);
    assert_ok(weir_window_begin(r.stream));
    assert_ok(weir_window_end(r.stream));
    weir_buffer remaining = WEIR_NO_BUFFER;
    assert_ok(weir_buffer_create(r.stream, 4096, NULL, &remaining));
    assert_int_equal(persistent_live(&r), 2);
    assert_ok(weir_window_end(r.stream));
    weir_buffer after = make(r.stream, 4096, NULL);
    assert_int_equal(persistent_live(&r), 2);
    assert_consistent(&r);
    drop(before), drop(inside), drop(elsewhere), drop(remaining), drop(after);
    end_stream(other);
    rig_close(&r);
}

static void window__that_was_not_begun_cannot_be_ended(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    assert_result(weir_window_end(r.stream), WEIR_INVALID);
    assert_ok(weir_window_begin(r.stream));
    assert_ok(weir_window_end(r.stream));
    assert_result(weir_window_end(r.stream), WEIR_INVALID);
    assert_result(weir_window_begin(NULL), WEIR_INVALID);
    assert_result(weir_window_end(NULL), WEIR_INVALID);
    rig_close(&r);
}

static void window__what_it_has_left_goes_under_pressure(void **state)
{
    (void)state;
    weir_sim_desc descs[2] = {weir_sim_defaults(), plain_sim()};
    for (int i = 0; i < 2; i++) {
        rig r = rig_open(&descs[i], NULL);
        assert_ok(weir_window_begin(r.stream));
        weir_buffer weights = make(r.stream, 1 * GIB, "weights");
        drop(make(r.stream, 14 * GIB, "weights"));
        assert_ok(weir_window_end(r.stream));
        weir_buffer other = make(r.stream, 13 * GIB, NULL); /* not of its size */
        assert_int_equal(persistent_live(&r), 1);
        /* Granules move there, as many as it needs; pages go back. */
        assert_int_equal(usage_of(r.device).reserved_bytes,
                         (descs[i].granule_bytes != 0 ? 15 : 14) * GIB);
        assert_consistent(&r);
        drop(weights), drop(other);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(window__sends_its_streams_buffers_to_the_persistent_pool),
        cmocka_unit_test(window__what_it_has_left_goes_under_pressure),
        cmocka_unit_test(window__that_was_not_begun_cannot_be_ended),
    };
    return cmocka_run_group_tests_name("core, windows", tests, NULL, NULL);
}
