/* SPDX-License-Identifier: MIT */
/* Counters as text and JSON, written from the lists in weir/memory.h: a counter added
 * there is written here of itself. Pure functions, any thread. */
#ifndef WR_REPORT_USAGE_H
#define WR_REPORT_USAGE_H

#include "json.h"

#include <weir/memory.h>

/* An object whose keys are the fields of weir_usage. */
void wr_usage_write_json(wr_json *json, const char *key, const weir_usage *usage);

/* Bytes now and live buffers, one a line. */
void wr_usage_write_text(wr_sink *sink, const weir_usage *usage);
/* Bytes given back, one cause a line: the events named ..._bytes. */
void wr_usage_write_causes(wr_sink *sink, const weir_usage *usage);
/* All other events, one a line. */
void wr_usage_write_events(wr_sink *sink, const weir_usage *usage);

#endif
