/* SPDX-License-Identifier: MIT */
/* Real forks: the child gets FORKED and touches nothing, the parent notices nothing. */
#define _GNU_SOURCE
#include "child.h"
#include "support.h"

#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* What a child inherits. */
typedef struct inherited {
    rig r;
    weir_stream *side;
    weir_buffer held, stale;
    void *pointer; /* of weir_malloc */
} inherited;

static inherited inherit(void)
{
    inherited all = {.r = rig_open(NULL, NULL)};
    all.side = open_stream(all.r.device, "side");
    all.held = make(all.r.stream, 3 * MIB, "weights");
    all.stale = make(all.r.stream, 1 * MIB, "scratch");
    drop(all.stale);
    assert_ok(weir_malloc(all.r.stream, MIB, NULL, &all.pointer));
    queue_work(&all.r, all.side);
    return all;
}

static void disinherit(inherited *all)
{
    assert_consistent(&all->r);
    assert_int_equal(usage_of(all->r.device).in_use_bytes, 4 * MIB);
    drop(all->held);
    assert_ok(weir_free(all->r.device, all->pointer));
    finish_work(&all->r, all->side);
    assert_ok(weir_stream_close(all->side));
    rig_close(&all->r);
}

static weir_result sink(void *context, const char *text, size_t text_bytes)
{
    (void)context;
    (void)text;
    (void)text_bytes;
    return WEIR_OK;
}

#define expect_forked(call) child_expect((call) == WEIR_FORKED)

static void call_buffers(const inherited *all)
{
    weir_buffer made = WEIR_NO_BUFFER;
    char byte = 0;
    expect_forked(weir_buffer_create(all->r.stream, 100, NULL, &made));
    expect_forked(weir_buffer_create(all->r.stream, 100,
                                     &(weir_buffer_desc){.tag = "child"}, &made));
    expect_forked(weir_buffer_create(NULL, 0, NULL, NULL));
    expect_forked(weir_buffer_create_tagged(all->r.stream, 100, (weir_tag){1}, &made));
    expect_forked(weir_buffer_create_tagged(NULL, 0, (weir_tag){0}, NULL));
    child_expect(made.index == 0 && made.generation == 0);
    expect_forked(weir_buffer_retain(all->held));
    expect_forked(weir_buffer_release(all->held));
    expect_forked(weir_buffer_release(all->stale));
    expect_forked(weir_buffer_use(all->held, all->side));
    expect_forked(weir_buffer_write(all->held, 0, &byte, 1));
    expect_forked(weir_buffer_read(all->held, 0, &byte, 1));
    child_expect(weir_buffer_address(all->held) == 0);
    child_expect(weir_buffer_bytes(all->held) == 0);
    child_expect(weir_buffer_extent(all->held) == 0);
    child_expect(weir_buffer_references(all->held) == 0);
    child_expect(weir_buffer_stream(all->held) == NULL);
    void *pointer = NULL;
    uint64_t bytes = 0;
    expect_forked(weir_malloc(all->r.stream, 100, NULL, &pointer));
    expect_forked(weir_malloc(NULL, 100, NULL, NULL));
    expect_forked(weir_free(all->r.device, all->pointer));
    expect_forked(weir_free(NULL, NULL));
    expect_forked(weir_usable_bytes(all->r.device, all->pointer, &bytes));
    expect_forked(weir_buffer_find(all->r.device, all->pointer, &made, NULL));
    weir_share share = {.bytes = 1, .memory_file = 0, .lives_file = 1};
    expect_forked(weir_buffer_export(all->held, &share));
    expect_forked(weir_buffer_import(all->r.stream, &share, NULL, &made));
    expect_forked(weir_tag_push("child"));
    expect_forked(weir_tag_pop());
}

static void call_streams(const inherited *all)
{
    weir_stream *made = NULL;
    weir_usage usage = {0};
    expect_forked(weir_stream_create(all->r.device, NULL, &made));
    child_expect(made == NULL);
    expect_forked(weir_stream_close(all->side));
    expect_forked(weir_stream_sync(all->side));
    expect_forked(weir_stream_launch(all->side, NULL));
    expect_forked(weir_stream_memory_usage(all->side, &usage));
    expect_forked(weir_stream_hook_add(all->side, &(weir_stream_hook){.size = 0}));
    expect_forked(weir_stream_hook_remove(all->side, NULL));
    child_expect(weir_stream_native(all->side) == NULL);
    child_expect(weir_stream_driver_stream(all->side) == 0);
    child_expect(weir_stream_device(all->side) == NULL);
    child_expect(weir_stream_name(all->side)[0] == 0);
}

