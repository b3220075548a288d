/* SPDX-License-Identifier: MIT */
/* The calls that the model makes on the device, and what each must answer. A step
 * chooses, calls, books what must have happened and checks what only this call can show;
 * model_step() then compares everything else. While a driver failure may be waiting
 * (`armed`) a call may fail, and the books must still agree. */
#include "model.h"

#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define KIB ((uint64_t)1 << 10)

#define DOING(m, ...) ((void)snprintf((m)->doing, sizeof(m)->doing, __VA_ARGS__))

/* A failing call says why. */
static void check_failed(const model *m, weir_result result)
{
    MODEL_CHECK(m, weir_last_error()[0] != '\0', "%s without a text",
                weir_result_name(result));
}

/* OK, or anything with a text while a driver failure may be waiting. */
static bool check_ok(const model *m, weir_result result)
{
    if (result == WEIR_OK) {
        return true;
    }
    MODEL_CHECK(m, m->armed, "%s: %s", weir_result_name(result), weir_last_error());
    check_failed(m, result);
    return false;
}

static weir_usage read_usage(const model *m)
{
    weir_usage usage = {0};
    weir_result result = weir_device_memory_usage(m->device, &usage);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    return usage;
}

static bool choose_live(model *m, unsigned *index)
{
    if (m->live_count == 0) {
        return false;
    }
    *index = (unsigned)choose(m->from, m->live_count);
    return true;
}

static unsigned choose_stream(model *m)
{
    unsigned stream = (unsigned)choose(m->from, MODEL_STREAMS);
    return m->streams[stream].handle != NULL ? stream : 0;
}

/* ---- create ---- */

static uint64_t log_uniform(model *m, unsigned low_bit, unsigned high_bit)
{
    unsigned bit = low_bit + (unsigned)choose(m->from, high_bit - low_bit);
    return ((uint64_t)1 << bit) + choose(m->from, (uint64_t)1 << bit);
}

static uint64_t choose_bytes(model *m)
{
    static const uint64_t usual[] = {4,           512,           4 * KIB,
                                     64 * KIB,    64 * KIB + 1,  256 * KIB,
                                     2 * MIB,     3 * MIB + 512, 4 * MIB,
                                     8 * MIB - 1, 8 * MIB,       33 * MIB};
    switch (choose(m->from, 16)) {
    case 0:
    case 1:
    case 2:
        return 1 + choose(m->from, 256);
    case 3:
    case 4:
    case 5:
        return log_uniform(m, 8, 16);
    case 6:
    case 7:
    case 8:
        return log_uniform(m, 16, 23);
    case 9:
        return (1 + choose(m->from, 8)) * 2 * MIB;
    case 10:
        return 1 + choose(m->from, m->room_bytes / 3);
    case 11:
        return choose(m->from, 32) == 0 ? UINT64_MAX - choose(m->from, 4 * MIB)
                                        : 1 + choose(m->from, m->room_bytes + MIB);
    default:
        return usual[choose(m->from, sizeof usual / sizeof usual[0])];
    }
}

static unsigned current_tag(const model *m)
{
    return m->tag_depth > 0 ? m->tag_stack[m->tag_depth - 1] : 0;
}

bool model_knows_room(const model *m)
{
    return m->granule_bytes != 0 && m->desc.chunk_bytes == 0 && !m->armed &&
           !m->desc.no_wait;
}

/* With granules a request fails only if no moving and giving back can make room for it.
 * A tag that is full fails with LIMIT, and nothing else does for a tag. */
static void check_failure_is_true(const model *m, weir_result result,
                                  const model_buffer *wanted, uint64_t alignment)
{
    bool full = model_tag_is_full(m, wanted);
    bool other_reasons = m->armed || result == WEIR_INVALID;
    MODEL_CHECK(m, !full || result == WEIR_LIMIT || other_reasons,
                "%s for a full tag: %s", weir_result_name(result), weir_last_error());
    bool tag_limited = m->tags[wanted->tag].limit_bytes != 0 && wanted->persistent;
    if (model_knows_room(m) && !full && !tag_limited && !m->asked_denied) {
        MODEL_CHECK(m, !model_has_room(m, wanted, alignment),
                    "%llu held, yet no room: %s",
                    (unsigned long long)model_held_bytes(m, NULL, NULL),
                    weir_last_error());
    }
}

