/* SPDX-License-Identifier: MIT */
/* The costly report: walks all slices and asks the system. */
#include "device.h"

#include "base/fork.h"
#include "base/memory.h"
#include "base/result.h"
#include "manager/capture.h"
#include "manager/shared.h"
#include "manager/tags.h"
#include "manager/waits.h"

#include <stdio.h>
#include <string.h>

/* ---- who pins ---- */

typedef struct pin_survey {
    const wr_bank *bank;
    weir_pinning *pinning;
    size_t capacity;
} pin_survey;

/* Bytes of free neighbours, on one side, in chunks that `slice` shares with them. */
static uint64_t pinned_beside(const wr_page *page, const wr_slice *slice, bool before)
{
    uint32_t first = wr_page_chunk_begin(page, wr_page_granule(page, slice->address));
    uint32_t last = wr_page_granule(page, wr_slice_end(slice) - 1);
    uint64_t begin = wr_page_granule_address(page, first);
    uint64_t end = wr_page_granule_address(page, wr_page_chunk_end(page, last));
    uint64_t bytes = 0;
    wr_slice_id id = before ? slice->prev : slice->next;
    while (id != 0) {
        const wr_slice *other = wr_slice_get(id);
        uint64_t from = other->address > begin ? other->address : begin;
        uint64_t to = wr_slice_end(other) < end ? wr_slice_end(other) : end;
        if (from >= to) {
            break;
        }
        bytes += other->state == WR_SLICE_STATE_FREE ? to - from : 0;
        id = before ? other->prev : other->next;
    }
    return bytes;
}

static uint64_t pinned_by(const wr_page *page, const wr_slice *slice)
{
    return pinned_beside(page, slice, true) + pinned_beside(page, slice, false);
}

static void insert_pinning(pin_survey *survey, const weir_pinning *pinning)
{
    size_t at = survey->capacity;
    while (at > 0 && survey->pinning[at - 1].pinned_bytes < pinning->pinned_bytes) {
        if (at < survey->capacity) {
            survey->pinning[at] = survey->pinning[at - 1];
        }
        at--;
    }
    if (at < survey->capacity) {
        survey->pinning[at] = *pinning;
    }
}

static void visit_pinning(void *context, wr_page *page, wr_slice *slice)
{
    pin_survey *survey = context;
    if (slice->state != WR_SLICE_STATE_HELD) {
        return;
    }
    weir_pinning pinning = {.pinned_bytes = pinned_by(page, slice),
                            .buffer_bytes = slice->held.requested_bytes};
    if (pinning.pinned_bytes == 0) {
        return;
    }
    uint64_t word = atomic_load(&slice->word);
    pinning.buffer = (weir_buffer){wr_slice_id_of(slice), wr_word_generation(word)};
    memcpy(pinning.tag, survey->bank->tag_names[slice->tag], sizeof pinning.tag);
    insert_pinning(survey, &pinning);
}

/* Visits all slices of all managers. */
static void visit_all(wr_bank *bank, wr_slice_visitor visit, void *context)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        wr_lock_take(&bank->lock);
        for (uint32_t i = 0; i < bank->class_count; i++) {
            wr_pool_visit(bank, &manager->pools[i], visit, context);
        }
        wr_lock_leave(&bank->lock);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
}

void wr_survey_pinning(wr_bank *bank, weir_pinning *pinning, size_t capacity)
{
    pin_survey survey = {.bank = bank, .pinning = pinning, .capacity = capacity};
    memset(pinning, 0, capacity * sizeof *pinning);
    visit_all(bank, visit_pinning, &survey);
}

/* ---- who is waited for ---- */

static void insert_waiting(weir_waiting waiting[8], const weir_waiting *fresh)
{
    size_t at = 8;
    while (at > 0 && waiting[at - 1].bytes < fresh->bytes) {
        if (at < 8) {
            waiting[at] = waiting[at - 1];
        }
        at--;
    }
    if (at < 8) {
        waiting[at] = *fresh;
    }
}

