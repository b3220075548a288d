/* SPDX-License-Identifier: MIT */
/* RFC 8259, without blanks between tokens. The state is one bit a level for its kind and
 * one for whether a comma is due. */
#include "json.h"

#include "base/result.h"
#include "text.h"

#include <weir/driver.h>

#include <inttypes.h>
#include <string.h>

void wr_json_begin(wr_json *json, weir_write_fn write, void *context)
{
    wr_sink_init(&json->sink, write, context);
    json->depth = 0;
    json->objects = 0;
    json->filled = 0;
}

static void fail(wr_json *json, const char *reason)
{
    if (json->sink.result == WEIR_OK) {
        json->sink.result =
            wr_error(WEIR_INVALID, "json: %s, at depth %" PRIu32, reason, json->depth);
    }
}

static void put(wr_json *json, const char *text)
{
    wr_sink_put(&json->sink, text, strlen(text));
}

/* One character or one bad byte, escaped where JSON or a terminal needs it. */
static void put_character(wr_json *json, const char *text, size_t length)
{
    static const char short_from[] = "\"\\\b\f\n\r\t";
    static const char short_to[] = "\"\\bfnrt";
    const char *found = strchr(short_from, *text);
    if (found != NULL) {
        wr_sink_print(&json->sink, "\\%c", short_to[found - short_from]);
    } else if ((unsigned char)*text < 0x20 || *text == 0x7F) {
        wr_sink_print(&json->sink, "\\u%04x", (unsigned)(unsigned char)*text);
    } else if (length == 0) {
        put(json, "\\ufffd");
    } else {
        wr_sink_put(&json->sink, text, length);
    }
}

static void put_string(wr_json *json, const char *text)
{
    put(json, "\"");
    while (*text != '\0') {
        size_t length = wr_utf8_length(text);
        put_character(json, text, length);
        text += length == 0 ? 1 : length;
    }
    put(json, "\"");
}

/* Writes what goes before a value; false when there is no place for one. */
static bool begin_value(wr_json *json, const char *key)
{
    uint32_t level = UINT32_C(1) << json->depth;
    bool is_in_object = (json->objects & level) != 0;
    bool has_value = (json->filled & level) != 0;
    if (is_in_object != (key != NULL)) {
        fail(json, is_in_object ? "a value in an object needs a key"
                                : "a value outside an object has no key");
    } else if (json->depth == 0 && has_value) {
        fail(json, "there is one value at the top already");
    }
    if (json->sink.result != WEIR_OK) {
        return false;
    }
    json->filled |= level;
    if (has_value) {
        put(json, ",");
    }
    if (key != NULL) {
        put_string(json, key);
        put(json, ":");
    }
    return true;
}

static void open_level(wr_json *json, const char *key, bool is_object)
{
    if (json->depth == WR_JSON_MAX_DEPTH) {
        fail(json, "nested too deep");
    }
    if (!begin_value(json, key)) {
        return;
    }
    put(json, is_object ? "{" : "[");
    json->depth++;
    uint32_t level = UINT32_C(1) << json->depth;
    json->filled &= ~level;
    json->objects = is_object ? json->objects | level : json->objects & ~level;
}

void wr_json_open_object(wr_json *json, const char *key)
{
    open_level(json, key, true);
}

void wr_json_open_array(wr_json *json, const char *key)
{
    open_level(json, key, false);
}

void wr_json_close(wr_json *json)
{
    if (json->depth == 0) {
        fail(json, "nothing is open that could be closed");
    }
    if (json->sink.result == WEIR_OK) {
        put(json, (json->objects >> json->depth & 1) != 0 ? "}" : "]");
        json->depth--;
    }
}

void wr_json_string(wr_json *json, const char *key, const char *text)
{
    if (begin_value(json, key)) {
        put_string(json, text);
    }
}

void wr_json_u64(wr_json *json, const char *key, uint64_t number)
{
    if (begin_value(json, key)) {
        wr_sink_print(&json->sink, "%" PRIu64, number);
    }
}

void wr_json_i64(wr_json *json, const char *key, int64_t number)
{
    if (begin_value(json, key)) {
        wr_sink_print(&json->sink, "%" PRId64, number);
    }
}

void wr_json_null(wr_json *json, const char *key)
{
    if (begin_value(json, key)) {
        put(json, "null");
    }
}

void wr_json_bytes(wr_json *json, const char *key, uint64_t bytes)
{
    if (bytes == WEIR_UNKNOWN_BYTES) {
        wr_json_null(json, key);
    } else {
        wr_json_u64(json, key, bytes);
    }
}

weir_result wr_json_finish(wr_json *json)
{
    if (json->depth != 0) {
        fail(json, "finished with something still open");
    } else if (json->filled == 0) {
        fail(json, "finished without a value");
    }
    return wr_sink_finish(&json->sink);
}
