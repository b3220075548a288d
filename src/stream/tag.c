/* SPDX-License-Identifier: MIT */
/* The calling thread's tags, and what devices know of tags. */
#include "device.h"

#include "base/result.h"
#include "manager/tags.h"

#include <string.h>

#define DEPTH_MAX 16u

static _Thread_local struct {
    uint32_t depth;
    char names[DEPTH_MAX][WR_NAME_BYTES];
} scopes;

weir_result weir_tag_push(const char *tag)
{
    if (tag == NULL) {
        return wr_error(WEIR_INVALID, "weir_tag_push: the tag is NULL");
    }
    if (scopes.depth == DEPTH_MAX) {
        return wr_error(WEIR_LIMIT, "weir_tag_push: scopes nest to a depth of %u",
                        DEPTH_MAX);
    }
    char *name = scopes.names[scopes.depth++];
    memset(name, 0, WR_NAME_BYTES);
    for (size_t i = 0; i < WR_NAME_BYTES - 1 && tag[i] != 0; i++) {
        name[i] = tag[i];
    }
    return WEIR_OK;
}

weir_result weir_tag_pop(void)
{
    if (scopes.depth == 0) {
        return wr_error(WEIR_INVALID, "weir_tag_pop: there is no scope to leave");
    }
    scopes.depth--;
    return WEIR_OK;
}

uint16_t wr_tag_current(wr_bank *bank)
{
    return scopes.depth == 0 ? 0 : wr_tags_intern(bank, scopes.names[scopes.depth - 1]);
}

weir_result weir_device_tag_usage(weir_device *device, const char *tag,
                                  weir_tag_usage *usage)
{
    if (device == NULL || tag == NULL || usage == NULL) {
        return wr_error(WEIR_INVALID, "weir_device_tag_usage: an argument is NULL");
    }
    uint16_t number = 0;
    if (tag[0] == 0 || wr_tags_find(&device->bank, tag, &number)) {
        wr_tags_sum(&device->bank, number, usage);
        return WEIR_OK;
    }
    memset(usage, 0, sizeof *usage);
    memcpy(usage->tag, tag,
           strlen(tag) < sizeof usage->tag ? strlen(tag) : sizeof usage->tag - 1);
    return WEIR_OK;
}

weir_result weir_device_tags(weir_device *device, weir_tag_usage *tags, size_t capacity,
                             size_t *count)
{
    if (device == NULL || count == NULL || (tags == NULL && capacity > 0)) {
        return wr_error(WEIR_INVALID, "weir_device_tags: an argument is NULL");
    }
    *count = wr_tags_list(&device->bank, tags, capacity);
    return WEIR_OK;
}