static void insert_streams(wr_bank *bank, const uint64_t *bytes, uint32_t slots,
                           weir_waiting waiting[8])
{
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count && i < slots; i++) {
        weir_waiting fresh = {.bytes = bytes[i]};
        snprintf(fresh.name, sizeof fresh.name, "stream %s",
                 bank->roster[i] == NULL ? "ended" : bank->roster[i]->name);
        if (fresh.bytes > 0) {
            insert_waiting(waiting, &fresh);
        }
    }
    wr_lock_leave(&bank->roster_lock);
}

static void insert_graphs(wr_bank *bank, const uint64_t *bytes, uint32_t graphs,
                          weir_waiting waiting[8])
{
    for (uint32_t i = 0; i < graphs; i++) {
        weir_waiting fresh = {.bytes = bytes[i]};
        wr_graph_title(bank, i, fresh.name, sizeof fresh.name);
        if (fresh.bytes > 0) {
            insert_waiting(waiting, &fresh);
        }
    }
}

static weir_result survey_waiting(wr_bank *bank, weir_waiting waiting[8])
{
    uint32_t slots = bank->roster_count, slot = 0;
    uint32_t graphs = wr_graph_numbers(bank);
    uint64_t *bytes = wr_host_alloc(((size_t)slots + graphs + 1u) * sizeof *bytes);
    if (bytes == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "memory report: no host memory");
    }
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        wr_waits_count(manager, bytes, slots);
        wr_graph_count(manager, bytes + slots, graphs);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    insert_streams(bank, bytes, slots, waiting);
    weir_waiting exported = {.name = "exported", .bytes = wr_shared_count_abroad(bank)};
    insert_waiting(waiting, &exported);
    insert_graphs(bank, bytes + slots, graphs, waiting);
    wr_host_free(bytes);
    return WEIR_OK;
}

/* ---- what is backed but untouched ---- */

typedef struct touch_survey {
    wr_bank *bank;
    uint64_t begin, end; /* the run of backed slices so far */
    uint64_t untouched;
} touch_survey;

static void flush_touch(touch_survey *survey)
{
    uint64_t bytes = 0;
    wr_bank *bank = survey->bank;
    if (survey->end > survey->begin &&
        bank->table->untouched(bank->driver, survey->begin, survey->end - survey->begin,
                               &bytes) == WEIR_OK) {
        survey->untouched += bytes;
    }
    survey->begin = survey->end = 0;
}

static void visit_touch(void *context, wr_page *page, wr_slice *slice)
{
    (void)page;
    touch_survey *survey = context;
    if (slice->state == WR_SLICE_STATE_BARE) {
        return;
    }
    if (slice->address != survey->end) {
        flush_touch(survey);
        survey->begin = slice->address;
    }
    survey->end = wr_slice_end(slice);
}

static uint64_t survey_untouched(wr_bank *bank)
{
    touch_survey survey = {.bank = bank};
    if (bank->table->untouched == NULL) {
        return 0;
    }
    visit_all(bank, visit_touch, &survey);
    wr_lock_take(&bank->lock);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_pool_visit(bank, &bank->classes[i].bank, visit_touch, &survey);
    }
    wr_lock_leave(&bank->lock);
    flush_touch(&survey);
    return survey.untouched;
}

/* ---- the report ---- */

static void fill_system(wr_bank *bank, weir_device_report *report)
{
    weir_memory_info info = {WEIR_UNKNOWN_BYTES, WEIR_UNKNOWN_BYTES, WEIR_UNKNOWN_BYTES};
    if (bank->table->memory_info == NULL ||
        bank->table->memory_info(bank->driver, &info) != WEIR_OK) {
        info = (weir_memory_info){WEIR_UNKNOWN_BYTES, WEIR_UNKNOWN_BYTES,
                                  WEIR_UNKNOWN_BYTES};
    }
    report->capacity_bytes = bank->properties.capacity_bytes;
    report->context_bytes = bank->properties.context_bytes;
    report->footprint_bytes = info.footprint_bytes;
    report->others_bytes = info.others_bytes;
    report->overhead_bytes = WEIR_UNKNOWN_BYTES;
    if (info.footprint_bytes != WEIR_UNKNOWN_BYTES) {
        uint64_t ours = report->usage.reserved_bytes - report->untouched_bytes +
                        report->usage.driver_deferred_bytes;
        int64_t overhead = (int64_t)(info.footprint_bytes - ours);
        report->overhead_bytes = overhead < 0 ? 0 : (uint64_t)overhead;
        report->unattributed_bytes = overhead - (int64_t)report->context_bytes;
    }
}