static void call_device(const inherited *all)
{
    weir_device *device = all->r.device, *made = NULL;
    weir_usage usage = {0};
    weir_tag_usage tag;
    weir_driver_properties properties;
    size_t count;
    expect_forked(weir_device_open("sim", NULL, &made));
    expect_forked(weir_device_open_driver(weir_driver_at(0), "", NULL, &made));
    child_expect(made == NULL);
    expect_forked(weir_device_memory_cleanup(device, NULL, NULL));
    expect_forked(weir_device_memory_usage(device, &usage));
    expect_forked(weir_device_tag_usage(device, "weights", &tag));
    expect_forked(weir_device_tags(device, NULL, 0, &count));
    expect_forked(weir_device_tag(device, "weights", &(weir_tag){0}));
    expect_forked(weir_device_properties(device, &properties));
    expect_forked(weir_device_tick(device, 0));
    expect_forked(weir_device_sync(device));
    expect_forked(weir_device_limit(device, 1));
    expect_forked(weir_device_pool_limit(device, "arena", 1));
    expect_forked(weir_device_tag_limit(device, "weights", 1));
    expect_forked(weir_device_reclaim_add(device, NULL, NULL));
    expect_forked(weir_device_reclaim_remove(device, NULL, NULL));
    expect_forked(weir_device_preset_replace(device, NULL, NULL, 0));
    expect_forked(weir_device_check(device));
    child_expect(weir_device_driver(device) == NULL);
    child_expect(weir_device_default_stream(device) == NULL);
    child_expect(weir_device_name(device)[0] == 0);
    child_expect(weir_device_preset(device)[0] == 0);
    expect_forked(weir_device_close(device));
    weir_device_abandon(device);
}

static void call_reports(const inherited *all)
{
    weir_device *device = all->r.device;
    static weir_device_report report;
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    expect_forked(weir_device_memory_report(device, &report));
    expect_forked(weir_device_write_report(device, WEIR_FORMAT_JSON, sink, NULL));
    expect_forked(weir_device_explain_lines(device, lines));
    expect_forked(weir_device_explain(device, sink, NULL));
    expect_forked(weir_device_explain_json(device, sink, NULL));
}

static void call_everything(void *context)
{
    const inherited *all = context;
    weir_sim_ledger before, after;
    weir_sim_read_ledger(all->r.sim, &before);
    call_buffers(all);
    child_expect(strstr(weir_last_error(), "forked") != NULL);
    call_streams(all);
    call_reports(all);
    call_device(all);
    weir_sim_read_ledger(all->r.sim, &after);
    child_expect(memcmp(&before, &after, sizeof before) == 0);
}

static void a_child_gets_forked_from_every_call_and_touches_nothing(void **state)
{
    (void)state;
    inherited all = inherit();
    run_child(call_everything, &all);
    disinherit(&all);
}

/* ---- how children end ---- */

static const inherited *at_exit;

static void drop_at_exit(void)
{
    child_expect(weir_buffer_release(at_exit->held) == WEIR_FORKED);
    child_expect(weir_device_close(at_exit->r.device) == WEIR_FORKED);
    weir_device_abandon(at_exit->r.device);
}

static void exit_with_handlers(void *context)
{
    at_exit = context;
    child_expect(atexit(drop_at_exit) == 0);
}

static void a_child_exits_normally_and_drops_what_it_inherited(void **state)
{
    (void)state;
    inherited all = inherit();
    run_child(exit_with_handlers, &all);
    disinherit(&all);
}

static void exec_true(void *context)
{
    (void)context;
    execl("/bin/true", "true", (char *)NULL);
    child_expect(false);
}

static void a_child_execs(void **state)
{
    (void)state;
    inherited all = inherit();
    run_child(exec_true, &all);
    disinherit(&all);
}

static void fork_again(void *context)
{
    run_child(call_everything, context);
}

static void a_child_of_a_child_is_one_too(void **state)
{
    (void)state;
    inherited all = inherit();
    run_child(fork_again, &all);
    disinherit(&all);
}

/* ---- locks and threads at the moment of the fork ---- */

typedef struct busy {
    weir_device *device;
    weir_stream *stream;
    _Atomic bool stop;
} busy;

static void *work(void *context)
{
    busy *b = context;
    weir_usage usage = {0};
    for (unsigned i = 0; !b->stop; i++) {
        weir_buffer buffer;
        if (weir_buffer_create(b->stream, 1 + i % 300000, NULL, &buffer) == WEIR_OK) {
            weir_buffer_release(buffer);
        }
        if (i % 16 == 0) {
            weir_device_memory_usage(b->device, &usage);
        }
        if (i % 64 == 0) {
            weir_device_memory_cleanup(b->device, NULL, NULL);
        }
    }
    return NULL;
}

static void call_busy(void *context)
{
    busy *b = context;
    weir_usage usage = {0};
    weir_buffer buffer;
    expect_forked(weir_buffer_create(b->stream, 100, NULL, &buffer));
    expect_forked(weir_device_memory_usage(b->device, &usage));
    expect_forked(weir_device_memory_cleanup(b->device, NULL, NULL));
    expect_forked(weir_device_close(b->device));
    _exit(0); /* the address sanitizer's own locks do not survive threads at a fork */
}

