/* SPDX-License-Identifier: MIT */
#include "json.h"

#include "cli.h"

#include <weir/driver.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) {
        exit(wr_cli_error(WR_EXIT_FAILED, NULL, "no host memory for %zu bytes of JSON",
                          bytes));
    }
    return memory;
}

void wr_json_init(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = free});
}

void wr_json_add_bytes(cJSON *object, const char *name, uint64_t bytes)
{
    if (bytes == WEIR_UNKNOWN_BYTES) {
        cJSON_AddNullToObject(object, name);
        return;
    }
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, bytes);
    cJSON_AddRawToObject(object, name, digits);
}

void wr_json_print(cJSON *json)
{
    char *text = cJSON_Print(json);
    puts(text);
    cJSON_free(text);
    cJSON_Delete(json);
}
