/* SPDX-License-Identifier: MIT */
/* A shortage in words and as JSON. Pure functions, any thread. */
#include "json.h"
#include "report.h"
#include "text.h"

#include "base/result.h"

#include <inttypes.h>

#define NAMED_TAGS 4u
#define NAMED_STREAMS 3u
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- text ---- */

static void put_bytes(wr_sink *sink, const char *before, uint64_t bytes)
{
    char size[WR_BYTES_TEXT];
    if (bytes < 1024 || bytes == WEIR_UNKNOWN_BYTES) {
        wr_sink_print(sink, "%s%s", before, weir_format_bytes(bytes, size));
    } else {
        wr_sink_print(sink, "%s%s (%" PRIu64 ")", before, weir_format_bytes(bytes, size),
                      bytes);
    }
}

static void put_request(wr_sink *sink, const weir_shortage *s)
{
    char name[sizeof s->stream];
    put_bytes(sink, s->result == WEIR_LIMIT ? "limit reached: " : "out of memory: ",
              s->request_bytes);
    wr_sink_print(sink, " requested on stream %s",
                  wr_text_printable(s->stream, name, sizeof name));
    if (s->tag[0] != 0) {
        wr_sink_print(sink, " for %s", wr_text_printable(s->tag, name, sizeof name));
    }
    if (s->alignment_bytes != 0) {
        wr_sink_print(sink, ", aligned to %" PRIu64, s->alignment_bytes);
    }
}

static void put_limit(wr_sink *sink, const weir_shortage *s)
{
    static const char *const owners[] = {"", "the device", "pool", "tag"};
    char name[sizeof s->limit_name];
    wr_sink_print(sink, "; the limit of %s%s%s is", owners[s->limit_kind],
                  s->limit_name[0] == 0 ? "" : " ",
                  wr_text_printable(s->limit_name, name, sizeof name));
    put_bytes(sink, " ", s->limit_bytes);
    put_bytes(sink, ", it has ", s->limited_bytes);
}

static void put_missing(wr_sink *sink, const weir_shortage *s)
{
    if (s->missing_bytes > 0) {
        put_bytes(sink, "; ", s->missing_bytes);
        wr_sink_print(sink, " would have to go for it to fit");
    }
    if (s->capturing[0] != 0) {
        char name[sizeof s->capturing];
        wr_sink_print(sink,
                      "; stream %s has been capturing for %" PRIu64
                      " ms, so nothing could be given back",
                      wr_text_printable(s->capturing, name, sizeof name),
                      s->capturing_ms);
    }
}

static void put_streams(wr_sink *sink, const weir_shortage *s)
{
    size_t named = 0;
    for (size_t i = 0; i < COUNT(s->streams) && named < NAMED_STREAMS; i++) {
        char name[sizeof s->stream], size[WR_BYTES_TEXT];
        if (s->streams[i].reserved_bytes > 0) {
            wr_sink_print(sink, "%s %s %s", named++ == 0 ? "; by stream:" : ",",
                          wr_text_printable(s->streams[i].name, name, sizeof name),
                          weir_format_bytes(s->streams[i].reserved_bytes, size));
        }
    }
}

static void put_holders(wr_sink *sink, const weir_shortage *s)
{
    for (size_t i = 0; i < NAMED_TAGS && s->tags[i].live_count > 0; i++) {
        const weir_tag_usage *tag = &s->tags[i];
        char name[sizeof tag->tag], size[WR_BYTES_TEXT];
        wr_sink_print(sink, "%s %s %s in %" PRIu64 " buffer%s",
                      i == 0 ? "; largest holders:" : ",",
                      wr_text_printable(wr_report_tag_name(tag->tag), name, sizeof name),
                      weir_format_bytes(tag->in_use_bytes, size), tag->live_count,
                      tag->live_count == 1 ? "" : "s");
    }
}

