/* SPDX-License-Identifier: MIT */
/* Blocks in this order: usage, pools, holders, whom deferred bytes wait for, what pins,
 * bytes given back by cause, events, footprint, sums. A list without entries has no
 * block. No state, no lock. */
#include "report.h"

#include "sums.h"
#include "table.h"
#include "text.h"
#include "usage.h"

#include <inttypes.h>

static void block(wr_sink *sink, const char *title)
{
    wr_sink_print(sink, "\n%s\n", title);
}

/* A size, or a word where the size is a special value. */
static void add_size(wr_table *table, uint64_t bytes, uint64_t special, const char *word)
{
    if (bytes == special) {
        wr_table_add(table, "%s", word);
    } else {
        wr_table_add_bytes(table, bytes);
    }
}

static void add_pool_shape(wr_table *table, const weir_pool_report *pool)
{
    wr_table_add(table, "%s", pool->name);
    wr_table_add(table, "%s", wr_report_kind_name(pool->kind));
    wr_table_add_bytes(table, pool->min_slice_bytes);
    add_size(table, pool->max_slice_bytes, UINT64_MAX, "any");
    add_size(table, pool->page_bytes, 0, "to demand");
    add_size(table, pool->granule_bytes, 0, "whole");
    add_size(table, pool->limit_bytes, 0, "none");
    wr_table_add(table, "%" PRIu64, pool->pages);
    wr_table_add(table, "%" PRIu64, pool->pages_peak);
    wr_table_add_bytes(table, pool->largest_alloc_bytes);
}

static void write_pool_shapes(wr_sink *sink, const weir_device_report *report)
{
    wr_table table;
    wr_table_init(&table, "llrrrrrrrr",
                  "name kind from to page granule limit pages pages_peak largest_alloc");
    for (size_t i = 0; i < wr_report_pool_count(report); i++) {
        add_pool_shape(&table, &report->pools[i]);
    }
    block(sink, "pools");
    wr_table_write(&table, sink);
}

static void add_pool_bytes(wr_table *table, const weir_pool_report *pool)
{
    wr_table_add(table, "%s", pool->name);
    wr_table_add(table, "%" PRIu64, pool->live_count);
#define CELL(name) wr_table_add_bytes(table, pool->name##_bytes);
    WR_POOL_STATE_LIST(CELL)
#undef CELL
}

static void write_pool_bytes(wr_sink *sink, const weir_device_report *report)
{
    wr_table table;
    weir_pool_report total = {.name = "total"};
#define HEAD(name) " " #name
    wr_table_init(&table, "lrrrrrrr", "name live" WR_POOL_STATE_LIST(HEAD));
#undef HEAD
    for (size_t i = 0; i < wr_report_pool_count(report); i++) {
        const weir_pool_report *pool = &report->pools[i];
        add_pool_bytes(&table, pool);
        total.live_count += pool->live_count;
#define SUM(name) total.name##_bytes += pool->name##_bytes;
        WR_POOL_STATE_LIST(SUM)
#undef SUM
    }
    add_pool_bytes(&table, &total);
    block(sink, "bytes by pool");
    wr_table_write(&table, sink);
}

static void write_holders(wr_sink *sink, const weir_device_report *report)
{
    wr_table table;
    wr_table_init(&table, "lrrr", "tag live in_use peak_in_use");
    for (size_t i = 0; i < wr_report_holder_count(report); i++) {
        const weir_tag_usage *holder = &report->holders[i];
        wr_table_add(&table, "%s", wr_report_tag_name(holder->tag));
        wr_table_add(&table, "%" PRIu64, holder->live_count);
        wr_table_add_bytes(&table, holder->in_use_bytes);
        wr_table_add_bytes(&table, holder->peak_in_use_bytes);
    }
    block(sink, "largest holders");
    wr_table_write(&table, sink);
}

static void write_waiting(wr_sink *sink, const weir_device_report *report)
{
    wr_table table;
    wr_table_init(&table, "lr", "for deferred");
    for (size_t i = 0; i < wr_report_waiting_count(report); i++) {
        wr_table_add(&table, "%s", report->waiting[i].name);
        wr_table_add_bytes(&table, report->waiting[i].bytes);
    }
    block(sink, "deferred bytes wait");
    wr_table_write(&table, sink);
}

static void write_pinning(wr_sink *sink, const weir_device_report *report)
{
    wr_table table;
    wr_table_init(&table, "lrr", "tag buffer pinned");
    for (size_t i = 0; i < wr_report_pinning_count(report); i++) {
        const weir_pinning *pinning = &report->pinning[i];
        wr_table_add(&table, "%s", wr_report_tag_name(pinning->tag));
        wr_table_add_bytes(&table, pinning->buffer_bytes);
        wr_table_add_bytes(&table, pinning->pinned_bytes);
    }
    block(sink, "live buffers that pin free bytes");
    wr_table_write(&table, sink);
}

