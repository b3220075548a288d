/* SPDX-License-Identifier: MIT */
/* The books of the model, and their comparison with the device's. */
#include "model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators"
 * (2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = (*state += 0x9e3779b97f4a7c15U);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
}

uint64_t choose(choices *from, uint64_t bound)
{
    if (from->data == NULL) {
        return next_random(&from->state) % bound;
    }
    uint64_t value = 0;
    for (uint64_t reach = 1; reach < bound && from->at < from->size; reach *= 256) {
        value = value * 256 + from->data[from->at++];
        if (reach > UINT64_MAX / 256) {
            break;
        }
    }
    return value % bound;
}

bool choices_left(const choices *from)
{
    return from->data == NULL || from->at < from->size;
}

void model_fail(const model *m, const char *condition, const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    char text[1024];
    snprintf(text, sizeof text,
             "WEIR_SEED=%llu, preset %s, granule %llu, step %llu (%s): %s is false: %s",
             (unsigned long long)m->desc.seed, m->desc.preset,
             (unsigned long long)m->desc.granule_bytes, (unsigned long long)m->steps,
             m->doing, condition, why);
    m->desc.failed(text);
    abort();
}

const char *model_tag_name(unsigned tag)
{
    static const char *const names[MODEL_TAGS] = {
        "", "weights", "activations", "cache", "optimizer", "a rather long tag"};
    return names[tag];
}

static bool overlap(uint64_t one, uint64_t one_bytes, uint64_t other,
                    uint64_t other_bytes)
{
    return one < other + other_bytes && other < one + one_bytes;
}

/* The stream whose queued work may still use these dropped bytes, so that `stream` may
 * not have them; -1 if there is none. In the order of one stream it may. */
static int guarding_stream(const model *m, const model_dropped *dropped, unsigned stream)
{
    for (unsigned s = 0; s < MODEL_SLOTS; s++) {
        if (s != stream && dropped->waits_for[s] > m->streams[s].done) {
            return (int)s;
        }
    }
    return -1;
}

static void check_room(model *m, const model_buffer *added)
{
    for (unsigned i = 0; i < m->live_count; i++) {
        MODEL_CHECK(m,
                    !overlap(added->address, added->covered, m->live[i].address,
                             m->live[i].covered),
                    "new %#llx+%llu lies on live %#llx+%llu",
                    (unsigned long long)added->address,
                    (unsigned long long)added->covered,
                    (unsigned long long)m->live[i].address,
                    (unsigned long long)m->live[i].covered);
    }
    for (unsigned i = 0; i < m->dropped_count; i++) {
        const model_dropped *dropped = &m->dropped[i];
        if (!overlap(added->address, added->covered, dropped->address,
                     dropped->covered)) {
            continue;
        }
        int guard = guarding_stream(m, dropped, added->stream);
        MODEL_CHECK(
            m, guard < 0,
            "new %#llx+%llu of stream %u lies on %#llx+%llu dropped by stream %u, "
            "which work queued on stream %d may still use",
            (unsigned long long)added->address, (unsigned long long)added->covered,
            added->stream, (unsigned long long)dropped->address,
            (unsigned long long)dropped->covered, dropped->stream, guard);
    }
}

void model_add(model *m, const model_buffer *added)
{
    check_room(m, added);
    m->live[m->live_count++] = *added;
    m->in_use_bytes += added->bytes;
    m->padding_bytes += added->extent - added->bytes;
    m->allocations++;
    if (m->in_use_bytes > m->peak_in_use_bytes) {
        m->peak_in_use_bytes = m->in_use_bytes;
    }
    model_tag *tag = &m->tags[added->tag];
    tag->in_use_bytes += added->bytes;
    tag->extent_bytes += added->extent;
    tag->live_count++;
    if (tag->in_use_bytes > tag->peak_bytes) {
        tag->peak_bytes = tag->in_use_bytes;
    }
    m->streams[added->stream].in_use_bytes += added->bytes;
    m->streams[added->stream].live_count++;
}

/* Remembers what the bytes wait for; when there are too many to remember, forgets an old
 * one. */
static void remember_dropped(model *m, const model_buffer *buffer)
{
    model_dropped dropped = {buffer->address, buffer->covered, buffer->stream, {0}};
    bool waits = false;
    for (unsigned s = 0; s < MODEL_SLOTS; s++) {
        bool uses = s == buffer->stream || (buffer->used_on >> s & 1) != 0;
        const model_stream *used = &m->streams[s];
        if (uses && used->queued > used->done && used->queued > used->perhaps_done) {
            dropped.waits_for[s] = m->streams[s].queued;
            waits = true;
        }
    }
    if (waits) {
        unsigned at = m->dropped_count < MODEL_DROPPED
                          ? m->dropped_count++
                          : (unsigned)(m->steps % MODEL_DROPPED);
        m->dropped[at] = dropped;
    }
}

