/* SPDX-License-Identifier: MIT */
/* Limits of the device, of its pools and of tags, and two reclaim callbacks: what the
 * model knows of them, and what it expects of a request that meets them. */
#include "model.h"

#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define KIB ((uint64_t)1 << 10)

enum { POOL_SMALL, POOL_ARENA, POOL_PERSISTENT }; /* of "elastic" with granules */

/* ---- what a request must meet ---- */

uint64_t model_extent(const model *m, uint64_t bytes)
{
    return (bytes + m->alignment_bytes - 1) / m->alignment_bytes * m->alignment_bytes;
}

bool model_tag_is_full(const model *m, const model_buffer *wanted)
{
    const model_tag *tag = &m->tags[wanted->tag];
    uint64_t extent = model_extent(m, wanted->bytes);
    return tag->limit_bytes != 0 && (tag->extent_bytes > tag->limit_bytes ||
                                     extent > tag->limit_bytes - tag->extent_bytes);
}

/* Where pages are handed out whole, a slice may be larger than what was asked. */
static bool may_be_larger(const model *m, const model_buffer *wanted)
{
    return m->granule_bytes == 0 || wanted->persistent;
}

static unsigned pool_of(const model *m, const model_buffer *buffer)
{
    return buffer->persistent                           ? POOL_PERSISTENT
           : model_extent(m, buffer->bytes) <= 64 * KIB ? POOL_SMALL
                                                        : POOL_ARENA;
}

/* Small ones may lie in the arena, from when their pool was full. */
static bool in_pool(const model *m, const model_buffer *buffer, const void *pool)
{
    unsigned asked = pool == NULL ? pool_of(m, buffer) : *(const unsigned *)pool;
    return pool_of(m, buffer) == asked ||
           (asked == POOL_ARENA && pool_of(m, buffer) == POOL_SMALL);
}

static uint64_t held_in(const model *m, unsigned pool)
{
    return model_held_bytes(m, in_pool, &pool);
}

/* Memory comes in granules: of a limit only whole ones count. */
static bool is_too_large(const model *m, uint64_t held, const model_buffer *wanted,
                         uint64_t alignment, uint64_t limit_bytes)
{
    uint64_t bytes = wanted->bytes, slack = 2 * m->granule_bytes + alignment;
    uint64_t room = limit_bytes / m->granule_bytes * m->granule_bytes;
    return bytes > room || held + bytes + slack > room;
}

bool model_has_room(const model *m, const model_buffer *wanted, uint64_t alignment)
{
    unsigned pool = pool_of(m, wanted);
    uint64_t room = m->room_bytes, pool_room = m->pool_limits[pool];
    if (m->limit_bytes != 0 && m->limit_bytes < room) {
        room = m->limit_bytes;
    }
    uint64_t held = model_held_bytes(m, in_pool, NULL);
    return !is_too_large(m, held, wanted, alignment, room) &&
           (pool_room == 0 ||
            !is_too_large(m, held_in(m, pool), wanted, alignment, pool_room));
}

static bool has_pool_limit(const model *m)
{
    bool any = false;
    for (unsigned i = 0; i < m->pool_count; i++) {
        any = any || m->pool_limits[i] != 0;
    }
    return any;
}

bool model_may_be_limited(const model *m, const model_buffer *wanted)
{
    return m->limit_bytes != 0 || has_pool_limit(m) || model_tag_is_full(m, wanted) ||
           (m->tags[wanted->tag].limit_bytes != 0 && may_be_larger(m, wanted));
}