static void a_fork_while_threads_hold_locks_and_the_reclaimer_runs(void **state)
{
    (void)state;
    enum { THREADS = 3, FORKS = 20 };
    busy b = {.device = NULL};
    pthread_t threads[THREADS];
    assert_ok(weir_device_open("host", &(weir_device_desc){.idle_ms = 1}, &b.device));
    b.stream = weir_device_default_stream(b.device);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &b), 0);
    }
    for (int i = 0; i < FORKS; i++) {
        run_child(call_busy, &b);
    }
    b.stop = true;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_ok(weir_device_check(b.device));
    cleanup(b.device, NULL);
    assert_ok(weir_device_close(b.device));
}

static void fork_inside(void *context, weir_stream *stream)
{
    (void)stream;
    pid_t *child = context;
    fflush(NULL);
    *child = fork();
}

static void a_hook_that_forks_returns_to_a_call_that_is_forked(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    pid_t child = -1;
    weir_stream_hook hook = {.context = &child, .before_cleanup = fork_inside};
    assert_ok(weir_stream_hook_add(r.stream, &hook));
    weir_result result = weir_device_memory_cleanup(r.device, NULL, NULL);
    if (child == 0) {
        _exit(result == WEIR_FORKED ? 0 : 1);
    }
    assert_ok(result);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(weir_stream_hook_remove(r.stream, &child));
    rig_close(&r);
}

static bool fork_to_reclaim(void *context, weir_device *device, uint64_t needed_bytes)
{
    (void)device;
    (void)needed_bytes;
    fork_inside(context, NULL);
    return true;
}

static void expect_forked_inside(rig *r, uint64_t bytes, weir_result expected)
{
    pid_t child = -1;
    weir_buffer buffer = WEIR_NO_BUFFER;
    weir_buffer_desc desc = {.tag = "limited"};
    assert_ok(weir_device_reclaim_add(r->device, fork_to_reclaim, &child));
    weir_result result = weir_buffer_create(r->stream, bytes, &desc, &buffer);
    if (child == 0) {
        _exit(result == WEIR_FORKED ? 0 : 1);
    }
    assert_int_equal(result, expected);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(weir_device_reclaim_remove(r->device, fork_to_reclaim, &child));
}

static void
a_reclaim_callback_that_forks_returns_to_an_allocation_that_is_forked(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL);
    weir_buffer held = make(r.stream, 20 * GIB, NULL);
    expect_forked_inside(&r, 10 * GIB, WEIR_OUT_OF_MEMORY);
    assert_ok(weir_device_tag_limit(r.device, "limited", MIB));
    expect_forked_inside(&r, 2 * MIB, WEIR_LIMIT);
    assert_consistent(&r);
    drop(held);
    rig_close(&r);
}

/* ---- children that are free to go on ---- */

static void use_a_device_of_its_own(void *context)
{
    (void)context;
    weir_device *device = NULL;
    weir_buffer buffer = WEIR_NO_BUFFER;
    child_expect(weir_device_open("host", NULL, &device) == WEIR_OK);
    weir_stream *stream = weir_device_default_stream(device);
    child_expect(weir_buffer_create(stream, 5 * MIB, NULL, &buffer) == WEIR_OK);
    child_expect(weir_buffer_release(buffer) == WEIR_OK);
    child_expect(weir_buffer_release(buffer) == WEIR_STALE);
    child_expect(weir_device_check(device) == WEIR_OK);
    child_expect(weir_device_close(device) == WEIR_OK);
}

static void a_child_forked_while_no_device_is_open_opens_its_own(void **state)
{
    (void)state;
    run_child(use_a_device_of_its_own, NULL);
    rig r = rig_open(NULL, NULL);
    weir_buffer buffer = make(r.stream, 100, "parent");
    drop(buffer);
    rig_close(&r);
    run_child(use_a_device_of_its_own, NULL);
    assert_result(weir_buffer_release(buffer), WEIR_STALE);
}

/* ---- kernels without pages that are wiped ---- */

static void fall_back(void *context)
{
    (void)context;
    child_expect(madvise(&wr_wiped, sizeof wr_wiped, MADV_KEEPONFORK) == 0);
    child_expect(wr_fork_use_handler());
    inherited all = inherit();
    run_child(call_everything, &all);
    disinherit(&all);
}

static void where_the_kernel_wipes_no_pages_a_handler_does(void **state)
{
    (void)state;
    rig r = rig_open(NULL, NULL); /* whatever this process does, it has done by now */
    rig_close(&r);
    run_child(fall_back, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_gets_forked_from_every_call_and_touches_nothing),
        cmocka_unit_test(a_child_exits_normally_and_drops_what_it_inherited),
        cmocka_unit_test(a_child_execs),
        cmocka_unit_test(a_child_of_a_child_is_one_too),
        cmocka_unit_test(a_fork_while_threads_hold_locks_and_the_reclaimer_runs),
        cmocka_unit_test(a_hook_that_forks_returns_to_a_call_that_is_forked),
        cmocka_unit_test(
            a_reclaim_callback_that_forks_returns_to_an_allocation_that_is_forked),
        cmocka_unit_test(a_child_forked_while_no_device_is_open_opens_its_own),
        cmocka_unit_test(where_the_kernel_wipes_no_pages_a_handler_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
