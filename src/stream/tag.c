/* SPDX-License-Identifier: MIT */
/* The calling thread's tags, and what devices know of tags. */
#include "tag.h"

#include "device.h"

#include "base/fork.h"
#include "base/result.h"

#include <string.h>

_Thread_local struct wr_thread_tags wr_thread_tags;

/* Scopes that have been left keep name and number, for the next one of the same name. */
static _Thread_local struct scope {
    char name[WR_NAME_BYTES];
    wr_scope_memory memory;
} scopes[WR_TAG_DEPTH_MAX];

weir_result weir_tag_push(const char *tag)
{
    struct wr_thread_tags *tags = &wr_thread_tags;
    WR_TRY(wr_fork_check());
    if (tag == NULL) {
        return wr_error(WEIR_INVALID, "weir_tag_push: the tag is NULL");
    }
    if (tags->depth == WR_TAG_DEPTH_MAX) {
        return wr_error(WEIR_LIMIT, "weir_tag_push: scopes nest to a depth of %u",
                        WR_TAG_DEPTH_MAX);
    }
    if (tags->depth > 0) {
        scopes[tags->depth - 1].memory = tags->scope;
    }
    struct scope *scope = &scopes[tags->depth++];
    char name[WR_NAME_BYTES];
    wr_tags_copy_name(name, tag);
    if (strcmp(scope->name, name) != 0) {
        *scope = (struct scope){.memory.serial = 0};
        memcpy(scope->name, name, sizeof name);
    }
    tags->scope = scope->memory;
    return WEIR_OK;
}

weir_result weir_tag_pop(void)
{
    struct wr_thread_tags *tags = &wr_thread_tags;
    WR_TRY(wr_fork_check());
    if (tags->depth == 0) {
        return wr_error(WEIR_INVALID, "weir_tag_pop: there is no scope to leave");
    }
    scopes[--tags->depth].memory = tags->scope;
    if (tags->depth > 0) {
        tags->scope = scopes[tags->depth - 1].memory;
    }
    return WEIR_OK;
}

const char *weir_tag_current(void)
{
    unsigned depth = wr_thread_tags.depth;
    return depth == 0 || wr_fork_is_child() ? "" : scopes[depth - 1].name;
}

/* Where the bytes of the text and its end lie in aligned words. */
static void remember_words(wr_call_memory *call, const char *text)
{
    size_t offset = (uintptr_t)text & 7;
    size_t length = wr_tags_name_length(text);
    size_t compared = length < WR_NAME_BYTES - 1 ? length + 1 : length;
    memset(call->word, 0, sizeof call->word);
    memset(call->mask, 0, sizeof call->mask);
    memcpy((char *)call->word + offset, text, compared);
    memset((char *)call->mask + offset, 0xFF, compared);
    call->words = (uint16_t)((offset + compared + 7) / 8);
}

uint64_t wr_tag_look_up(wr_bank *bank, const char *text)
{
    struct wr_thread_tags *tags = &wr_thread_tags;
    const char *name = text == NULL ? scopes[tags->depth - 1].name : text;
    uint64_t serial = WR_GET(bank->tags_serial); /* before the limit is looked at */
    uint16_t tag = wr_tags_intern(bank, name);
    if (WR_GET(bank->tags[tag].limit_bytes) != 0) {
        return tag | WR_TAG_LIMITED;
    }
    if (text == NULL) {
        tags->scope = (wr_scope_memory){serial, tag};
    } else {
        tags->call.text = text;
        tags->call.serial = serial;
        tags->call.tag = tag;
        remember_words(&tags->call, text);
    }
    return tag;
}

weir_result weir_device_tag_usage(weir_device *device, const char *tag,
                                  weir_tag_usage *usage)
{
    WR_TRY(wr_fork_check());
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
    WR_TRY(wr_fork_check());
    if (device == NULL || count == NULL || (tags == NULL && capacity > 0)) {
        return wr_error(WEIR_INVALID, "weir_device_tags: an argument is NULL");
    }
    *count = wr_tags_list(&device->bank, tags, capacity);
    return WEIR_OK;
}
