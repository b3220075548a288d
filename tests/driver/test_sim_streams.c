/* SPDX-License-Identifier: MIT */
/* Streams, fences, lag and captures of the sim driver: work that completes when told. */
#include "sim_rig.h"

#include "base/memory.h"

/* ---- streams ---- */

static void a_stream__is_busy_until_its_work_is_finished(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream a = take_stream(&rig);
    weir_driver_stream b = take_stream(&rig);
    assert_ok(test_stream(&rig, a));
    queue(&rig, a, 1);
    weir_kernel kernel = {.name = "any"};
    assert_ok(rig.table->launch(rig.driver, b, &(weir_launch){.kernel = &kernel}));
    assert_result(test_stream(&rig, a), WEIR_NOT_READY);
    assert_result(test_stream(&rig, b), WEIR_NOT_READY);
    weir_sim_finish(rig.driver, a);
    assert_ok(test_stream(&rig, a));
    assert_result(test_stream(&rig, b), WEIR_NOT_READY);
    queue(&rig, a, 2);
    weir_sim_finish_all(rig.driver);
    assert_ok(test_stream(&rig, a));
    assert_ok(test_stream(&rig, b));
    assert_ok(rig.table->queue(rig.driver, a));
    assert_ok(rig.table->stream_sync(rig.driver, a));
    assert_ok(test_stream(&rig, a));
    rig_close(&rig);
}

static void a_fence__passes_with_the_work_before_it_and_not_with_that_behind(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence idle = record(&rig, stream);
    queue(&rig, stream, 2);
    weir_driver_fence first = record(&rig, stream);
    queue(&rig, stream, 1);
    weir_driver_fence second = record(&rig, stream);
    assert_ok(test_fence(&rig, idle));
    assert_result(test_fence(&rig, first), WEIR_NOT_READY);
    assert_ok(rig.table->fence_wait(rig.driver, first));
    assert_ok(test_fence(&rig, first));
    assert_result(test_fence(&rig, second), WEIR_NOT_READY);
    assert_result(test_stream(&rig, stream), WEIR_NOT_READY);
    weir_sim_finish(rig.driver, stream);
    assert_ok(test_fence(&rig, second));
    rig_close(&rig);
}

static void waiting_for_a_fence__completes_its_own_stream_only(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream a = take_stream(&rig);
    weir_driver_stream b = take_stream(&rig);
    queue(&rig, a, 1);
    queue(&rig, b, 1);
    weir_driver_fence of_a = record(&rig, a);
    weir_driver_fence of_b = record(&rig, b);
    assert_ok(rig.table->fence_wait(rig.driver, of_a));
    assert_result(test_fence(&rig, of_b), WEIR_NOT_READY);
    assert_int_equal(ledger_of(&rig).calls[WEIR_SIM_OP_fence_wait], 1);
    rig_close(&rig);
}

static void a_stream_that_waits__completes_only_behind_what_it_waits_for(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream a = take_stream(&rig);
    weir_driver_stream b = take_stream(&rig);
    queue(&rig, a, 1);
    weir_driver_fence awaited = record(&rig, a);
    queue(&rig, a, 1);
    weir_driver_fence later = record(&rig, a);
    assert_ok(rig.table->stream_wait(rig.driver, b, awaited));
    queue(&rig, b, 1);
    weir_driver_fence of_b = record(&rig, b);
    assert_ok(rig.table->fence_wait(rig.driver, of_b));
    assert_ok(test_fence(&rig, awaited));
    assert_result(test_fence(&rig, later), WEIR_NOT_READY);
    rig_close(&rig);
}