static void create_failed(model *m, weir_result result, const model_buffer *wanted,
                          uint64_t alignment)
{
    check_failed(m, result);
    m->ooms += result == WEIR_OUT_OF_MEMORY;
    m->limits += result == WEIR_LIMIT;
    bool usual = result == WEIR_OUT_OF_MEMORY ||
                 (result == WEIR_LIMIT && model_may_be_limited(m, wanted)) ||
                 (result == WEIR_INVALID && wanted->bytes > m->room_bytes);
    MODEL_CHECK(m, usual || m->armed, "%s: %s", weir_result_name(result),
                weir_last_error());
    if (result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT) {
        model_check_shortage(m, wanted);
    }
    check_failure_is_true(m, result, wanted, alignment);
    weir_usage now = read_usage(m);
    MODEL_CHECK(m, now.reserved_bytes <= m->usage.reserved_bytes || m->armed_return,
                "%s; reserved grew from %llu to %llu: %s", weir_result_name(result),
                (unsigned long long)m->usage.reserved_bytes,
                (unsigned long long)now.reserved_bytes, weir_last_error());
}

static void create_succeeded(model *m, model_buffer *made, uint64_t alignment)
{
    weir_buffer handle = made->handle;
    made->address = weir_buffer_address(handle);
    made->extent = weir_buffer_extent(handle);
    made->covered = alignment > m->alignment_bytes ? made->bytes : made->extent;
    made->references = 1;
    MODEL_CHECK(m, made->address != 0 && made->address % alignment == 0, "address %#llx",
                (unsigned long long)made->address);
    MODEL_CHECK(m, made->extent >= made->bytes && made->extent <= m->room_bytes,
                "extent %llu", (unsigned long long)made->extent);
    MODEL_CHECK(m, weir_buffer_bytes(handle) == made->bytes, "%llu",
                (unsigned long long)weir_buffer_bytes(handle));
    MODEL_CHECK(m, weir_buffer_references(handle) == 1, "%u",
                weir_buffer_references(handle));
    MODEL_CHECK(m, weir_buffer_stream(handle) == m->streams[made->stream].handle,
                "stream");
    weir_usage now = read_usage(m);
    MODEL_CHECK(m,
                m->limit_bytes == 0 || now.reserved_bytes <= m->limit_bytes ||
                    now.reserved_bytes <= m->usage.reserved_bytes,
                "reserved %llu above the limit %llu",
                (unsigned long long)now.reserved_bytes,
                (unsigned long long)m->limit_bytes);
    const model_tag *tag = &m->tags[made->tag];
    MODEL_CHECK(
        m, tag->limit_bytes == 0 || tag->extent_bytes + made->extent <= tag->limit_bytes,
        "tag '%s' has %llu and %llu, above its limit %llu", model_tag_name(made->tag),
        (unsigned long long)tag->extent_bytes, (unsigned long long)made->extent,
        (unsigned long long)tag->limit_bytes);
}

/* Within one call another stream may not have said yet that it has less than 64 KiB less.
 */
static void adopt_peak(model *m)
{
    uint64_t peak = read_usage(m).peak_in_use_bytes;
    MODEL_CHECK(m,
                peak >= m->peak_in_use_bytes &&
                    peak - m->peak_in_use_bytes < MODEL_STREAMS * 64 * KIB,
                "peak %llu, not %llu", (unsigned long long)peak,
                (unsigned long long)m->peak_in_use_bytes);
    m->peak_in_use_bytes = peak;
}

