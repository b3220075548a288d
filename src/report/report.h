/* SPDX-License-Identifier: MIT */
/* A whole weir_device_report, written: tables for people, or one JSON object whose keys
 * are the struct's fields. Pure functions, any thread. */
#ifndef WR_REPORT_REPORT_H
#define WR_REPORT_REPORT_H

#include "json.h"

#include <weir/report.h>

weir_result wr_report_write_text(const weir_device_report *report, weir_write_fn write,
                                 void *context);
weir_result wr_report_write_json(const weir_device_report *report, weir_write_fn write,
                                 void *context);

/* An array of the tags with live buffers. */
void wr_report_tags_json(wr_json *json, const char *key, const weir_tag_usage *tags,
                         size_t capacity);

/* "arena", "sliced"...; static text. */
const char *wr_report_kind_name(weir_pool_kind kind);
/* The tag, or "untagged" for an empty one. */
const char *wr_report_tag_name(const char *tag);

/* Entries in use of each list. */
size_t wr_report_pool_count(const weir_device_report *report);
size_t wr_report_holder_count(const weir_device_report *report);
size_t wr_report_waiting_count(const weir_device_report *report);
size_t wr_report_pinning_count(const weir_device_report *report);

/* Where a pool's bytes are: the states of WEIR_USAGE_LIST that a pool has of its own. */
#define WR_POOL_STATE_LIST(X)                                                            \
    X(in_use)                                                                            \
    X(padding)                                                                           \
    X(deferred)                                                                          \
    X(releasable)                                                                        \
    X(pinned)                                                                            \
    X(reserved)

#endif
