/* SPDX-License-Identifier: MIT */
/* Names to small numbers: the first name added is 0, the next one 1... Owners keep an
 * array beside it. Nothing is ever removed. */
#ifndef WEIR_CLI_SCENARIO_NAMES_H
#define WEIR_CLI_SCENARIO_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wr_scn_names {
    char **names; /* by number */
    size_t count, capacity;
    uint32_t *slots;   /* open addressing; number + 1, 0 is empty */
    size_t slot_count; /* a power of two, more than half of them empty */
} wr_scn_names;

#define WR_SCN_NO_NAME SIZE_MAX

/* WR_SCN_NO_NAME if it was never added. */
size_t wr_scn_names_find(const wr_scn_names *names, const char *name);

/* The number of a name, added if it is new; WR_SCN_NO_NAME without memory. */
size_t wr_scn_names_add(wr_scn_names *names, const char *name);

void wr_scn_names_finish(wr_scn_names *names);

#endif
