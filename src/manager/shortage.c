/* SPDX-License-Identifier: MIT */
/* The report of a shortage is made of one look at each stream and the bank, and kept for
 * its thread. No lock of its own. */
#include "shortage.h"

#include "capture.h"
#include "tags.h"

#include "base/result.h"

#include <string.h>

#define STREAM_MAX (sizeof((weir_shortage){0}.streams) / sizeof(weir_stream_total))
#define TAG_MAX (sizeof((weir_shortage){0}.tags) / sizeof(weir_tag_usage))

static _Thread_local weir_shortage last_shortage; /* result OK: there has been none */
static _Thread_local uint64_t last_wanted;

void wr_shortage_note_wanted(uint64_t bytes)
{
    last_wanted = bytes;
}

uint64_t wr_shortage_wanted(void)
{
    return last_wanted;
}

/* ---- where the bytes are ---- */

static void raise_hole(weir_shortage *s, const wr_pool *pool)
{
    uint64_t hole = wr_index_largest(pool->index);
    s->largest_hole_bytes = hole > s->largest_hole_bytes ? hole : s->largest_hole_bytes;
}

static void add_totals(weir_shortage *s, const wr_totals *totals)
{
    s->in_use_bytes += totals->in_use;
    s->padding_bytes += totals->padding;
    s->deferred_bytes += totals->deferred;
    s->releasable_bytes += totals->releasable;
    s->pinned_bytes += totals->pinned;
}

static void insert_stream(weir_shortage *s, const weir_stream_total *total)
{
    size_t at = STREAM_MAX;
    while (at > 0 && (s->streams[at - 1].reserved_bytes < total->reserved_bytes ||
                      s->streams[at - 1].name[0] == 0)) {
        if (at < STREAM_MAX) {
            s->streams[at] = s->streams[at - 1];
        }
        at--;
    }
    if (at < STREAM_MAX) {
        s->streams[at] = *total;
    }
}

static void add_manager(weir_shortage *s, wr_manager *manager)
{
    wr_totals totals = {0};
    weir_stream_total total = {.name = ""};
    wr_manager_lock(manager);
    wr_manager_recount(manager);
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        wr_books_sum(&manager->pools[i].books, &totals);
        raise_hole(s, &manager->pools[i]);
    }
    memcpy(total.name, manager->name, sizeof total.name);
    wr_manager_unlock(manager);
    add_totals(s, &totals);
    total.in_use_bytes = totals.in_use;
    total.padding_bytes = totals.padding;
    total.deferred_bytes = totals.deferred;
    total.releasable_bytes = totals.releasable;
    total.pinned_bytes = totals.pinned;
    total.reserved_bytes = wr_totals_reserved(&totals);
    insert_stream(s, &total);
}

static void add_bank(weir_shortage *s, wr_bank *bank)
{
    wr_totals totals = {0};
    wr_bank_recount(bank);
    wr_bank_lock(bank);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_books_sum(&bank->classes[i].bank.books, &totals);
        raise_hole(s, &bank->classes[i].bank);
    }
    totals.releasable += WR_OWN(bank->transit);
    wr_bank_unlock(bank);
    add_totals(s, &totals);
}

static void survey(weir_shortage *s, wr_bank *bank)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        add_manager(s, manager);
        wr_manager_unpin(manager);
    }
    add_bank(s, bank);
    wr_tags_list(bank, s->tags, TAG_MAX);
    s->capacity_bytes = bank->properties.capacity_bytes;
    s->reserved_bytes = s->in_use_bytes + s->padding_bytes + s->deferred_bytes +
                        s->releasable_bytes + s->pinned_bytes;
}

/* ---- what is missing ---- */

/* What the driver could still give, by all that is known. */
static uint64_t count_left(const wr_bank *bank)
{
    weir_memory_info info;
    uint64_t capacity = bank->properties.capacity_bytes, used = 0;
    if (bank->table->memory_info != NULL &&
        bank->table->memory_info(bank->driver, &info) == WEIR_OK &&
        info.footprint_bytes != WEIR_UNKNOWN_BYTES &&
        info.others_bytes != WEIR_UNKNOWN_BYTES) {
        used = info.footprint_bytes + info.others_bytes;
    } else {
        used = WR_GET(bank->reserved) + wr_bank_pending(bank);
    }
    uint64_t left = used < capacity ? capacity - used : 0;
    return bank->granule_bytes == 0 ? left : left & ~(bank->granule_bytes - 1);
}