static void write_capturing(wr_sink *sink, const weir_capturing *capturing)
{
    wr_table table;
    wr_table_init(&table, "lr", "stream for_ms");
    wr_table_add(&table, "%s", capturing->stream);
    wr_table_add(&table, "%" PRIu64, capturing->for_ms);
    block(sink, "capturing, so that nothing goes back");
    wr_table_write(&table, sink);
}

static void bytes_row(wr_sink *sink, const char *name, uint64_t bytes,
                      const char *meaning)
{
    char value[WR_BYTES_TEXT];
    wr_sink_row(sink, name, weir_format_bytes(bytes, value), meaning);
}

static void signed_row(wr_sink *sink, const char *name, int64_t bytes, bool is_known,
                       const char *meaning)
{
    char value[WR_BYTES_TEXT] = "n/a";
    if (is_known) {
        wr_format_signed_bytes(bytes, value);
    }
    wr_sink_row(sink, name, value, meaning);
}

static void write_footprint(wr_sink *sink, const weir_device_report *report)
{
    bool is_known = report->overhead_bytes != WEIR_UNKNOWN_BYTES;
    block(sink, "footprint");
    bytes_row(sink, "footprint", report->footprint_bytes,
              "this process on the device, as the system counts it");
    bytes_row(sink, "untouched", report->untouched_bytes,
              "committed, never written, not backed yet");
    signed_row(sink, "overhead", wr_sums_overhead(report), is_known,
               "never Weir's: context + unattributed");
    bytes_row(sink, "context", report->context_bytes, "what the process had at open");
    signed_row(sink, "unattributed", report->unattributed_bytes, is_known,
               "what is left of the footprint");
    bytes_row(sink, "others", report->others_bytes, "other processes");
    bytes_row(sink, "capacity", report->capacity_bytes, "device memory in all");
    bytes_row(sink, "largest_hole", report->largest_hole_bytes,
              "the largest free run that needs nothing from the driver");
}

static void write_spill(wr_sink *sink, const weir_pool_report *pool)
{
    char limit[WR_BYTES_TEXT], name[sizeof pool->name];
    wr_sink_print(sink, "  pool \"%s\" ",
                  wr_text_printable(pool->name, name, sizeof name));
    if (pool->limit_bytes == 0) {
        wr_sink_print(sink, "was full");
    } else {
        wr_sink_print(sink, "is full at %s", weir_format_bytes(pool->limit_bytes, limit));
    }
    wr_sink_print(sink, ": other pools served %" PRIu64 " requests for it\n",
                  pool->spills);
}

/* One line for each pool that had to send requests elsewhere, however many. */
static void write_spills(wr_sink *sink, const weir_device_report *report)
{
    bool any = false;
    for (size_t i = 0; i < wr_report_pool_count(report); i++) {
        const weir_pool_report *pool = &report->pools[i];
        if (pool->spills == 0) {
            continue;
        }
        if (!any) {
            block(sink, "warnings");
        }
        any = true;
        write_spill(sink, pool);
    }
}

static void write_lists(wr_sink *sink, const weir_device_report *report)
{
    if (wr_report_pool_count(report) > 0) {
        write_pool_shapes(sink, report);
        write_pool_bytes(sink, report);
        write_spills(sink, report);
    }
    if (wr_report_holder_count(report) > 0) {
        write_holders(sink, report);
    }
    if (wr_report_waiting_count(report) > 0) {
        write_waiting(sink, report);
    }
    if (wr_report_pinning_count(report) > 0) {
        write_pinning(sink, report);
    }
    if (report->capturing.stream[0] != '\0') {
        write_capturing(sink, &report->capturing);
    }
}

weir_result wr_report_write_text(const weir_device_report *report, weir_write_fn write,
                                 void *context)
{
    wr_sink sink;
    wr_sink_init(&sink, write, context);
    wr_sink_print(&sink, "usage\n");
    wr_usage_write_text(&sink, &report->usage);
    write_lists(&sink, report);
    block(&sink, "given back, by cause");
    wr_usage_write_causes(&sink, &report->usage);
    block(&sink, "events");
    wr_usage_write_events(&sink, &report->usage);
    write_footprint(&sink, report);
    block(&sink, "sums");
    wr_sums_write(&sink, report);
    return wr_sink_finish(&sink);
}