static void step_create(model *m)
{
    if (m->live_count == MODEL_LIVE) {
        return;
    }
    model_buffer made = {.stream = choose_stream(m), .bytes = choose_bytes(m)};
    unsigned tag = (unsigned)choose(m->from, MODEL_TAGS);
    weir_buffer_desc desc = {.tag = tag != 0 ? model_tag_name(tag) : NULL};
    made.tag = tag != 0 ? tag : current_tag(m);
    if (choose(m->from, 8) == 0) {
        desc.alignment_bytes = (uint64_t)1 << choose(m->from, 22);
    }
    desc.persistent = made.persistent = choose(m->from, 24) == 0;
    uint64_t alignment = desc.alignment_bytes > m->alignment_bytes ? desc.alignment_bytes
                                                                   : m->alignment_bytes;
    DOING(m, "create %llu on stream %u, alignment %llu%s", (unsigned long long)made.bytes,
          made.stream, (unsigned long long)desc.alignment_bytes,
          made.persistent ? ", persistent" : "");
    m->asked = &made;
    m->asked_alignment = alignment;
    m->called = 0;
    m->asked_released = m->asked_denied = false;
    weir_result result = weir_buffer_create(m->streams[made.stream].handle, made.bytes,
                                            &desc, &made.handle);
    m->asked = NULL;
    if (result != WEIR_OK) {
        MODEL_CHECK(m, made.handle.index == 0 && made.handle.generation == 0,
                    "output touched");
        create_failed(m, result, &made, alignment);
        return;
    }
    create_succeeded(m, &made, alignment);
    model_notice_waits(m);
    model_add(m, &made);
    if (m->asked_released) {
        adopt_peak(m);
    }
}

/* ---- references ---- */

void model_release_one(model *m, unsigned index)
{
    model_buffer *buffer = &m->live[index];
    weir_result result = weir_buffer_release(buffer->handle);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    if (--buffer->references == 0) {
        model_remove(m, index);
    } else {
        MODEL_CHECK(m, weir_buffer_references(buffer->handle) == buffer->references, "%u",
                    buffer->references);
    }
}

static void step_release(model *m)
{
    unsigned index = 0;
    if (choose_live(m, &index)) {
        DOING(m, "release %llu bytes of stream %u",
              (unsigned long long)m->live[index].bytes, m->live[index].stream);
        model_release_one(m, index);
    }
}

/* Many at once, as at the end of a training step. */
static void step_release_many(model *m)
{
    uint64_t count = choose(m->from, m->live_count + 1);
    DOING(m, "release %llu buffers", (unsigned long long)count);
    for (uint64_t i = 0; i < count && m->live_count > 0; i++) {
        model_release_one(m, (unsigned)choose(m->from, m->live_count));
    }
}

static void step_retain(model *m)
{
    unsigned index = 0;
    if (choose_live(m, &index)) {
        DOING(m, "retain");
        weir_result result = weir_buffer_retain(m->live[index].handle);
        MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
        m->live[index].references++;
    }
}

static void check_refused(model *m, weir_buffer handle, bool was_live)
{
    const weir_result results[] = {weir_buffer_release(handle),
                                   weir_buffer_retain(handle),
                                   weir_buffer_use(handle, m->streams[0].handle),
                                   weir_buffer_write(handle, 0, &handle, 1)};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        bool refused = was_live ? results[i] == WEIR_STALE : results[i] != WEIR_OK;
        MODEL_CHECK(m, refused, "call %zu: %s", i, weir_result_name(results[i]));
    }
    check_failed(m, results[3]);
    MODEL_CHECK(m, weir_buffer_address(handle) == 0 && weir_buffer_bytes(handle) == 0,
                "%u", handle.index);
    MODEL_CHECK(m,
                weir_buffer_references(handle) == 0 && weir_buffer_stream(handle) == NULL,
                "%u", handle.index);
}

static void step_stale(model *m)
{
    uint64_t known = m->stale_count < MODEL_STALE ? m->stale_count : MODEL_STALE;
    if (known > 0) {
        DOING(m, "use a stale handle");
        check_refused(m, m->stale[choose(m->from, known)], true);
    }
}

