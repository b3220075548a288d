/* SPDX-License-Identifier: MIT */
/* Keys are the fields of weir_device_report and its parts; docs/report-format.md lists
 * them. No state, no lock. */
#include "report.h"

#include "json.h"
#include "sums.h"
#include "usage.h"

static void pool_json(wr_json *json, const weir_pool_report *pool)
{
    wr_json_open_object(json, NULL);
    wr_json_string(json, "kind", wr_report_kind_name(pool->kind));
    wr_json_string(json, "name", pool->name);
    wr_json_bytes(json, "min_slice_bytes", pool->min_slice_bytes);
    wr_json_bytes(json, "max_slice_bytes", pool->max_slice_bytes);
    wr_json_bytes(json, "page_bytes", pool->page_bytes);
    wr_json_bytes(json, "granule_bytes", pool->granule_bytes);
    wr_json_u64(json, "pages", pool->pages);
    wr_json_u64(json, "pages_peak", pool->pages_peak);
    wr_json_bytes(json, "limit_bytes", pool->limit_bytes);
    wr_json_u64(json, "spills", pool->spills);
    wr_json_bytes(json, "largest_alloc_bytes", pool->largest_alloc_bytes);
    wr_json_u64(json, "live_count", pool->live_count);
#define FIELD(name) wr_json_bytes(json, #name "_bytes", pool->name##_bytes);
    WR_POOL_STATE_LIST(FIELD)
#undef FIELD
    wr_json_close(json);
}

void wr_report_tags_json(wr_json *json, const char *key, const weir_tag_usage *tags,
                         size_t capacity)
{
    wr_json_open_array(json, key);
    for (size_t i = 0; i < capacity && tags[i].live_count > 0; i++) {
        const weir_tag_usage *holder = &tags[i];
        wr_json_open_object(json, NULL);
        wr_json_string(json, "tag", holder->tag);
        wr_json_bytes(json, "in_use_bytes", holder->in_use_bytes);
        wr_json_bytes(json, "peak_in_use_bytes", holder->peak_in_use_bytes);
        wr_json_u64(json, "live_count", holder->live_count);
        wr_json_bytes(json, "padding_bytes", holder->padding_bytes);
        wr_json_bytes(json, "limit_bytes", holder->limit_bytes);
        wr_json_close(json);
    }
    wr_json_close(json);
}

static void waiting_json(wr_json *json, const weir_device_report *report)
{
    wr_json_open_array(json, "waiting");
    for (size_t i = 0; i < wr_report_waiting_count(report); i++) {
        wr_json_open_object(json, NULL);
        wr_json_string(json, "name", report->waiting[i].name);
        wr_json_bytes(json, "bytes", report->waiting[i].bytes);
        wr_json_close(json);
    }
    wr_json_close(json);
}

static void pinning_json(wr_json *json, const weir_device_report *report)
{
    wr_json_open_array(json, "pinning");
    for (size_t i = 0; i < wr_report_pinning_count(report); i++) {
        const weir_pinning *pinning = &report->pinning[i];
        wr_json_open_object(json, NULL);
        wr_json_open_object(json, "buffer");
        wr_json_u64(json, "index", pinning->buffer.index);
        wr_json_u64(json, "generation", pinning->buffer.generation);
        wr_json_close(json);
        wr_json_string(json, "tag", pinning->tag);
        wr_json_bytes(json, "buffer_bytes", pinning->buffer_bytes);
        wr_json_bytes(json, "pinned_bytes", pinning->pinned_bytes);
        wr_json_close(json);
    }
    wr_json_close(json);
}

static void capturing_json(wr_json *json, const weir_capturing *capturing)
{
    if (capturing->stream[0] == '\0') {
        wr_json_null(json, "capturing");
        return;
    }
    wr_json_open_object(json, "capturing");
    wr_json_string(json, "stream", capturing->stream);
    wr_json_u64(json, "for_ms", capturing->for_ms);
    wr_json_close(json);
}

/* What overhead and its parts are is known or not known together. */
static void overhead_json(wr_json *json, const char *key, int64_t bytes, bool is_known)
{
    if (is_known) {
        wr_json_i64(json, key, bytes);
    } else {
        wr_json_null(json, key);
    }
}

static void footprint_json(wr_json *json, const weir_device_report *report)
{
    bool is_known = report->overhead_bytes != WEIR_UNKNOWN_BYTES;
    wr_json_bytes(json, "footprint_bytes", report->footprint_bytes);
    wr_json_bytes(json, "untouched_bytes", report->untouched_bytes);
    overhead_json(json, "overhead_bytes", wr_sums_overhead(report), is_known);
    wr_json_bytes(json, "context_bytes", report->context_bytes);
    overhead_json(json, "unattributed_bytes", report->unattributed_bytes, is_known);
    wr_json_bytes(json, "others_bytes", report->others_bytes);
    wr_json_bytes(json, "capacity_bytes", report->capacity_bytes);
    wr_json_bytes(json, "largest_hole_bytes", report->largest_hole_bytes);
}

weir_result wr_report_write_json(const weir_device_report *report, weir_write_fn write,
                                 void *context)
{
    wr_json json;
    wr_json_begin(&json, write, context);
    wr_json_open_object(&json, NULL);
    wr_usage_write_json(&json, "usage", &report->usage);
    footprint_json(&json, report);
    wr_json_open_array(&json, "pools");
    for (size_t i = 0; i < wr_report_pool_count(report); i++) {
        pool_json(&json, &report->pools[i]);
    }
    wr_json_close(&json);
    wr_report_tags_json(&json, "holders", report->holders,
                        sizeof report->holders / sizeof *report->holders);
    waiting_json(&json, report);
    pinning_json(&json, report);
    capturing_json(&json, &report->capturing);
    wr_json_close(&json);
    return wr_json_finish(&json);
}
