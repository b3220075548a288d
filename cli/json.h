/* SPDX-License-Identifier: MIT */
/* JSON output, on cJSON. Without host memory the command says so and exits with 1, so
 * building an object needs no checks. */
#ifndef WEIR_CLI_JSON_H
#define WEIR_CLI_JSON_H

#include <cjson/cJSON.h>
#include <stdint.h>

/* Before the first other call. */
void wr_json_init(void);

/* A number without loss, or null if it is WEIR_UNKNOWN_BYTES. */
void wr_json_add_bytes(cJSON *object, const char *name, uint64_t bytes);

/* Prints on standard output, with a newline, and frees. */
void wr_json_print(cJSON *json);

#endif
