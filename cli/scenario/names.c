/* SPDX-License-Identifier: MIT */
/* A hash table with linear probing over FNV-1a. */
#include "names.h"

#include "array.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    }
    return hash ^ (hash >> 32);
}

/* The slot that holds the name, or the empty one where it belongs. */
static uint32_t *find_slot(const wr_scn_names *names, const char *name)
{
    size_t mask = names->slot_count - 1;
    size_t at = (size_t)hash_name(name) & mask;
    while (names->slots[at] && strcmp(names->names[names->slots[at] - 1], name) != 0) {
        at = (at + 1) & mask;
    }
    return &names->slots[at];
}

size_t wr_scn_names_find(const wr_scn_names *names, const char *name)
{
    if (names->slot_count == 0) {
        return WR_SCN_NO_NAME;
    }
    uint32_t slot = *find_slot(names, name);
    return slot ? slot - 1 : WR_SCN_NO_NAME;
}

/* Doubles the table when half of it is taken. */
static bool make_room(wr_scn_names *names)
{
    if (2 * (names->count + 1) <= names->slot_count) {
        return true;
    }
    size_t slot_count = names->slot_count ? names->slot_count * 2 : 64;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = slot_count;
    for (size_t i = 0; i < names->count; i++) {
        *find_slot(names, names->names[i]) = (uint32_t)i + 1;
    }
    return true;
}

size_t wr_scn_names_add(wr_scn_names *names, const char *name)
{
    size_t found = wr_scn_names_find(names, name);
    if (found != WR_SCN_NO_NAME) {
        return found;
    }
    size_t bytes = strlen(name) + 1;
    char *copy = malloc(bytes);
    if (!copy || !make_room(names) ||
        !wr_scn_array_grow((void **)&names->names, &names->capacity, names->count + 1,
                           sizeof *names->names)) {
        free(copy);
        return WR_SCN_NO_NAME;
    }
    memcpy(copy, name, bytes);
    *find_slot(names, copy) = (uint32_t)names->count + 1;
    names->names[names->count] = copy;
    return names->count++;
}

void wr_scn_names_finish(wr_scn_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->names[i]);
    }
    free(names->names);
    free(names->slots);
    *names = (wr_scn_names){0};
}