void model_remove(model *m, unsigned index)
{
    model_buffer *gone = &m->live[index];
    remember_dropped(m, gone);
    m->stale[m->stale_count++ % MODEL_STALE] = gone->handle;
    m->in_use_bytes -= gone->bytes;
    m->padding_bytes -= gone->extent - gone->bytes;
    m->releases++;
    m->tags[gone->tag].in_use_bytes -= gone->bytes;
    m->tags[gone->tag].extent_bytes -= gone->extent;
    m->tags[gone->tag].live_count--;
    m->streams[gone->stream].in_use_bytes -= gone->bytes;
    m->streams[gone->stream].live_count--;
    *gone = m->live[--m->live_count];
}

bool model_has_persistent(const model *m)
{
    for (unsigned i = 0; i < m->live_count; i++) {
        if (m->live[i].persistent) {
            return true;
        }
    }
    return false;
}

static int by_address(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

uint64_t model_held_bytes(const model *m,
                          bool (*counts)(const model *m, const model_buffer *buffer,
                                         const void *context),
                          const void *context)
{
    uint64_t granule = m->granule_bytes;
    uint64_t spans[MODEL_LIVE][2];
    unsigned count = 0;
    uint64_t held = 0;
    if (granule == 0) {
        return 0;
    }
    for (unsigned i = 0; i < m->live_count; i++) {
        const model_buffer *buffer = &m->live[i];
        if (counts != NULL && !counts(m, buffer, context)) {
            continue;
        }
        if (buffer->persistent) {
            held += (buffer->extent + granule - 1) / granule * granule;
            continue;
        }
        spans[count][0] = buffer->address / granule;
        spans[count][1] = (buffer->address + buffer->extent - 1) / granule;
        count++;
    }
    qsort(spans, count, sizeof spans[0], by_address);
    uint64_t next = 0; /* the first granule not counted yet */
    for (unsigned i = 0; i < count; i++) {
        uint64_t from = spans[i][0] > next ? spans[i][0] : next;
        if (spans[i][1] >= from) {
            held += (spans[i][1] - from + 1) * granule;
            next = spans[i][1] + 1;
        }
    }
    return held;
}

static void forget_passed(model *m)
{
    for (unsigned i = 0; i < m->dropped_count;) {
        bool waits = false;
        for (unsigned s = 0; s < MODEL_SLOTS; s++) {
            waits = waits || m->dropped[i].waits_for[s] > m->streams[s].done;
        }
        if (waits) {
            i++;
        } else {
            m->dropped[i] = m->dropped[--m->dropped_count];
        }
    }
}

static void raise(uint64_t *value, uint64_t to)
{
    *value = to > *value ? to : *value;
}

void model_stream_waits(model *m, unsigned stream, unsigned awaited)
{
    for (unsigned s = 0; s < MODEL_SLOTS && stream != awaited; s++) {
        raise(&m->streams[stream].reach[s],
              s == awaited ? m->streams[s].queued : m->streams[awaited].reach[s]);
    }
}

/* All work of closed streams has completed, so that no live buffer is used by it: what
 * closes later is other work. */
static void finish_ended(model *m)
{
    m->streams[MODEL_ENDED].done = m->streams[MODEL_ENDED].queued;
    for (unsigned i = 0; i < m->live_count; i++) {
        m->live[i].used_on &= ~(1U << MODEL_ENDED);
    }
}

/* Closed streams' work is ordered in ways that the model does not follow: it is taken as
 * complete as soon as any other is, together with what it was ordered behind. */
void model_stream_finished(model *m, unsigned stream)
{
    m->streams[stream].done = m->streams[stream].queued;
    finish_ended(m);
    for (unsigned s = 0; s < MODEL_SLOTS; s++) {
        raise(&m->streams[s].done, m->streams[stream].reach[s]);
        raise(&m->streams[s].done, m->streams[MODEL_ENDED].reach[s]);
    }
    forget_passed(m);
}

/* What waits for work of `stream` that is not complete waits for the closed streams' from
 * now. */
static void hand_to_ended(model *m, unsigned stream)
{
    uint64_t done = m->streams[stream].done;
    uint64_t number = ++m->streams[MODEL_ENDED].queued;
    for (unsigned s = 0; s < MODEL_SLOTS; s++) {
        raise(&m->streams[MODEL_ENDED].reach[s], m->streams[stream].reach[s]);
    }
    for (unsigned i = 0; i < m->dropped_count; i++) {
        if (m->dropped[i].waits_for[stream] > done) {
            m->dropped[i].waits_for[MODEL_ENDED] = number;
        }
    }
    for (unsigned i = 0; i < m->live_count; i++) {
        if ((m->live[i].used_on >> stream & 1) != 0) {
            m->live[i].used_on |= 1U << MODEL_ENDED;
        }
    }
}

void model_stream_gone(model *m, unsigned stream)
{
    if (m->streams[stream].queued > m->streams[stream].done) {
        hand_to_ended(m, stream);
    }
    for (unsigned i = 0; i < m->live_count; i++) {
        m->live[i].used_on &= ~(1U << stream);
    }
    for (unsigned i = 0; i < m->dropped_count; i++) {
        m->dropped[i].waits_for[stream] = 0;
    }
    m->streams[stream] = (model_stream){0};
    for (unsigned s = 0; s < MODEL_SLOTS; s++) {
        m->streams[s].reach[stream] = 0;
    }
}

/* Has all work of a stream completed? The driver knows; while a failure may be waiting it
 * is not asked. */
static bool is_idle(const model *m, unsigned stream)
{
    weir_stream *handle = m->streams[stream].handle;
    return handle == NULL || m->armed ||
           m->sim->table->stream_test(m->sim, weir_stream_driver_stream(handle)) ==
               WEIR_OK;
}

/* A host wait inside a call completes work that the model cannot know of: it then forgets
 * what it guarded, and guards nothing by work that was queued before, which makes it
 * weaker, never wrong. */
void model_notice_waits(model *m)
{
    weir_sim_ledger ledger;
    weir_sim_read_ledger(m->sim, &ledger);
    uint64_t waits =
        ledger.calls[WEIR_SIM_OP_fence_wait] + ledger.calls[WEIR_SIM_OP_stream_sync];
    if (waits == m->host_waits) {
        return;
    }
    m->host_waits = waits;
    m->dropped_count = 0;
    finish_ended(m);
    for (unsigned s = 0; s < MODEL_SLOTS; s++) {
        m->streams[s].perhaps_done = m->streams[s].queued;
        if (is_idle(m, s)) {
            m->streams[s].done = m->streams[s].queued;
        }
    }
}

static void compare_tags(model *m)
{
    for (unsigned t = 0; t < MODEL_TAGS; t++) {
        weir_tag_usage tag = {.live_count = 0};
        weir_result result = weir_device_tag_usage(m->device, model_tag_name(t), &tag);
        MODEL_CHECK(m, result == WEIR_OK, "tag '%s': %s", model_tag_name(t),
                    weir_last_error());
        MODEL_CHECK(m, tag.in_use_bytes == m->tags[t].in_use_bytes,
                    "tag '%s': %llu, not %llu", model_tag_name(t),
                    (unsigned long long)tag.in_use_bytes,
                    (unsigned long long)m->tags[t].in_use_bytes);
        MODEL_CHECK(m, tag.live_count == m->tags[t].live_count, "tag '%s'",
                    model_tag_name(t));
        MODEL_CHECK(m, tag.peak_in_use_bytes >= m->tags[t].peak_bytes,
                    "tag '%s': %llu < %llu", model_tag_name(t),
                    (unsigned long long)tag.peak_in_use_bytes,
                    (unsigned long long)m->tags[t].peak_bytes);
        MODEL_CHECK(m, tag.limit_bytes == m->tags[t].limit_bytes, "tag '%s': %llu",
                    model_tag_name(t), (unsigned long long)tag.limit_bytes);
        MODEL_CHECK(m,
                    t == 0 || tag.padding_bytes ==
                                  m->tags[t].extent_bytes - m->tags[t].in_use_bytes,
                    "tag '%s': padding %llu", model_tag_name(t),
                    (unsigned long long)tag.padding_bytes);
    }
}

static void compare_streams(model *m)
{
    for (unsigned s = 0; s < MODEL_SLOTS; s++) {
        if (m->streams[s].handle == NULL) {
            continue;
        }
        weir_usage usage = {0};
        weir_result result = weir_stream_memory_usage(m->streams[s].handle, &usage);
        MODEL_CHECK(m, result == WEIR_OK, "stream %u: %s", s, weir_last_error());
        MODEL_CHECK(m, usage.in_use_bytes == m->streams[s].in_use_bytes,
                    "stream %u: %llu, not %llu", s,
                    (unsigned long long)usage.in_use_bytes,
                    (unsigned long long)m->streams[s].in_use_bytes);
        MODEL_CHECK(m, usage.live_count == m->streams[s].live_count, "stream %u", s);
        MODEL_CHECK(m,
                    usage.in_use_bytes + usage.padding_bytes + usage.deferred_bytes +
                            usage.releasable_bytes + usage.pinned_bytes ==
                        usage.reserved_bytes,
                    "stream %u", s);
    }
}

static void compare_sums(model *m, const weir_usage *now, const weir_sim_ledger *ledger)
{
    MODEL_CHECK(m,
                now->in_use_bytes + now->padding_bytes + now->deferred_bytes +
                        now->releasable_bytes + now->pinned_bytes ==
                    now->reserved_bytes,
                "in_use %llu padding %llu deferred %llu releasable %llu pinned %llu "
                "reserved %llu",
                (unsigned long long)now->in_use_bytes,
                (unsigned long long)now->padding_bytes,
                (unsigned long long)now->deferred_bytes,
                (unsigned long long)now->releasable_bytes,
                (unsigned long long)now->pinned_bytes,
                (unsigned long long)now->reserved_bytes);
    uint64_t handed = ledger->handed_out_bytes - ledger->handed_back_bytes;
    MODEL_CHECK(m, now->reserved_bytes == handed, "reserved %llu, the driver says %llu",
                (unsigned long long)now->reserved_bytes, (unsigned long long)handed);
    MODEL_CHECK(m, now->driver_deferred_bytes == ledger->pending_bytes, "%llu, %llu",
                (unsigned long long)now->driver_deferred_bytes,
                (unsigned long long)ledger->pending_bytes);
}

static void compare_counts(model *m, const weir_usage *now)
{
    MODEL_CHECK(m, now->in_use_bytes == m->in_use_bytes, "in_use %llu, not %llu",
                (unsigned long long)now->in_use_bytes,
                (unsigned long long)m->in_use_bytes);
    MODEL_CHECK(m, now->padding_bytes == m->padding_bytes, "padding %llu, not %llu",
                (unsigned long long)now->padding_bytes,
                (unsigned long long)m->padding_bytes);
    MODEL_CHECK(m, now->live_count == m->live_count, "live %llu, not %u",
                (unsigned long long)now->live_count, m->live_count);
    MODEL_CHECK(m, now->peak_in_use_bytes == m->peak_in_use_bytes, "peak %llu, not %llu",
                (unsigned long long)now->peak_in_use_bytes,
                (unsigned long long)m->peak_in_use_bytes);
    MODEL_CHECK(m,
                now->peak_reserved_bytes >= now->reserved_bytes &&
                    now->peak_reserved_bytes >= m->usage.peak_reserved_bytes,
                "%llu", (unsigned long long)now->peak_reserved_bytes);
    MODEL_CHECK(m, now->allocations == m->allocations, "%llu, not %llu",
                (unsigned long long)now->allocations, (unsigned long long)m->allocations);
    MODEL_CHECK(m, now->releases == m->releases, "%llu, not %llu",
                (unsigned long long)now->releases, (unsigned long long)m->releases);
    MODEL_CHECK(m, now->ooms == m->ooms, "%llu, not %llu", (unsigned long long)now->ooms,
                (unsigned long long)m->ooms);
    MODEL_CHECK(m, now->limits == m->limits, "%llu, not %llu",
                (unsigned long long)now->limits, (unsigned long long)m->limits);
    MODEL_CHECK(m, now->callbacks == m->callbacks, "%llu, not %llu",
                (unsigned long long)now->callbacks, (unsigned long long)m->callbacks);
}

/* With granules and nothing deferred, what live buffers hold, pad and pin are exactly the
 * granules they touch; where several granules are one chunk, at least those. */
static void compare_pinned(model *m, const weir_usage *now)
{
    if (m->granule_bytes == 0 || now->deferred_bytes != 0 || model_has_persistent(m)) {
        return;
    }
    uint64_t held = model_held_bytes(m, NULL, NULL);
    uint64_t kept = now->in_use_bytes + now->padding_bytes + now->pinned_bytes;
    MODEL_CHECK(m, kept == held || (m->desc.chunk_bytes != 0 && kept > held),
                "in_use %llu padding %llu pinned %llu, but %llu in granules touched",
                (unsigned long long)now->in_use_bytes,
                (unsigned long long)now->padding_bytes,
                (unsigned long long)now->pinned_bytes, (unsigned long long)held);
}

void model_compare(model *m)
{
    weir_usage now = {0};
    weir_result result = weir_device_memory_usage(m->device, &now);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    model_notice_waits(m);
    weir_sim_ledger ledger;
    weir_sim_read_ledger(m->sim, &ledger);
    compare_sums(m, &now, &ledger);
    compare_counts(m, &now);
    compare_pinned(m, &now);
    model_compare_limits(m);
    bool walk = m->desc.walk_every != 0 && m->steps % m->desc.walk_every == 0;
    if (walk) {
        compare_tags(m);
        compare_streams(m);
        result = weir_device_check(m->device);
        MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    }
    m->usage = now;
}