static void a_wait_without_work_behind_it__passes_with_what_it_waits_for(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream a = take_stream(&rig);
    weir_driver_stream b = take_stream(&rig);
    weir_driver_stream c = take_stream(&rig);
    queue(&rig, a, 1);
    weir_driver_fence of_a = record(&rig, a);
    assert_ok(rig.table->stream_wait(rig.driver, b, of_a));
    weir_driver_fence of_b = record(&rig, b);
    assert_ok(rig.table->stream_wait(rig.driver, c, of_b));
    weir_driver_fence of_c = record(&rig, c);
    assert_result(test_fence(&rig, of_c), WEIR_NOT_READY);
    assert_result(test_stream(&rig, c), WEIR_NOT_READY);
    weir_sim_finish(rig.driver, a);
    assert_ok(test_fence(&rig, of_b));
    assert_ok(test_fence(&rig, of_c));
    assert_ok(test_stream(&rig, c));
    /* What has passed, and the stream's own fences, are not waited for. */
    assert_ok(rig.table->stream_wait(rig.driver, b, of_a));
    queue(&rig, c, 1);
    of_c = record(&rig, c);
    assert_ok(rig.table->stream_wait(rig.driver, c, of_c));
    assert_ok(test_stream(&rig, b));
    rig_close(&rig);
}

static void long_chains_of_waits__complete_without_deep_calls(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream streams[2] = {take_stream(&rig), take_stream(&rig)};
    weir_driver_fence last = 0;
    for (int i = 0; i < 100000; i++) {
        weir_driver_stream stream = streams[i % 2];
        assert_ok(rig.table->stream_wait(rig.driver, stream, last));
        queue(&rig, stream, 1);
        rig.table->fence_release(rig.driver, last);
        last = record(&rig, stream);
    }
    assert_ok(rig.table->fence_wait(rig.driver, last));
    assert_ok(test_stream(&rig, streams[0]));
    assert_ok(test_stream(&rig, streams[1]));
    rig_close(&rig);
}

static void work_without_host_memory_for_it__fails_and_changes_nothing(void **state)
{
    (void)state;
    weir_sim_desc desc = weir_sim_defaults();
    desc.lag = 5;
    driver_rig rig = open_sim(&desc);
    weir_driver_stream a = take_stream(&rig);
    weir_driver_stream b = take_stream(&rig);
    weir_driver_fence fence = record(&rig, a);
    wr_host_fail_nth(1);
    assert_result(weir_sim_queue(rig.driver, b), WEIR_OUT_OF_HOST_MEMORY);
    wr_host_fail_nth(1);
    assert_result(rig.table->stream_wait(rig.driver, b, fence), WEIR_OUT_OF_HOST_MEMORY);
    assert_ok(test_stream(&rig, b));
    assert_ok(rig.table->capture_begin(rig.driver, b));
    uint64_t graph = 77;
    wr_host_fail_nth(1);
    assert_result(rig.table->capture_end(rig.driver, b, &graph), WEIR_OUT_OF_HOST_MEMORY);
    assert_int_equal(graph, 77);
    assert_ok(test_stream(&rig, b));
    rig_close(&rig);
}

static void a_closed_stream__still_completes_its_work(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream a = take_stream(&rig);
    weir_driver_stream b = take_stream(&rig);
    queue(&rig, a, 1);
    weir_driver_fence fence = record(&rig, a);
    assert_ok(rig.table->stream_wait(rig.driver, b, fence));
    rig.table->stream_close(rig.driver, a);
    assert_result(weir_sim_queue(rig.driver, a), WEIR_INVALID);
    assert_result(test_stream(&rig, a), WEIR_INVALID);
    /* Its slot is not another stream's as long as its work and its fences are there. */
    weir_driver_stream c = take_stream(&rig);
    assert_ok(test_stream(&rig, c));
    assert_result(test_fence(&rig, fence), WEIR_NOT_READY);
    rig.table->fence_release(rig.driver, fence);
    assert_result(test_stream(&rig, b), WEIR_NOT_READY);
    assert_ok(rig.table->stream_sync(rig.driver, b));
    weir_sim_finish(rig.driver, a);
    weir_driver_stream d = take_stream(&rig);
    assert_true(d != a && (uint32_t)d == (uint32_t)a);
    assert_result(weir_sim_queue(rig.driver, a), WEIR_INVALID);
    rig_close(&rig);
}

