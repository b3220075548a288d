/* SPDX-License-Identifier: MIT */
/* One function a place fills one line: bytes, reason, way out. A place with no bytes gets
 * a short reason and no way out. Reasons are built of whole facts: a list of holders that
 * does not fit ends in ", and <size> more". No state, no lock. */
#include "explain.h"

#include "json.h"
#include "report.h"
#include "sums.h"
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for ", and 16384.0 PiB more". */
#define REST_BYTES 24

/* A list in a reason. */
typedef struct list {
    wr_text reason;
    size_t item_count;
    uint64_t left_bytes; /* of the line, not named yet */
    bool is_full;
} list;

static void list_begin(list *items, weir_explain_line *line, const char *opening)
{
    wr_text_init(&items->reason, line->reason, sizeof line->reason);
    wr_text_add(&items->reason, 0, "%s", opening);
    items->item_count = 0;
    items->left_bytes = line->bytes;
    items->is_full = false;
}

__attribute__((format(printf, 3, 4))) static void list_add(list *items, uint64_t bytes,
                                                           const char *format, ...)
{
    char item[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(item, sizeof item, format, arguments);
    va_end(arguments);
    const char *separator = items->item_count == 0 ? ": " : ", ";
    if (items->is_full ||
        !wr_text_add(&items->reason, REST_BYTES, "%s%s", separator, item)) {
        items->is_full = true;
        return;
    }
    items->item_count++;
    items->left_bytes -= bytes < items->left_bytes ? bytes : items->left_bytes;
}

/* Says what the named items leave over. */
static void list_end(list *items)
{
    char size[WR_BYTES_TEXT];
    if (items->item_count > 0 && items->left_bytes > 0) {
        wr_text_add(&items->reason, 0, ", and %s more",
                    weir_format_bytes(items->left_bytes, size));
    }
}

static void say(weir_explain_line *line, const char *reason, const char *way_out)
{
    snprintf(line->reason, sizeof line->reason, "%s", reason);
    snprintf(line->way_out, sizeof line->way_out, "%s", way_out);
}

static char *printable_tag(const char *tag, char printable[32])
{
    return wr_text_printable(wr_report_tag_name(tag), printable, 32);
}

static void open_in_use(const weir_usage *usage, char opening[96])
{
    char size[WR_BYTES_TEXT];
    int length = snprintf(opening, 96, "%" PRIu64 " buffer%s", usage->live_count,
                          usage->live_count == 1 ? "" : "s");
    if (usage->padding_bytes > 0 && length > 0) {
        snprintf(opening + length, 96 - (size_t)length, " plus %s of padding",
                 weir_format_bytes(usage->padding_bytes, size));
    }
}

static void fill_in_use(const weir_device_report *report, weir_explain_line *line)
{
    line->bytes = report->usage.in_use_bytes;
    if (line->bytes == 0) {
        say(line, "no live buffers", "");
        return;
    }
    say(line, "", "drop the buffers");
    char opening[96];
    open_in_use(&report->usage, opening);
    list items;
    list_begin(&items, line, opening);
    for (size_t i = 0; i < wr_report_holder_count(report); i++) {
        const weir_tag_usage *holder = &report->holders[i];
        char tag[32];
        char size[WR_BYTES_TEXT];
        char count[32] = "";
        if (holder->live_count != report->usage.live_count) {
            snprintf(count, sizeof count, " in %" PRIu64, holder->live_count);
        }
        list_add(&items, holder->in_use_bytes, "%s %s%s", printable_tag(holder->tag, tag),
                 weir_format_bytes(holder->in_use_bytes, size), count);
    }
    list_end(&items);
}

/* What to do depends on who is waited for: streams pass, graphs have to be destroyed. */
static const char *deferred_way_out(const weir_device_report *report)
{
    if (report->capturing.stream[0] != '\0') {
        return "end or abort the capture, then wait for the fence: a sync, or a cleanup";
    }
    size_t waiting_count = wr_report_waiting_count(report);
    size_t graph_count = 0;
    bool exported = false;
    for (size_t i = 0; i < waiting_count; i++) {
        graph_count += strncmp(report->waiting[i].name, "graph ", 6) == 0;
        exported |= strcmp(report->waiting[i].name, "exported") == 0;
    }
    if (exported) {
        return waiting_count == 1
                   ? "other processes release what they imported, or end; then a cleanup"
                   : "sync, destroy the graphs; other processes release what they "
                     "imported, or end; then a cleanup";
    }
    if (graph_count == 0) {
        return "wait for the fence: a sync, or weir_device_memory_cleanup with wait";
    }
    return graph_count == waiting_count
               ? "destroy the graph, then sync the streams it ran on"
               : "sync, or weir_device_memory_cleanup with wait; destroy the graphs";
}

static void fill_deferred(const weir_device_report *report, weir_explain_line *line)
{
    line->bytes = report->usage.deferred_bytes;
    if (line->bytes == 0) {
        say(line, "no dropped bytes wait for device work", "");
        return;
    }
    say(line, "", deferred_way_out(report));
    list items;
    list_begin(&items, line, "dropped, but queued work may still use them");
    for (size_t i = 0; i < wr_report_waiting_count(report); i++) {
        char name[sizeof report->waiting[i].name];
        char size[WR_BYTES_TEXT];
        list_add(&items, report->waiting[i].bytes, "%s %s",
                 wr_text_printable(report->waiting[i].name, name, sizeof name),
                 weir_format_bytes(report->waiting[i].bytes, size));
    }
    list_end(&items);
}

static void fill_releasable(const weir_device_report *report, weir_explain_line *line)
{
    line->bytes = report->usage.releasable_bytes;
    if (line->bytes == 0) {
        say(line, "nothing is kept without a holder", "");
        return;
    }
    say(line, "", "weir_device_memory_cleanup; idle time and memory pressure do it too");
    if (report->capturing.stream[0] != '\0') {
        char stream[32];
        snprintf(line->way_out, sizeof line->way_out,
                 "end or abort the capture of stream %s, then weir_device_memory_cleanup",
                 wr_text_printable(report->capturing.stream, stream, sizeof stream));
    }
    list items;
    list_begin(&items, line, "held by nobody; kept for the next request");
    for (size_t i = 0; i < wr_report_pool_count(report); i++) {
        const weir_pool_report *pool = &report->pools[i];
        char name[sizeof pool->name];
        char size[WR_BYTES_TEXT];
        if (pool->releasable_bytes > 0) {
            list_add(&items, pool->releasable_bytes, "%s %s",
                     wr_text_printable(pool->name, name, sizeof name),
                     weir_format_bytes(pool->releasable_bytes, size));
        }
    }
    list_end(&items);
}

/* The unit that free bytes and a live neighbour share. */
static const char *shared_unit(const weir_device_report *report)
{
    bool has_granule = false;
    bool has_page = false;
    for (size_t i = 0; i < wr_report_pool_count(report); i++) {
        if (report->pools[i].pinned_bytes > 0) {
            has_granule |= report->pools[i].granule_bytes > 0;
            has_page |= report->pools[i].granule_bytes == 0;
        }
    }
    if (has_granule == has_page) {
        return "free, but a live buffer shares the page or granule";
    }
    return has_granule ? "free, but a live buffer shares the granule"
                       : "free, but a live buffer shares the page";
}

static void fill_pinned(const weir_device_report *report, weir_explain_line *line)
{
    line->bytes = report->usage.pinned_bytes;
    if (line->bytes == 0) {
        say(line, "no free bytes share a page or granule with a live buffer", "");
        return;
    }
    say(line, "", "drop the named buffers; until then the room serves new requests");
    list items;
    list_begin(&items, line, shared_unit(report));
    for (size_t i = 0; i < wr_report_pinning_count(report); i++) {
        const weir_pinning *pinning = &report->pinning[i];
        char tag[32];
        char buffer[WR_BYTES_TEXT];
        char pinned[WR_BYTES_TEXT];
        list_add(&items, pinning->pinned_bytes, "%s (%s) pins %s",
                 printable_tag(pinning->tag, tag),
                 weir_format_bytes(pinning->buffer_bytes, buffer),
                 weir_format_bytes(pinning->pinned_bytes, pinned));
    }
    list_end(&items);
}

static void fill_driver_deferred(const weir_device_report *report,
                                 weir_explain_line *line)
{
    line->bytes = report->usage.driver_deferred_bytes;
    if (line->bytes == 0) {
        say(line, "the driver has let go of all that was handed back", "");
    } else {
        say(line, "handed back; the driver has not let go yet",
            "weir_device_memory_cleanup with wait, or the next submitted work");
    }
}

static void fill_overhead(const weir_device_report *report, weir_explain_line *line)
{
    char context[WR_BYTES_TEXT];
    char rest[WR_BYTES_TEXT];
    line->bytes = report->overhead_bytes;
    if (report->overhead_bytes == WEIR_UNKNOWN_BYTES) {
        say(line, "not known: nobody tells the footprint of this process", "");
        return;
    }
    int64_t overhead = wr_sums_overhead(report);
    line->bytes = overhead > 0 ? (uint64_t)overhead : 0;
    if (overhead == 0 && report->unattributed_bytes == 0) {
        say(line, "nothing beside what Weir took", "");
        return;
    }
    snprintf(line->reason, sizeof line->reason,
             "never Weir's: context of %s + unattributed %s%s",
             weir_format_bytes(report->context_bytes, context),
             wr_format_signed_bytes(report->unattributed_bytes, rest),
             report->unattributed_bytes < 0 ? " (less is counted than Weir took)" : "");
    if (overhead > 0) {
        snprintf(line->way_out, sizeof line->way_out, "process exit%s",
                 report->unattributed_bytes > 0 ? ", or whoever took it without Weir"
                                                : "");
    }
}

static void fill_others(const weir_device_report *report, weir_explain_line *line)
{
    char size[WR_BYTES_TEXT];
    char capacity[WR_BYTES_TEXT];
    line->bytes = report->others_bytes;
    if (line->bytes == WEIR_UNKNOWN_BYTES) {
        say(line, "not known: nobody tells what other processes hold", "");
        return;
    }
    if (line->bytes == 0) {
        say(line, "no other process holds memory here", "");
        return;
    }
    snprintf(line->reason, sizeof line->reason, "other processes: %s of %s",
             weir_format_bytes(line->bytes, size),
             weir_format_bytes(report->capacity_bytes, capacity));
    snprintf(line->way_out, sizeof line->way_out, "they give it back or end");
}

static const struct place {
    const char *name;
    void (*fill)(const weir_device_report *report, weir_explain_line *line);
} places[WEIR_EXPLAIN_LINES] = {
    {"in_use", fill_in_use},
    {"deferred", fill_deferred},
    {"releasable", fill_releasable},
    {"pinned", fill_pinned},
    {"driver_deferred", fill_driver_deferred},
    {"overhead", fill_overhead},
    {"others", fill_others},
};

void wr_explain_from_report(const weir_device_report *report,
                            weir_explain_line lines[WEIR_EXPLAIN_LINES])
{
    for (size_t i = 0; i < WEIR_EXPLAIN_LINES; i++) {
        lines[i] = (weir_explain_line){.name = places[i].name};
        places[i].fill(report, &lines[i]);
    }
}

static void write_line(wr_sink *sink, const weir_explain_line *line)
{
    char size[WR_BYTES_TEXT];
    wr_sink_print(sink, "%-15s %10s  %s\n", line->name,
                  weir_format_bytes(line->bytes, size), line->reason);
    if (line->way_out[0] != '\0') {
        wr_sink_print(sink, "%28s-> %s\n", "", line->way_out);
    }
}

static void write_capturing(wr_sink *sink, const weir_capturing *capturing)
{
    char stream[sizeof capturing->stream];
    if (capturing->stream[0] != '\0') {
        wr_sink_print(sink,
                      "stream %s has been capturing for %" PRIu64
                      " ms: nothing goes back until that ends\n",
                      wr_text_printable(capturing->stream, stream, sizeof stream),
                      capturing->for_ms);
    }
}

weir_result wr_explain_write_text(const weir_device_report *report, weir_write_fn write,
                                  void *context)
{
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    wr_explain_from_report(report, lines);
    wr_sink sink;
    wr_sink_init(&sink, write, context);
    for (size_t i = 0; i < WEIR_EXPLAIN_LINES; i++) {
        write_line(&sink, &lines[i]);
    }
    write_capturing(&sink, &report->capturing);
    wr_sums_write(&sink, report);
    return wr_sink_finish(&sink);
}

weir_result wr_explain_write_json(const weir_device_report *report, weir_write_fn write,
                                  void *context)
{
    weir_explain_line lines[WEIR_EXPLAIN_LINES];
    wr_explain_from_report(report, lines);
    wr_json json;
    wr_json_begin(&json, write, context);
    wr_json_open_array(&json, NULL);
    for (size_t i = 0; i < WEIR_EXPLAIN_LINES; i++) {
        wr_json_open_object(&json, NULL);
        wr_json_string(&json, "name", lines[i].name);
        wr_json_bytes(&json, "bytes", lines[i].bytes);
        wr_json_string(&json, "reason", lines[i].reason);
        wr_json_string(&json, "way_out", lines[i].way_out);
        wr_json_close(&json);
    }
    wr_json_close(&json);
    return wr_json_finish(&json);
}