void model_check_shortage(const model *m, const model_buffer *wanted)
{
    weir_shortage shortage = {.size = sizeof shortage};
    weir_result result = weir_last_shortage(&shortage);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    MODEL_CHECK(m, shortage.request_bytes == wanted->bytes, "request of %llu",
                (unsigned long long)shortage.request_bytes);
    MODEL_CHECK(m, strcmp(shortage.tag, model_tag_name(wanted->tag)) == 0, "tag '%s'",
                shortage.tag);
    if (model_tag_is_full(m, wanted) && !may_be_larger(m, wanted)) {
        const model_tag *tag = &m->tags[wanted->tag];
        uint64_t missing =
            tag->extent_bytes + model_extent(m, wanted->bytes) - tag->limit_bytes;
        MODEL_CHECK(
            m,
            shortage.limit_kind == WEIR_LIMIT_KIND_TAG &&
                shortage.limit_bytes == tag->limit_bytes &&
                shortage.limited_bytes == tag->extent_bytes &&
                shortage.missing_bytes == missing,
            "kind %d, limit %llu of %llu, held %llu of %llu, missing %llu of %llu",
            shortage.limit_kind, (unsigned long long)shortage.limit_bytes,
            (unsigned long long)tag->limit_bytes,
            (unsigned long long)shortage.limited_bytes,
            (unsigned long long)tag->extent_bytes,
            (unsigned long long)shortage.missing_bytes, (unsigned long long)missing);
    }
}

/* ---- callbacks ---- */

/* What a callback is told that it should release. */
static void check_needed(const model *m, uint64_t needed_bytes)
{
    const model_tag *tag = &m->tags[m->asked->tag];
    uint64_t extent = model_extent(m, m->asked->bytes);
    if (model_tag_is_full(m, m->asked) && !may_be_larger(m, m->asked)) {
        MODEL_CHECK(m, needed_bytes == tag->extent_bytes + extent - tag->limit_bytes,
                    "needs %llu; held %llu, asked %llu, limit %llu",
                    (unsigned long long)needed_bytes,
                    (unsigned long long)tag->extent_bytes, (unsigned long long)extent,
                    (unsigned long long)tag->limit_bytes);
    } else {
        bool larger = tag->limit_bytes != 0 && may_be_larger(m, m->asked);
        MODEL_CHECK(m, needed_bytes >= extent || larger, "needs %llu, asked %llu",
                    (unsigned long long)needed_bytes, (unsigned long long)extent);
    }
}

/* They come last: the request has no room. */
static void check_need(const model *m)
{
    bool limited = m->tags[m->asked->tag].limit_bytes != 0 &&
                   (model_tag_is_full(m, m->asked) || may_be_larger(m, m->asked));
    MODEL_CHECK(
        m,
        !model_knows_room(m) || limited ||
            !model_has_room(m, m->asked, m->asked_alignment),
        "called though there is room for %llu bytes: %llu held, limits %llu and %llu",
        (unsigned long long)m->asked->bytes,
        (unsigned long long)model_held_bytes(m, NULL, NULL),
        (unsigned long long)m->limit_bytes,
        (unsigned long long)m->pool_limits[pool_of(m, m->asked)]);
}

/* Called for a request that has no room without it, in order and once. */
static bool release_some(void *context, weir_device *device, uint64_t needed_bytes)
{
    const model_callback *callback = context;
    model *m = callback->model;
    MODEL_CHECK(m, m->asked != NULL && device == m->device, "called outside of a create");
    MODEL_CHECK(m, callback->number > m->called, "%u after %u", callback->number,
                m->called);
    m->called = callback->number;
    m->callbacks++;
    if (!m->asked_released) { /* else what one has released is not looked at before the
                                 next */
        check_needed(m, needed_bytes);
        check_need(m);
    }
    uint64_t count = choose(m->from, 4);
    for (uint64_t i = 0; i < count && m->live_count > 0; i++) {
        m->asked_released = true;
        model_release_one(m, (unsigned)choose(m->from, m->live_count));
    }
    bool says = choose(m->from, 8) == 0 ? choose(m->from, 2) == 0 : count > 0;
    m->asked_denied = m->asked_released && !says;
    return says;
}

/* ---- setting them ---- */

/* False: a driver failure was waiting. */
static bool read_report(const model *m, weir_device_report *report)
{
    weir_result result = weir_device_memory_report(m->device, report);
    MODEL_CHECK(m, result == WEIR_OK || m->armed, "%s", weir_last_error());
    return result == WEIR_OK;
}

