/* SPDX-License-Identifier: MIT */
/* Any bytes as a scenario: parsed, or refused with "LINE: reason". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly this size, so that a byte read too far is noticed. */
    char *text = malloc(size > 0 ? size : 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    char error[128] = "";
    int code = weir_scenario_parse_text(text, size, error, sizeof error);
    free(text);
    unsigned long line = 0;
    int is_placed = sscanf(error, "%lu:", &line) == 1 && line > 0;
    if ((code != 0 && code != 2) || (code == 2 && !is_placed) ||
        memchr(error, '\0', sizeof error) == NULL) {
        fprintf(stderr, "code %d, error \"%.*s\"\n", code, (int)sizeof error, error);
        abort();
    }
    return 0;
}