static void step_garbage(model *m)
{
    weir_buffer handle = {(uint32_t)choose(m->from, (uint64_t)1 << 32),
                          (uint32_t)choose(m->from, (uint64_t)1 << 32)};
    if (choose(m->from, 2) == 0) {
        handle.index %= 2 * MODEL_LIVE;
    }
    for (unsigned i = 0; i < m->live_count; i++) {
        if (m->live[i].handle.index == handle.index &&
            m->live[i].handle.generation == handle.generation) {
            return;
        }
    }
    DOING(m, "use a made-up handle {%u, %u}", handle.index, handle.generation);
    check_refused(m, handle, false);
}

/* ---- work ---- */

static void queue_on(model *m, unsigned stream)
{
    weir_result result =
        weir_sim_queue(m->sim, weir_stream_driver_stream(m->streams[stream].handle));
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    m->streams[stream].queued++;
}

static void step_use(model *m)
{
    unsigned index = 0;
    if (!choose_live(m, &index)) {
        return;
    }
    unsigned stream = choose_stream(m);
    DOING(m, "use a buffer of stream %u on stream %u", m->live[index].stream, stream);
    model_stream_waits(m, stream, m->live[index].stream);
    weir_result result =
        weir_buffer_use(m->live[index].handle, m->streams[stream].handle);
    if (check_ok(m, result)) {
        m->live[index].used_on |= 1U << stream;
        if (choose(m->from, 4) != 0) {
            queue_on(m, stream);
        }
    }
}

static void step_queue(model *m)
{
    unsigned stream = choose_stream(m);
    DOING(m, "queue work on stream %u", stream);
    queue_on(m, stream);
}

static void step_finish(model *m)
{
    unsigned stream = choose_stream(m);
    DOING(m, "finish stream %u", stream);
    weir_sim_finish(m->sim, weir_stream_driver_stream(m->streams[stream].handle));
    model_stream_finished(m, stream);
}

static void finish_all(model *m)
{
    weir_sim_finish_all(m->sim);
    for (unsigned s = 0; s < MODEL_STREAMS; s++) {
        model_stream_finished(m, s);
    }
}

static void step_finish_all(model *m)
{
    DOING(m, "finish all");
    finish_all(m);
}

static void step_sync(model *m)
{
    unsigned stream = choose_stream(m);
    DOING(m, "sync stream %u", stream);
    if (check_ok(m, weir_stream_sync(m->streams[stream].handle))) {
        model_stream_finished(m, stream);
    }
}

static void step_device_sync(model *m)
{
    DOING(m, "sync the device");
    if (check_ok(m, weir_device_sync(m->device))) {
        for (unsigned s = 0; s < MODEL_STREAMS; s++) {
            model_stream_finished(m, s);
        }
    }
}

static void step_copy(model *m)
{
    unsigned index = 0;
    if (!choose_live(m, &index)) {
        return;
    }
    model_buffer *buffer = &m->live[index];
    uint64_t offset = choose(m->from, buffer->bytes + 2);
    DOING(m, "write 1 byte at %llu of %llu", (unsigned long long)offset,
          (unsigned long long)buffer->bytes);
    uint8_t byte = 1;
    weir_result result = weir_buffer_write(buffer->handle, offset, &byte, 1);
    if (offset >= buffer->bytes) {
        MODEL_CHECK(m, result == WEIR_INVALID, "%s", weir_result_name(result));
        check_failed(m, result);
    } else {
        (void)check_ok(m, result);
    }
}

/* ---- giving back ---- */