void model_open_limits(model *m)
{
    weir_device_report report = {0};
    MODEL_CHECK(m, read_report(m, &report), "%s", weir_last_error());
    m->pool_count = report.pool_count;
    MODEL_CHECK(m, m->pool_count <= MODEL_POOLS, "%zu pools", report.pool_count);
    for (unsigned i = 0; i < m->pool_count; i++) {
        m->pool_limits[i] = report.pools[i].limit_bytes;
    }
    for (unsigned i = 0; i < MODEL_CALLBACKS; i++) {
        m->reclaims[i] = (model_callback){m, i + 1};
        weir_result result =
            weir_device_reclaim_add(m->device, release_some, &m->reclaims[i]);
        MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    }
}

static void limit_tag(model *m)
{
    unsigned number = 1 + (unsigned)choose(m->from, MODEL_TAGS - 1);
    model_tag *tag = &m->tags[number];
    uint64_t limit = choose(m->from, 3) == 0
                         ? 0
                         : 1 + choose(m->from, 2 * tag->extent_bytes + 16 * MIB);
    (void)snprintf(m->doing, sizeof m->doing, "limit tag %u to %llu, it has %llu", number,
                   (unsigned long long)limit, (unsigned long long)tag->extent_bytes);
    weir_result result = weir_device_tag_limit(m->device, model_tag_name(number), limit);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    tag->limit_bytes = limit;
}

/* Pools of one name have one limit. */
static void limit_pool(model *m)
{
    weir_device_report report = {0};
    if (!read_report(m, &report)) {
        return;
    }
    unsigned number = (unsigned)choose(m->from, m->pool_count);
    uint64_t limit =
        choose(m->from, 2) == 0
            ? 0
            : 1 + choose(m->from, 2 * report.pools[number].reserved_bytes + 32 * MIB);
    const char *name = report.pools[number].name;
    (void)snprintf(m->doing, sizeof m->doing, "limit pool %u (%s) to %llu", number, name,
                   (unsigned long long)limit);
    weir_result result = weir_device_pool_limit(m->device, name, limit);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
    for (unsigned i = 0; i < m->pool_count; i++) {
        if (strcmp(report.pools[i].name, name) == 0) {
            m->pool_limits[i] = limit;
        }
        m->pool_reserved[i] = report.pools[i].reserved_bytes;
    }
}

static void limit_device(model *m)
{
    m->limit_bytes = choose(m->from, 3) == 0 ? 1 + choose(m->from, m->room_bytes) : 0;
    (void)snprintf(m->doing, sizeof m->doing, "limit %llu",
                   (unsigned long long)m->limit_bytes);
    weir_result result = weir_device_limit(m->device, m->limit_bytes);
    MODEL_CHECK(m, result == WEIR_OK, "%s", weir_last_error());
}

void model_step_limit(model *m)
{
    switch (choose(m->from, 3)) {
    case 0:
        limit_device(m);
        break;
    case 1:
        limit_tag(m);
        break;
    default:
        limit_pool(m);
        break;
    }
}

/* ---- comparing ---- */

void model_compare_limits(model *m)
{
    if (!has_pool_limit(m)) {
        memset(m->pool_reserved, 0, sizeof m->pool_reserved);
        return;
    }
    weir_device_report report = {0};
    if (!read_report(m, &report)) {
        return;
    }
    for (unsigned i = 0; i < m->pool_count; i++) {
        const weir_pool_report *pool = &report.pools[i];
        MODEL_CHECK(m, pool->limit_bytes == m->pool_limits[i], "pool %s: limit %llu",
                    pool->name, (unsigned long long)pool->limit_bytes);
        MODEL_CHECK(m,
                    pool->limit_bytes == 0 || pool->reserved_bytes <= pool->limit_bytes ||
                        pool->reserved_bytes <= m->pool_reserved[i],
                    "pool %s grew from %llu to %llu above its limit %llu", pool->name,
                    (unsigned long long)m->pool_reserved[i],
                    (unsigned long long)pool->reserved_bytes,
                    (unsigned long long)pool->limit_bytes);
        m->pool_reserved[i] = pool->reserved_bytes;
    }
}