static void fill_limit(weir_shortage *s, wr_bank *bank, uint16_t tag,
                       const wr_shortage *shortage)
{
    switch (shortage->limit) {
    case WEIR_LIMIT_KIND_NONE:
        s->limited_bytes = 0;
        break;
    case WEIR_LIMIT_KIND_DEVICE:
        s->limit_bytes = WR_GET(bank->limit_bytes);
        s->limited_bytes = WR_GET(bank->reserved);
        break;
    case WEIR_LIMIT_KIND_POOL:
        memcpy(s->limit_name, shortage->class->layout.name, sizeof s->limit_name);
        s->limit_bytes = WR_GET(shortage->class->cap_bytes);
        s->limited_bytes = WR_GET(shortage->class->reserved);
        break;
    case WEIR_LIMIT_KIND_TAG:
        memcpy(s->limit_name, bank->tag_names[tag], sizeof s->limit_name);
        s->limit_bytes = WR_GET(bank->tags[tag].limit_bytes);
        s->limited_bytes = shortage->taken_bytes;
        break;
    }
    bool limited = shortage->limit != WEIR_LIMIT_KIND_NONE;
    uint64_t left = limited ? 0 : count_left(bank);
    if (limited && s->limit_bytes > s->limited_bytes) {
        left = s->limit_bytes - s->limited_bytes;
    }
    uint64_t over = limited && s->limited_bytes > s->limit_bytes
                        ? s->limited_bytes - s->limit_bytes
                        : 0;
    uint64_t wanted = shortage->wanted_bytes + over;
    s->limit_kind = shortage->limit;
    s->missing_bytes = wanted > left ? wanted - left : 0;
}

/* ---- the text ---- */

typedef struct error_text {
    size_t used;
    char text[WR_ERROR_BYTES];
} error_text;

static weir_result collect(void *context, const char *text, size_t text_bytes)
{
    error_text *error = context;
    size_t room = sizeof error->text - 1 - error->used;
    size_t bytes = text_bytes < room ? text_bytes : room;
    memcpy(error->text + error->used, text, bytes);
    error->used += bytes;
    return WEIR_OK;
}

static void write_error(const weir_shortage *s)
{
    char driver[WR_ERROR_BYTES];
    error_text error = {.used = 0};
    wr_error_save(driver);
    weir_shortage_write(s, WEIR_FORMAT_TEXT, collect, &error);
    wr_error(s->result, "%s", error.text);
    if (s->limit_kind == WEIR_LIMIT_KIND_NONE && driver[0] != 0) {
        wr_error_append("; the driver: %.200s", driver);
    }
}

weir_result wr_shortage_explain(wr_manager *manager, const wr_request *request,
                                weir_result result, const wr_shortage *shortage)
{
    wr_bank *bank = manager->bank;
    weir_shortage s = {.size = sizeof s,
                       .result = result,
                       .request_bytes = request->requested_bytes,
                       .alignment_bytes = request->alignment_bytes};
    memcpy(s.tag, bank->tag_names[request->tag], sizeof s.tag);
    memcpy(s.stream, manager->name, sizeof s.stream);
    survey(&s, bank);
    weir_capturing capturing = {.stream = ""};
    wr_capture_find(bank, &capturing);
    memcpy(s.capturing, capturing.stream, sizeof s.capturing);
    s.capturing_ms = capturing.for_ms;
    fill_limit(&s, bank, request->tag, shortage);
    if (result == WEIR_LIMIT) {
        WR_COUNT(bank->events.limits);
    } else {
        WR_COUNT(bank->events.ooms);
    }
    write_error(&s);
    last_shortage = s;
    return result;
}

weir_result weir_last_shortage(weir_shortage *shortage)
{
    if (shortage == NULL || (shortage->size != 0 && shortage->size != sizeof *shortage)) {
        return wr_error(WEIR_INVALID,
                        "weir_last_shortage: the place for it is NULL, or of "
                        "another size");
    }
    if (last_shortage.result == WEIR_OK) {
        return wr_error(WEIR_NOT_FOUND,
                        "weir_last_shortage: no allocation of this thread "
                        "has failed for memory or a limit");
    }
    size_t size = shortage->size;
    *shortage = last_shortage;
    shortage->size = size;
    return WEIR_OK;
}
