/* SPDX-License-Identifier: MIT */
/* Whoever finds a lock taken, books in the middle of a change or a call under way waits
 * until that is over. Each test holds on to one of them itself, so that nothing depends
 * on luck. */
#define _GNU_SOURCE
#include "core/support.h"

#include "manager/preset.h"
#include "manager/replace.h"
#include "stream/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

typedef struct call {
    rig *r;
    void (*make)(struct call *call);
    weir_usage usage;
    weir_result result;
    _Atomic bool done;
    pthread_t thread;
} call;

static void *run(void *context)
{
    call *c = context;
    c->make(c);
    c->done = true;
    return NULL;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Starts the call, which must not come back while something is held. */
static void start(call *c, rig *r, void (*make_call)(call *))
{
    *c = (call){.r = r, .make = make_call};
    assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0);
    pause_ms(20);
    assert_false(c->done);
}

static void finish(call *c)
{
    assert_int_equal(pthread_join(c->thread, NULL), 0);
    assert_true(c->done);
}

/* ---- snapshots ---- */

static void read_usage(call *c)
{
    c->result = weir_device_memory_usage(c->r->device, &c->usage);
}

static void snapshot__waits_for_a_stream_whose_books_are_changing(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *second = open_stream(r.device, "second");
    weir_buffer held = make(second, MIB, NULL);
    call c;
    wr_manager_lock(&second->manager);
    wr_sequence_begin(&second->manager.sequence);
    wr_books *books = &wr_slice_get(held.index)->pool->books;
    WR_ADD(books->in_use, 4096); /* half a change, that breaks the sums */
    start(&c, &r, read_usage);
    WR_SUB(books->in_use, 4096);
    wr_sequence_end(&second->manager.sequence);
    wr_manager_unlock(&second->manager);
    finish(&c);
    assert_ok(c.result);
    assert_sums(&c.usage);
    assert_int_equal(c.usage.in_use_bytes, MIB);
    drop(held);
    assert_ok(weir_stream_close(second));
    rig_close(&r);
}

static void snapshot__waits_for_a_bank_whose_books_are_changing(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, MIB, NULL);
    wr_bank *bank = r.stream->manager.bank;
    call c;
    wr_bank_lock(bank);
    WR_ADD(bank->reserved, 4096);
    start(&c, &r, read_usage);
    WR_SUB(bank->reserved, 4096);
    wr_bank_unlock(bank);
    finish(&c);
    assert_ok(c.result);
    assert_sums(&c.usage);
    assert_int_equal(c.usage.in_use_bytes, MIB);
    drop(held);
    rig_close(&r);
}

/* ---- replacing ---- */

static void replace_layouts(call *c)
{
    wr_bank *bank = c->r->stream->manager.bank;
    wr_layouts layouts;
    c->result = wr_layouts_get(bank, "exclusive", NULL, 0, "test", &layouts);
    if (c->result == WEIR_OK) {
        c->result = wr_replace_layouts(bank, &layouts);
    }
}

static void replace__waits_until_it_has_every_lock(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *gap = open_stream(r.device, "gap");
    weir_stream *last = open_stream(r.device, "last");
    assert_ok(weir_stream_close(gap)); /* a slot of the roster that nobody has */
    wr_bank *bank = r.stream->manager.bank;
    wr_lock *const locks[] = {&r.stream->manager.lock, &last->manager.lock, &bank->lock};
    for (size_t i = 0; i < 3; i++) {
        call c;
        wr_lock_take(locks[i]);
        start(&c, &r, replace_layouts);
        wr_lock_leave(locks[i]);
        finish(&c);
        assert_ok(c.result);
        drop(make(r.stream, MIB, NULL));
        drop(make(last, MIB, NULL));
        assert_consistent(&r);
        cleanup(r.device, &(weir_cleanup_desc){.keep_none = true, .wait = true});
    }
    assert_ok(weir_stream_close(last));
    rig_close(&r);
}

/* ---- closing ---- */

static void abandon(call *c)
{
    weir_device_abandon(c->r->device);
}

