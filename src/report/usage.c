/* SPDX-License-Identifier: MIT */
/* No state, no lock. */
#include "usage.h"

#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void wr_usage_write_json(wr_json *json, const char *key, const weir_usage *usage)
{
    wr_json_open_object(json, key);
#define FIELD(name, text) wr_json_bytes(json, #name "_bytes", usage->name##_bytes);
    WEIR_USAGE_LIST(FIELD)
#undef FIELD
#define FIELD(name, text) wr_json_u64(json, #name, usage->name);
    WEIR_EVENT_LIST(FIELD)
#undef FIELD
    wr_json_u64(json, "live_count", usage->live_count);
    wr_json_close(json);
}

static void bytes_row(wr_sink *sink, const char *name, uint64_t bytes,
                      const char *meaning)
{
    char value[WR_BYTES_TEXT];
    wr_sink_row(sink, name, weir_format_bytes(bytes, value), meaning);
}

static void count_row(wr_sink *sink, const char *name, uint64_t count,
                      const char *meaning)
{
    char value[WR_BYTES_TEXT];
    snprintf(value, sizeof value, "%" PRIu64, count);
    wr_sink_row(sink, name, value, meaning);
}

void wr_usage_write_text(wr_sink *sink, const weir_usage *usage)
{
#define ROW(name, text) bytes_row(sink, #name, usage->name##_bytes, text);
    WEIR_USAGE_LIST(ROW)
#undef ROW
    count_row(sink, "live_count", usage->live_count, "live buffers");
}

/* The length of an event's name without "_bytes", 0 if it does not end so. */
static size_t cause_length(const char *event)
{
    static const char suffix[] = "_bytes";
    size_t length = strlen(event);
    size_t suffix_length = sizeof suffix - 1;
    bool is_cause =
        length > suffix_length && strcmp(event + length - suffix_length, suffix) == 0;
    return is_cause ? length - suffix_length : 0;
}

static void cause_row(wr_sink *sink, const char *event, uint64_t bytes,
                      const char *meaning)
{
    size_t length = cause_length(event);
    if (length > 0) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)length, event);
        bytes_row(sink, name, bytes, meaning);
    }
}

static void event_row(wr_sink *sink, const char *event, uint64_t count,
                      const char *meaning)
{
    if (cause_length(event) == 0) {
        count_row(sink, event, count, meaning);
    }
}

void wr_usage_write_causes(wr_sink *sink, const weir_usage *usage)
{
#define ROW(name, text) cause_row(sink, #name, usage->name, text);
    WEIR_EVENT_LIST(ROW)
#undef ROW
}

void wr_usage_write_events(wr_sink *sink, const weir_usage *usage)
{
#define ROW(name, text) event_row(sink, #name, usage->name, text);
    WEIR_EVENT_LIST(ROW)
#undef ROW
}