static void check_cleanup(model *m, const weir_cleanup_desc *desc,
                          const weir_cleanup_outcome *outcome)
{
    weir_usage now = read_usage(m);
    uint64_t before = m->usage.reserved_bytes;
    uint64_t floor = desc->keep_bytes != 0 ? desc->keep_bytes
                     : desc->keep_none     ? 0
                                           : m->desc.keep_bytes;
    MODEL_CHECK(m, outcome->returned_bytes == before - now.reserved_bytes,
                "returned %llu, reserved %llu before and %llu after",
                (unsigned long long)outcome->returned_bytes, (unsigned long long)before,
                (unsigned long long)now.reserved_bytes);
    MODEL_CHECK(
        m, desc->at_most_bytes == 0 || outcome->returned_bytes <= desc->at_most_bytes,
        "returned %llu of at most %llu", (unsigned long long)outcome->returned_bytes,
        (unsigned long long)desc->at_most_bytes);
    MODEL_CHECK(m, now.reserved_bytes >= (floor < before ? floor : before),
                "reserved %llu below the floor %llu",
                (unsigned long long)now.reserved_bytes, (unsigned long long)floor);
    if (m->armed) {
        return;
    }
    MODEL_CHECK(m, outcome->pinned_bytes == now.pinned_bytes, "outcome %llu, usage %llu",
                (unsigned long long)outcome->pinned_bytes,
                (unsigned long long)now.pinned_bytes);
    MODEL_CHECK(m,
                outcome->deferred_bytes + outcome->kept_bytes ==
                    now.deferred_bytes + now.releasable_bytes,
                "outcome deferred %llu kept %llu, usage deferred %llu releasable %llu",
                (unsigned long long)outcome->deferred_bytes,
                (unsigned long long)outcome->kept_bytes,
                (unsigned long long)now.deferred_bytes,
                (unsigned long long)now.releasable_bytes);
    bool whole = desc->wait && floor == 0 && desc->at_most_bytes == 0;
    MODEL_CHECK(m, !whole || now.deferred_bytes + now.releasable_bytes == 0,
                "deferred %llu releasable %llu", (unsigned long long)now.deferred_bytes,
                (unsigned long long)now.releasable_bytes);
}

static void step_cleanup(model *m)
{
    weir_cleanup_desc desc = {.wait = choose(m->from, 2) == 0,
                              .no_drain = choose(m->from, 4) == 0,
                              .keep_none = choose(m->from, 4) == 0};
    if (!desc.keep_none && choose(m->from, 3) == 0) {
        desc.keep_bytes = choose(m->from, m->room_bytes);
    }
    if (choose(m->from, 3) == 0) {
        desc.at_most_bytes = 1 + choose(m->from, m->room_bytes / 4);
    }
    DOING(m, "cleanup wait %d keep %llu at most %llu keep none %d", desc.wait,
          (unsigned long long)desc.keep_bytes, (unsigned long long)desc.at_most_bytes,
          desc.keep_none);
    weir_cleanup_outcome outcome = {0};
    if (check_ok(m, weir_device_memory_cleanup(m->device, &desc, &outcome))) {
        check_cleanup(m, &desc, &outcome);
    }
}

static void step_tick(model *m)
{
    static const uint64_t passed[] = {0, 10, 1000, 4000, 6000, 50000};
    uint64_t ms = passed[choose(m->from, sizeof passed / sizeof passed[0])];
    DOING(m, "tick after %llu ms", (unsigned long long)ms);
    weir_sim_advance(m->sim, ms);
    (void)check_ok(m, weir_device_tick(m->device, 0));
    uint64_t before = m->usage.reserved_bytes;
    uint64_t floor = m->desc.keep_bytes < before ? m->desc.keep_bytes : before;
    weir_usage now = read_usage(m);
    MODEL_CHECK(m, now.reserved_bytes <= before && now.reserved_bytes >= floor,
                "reserved %llu, before %llu, floor %llu",
                (unsigned long long)now.reserved_bytes, (unsigned long long)before,
                (unsigned long long)floor);
}

/* ---- streams and tags ---- */

static void open_slot(model *m, unsigned slot)
{
    DOING(m, "open stream %u", slot);
    weir_stream *stream = NULL;
    if (check_ok(m, weir_stream_create(m->device, NULL, &stream))) {
        m->streams[slot].handle = stream;
    }
}