static void a_released_fence__is_no_fence_any_more(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence fence = record(&rig, stream);
    rig.table->fence_release(rig.driver, fence);
    weir_driver_fence next = record(&rig, stream);
    assert_true(next != fence);
    assert_result(test_fence(&rig, fence), WEIR_INVALID);
    assert_result(rig.table->fence_wait(rig.driver, fence), WEIR_INVALID);
    assert_result(rig.table->stream_wait(rig.driver, stream, fence), WEIR_INVALID);
    assert_result(test_fence(&rig, 0xffffffffffffffff), WEIR_INVALID);
    rig_close(&rig);
}

/* ---- lag ---- */

static driver_rig open_lagging(uint64_t lag)
{
    weir_sim_desc desc = weir_sim_defaults();
    desc.lag = lag;
    return open_sim(&desc);
}

static void with_a_lag__a_fence_passes_after_so_many_steps(void **state)
{
    (void)state;
    driver_rig rig = open_lagging(3);
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_fence first = record(&rig, stream);
    weir_sim_step(rig.driver);
    weir_driver_fence second = record(&rig, stream);
    weir_sim_step(rig.driver);
    assert_result(test_fence(&rig, first), WEIR_NOT_READY);
    weir_sim_step(rig.driver);
    assert_ok(test_fence(&rig, first));
    assert_result(test_fence(&rig, second), WEIR_NOT_READY);
    weir_sim_step(rig.driver);
    assert_ok(test_fence(&rig, second));
    rig_close(&rig);
}

static void
with_a_lag__a_stream_is_busy_for_so_many_steps_after_its_last_work(void **state)
{
    (void)state;
    driver_rig rig = open_lagging(2);
    weir_driver_stream stream = take_stream(&rig);
    assert_ok(test_stream(&rig, stream));
    for (int i = 0; i < 100; i++) {
        queue(&rig, stream, 3);
        weir_sim_step(rig.driver);
        assert_result(test_stream(&rig, stream), WEIR_NOT_READY);
    }
    weir_sim_step(rig.driver);
    assert_ok(test_stream(&rig, stream));
    rig_close(&rig);
}

static void with_a_lag__a_host_wait_or_a_finish_does_not_wait_for_steps(void **state)
{
    (void)state;
    driver_rig rig = open_lagging(1000);
    weir_driver_stream stream = take_stream(&rig);
    queue(&rig, stream, 1);
    weir_driver_fence first = record(&rig, stream);
    queue(&rig, stream, 1);
    weir_driver_fence second = record(&rig, stream);
    assert_ok(rig.table->fence_wait(rig.driver, first));
    assert_ok(test_fence(&rig, first));
    assert_result(test_fence(&rig, second), WEIR_NOT_READY);
    weir_sim_finish(rig.driver, stream);
    assert_ok(test_fence(&rig, second));
    queue(&rig, stream, 1);
    assert_ok(rig.table->stream_sync(rig.driver, stream));
    assert_ok(test_stream(&rig, stream));
    rig_close(&rig);
}

static void with_a_lag__waits_between_streams_pass_with_their_fences(void **state)
{
    (void)state;
    driver_rig rig = open_lagging(2);
    weir_driver_stream a = take_stream(&rig);
    weir_driver_stream b = take_stream(&rig);
    weir_driver_fence of_a = record(&rig, a);
    assert_ok(rig.table->stream_wait(rig.driver, b, of_a));
    weir_sim_step(rig.driver);
    assert_result(test_stream(&rig, b), WEIR_NOT_READY);
    weir_sim_step(rig.driver);
    assert_ok(test_fence(&rig, of_a));
    assert_ok(test_stream(&rig, b));
    rig_close(&rig);
}

/* ---- capture ---- */

static void
a_capture__takes_the_work_and_a_launch_of_its_graph_queues_one_piece(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    const weir_driver_table *table = rig.table;
    weir_driver_stream stream = take_stream(&rig);
    uint64_t graph = 0;
    assert_ok(table->capture_begin(rig.driver, stream));
    assert_result(table->capture_begin(rig.driver, stream), WEIR_INVALID);
    queue(&rig, stream, 5);
    assert_ok(table->capture_end(rig.driver, stream, &graph));
    assert_result(table->capture_end(rig.driver, stream, &graph), WEIR_INVALID);
    assert_result(table->capture_abort(rig.driver, stream), WEIR_INVALID);
    assert_ok(test_stream(&rig, stream));
    assert_ok(table->graph_launch(rig.driver, stream, graph));
    assert_result(test_stream(&rig, stream), WEIR_NOT_READY);
    weir_sim_finish_all(rig.driver);
    assert_ok(test_stream(&rig, stream));
    table->graph_destroy(rig.driver, graph);
    assert_result(table->graph_launch(rig.driver, stream, graph), WEIR_INVALID);
    rig_close(&rig);
}

