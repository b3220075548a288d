/* SPDX-License-Identifier: MIT */
/* weir_device_abandon with everything still there. That nothing leaks is for the address
 * sanitizer to see. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>

static void abandon_all(const weir_sim_desc *sim)
{
    enum { STREAMS = 4, EACH = 20 };
    rig r = rig_open(sim, NULL);
    weir_stream *streams[STREAMS];
    weir_buffer buffers[STREAMS][EACH];
    for (int s = 0; s < STREAMS; s++) {
        streams[s] = open_stream(r.device, NULL);
        for (int i = 0; i < EACH; i++) {
            buffers[s][i] = make(streams[s], (uint64_t)(1 + i * i) * 10000, "left");
        }
        queue_work(&r, streams[s]);
    }
    for (int s = 0; s < STREAMS; s++) {
        assert_ok(weir_buffer_use(buffers[s][0], streams[(s + 1) % STREAMS]));
        assert_ok(weir_buffer_use(buffers[s][1], streams[(s + 2) % STREAMS]));
        assert_ok(weir_buffer_retain(buffers[s][2]));
        drop(buffers[s][1]);
        drop(buffers[s][3]);
    }
    assert_ok(weir_capture_begin(streams[1]));
    weir_device_abandon(r.device);
    for (int s = 0; s < STREAMS; s++) {
        for (int i = 0; i < EACH; i++) {
            assert_result(weir_buffer_release(buffers[s][i]), WEIR_STALE);
            assert_int_equal(weir_buffer_address(buffers[s][i]), 0);
        }
    }
}

static void buffers_of_many_streams_with_work_and_captures_become_stale(void **state)
{
    (void)state;
    weir_sim_desc plain = plain_sim();
    abandon_all(NULL);
    abandon_all(&plain);
}

/* ---- releases meanwhile ---- */

enum { COUNT = 3000, THREADS = 3 };

typedef struct releaser {
    const weir_buffer *buffers;
    _Atomic int *ready;
    bool wrong;
} releaser;

static void *release_all(void *context)
{
    releaser *r = context;
    (*r->ready)++;
    for (int i = 0; i < COUNT; i++) {
        weir_result result = weir_buffer_release(r->buffers[i]);
        r->wrong |= result != WEIR_OK && result != WEIR_STALE;
    }
    return NULL;
}

/* A release counts if it comes before the handle is stale; each is good or stale. */
static void other_threads_release_while_a_device_is_abandoned(void **state)
{
    (void)state;
    static weir_buffer buffers[COUNT];
    for (int round = 0; round < 10; round++) {
        rig r = rig_open(NULL, NULL);
        weir_stream *side = open_stream(r.device, "side");
        for (int i = 0; i < COUNT; i++) {
            buffers[i] = make(i % 2 == 0 ? r.stream : side, 1000, NULL);
        }
        pthread_t threads[THREADS];
        releaser releasers[THREADS];
        _Atomic int ready = 0;
        for (int t = 0; t < THREADS; t++) {
            releasers[t] = (releaser){.buffers = buffers, .ready = &ready};
            assert_int_equal(
                pthread_create(&threads[t], NULL, release_all, &releasers[t]), 0);
        }
        while (ready < THREADS) {
        }
        weir_device_abandon(r.device);
        for (int t = 0; t < THREADS; t++) {
            assert_int_equal(pthread_join(threads[t], NULL), 0);
            assert_false(releasers[t].wrong);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_of_many_streams_with_work_and_captures_become_stale),
        cmocka_unit_test(other_threads_release_while_a_device_is_abandoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