static void close_slot(model *m, unsigned slot)
{
    DOING(m, "close stream %u with %llu live", slot,
          (unsigned long long)m->streams[slot].live_count);
    weir_result result = weir_stream_close(m->streams[slot].handle);
    if (m->streams[slot].live_count > 0) {
        MODEL_CHECK(m, result == WEIR_BUSY, "%s", weir_result_name(result));
        check_failed(m, result);
    } else if (check_ok(m, result)) {
        model_stream_gone(m, slot);
    }
}

static void step_stream(model *m)
{
    unsigned slot = 1 + (unsigned)choose(m->from, MODEL_STREAMS - 1);
    if (m->streams[slot].handle == NULL) {
        open_slot(m, slot);
    } else {
        close_slot(m, slot);
    }
}

static void step_tag(model *m)
{
    unsigned most = sizeof m->tag_stack / sizeof m->tag_stack[0];
    bool push = m->tag_depth == 0 || (m->tag_depth < most && choose(m->from, 2) == 0);
    weir_result result;
    if (push) {
        unsigned tag = 1 + (unsigned)choose(m->from, MODEL_TAGS - 1);
        DOING(m, "push tag %u", tag);
        result = weir_tag_push(model_tag_name(tag));
        m->tag_stack[m->tag_depth++] = tag;
    } else {
        DOING(m, "pop tag");
        result = weir_tag_pop();
        m->tag_depth--;
    }
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
}

/* ---- failures and reports ---- */

static void disarm(model *m)
{
    for (int op = 0; op < WEIR_SIM_OP_COUNT; op++) {
        weir_sim_fail(m->sim, (weir_sim_op)op, 0, 0);
    }
    weir_sim_fail_nth(m->sim, 0);
    m->armed = m->armed_return = false;
}

static void step_fail(model *m)
{
    if (m->armed) {
        DOING(m, "no more failures");
        disarm(m);
        return;
    }
    weir_sim_op op = (weir_sim_op)choose(m->from, WEIR_SIM_OP_COUNT);
    uint64_t count = 1 + choose(m->from, 3), after = choose(m->from, 4);
    DOING(m, "fail driver call %d, %llu times after %llu", op, (unsigned long long)count,
          (unsigned long long)after);
    weir_sim_fail(m->sim, op, count, after);
    m->armed = true;
    m->armed_return = op == WEIR_SIM_OP_decommit || op == WEIR_SIM_OP_page_free;
}

static void step_report(model *m)
{
    DOING(m, "report");
    weir_device_report report = {0};
    if (!check_ok(m, weir_device_memory_report(m->device, &report))) {
        return;
    }
    MODEL_CHECK(m, report.usage.reserved_bytes == m->usage.reserved_bytes,
                "%llu, not %llu", (unsigned long long)report.usage.reserved_bytes,
                (unsigned long long)m->usage.reserved_bytes);
    uint64_t pools = 0, live = 0;
    for (size_t i = 0; i < report.pool_count; i++) {
        pools += report.pools[i].reserved_bytes;
        live += report.pools[i].live_count;
    }
    MODEL_CHECK(m, pools == report.usage.reserved_bytes && live == m->live_count,
                "pools reserved %llu, live %llu", (unsigned long long)pools,
                (unsigned long long)live);
    if (report.footprint_bytes == WEIR_UNKNOWN_BYTES) {
        MODEL_CHECK(m, m->armed, "footprint unknown");
        return;
    }
    MODEL_CHECK(m,
                report.footprint_bytes ==
                    report.usage.reserved_bytes - report.untouched_bytes +
                        report.usage.driver_deferred_bytes + report.overhead_bytes,
                "footprint %llu", (unsigned long long)report.footprint_bytes);
    MODEL_CHECK(m, report.overhead_bytes == report.context_bytes, "overhead %llu",
                (unsigned long long)report.overhead_bytes);
}

/* Weights are out of 256, so that one byte of a fuzzer chooses a step. */
static const struct {
    void (*run)(model *m);
    unsigned weight;
} steps[] = {
    {step_create, 82},     {step_release, 58},     {step_use, 16},
    {step_queue, 16},      {step_finish, 14},      {step_retain, 10},
    {step_cleanup, 9},     {step_tick, 8},         {step_stale, 6},
    {step_stream, 6},      {step_copy, 5},         {step_fail, 5},
    {step_garbage, 4},     {step_tag, 4},          {step_sync, 2},
    {model_step_limit, 6}, {step_finish_all, 2},   {step_report, 1},
    {step_device_sync, 1}, {step_release_many, 1},
};