/* One fence call on the stream, by number. */
static weir_result fence_call(driver_rig *rig, int number, weir_driver_stream stream,
                              weir_driver_fence old, weir_driver_fence foreign)
{
    weir_driver_fence fence;
    switch (number) {
    case 0:
        return rig->table->fence_record(rig->driver, stream, &fence);
    case 1:
        return rig->table->stream_test(rig->driver, stream);
    case 2:
        return rig->table->stream_sync(rig->driver, stream);
    case 3:
        return rig->table->fence_test(rig->driver, old);
    case 4:
        return rig->table->fence_wait(rig->driver, old);
    default:
        return rig->table->stream_wait(rig->driver, stream, foreign);
    }
}

static void a_fence_call_on_a_capturing_stream__fails_and_spoils_the_capture(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    weir_driver_stream stream = take_stream(&rig);
    weir_driver_stream other = take_stream(&rig);
    weir_driver_fence old = record(&rig, stream);
    queue(&rig, other, 1);
    weir_driver_fence foreign = record(&rig, other);
    for (int number = 0; number <= 5; number++) {
        uint64_t graph = 77;
        assert_ok(rig.table->capture_begin(rig.driver, stream));
        assert_result(test_fence(&rig, foreign), WEIR_NOT_READY);
        assert_result(fence_call(&rig, number, stream, old, foreign), WEIR_DRIVER);
        assert_result(rig.table->capture_end(rig.driver, stream, &graph), WEIR_DRIVER);
        assert_int_equal(graph, 77);
        /* The stream is as good as before. */
        assert_ok(test_stream(&rig, stream));
        assert_ok(rig.table->capture_begin(rig.driver, stream));
        assert_ok(rig.table->capture_end(rig.driver, stream, &graph));
        rig.table->graph_destroy(rig.driver, graph);
    }
    assert_ok(rig.table->capture_begin(rig.driver, stream));
    assert_result(rig.table->stream_sync(rig.driver, stream), WEIR_DRIVER);
    assert_ok(rig.table->capture_abort(rig.driver, stream));
    rig_close(&rig);
}

/* ---- against a model that keeps every item ---- */

#define MODEL_STREAMS 4
#define MODEL_ITEMS 4000
#define MODEL_FENCES 64

typedef struct model_item {
    int awaited; /* stream of the wait; -1: work */
    int position;
    bool done;
} model_item;

typedef struct model_stream {
    weir_driver_stream stream;
    model_item items[MODEL_ITEMS];
    int count;
} model_stream;

typedef struct model_fence {
    weir_driver_fence fence;
    int stream;
    int position;
} model_fence;

static model_stream streams[MODEL_STREAMS];
static model_fence fences[MODEL_FENCES];

static int model_done(int stream)
{
    int done = 0;
    while (done < streams[stream].count && streams[stream].items[done].done) {
        done++;
    }
    return done;
}

static void model_complete(int stream, int position)
{
    for (int i = 0; i < position; i++) {
        model_item *item = &streams[stream].items[i];
        if (!item->done && item->awaited >= 0) {
            model_complete(item->awaited, item->position);
        }
        item->done = true;
    }
}

static void model_settle(void)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int stream = 0; stream < MODEL_STREAMS; stream++) {
            int done = model_done(stream);
            model_item *item = &streams[stream].items[done];
            if (done < streams[stream].count && item->awaited >= 0 &&
                model_done(item->awaited) >= item->position) {
                item->done = true;
                moved = true;
            }
        }
    }
}

static void model_add(int stream, int awaited, int position)
{
    assert_true(streams[stream].count < MODEL_ITEMS - 1);
    streams[stream].items[streams[stream].count++] =
        (model_item){.awaited = awaited, .position = position};
}