static void put_device(wr_sink *sink, const weir_shortage *s)
{
    put_bytes(sink, "; capacity ", s->capacity_bytes);
    put_bytes(sink, ", reserved ", s->reserved_bytes);
    put_bytes(sink, ", in_use ", s->in_use_bytes);
    put_bytes(sink, ", deferred ", s->deferred_bytes);
    put_bytes(sink, ", pinned ", s->pinned_bytes);
    put_bytes(sink, ", largest hole ", s->largest_hole_bytes);
}

static weir_result write_text(const weir_shortage *s, weir_write_fn write, void *context)
{
    wr_sink sink;
    wr_sink_init(&sink, write, context);
    put_request(&sink, s);
    if (s->limit_kind != WEIR_LIMIT_KIND_NONE) {
        put_limit(&sink, s);
    }
    put_missing(&sink, s);
    put_device(&sink, s);
    put_holders(&sink, s);
    put_streams(&sink, s);
    wr_sink_print(&sink, "; drop buffers, or ask for less");
    return wr_sink_finish(&sink);
}

/* ---- JSON ---- */

static void streams_json(wr_json *json, const weir_shortage *s)
{
    wr_json_open_array(json, "streams");
    for (size_t i = 0; i < COUNT(s->streams) && s->streams[i].name[0] != 0; i++) {
        const weir_stream_total *total = &s->streams[i];
        wr_json_open_object(json, NULL);
        wr_json_string(json, "name", total->name);
#define FIELD(name) wr_json_bytes(json, #name "_bytes", total->name##_bytes);
        WR_POOL_STATE_LIST(FIELD)
#undef FIELD
        wr_json_close(json);
    }
    wr_json_close(json);
}

static void limit_json(wr_json *json, const weir_shortage *s)
{
    static const char *const kinds[] = {"none", "device", "pool", "tag"};
    wr_json_string(json, "limit_kind", kinds[s->limit_kind]);
    wr_json_string(json, "limit_name", s->limit_name);
    wr_json_bytes(json, "limit_bytes", s->limit_bytes);
    wr_json_bytes(json, "limited_bytes", s->limited_bytes);
    wr_json_bytes(json, "missing_bytes", s->missing_bytes);
}

static weir_result write_json(const weir_shortage *s, weir_write_fn write, void *context)
{
    wr_json json;
    wr_json_begin(&json, write, context);
    wr_json_open_object(&json, NULL);
    wr_json_string(&json, "result", weir_result_name(s->result));
    wr_json_bytes(&json, "request_bytes", s->request_bytes);
    wr_json_bytes(&json, "alignment_bytes", s->alignment_bytes);
    wr_json_string(&json, "tag", s->tag);
    wr_json_string(&json, "stream", s->stream);
    wr_json_string(&json, "capturing", s->capturing);
    wr_json_u64(&json, "capturing_ms", s->capturing_ms);
    limit_json(&json, s);
    wr_json_bytes(&json, "capacity_bytes", s->capacity_bytes);
#define FIELD(name) wr_json_bytes(&json, #name "_bytes", s->name##_bytes);
    WR_POOL_STATE_LIST(FIELD)
#undef FIELD
    wr_json_bytes(&json, "largest_hole_bytes", s->largest_hole_bytes);
    streams_json(&json, s);
    wr_report_tags_json(&json, "tags", s->tags, COUNT(s->tags));
    wr_json_close(&json);
    return wr_json_finish(&json);
}

weir_result weir_shortage_write(const weir_shortage *shortage, weir_format format,
                                weir_write_fn write, void *context)
{
    if (shortage == NULL || write == NULL ||
        (shortage->size != 0 && shortage->size != sizeof *shortage) ||
        (unsigned)shortage->limit_kind > WEIR_LIMIT_KIND_TAG ||
        (format != WEIR_FORMAT_TEXT && format != WEIR_FORMAT_JSON)) {
        return wr_error(WEIR_INVALID,
                        "weir_shortage_write: an argument is NULL, the shortage is of "
                        "another size or kind, or the format is neither text nor JSON");
    }
    return format == WEIR_FORMAT_JSON ? write_json(shortage, write, context)
                                      : write_text(shortage, write, context);
}
