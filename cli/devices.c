/* SPDX-License-Identifier: MIT */
/* `weir devices`: opens every built-in driver once and says what it found, or why it did
 * not. */
#include "cli.h"

#include "json.h"
#include "options.h"
#include "output.h"

#include <weir/device.h>
#include <weir/report.h>

#include <stdio.h>
#include <string.h>

enum {
    MOST_DRIVERS = 16,
    COLUMNS = 4,
};

typedef struct found_device {
    const char *driver;
    bool is_available;
    weir_driver_properties properties; /* if available */
    char reason[256];                  /* if not */
} found_device;

static void look_at(const char *driver, found_device *found)
{
    weir_device_desc desc = {.no_idle = true, .no_thread = true};
    weir_device *device = NULL;
    *found = (found_device){.driver = driver};
    weir_result result = weir_device_open(driver, &desc, &device);
    if (result == WEIR_OK) {
        result = weir_device_properties(device, &found->properties);
    }
    found->is_available = result == WEIR_OK;
    if (result != WEIR_OK) {
        const char *why = weir_last_error();
        snprintf(found->reason, sizeof found->reason, "%s",
                 why[0] != '\0' ? why : weir_result_text(result));
    }
    weir_device_close(device);
}

static size_t look_at_all(found_device found[MOST_DRIVERS])
{
    size_t count = 0;
    const weir_driver_table *table;
    while (count < MOST_DRIVERS && (table = weir_driver_at(count)) != NULL) {
        look_at(table->name, &found[count]);
        count++;
    }
    return count;
}

static cJSON *device_to_json(const found_device *found)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "driver", found->driver);
    cJSON_AddBoolToObject(json, "available", found->is_available);
    if (!found->is_available) {
        cJSON_AddStringToObject(json, "reason", found->reason);
        return json;
    }
    const weir_driver_properties *properties = &found->properties;
    cJSON_AddStringToObject(json, "device", properties->name);
    wr_json_add_bytes(json, "capacity_bytes", properties->capacity_bytes);
    wr_json_add_bytes(json, "granule_bytes", properties->granule_bytes);
    wr_json_add_bytes(json, "alignment_bytes", properties->alignment_bytes);
    cJSON_AddBoolToObject(json, "host_visible", properties->host_visible);
    return json;
}

static void print_json(const found_device *found, size_t count)
{
    cJSON *json = cJSON_CreateObject();
    cJSON *devices = cJSON_AddArrayToObject(json, "devices");
    for (size_t i = 0; i < count; i++) {
        cJSON_AddItemToArray(devices, device_to_json(&found[i]));
    }
    wr_json_print(json);
}

/* The cells of a row; texts go to `capacity` and `granule`. */
static void device_to_cells(const found_device *found, char capacity[24],
                            char granule[24], const char *cells[COLUMNS])
{
    const weir_driver_properties *properties = &found->properties;
    cells[0] = found->driver;
    cells[1] = "-";
    cells[2] = "-";
    cells[3] = found->reason;
    if (found->is_available) {
        cells[1] = weir_format_bytes(properties->capacity_bytes, capacity);
        cells[2] = properties->granule_bytes == 0
                       ? "whole pages"
                       : weir_format_bytes(properties->granule_bytes, granule);
        cells[3] = properties->name;
    }
}

static void print_table(const found_device *found, size_t count)
{
    wr_column columns[COLUMNS] = {{.title = "driver"},
                                  {.title = "capacity", .is_right = true},
                                  {.title = "granule", .is_right = true},
                                  {.title = "device, or why it is not available"}};
    char capacity[24];
    char granule[24];
    const char *cells[COLUMNS];
    for (size_t i = 0; i < count; i++) {
        device_to_cells(&found[i], capacity, granule, cells);
        wr_table_fit(columns, COLUMNS, cells);
    }
    wr_table_head(columns, COLUMNS);
    for (size_t i = 0; i < count; i++) {
        device_to_cells(&found[i], capacity, granule, cells);
        wr_table_row(columns, COLUMNS, cells);
    }
}

int weir_cli_devices(int argc, char **argv)
{
    bool json = false;
    const wr_option options[] = {
        {"json", WR_OPTION_KIND_FLAG, &json, NULL, "print one JSON object"},
    };
    const wr_command command = {
        .name = "devices",
        .summary = "Lists the built-in drivers: the device that each opens, its capacity "
                   "and the\n"
                   "unit in which it commits memory; or why it is not available.",
        .options = options,
        .option_count = 1,
    };
    int code = wr_options_parse(&command, argc, argv, NULL);
    if (code != WR_OPTIONS_RUN) {
        return code;
    }
    found_device found[MOST_DRIVERS];
    size_t count = look_at_all(found);
    if (json) {
        print_json(found, count);
    } else {
        print_table(found, count);
    }
    return WR_EXIT_OK;
}
