/* SPDX-License-Identifier: MIT */
/* An append-only JSON writer over a weir_write_fn: one value, only the nesting is kept.
 *
 *     wr_json json;
 *     wr_json_begin(&json, write, context);
 *     wr_json_open_object(&json, NULL);
 *     wr_json_u64(&json, "live_count", 4);
 *     wr_json_close(&json);
 *     return wr_json_finish(&json);
 *
 * A value in an object has a key; elsewhere the key is NULL. A value out of place, a
 * second value at the top, a close too many, and a finish with something open are
 * INVALID. The first failure sticks and is what finish() returns. Owned by one thread, no
 * lock. */
#ifndef WR_REPORT_JSON_H
#define WR_REPORT_JSON_H

#include "sink.h"

#define WR_JSON_MAX_DEPTH 31

typedef struct wr_json {
    wr_sink sink;
    uint32_t depth;   /* open objects and arrays */
    uint32_t objects; /* bit d: what is open at depth d is an object */
    uint32_t filled;  /* bit d: there is a value at depth d already */
} wr_json;

void wr_json_begin(wr_json *json, weir_write_fn write, void *context);
void wr_json_open_object(wr_json *json, const char *key);
void wr_json_open_array(wr_json *json, const char *key);
/* Closes what was opened last. */
void wr_json_close(wr_json *json);
/* Any bytes up to the zero byte: what is not UTF-8 becomes U+FFFD. */
void wr_json_string(wr_json *json, const char *key, const char *text);
void wr_json_u64(wr_json *json, const char *key, uint64_t number);
void wr_json_i64(wr_json *json, const char *key, int64_t number);
void wr_json_null(wr_json *json, const char *key);
/* A number, or null for WEIR_UNKNOWN_BYTES. */
void wr_json_bytes(wr_json *json, const char *key, uint64_t bytes);
weir_result wr_json_finish(wr_json *json);

#endif
