/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

weir_sim_desc plain_sim(void)
{
    weir_sim_desc sim = weir_sim_defaults();
    sim.granule_bytes = 0;
    return sim;
}

rig rig_open(const weir_sim_desc *sim, const weir_device_desc *desc)
{
    weir_sim_desc driver = sim != NULL ? *sim : weir_sim_defaults();
    weir_device_desc options = {.no_thread = true};
    if (desc != NULL) {
        options = *desc;
    }
    options.driver_config = &driver;
    rig opened = {0};
    assert_ok(weir_device_open("sim", &options, &opened.device));
    opened.sim = weir_device_driver(opened.device);
    opened.stream = weir_device_default_stream(opened.device);
    assert_non_null(opened.sim);
    assert_non_null(opened.stream);
    return opened;
}

void rig_close(rig *r)
{
    weir_sim_finish_all(r->sim);
    cleanup(r->device, &(weir_cleanup_desc){.wait = true, .keep_none = true});
    weir_usage left = usage_of(r->device);
    assert_sums(&left);
    assert_int_equal(left.reserved_bytes, 0);
    assert_int_equal(left.live_count, 0);
    assert_ok(weir_device_close(r->device));
}

weir_stream *open_stream(weir_device *device, const char *name)
{
    weir_stream *stream = NULL;
    assert_ok(weir_stream_create(device, &(weir_stream_desc){.name = name}, &stream));
    assert_non_null(stream);
    return stream;
}

void queue_work(rig *r, weir_stream *stream)
{
    assert_ok(weir_sim_queue(r->sim, weir_stream_driver_stream(stream)));
}

void finish_work(rig *r, weir_stream *stream)
{
    weir_sim_finish(r->sim, weir_stream_driver_stream(stream));
}

weir_buffer make(weir_stream *stream, uint64_t bytes, const char *tag)
{
    weir_buffer buffer = WEIR_NO_BUFFER;
    assert_ok(
        weir_buffer_create(stream, bytes, &(weir_buffer_desc){.tag = tag}, &buffer));
    assert_true(weir_buffer_address(buffer) != 0);
    return buffer;
}

void drop(weir_buffer buffer)
{
    assert_ok(weir_buffer_release(buffer));
}

weir_usage usage_of(weir_device *device)
{
    weir_usage usage = {0};
    assert_ok(weir_device_memory_usage(device, &usage));
    return usage;
}

weir_usage settled_usage(weir_device *device)
{
    assert_ok(weir_device_sync(device));
    return usage_of(device);
}

weir_sim_ledger ledger_of(rig *r)
{
    weir_sim_ledger ledger;
    weir_sim_read_ledger(r->sim, &ledger);
    return ledger;
}

static uint64_t calls_between(const weir_sim_ledger *ledger, int first, int last)
{
    uint64_t calls = 0;
    for (int op = first; op <= last; op++) {
        calls += ledger->calls[op];
    }
    return calls;
}

uint64_t memory_calls(const weir_sim_ledger *ledger)
{
    return calls_between(ledger, WEIR_SIM_OP_page_alloc, WEIR_SIM_OP_move);
}

uint64_t order_calls(const weir_sim_ledger *ledger)
{
    return calls_between(ledger, WEIR_SIM_OP_fence_record, WEIR_SIM_OP_stream_wait);
}

uint64_t all_calls(const weir_sim_ledger *ledger)
{
    return calls_between(ledger, 0, WEIR_SIM_OP_COUNT - 1);
}

void assert_sums(const weir_usage *usage)
{
    uint64_t sum = usage->in_use_bytes + usage->padding_bytes + usage->deferred_bytes +
                   usage->releasable_bytes + usage->pinned_bytes;
    if (sum != usage->reserved_bytes) {
        fail_msg(
            "in_use %llu + padding %llu + deferred %llu + releasable %llu + pinned %llu "
            "is not reserved %llu",
            (unsigned long long)usage->in_use_bytes,
            (unsigned long long)usage->padding_bytes,
            (unsigned long long)usage->deferred_bytes,
            (unsigned long long)usage->releasable_bytes,
            (unsigned long long)usage->pinned_bytes,
            (unsigned long long)usage->reserved_bytes);
    }
    assert_true(usage->peak_in_use_bytes >= usage->in_use_bytes);
    assert_true(usage->peak_reserved_bytes >= usage->reserved_bytes);
}