static void raise(uint64_t *largest, const wr_pool *pool)
{
    uint64_t hole = wr_index_largest(pool->index);
    *largest = hole > *largest ? hole : *largest;
}

static uint64_t largest_hole(wr_bank *bank)
{
    uint64_t largest = 0;
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        for (uint32_t i = 0; i < bank->class_count; i++) {
            raise(&largest, &manager->pools[i]);
        }
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    wr_lock_take(&bank->lock);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        raise(&largest, &bank->classes[i].bank);
    }
    wr_lock_leave(&bank->lock);
    return largest;
}

static void fill_pool(const wr_bank *bank, uint32_t number, const wr_totals *totals,
                      weir_pool_report *pool)
{
    const wr_class *class = &bank->classes[number];
    const wr_layout *layout = &class->layout;
    pool->kind = layout->kind;
    memcpy(pool->name, layout->name, sizeof pool->name);
    pool->min_slice_bytes = layout->min_bytes;
    if (number > 0 && layout->min_bytes == 0 && !layout->exact &&
        bank->classes[number - 1].layout.max_bytes != UINT64_MAX) {
        pool->min_slice_bytes =
            bank->classes[number - 1].layout.max_bytes + WR_UNIT_BYTES;
    }
    pool->max_slice_bytes = layout->max_bytes;
    pool->page_bytes = layout->page_bytes;
    pool->granule_bytes = layout->granular ? bank->granule_bytes : 0;
    pool->pages = WR_GET(class->pages);
    pool->pages_peak = WR_GET(class->pages_peak);
    pool->limit_bytes = WR_GET(class->cap_bytes);
    pool->spills = WR_GET(class->spills);
    pool->largest_alloc_bytes = totals->largest;
    pool->live_count = totals->live;
    pool->in_use_bytes = totals->in_use;
    pool->padding_bytes = totals->padding;
    pool->deferred_bytes = totals->deferred;
    pool->releasable_bytes = totals->releasable;
    pool->pinned_bytes = totals->pinned;
    pool->reserved_bytes = wr_totals_reserved(totals);
}

/* The pool for other processes, which every device has, shows up once it was used. */
static bool is_listed(const wr_class *class)
{
    return !class->layout.shared || WR_GET(class->pages_peak) > 0;
}

weir_result weir_device_memory_report(weir_device *device, weir_device_report *report)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || report == NULL ||
        (report->size != 0 && report->size != sizeof *report)) {
        return wr_error(
            WEIR_INVALID,
            "memory report: an argument is NULL, or the report of another size");
    }
    wr_bank *bank = &device->bank;
    weir_device_report fresh = {.size = report->size};
    WR_TRY(survey_waiting(bank, fresh.waiting));
    wr_snapshot s;
    wr_usage_read(device, &fresh.usage, &s);
    fresh.untouched_bytes = survey_untouched(bank);
    fill_system(bank, &fresh);
    fresh.largest_hole_bytes = largest_hole(bank);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        if (is_listed(&bank->classes[i])) {
            fill_pool(bank, i, &s.pools[i], &fresh.pools[fresh.pool_count++]);
        }
    }
    wr_tags_list(bank, fresh.holders, sizeof fresh.holders / sizeof *fresh.holders);
    wr_capture_find(bank, &fresh.capturing);
    wr_survey_pinning(bank, fresh.pinning, sizeof fresh.pinning / sizeof *fresh.pinning);
    *report = fresh;
    return WEIR_OK;
}