void model_step(model *m)
{
    m->steps++;
    uint64_t choice = choose(m->from, 256);
    size_t step = 0;
    while (choice >= steps[step].weight) {
        choice -= steps[step++].weight;
    }
    steps[step].run(m);
    if (m->desc.heard != NULL) {
        m->desc.heard(m);
    }
    model_compare(m);
}

/* ---- open and close ---- */

void model_open(model *m, const model_desc *desc, choices *from)
{
    memset(m, 0, sizeof *m);
    m->desc = *desc;
    m->from = from;
    DOING(m, "open");
    while (weir_tag_pop() == WEIR_OK) {
        /* a model that failed before has left them */
    }
    weir_sim_desc sim = weir_sim_defaults();
    sim.capacity_bytes = 512 * MIB;
    sim.context_bytes = 16 * MIB;
    sim.granule_bytes = desc->granule_bytes;
    sim.chunk_bytes = desc->chunk_bytes;
    m->room_bytes = sim.capacity_bytes - sim.context_bytes;
    bool whole_pages = strcmp(desc->preset, "elastic") != 0;
    m->granule_bytes = whole_pages ? 0 : desc->granule_bytes;
    weir_device_desc options = {.preset = desc->pools == NULL ? desc->preset : NULL,
                                .pools = desc->pools,
                                .pool_count = desc->pool_count,
                                .no_thread = true,
                                .no_wait = desc->no_wait,
                                .trust_uses = desc->trust_uses,
                                .keep_bytes = desc->keep_bytes,
                                .driver_config = &sim};
    weir_result result = weir_device_open("sim", &options, &m->device);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    m->sim = weir_device_driver(m->device);
    m->streams[0].handle = weir_device_default_stream(m->device);
    weir_driver_properties properties;
    result = weir_device_properties(m->device, &properties);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    m->alignment_bytes = properties.alignment_bytes;
    model_open_limits(m);
    open_slot(m, 1);
    open_slot(m, 2);
    model_compare(m);
}

static void release_all(model *m)
{
    DOING(m, "release all");
    while (m->live_count > 0) {
        model_release_one(m, m->live_count - 1);
    }
    while (m->tag_depth > 0) {
        (void)weir_tag_pop();
        m->tag_depth--;
    }
    model_compare(m);
}

void model_close(model *m)
{
    disarm(m);
    release_all(m);
    DOING(m, "finish and sync");
    finish_all(m);
    MODEL_CHECK(m, weir_device_sync(m->device) == WEIR_OK, "%s", weir_last_error());
    model_compare(m);
    MODEL_CHECK(m, m->usage.releasable_bytes == m->usage.reserved_bytes,
                "deferred %llu releasable %llu pinned %llu of %llu",
                (unsigned long long)m->usage.deferred_bytes,
                (unsigned long long)m->usage.releasable_bytes,
                (unsigned long long)m->usage.pinned_bytes,
                (unsigned long long)m->usage.reserved_bytes);
    for (unsigned s = 1; s < MODEL_STREAMS; s++) {
        if (m->streams[s].handle != NULL) {
            close_slot(m, s);
            model_compare(m);
        }
    }
    DOING(m, "last cleanup");
    weir_cleanup_desc desc = {.wait = true, .keep_none = true};
    MODEL_CHECK(m, weir_device_memory_cleanup(m->device, &desc, NULL) == WEIR_OK, "%s",
                weir_last_error());
    model_compare(m);
    MODEL_CHECK(m, m->usage.reserved_bytes == 0, "reserved %llu",
                (unsigned long long)m->usage.reserved_bytes);
    DOING(m, "close");
    weir_result result = weir_device_close(m->device);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    m->device = NULL;
}