void assert_consistent(rig *r)
{
    weir_usage usage = usage_of(r->device);
    assert_sums(&usage);
    weir_sim_ledger ledger = ledger_of(r);
    assert_int_equal(usage.reserved_bytes,
                     ledger.handed_out_bytes - ledger.handed_back_bytes);
    assert_int_equal(usage.driver_deferred_bytes, ledger.pending_bytes);
    assert_ok(weir_device_check(r->device));
}

void assert_same_bytes(const weir_usage *one, const weir_usage *other)
{
    assert_int_equal(one->in_use_bytes, other->in_use_bytes);
    assert_int_equal(one->padding_bytes, other->padding_bytes);
    assert_int_equal(one->deferred_bytes, other->deferred_bytes);
    assert_int_equal(one->releasable_bytes, other->releasable_bytes);
    assert_int_equal(one->pinned_bytes, other->pinned_bytes);
    assert_int_equal(one->reserved_bytes, other->reserved_bytes);
    assert_int_equal(one->driver_deferred_bytes, other->driver_deferred_bytes);
    assert_int_equal(one->live_count, other->live_count);
}

still hold_still(rig *r)
{
    return (still){r, usage_of(r->device)};
}

void assert_unchanged(const still *was)
{
    weir_usage now = usage_of(was->r->device);
    assert_same_bytes(&was->before, &now);
    assert_int_equal(was->before.allocations, now.allocations);
    assert_int_equal(was->before.releases, now.releases);
    assert_consistent(was->r);
}

bool apart(weir_buffer one, uint64_t address, uint64_t extent)
{
    uint64_t begin = weir_buffer_address(one);
    return begin + weir_buffer_extent(one) <= address || address + extent <= begin;
}

void assert_driver_quiet(rig *r, const weir_sim_ledger *before)
{
    weir_sim_ledger now = ledger_of(r);
    assert_int_equal(memory_calls(&now), memory_calls(before));
    assert_int_equal(order_calls(&now), order_calls(before));
}

void on_both(void (*check)(rig *r))
{
    weir_sim_desc plain = plain_sim();
    const weir_sim_desc *sims[] = {NULL, &plain};
    for (int i = 0; i < 2; i++) {
        rig r = rig_open(sims[i], NULL);
        check(&r);
        assert_consistent(&r);
        rig_close(&r);
    }
}

weir_cleanup_outcome cleanup(weir_device *device, const weir_cleanup_desc *desc)
{
    weir_cleanup_outcome outcome = {0};
    assert_ok(weir_device_memory_cleanup(device, desc, &outcome));
    return outcome;
}

/* Text collected by explain(). */
typedef struct collected {
    char text[16384];
    size_t used;
} collected;

static weir_result collect(void *context, const char *text, size_t text_bytes)
{
    collected *sink = context;
    if (text_bytes >= sizeof sink->text - sink->used) {
        return WEIR_IO;
    }
    memcpy(sink->text + sink->used, text, text_bytes);
    sink->used += text_bytes;
    sink->text[sink->used] = '\0';
    return WEIR_OK;
}

const char *explain(weir_device *device)
{
    static collected sink;
    sink.used = 0;
    sink.text[0] = '\0';
    assert_ok(weir_device_explain(device, collect, &sink));
    return sink.text;
}

void assert_says(const char *text, const char *part)
{
    if (strcasestr(text, part) == NULL) {
        fail_msg("expected a text that contains \"%s\", got \"%s\"", part, text);
    }
}

void check_result(weir_result result, weir_result expected, const char *call,
                  const char *file, int line)
{
    if (result != expected) {
        print_error("%s: expected %s, got %s (%s)\n", call, weir_result_name(expected),
                    weir_result_name(result), result == WEIR_OK ? "" : weir_last_error());
        _fail(file, line);
    }
    if (expected != WEIR_OK && weir_last_error()[0] == '\0') {
        print_error("%s: %s without a text\n", call, weir_result_name(expected));
        _fail(file, line);
    }
}

void assert_error(weir_result result)
{
    assert_int_not_equal(result, WEIR_OK);
    assert_true(weir_last_error()[0] != '\0');
}

uint64_t environment_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 0) : otherwise;
}