static void abandon__waits_for_a_release_that_is_under_way(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, MIB, NULL);
    make(r.stream, MIB, NULL); /* abandoned */
    wr_slice *slice = wr_slice_get(buffer.index);
    call c;
    /* as far as weir_buffer_release() is with its first step done */
    atomic_store(&slice->word, (uint64_t)(buffer.generation + 1) << 32);
    start(&c, &r, abandon);
    wr_manager_release(slice);
    finish(&c);
    assert_result(weir_buffer_release(buffer), WEIR_STALE);
}

static void abandon__waits_for_the_work_of_closed_streams(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_stream *closed = open_stream(r.device, "closed");
    drop(make(closed, MIB, NULL));
    queue_work(&r, closed);
    assert_ok(weir_stream_close(closed));
    uint64_t waits = ledger_of(&r).calls[WEIR_SIM_OP_fence_wait];
    assert_int_equal(waits, 0);
    assert_true(usage_of(r.device).deferred_bytes >= MIB); /* it is still there */
    weir_device_abandon(r.device);
}

/* ---- captures ---- */

static void begin_capture(call *c)
{
    c->result = weir_capture_begin(c->r->stream);
}

static void capture__waits_for_calls_that_it_forbids(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    wr_barrier *barrier = &r.stream->manager.bank->barrier;
    call c;
    assert_true(wr_barrier_enter(barrier));
    assert_true(wr_barrier_enter(barrier));
    start(&c, &r, begin_capture);
    assert_false(wr_barrier_enter(barrier)); /* nobody else gets in */
    wr_barrier_leave(barrier);
    pause_ms(5);
    assert_false(c.done);
    wr_barrier_leave(barrier);
    finish(&c);
    assert_ok(c.result);
    assert_ok(weir_capture_abort(r.stream));
    assert_true(wr_barrier_enter(barrier));
    wr_barrier_leave(barrier);
    rig_close(&r);
}

/* ---- callbacks ---- */

static _Atomic int inside, most_inside, calls;
static _Atomic bool may_leave;

static bool linger(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)context;
    (void)device;
    (void)needed_bytes;
    int now = ++inside;
    most_inside = now > most_inside ? now : most_inside;
    calls++;
    while (!may_leave) {
        pause_ms(1);
    }
    inside--;
    return false;
}

static void allocate_too_much(call *c)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    c->result = weir_buffer_create(c->r->stream, 20 * GIB, NULL, &buffer);
}

static void callback__runs_on_one_thread_at_a_time(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, 20 * GIB, NULL);
    call one, two;
    assert_ok(weir_device_reclaim_add(r.device, linger, NULL));
    start(&one, &r, allocate_too_much);
    for (int i = 0; i < 5000 && calls == 0; i++) {
        pause_ms(1);
    }
    assert_int_equal(calls, 1);
    start(&two, &r, allocate_too_much);
    assert_int_equal(calls, 1); /* the second waits for its turn */
    may_leave = true;
    finish(&one);
    finish(&two);
    assert_int_equal(one.result, WEIR_OUT_OF_MEMORY);
    assert_int_equal(two.result, WEIR_OUT_OF_MEMORY);
    assert_int_equal(calls, 2);
    assert_int_equal(most_inside, 1);
    assert_ok(weir_device_reclaim_remove(r.device, linger, NULL));
    drop(held);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshot__waits_for_a_stream_whose_books_are_changing),
        cmocka_unit_test(snapshot__waits_for_a_bank_whose_books_are_changing),
        cmocka_unit_test(replace__waits_until_it_has_every_lock),
        cmocka_unit_test(abandon__waits_for_a_release_that_is_under_way),
        cmocka_unit_test(abandon__waits_for_the_work_of_closed_streams),
        cmocka_unit_test(capture__waits_for_calls_that_it_forbids),
        cmocka_unit_test(callback__runs_on_one_thread_at_a_time),
    };
    return cmocka_run_group_tests_name("manager, contention", tests, NULL, NULL);
}