static void renew_fence(driver_rig *rig, model_fence *fence, int stream)
{
    rig->table->fence_release(rig->driver, fence->fence);
    fence->fence = record(rig, streams[stream].stream);
    fence->stream = stream;
    fence->position = streams[stream].count;
}

static void wait_for_fence(driver_rig *rig, const model_fence *fence, int stream)
{
    assert_ok(rig->table->stream_wait(rig->driver, streams[stream].stream, fence->fence));
    if (fence->stream != stream && model_done(fence->stream) < fence->position) {
        model_add(stream, fence->stream, fence->position);
    }
}

/* One call, chosen by `kind` of 64, on the sim and on the model. */
static void call_both(driver_rig *rig, int kind, int stream, model_fence *fence)
{
    if (kind < 2) {
        assert_ok(rig->table->fence_wait(rig->driver, fence->fence));
        model_complete(fence->stream, fence->position);
    } else if (kind < 3) {
        weir_sim_finish(rig->driver, streams[stream].stream);
        model_complete(stream, streams[stream].count);
    } else if (kind < 20) {
        renew_fence(rig, fence, stream);
    } else if (kind < 38) {
        wait_for_fence(rig, fence, stream);
    } else {
        queue(rig, streams[stream].stream, 1);
        model_add(stream, -1, 0);
    }
    model_settle();
}

static weir_result ready_if(bool ready)
{
    return ready ? WEIR_OK : WEIR_NOT_READY;
}

static void streams__agree_with_a_model_of_every_item(void **state)
{
    (void)state;
    driver_rig rig = open_sim(NULL);
    uint64_t seed = 7;
    for (int i = 0; i < MODEL_STREAMS; i++) {
        streams[i].stream = take_stream(&rig);
    }
    for (int round = 0; round < 6000; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        model_fence *fence = &fences[(seed >> 40) % MODEL_FENCES];
        call_both(&rig, (int)(seed >> 58), (int)((seed >> 33) % MODEL_STREAMS), fence);
        for (int i = 0; i < MODEL_STREAMS; i++) {
            assert_result(test_stream(&rig, streams[i].stream),
                          ready_if(model_done(i) == streams[i].count));
        }
        for (int i = round % 8; i < MODEL_FENCES; i += 8) {
            assert_result(test_fence(&rig, fences[i].fence),
                          ready_if(model_done(fences[i].stream) >= fences[i].position));
        }
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream__is_busy_until_its_work_is_finished),
        cmocka_unit_test(
            a_fence__passes_with_the_work_before_it_and_not_with_that_behind),
        cmocka_unit_test(waiting_for_a_fence__completes_its_own_stream_only),
        cmocka_unit_test(a_stream_that_waits__completes_only_behind_what_it_waits_for),
        cmocka_unit_test(a_wait_without_work_behind_it__passes_with_what_it_waits_for),
        cmocka_unit_test(long_chains_of_waits__complete_without_deep_calls),
        cmocka_unit_test(work_without_host_memory_for_it__fails_and_changes_nothing),
        cmocka_unit_test(a_closed_stream__still_completes_its_work),
        cmocka_unit_test(a_released_fence__is_no_fence_any_more),
        cmocka_unit_test(with_a_lag__a_fence_passes_after_so_many_steps),
        cmocka_unit_test(
            with_a_lag__a_stream_is_busy_for_so_many_steps_after_its_last_work),
        cmocka_unit_test(with_a_lag__a_host_wait_or_a_finish_does_not_wait_for_steps),
        cmocka_unit_test(with_a_lag__waits_between_streams_pass_with_their_fences),
        cmocka_unit_test(
            a_capture__takes_the_work_and_a_launch_of_its_graph_queues_one_piece),
        cmocka_unit_test(
            a_fence_call_on_a_capturing_stream__fails_and_spoils_the_capture),
        cmocka_unit_test(streams__agree_with_a_model_of_every_item),
    };
    return cmocka_run_group_tests_name("driver sim streams", tests, NULL, NULL);
}
