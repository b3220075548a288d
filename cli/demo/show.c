/* SPDX-License-Identifier: MIT */
/* The demo's output: a table that grows as the steps are made, or one JSON object at the
 * end. */
#include "demo.h"

#include "json.h"
#include "output.h"

#include <stdio.h>

enum {
    COLUMNS = 5, /* the last one only where drivers let go late */
};

static wr_column columns[COLUMNS] = {
    {.title = "step", .width = 20},
    {.title = "in_use", .width = 9, .is_right = true},
    {.title = "reserved", .width = 9, .is_right = true},
    {.title = "footprint", .width = 9, .is_right = true},
    {.title = "driver_deferred", .width = 15, .is_right = true},
};

static size_t column_count(const wr_demo *demo)
{
    return demo->has_late ? COLUMNS : COLUMNS - 1;
}

void wr_demo_print_head(const wr_demo *demo)
{
    weir_driver_properties properties = {0};
    weir_device_properties(demo->device, &properties);
    printf("weir %s, device %s (%s), preset %s; all in MiB\n\n", weir_version(),
           weir_device_name(demo->device), properties.name,
           weir_device_preset(demo->device));
    wr_table_head(columns, column_count(demo));
}

static const char *format_mib(uint64_t bytes, char text[24])
{
    if (bytes == WEIR_UNKNOWN_BYTES) {
        return "n/a";
    }
    snprintf(text, 24, "%.1f", (double)bytes / (1 << 20));
    return text;
}

void wr_demo_print_row(const wr_demo *demo, const wr_demo_row *row)
{
    char in_use[24];
    char reserved[24];
    char footprint[24];
    char late[24];
    const char *cells[COLUMNS] = {row->label, format_mib(row->in_use_bytes, in_use),
                                  format_mib(row->reserved_bytes, reserved),
                                  format_mib(row->footprint_bytes, footprint),
                                  format_mib(row->driver_deferred_bytes, late)};
    wr_table_row(columns, column_count(demo), cells);
}

void wr_demo_print_end(const wr_demo *demo, const char *verdict, bool is_good)
{
    if (demo->is_waiting) {
        printf("\nThe first cleanup took %.1f ms, until the driver had let go.\n",
               demo->cleanup_ms);
    }
    printf("\n%sAfter the first \"dropped\":%s\n%s\n%s%s%s\n",
           wr_colour_begin(WR_COLOUR_BOLD), wr_colour_end(), demo->dropped.text,
           wr_colour_begin(is_good ? WR_COLOUR_GREEN : WR_COLOUR_RED), verdict,
           wr_colour_end());
}

static cJSON *row_to_json(const wr_demo_row *row)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "label", row->label);
#define ADD_TERM(name) wr_json_add_bytes(json, #name "_bytes", row->name##_bytes);
    WR_DEMO_TERM_LIST(ADD_TERM)
#undef ADD_TERM
    return json;
}

static cJSON *line_to_json(const weir_explain_line *line)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", line->name);
    wr_json_add_bytes(json, "bytes", line->bytes);
    cJSON_AddStringToObject(json, "reason", line->reason);
    cJSON_AddStringToObject(json, "way_out", line->way_out);
    return json;
}

void wr_demo_print_json(const wr_demo *demo, const char *verdict)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "device", weir_device_name(demo->device));
    cJSON_AddStringToObject(json, "preset", weir_device_preset(demo->device));
    cJSON *steps = cJSON_AddArrayToObject(json, "steps");
    for (size_t i = 0; i < demo->row_count; i++) {
        cJSON_AddItemToArray(steps, row_to_json(&demo->rows[i]));
    }
    cJSON *explain = cJSON_AddArrayToObject(json, "explain");
    for (size_t i = 0; i < WEIR_EXPLAIN_LINES; i++) {
        cJSON_AddItemToArray(explain, line_to_json(&demo->dropped.lines[i]));
    }
    if (demo->is_waiting) {
        cJSON_AddNumberToObject(json, "cleanup_ms", demo->cleanup_ms);
    }
    cJSON_AddStringToObject(json, "verdict", verdict);
    wr_json_print(json);
}
