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

/* Texts of up to 15 bytes that lie well are told by their bytes. */
static void remember_call(wr_call_memory *call, const char *text, uint64_t serial,
                          uint16_t tag)
{
    size_t compared = wr_tags_name_length(text) + 1;
    *call = (wr_call_memory){.serial = serial, .tag = tag};
    if (compared > sizeof call->word ||
        (uintptr_t)text % WR_TAG_PAGE > WR_TAG_PAGE - sizeof call->word) {
        call->far = text;
    } else {
        call->text = text;
        memcpy(call->word, text, compared);
        memset(call->mask, 0xFF, compared);
    }
}

static bool is_far_call(const wr_bank *bank, const wr_call_memory *call, const char *text)
{
    return call->far == text && call->serial == WR_GET(bank->tags_serial) &&
           strncmp(bank->tag_names[call->tag], text, WR_NAME_BYTES - 1) == 0;
}

uint64_t wr_tag_look_up(wr_bank *bank, const char *text)
{
    struct wr_thread_tags *tags = &wr_thread_tags;
    wr_call_memory *call = wr_tag_call(tags, text);
    if (text != NULL && is_far_call(bank, call, text)) {
        return call->tag;
    }
    const char *name = text == NULL ? scopes[tags->depth - 1].name : text;
    uint64_t serial = WR_GET(bank->tags_serial); /* before the limit is looked at */
    uint16_t tag = wr_tags_intern(bank, name);
    if (WR_GET(bank->tags[tag].limit_bytes) != 0) {
        return tag | WR_TAG_LIMITED;
    }
    if (text == NULL) {
        tags->scope = (wr_scope_memory){serial, tag};
    } else {
        remember_call(call, text, serial, tag);
    }
    return tag;
}

weir_result weir_device_tag(weir_device *device, const char *text, weir_tag *tag)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || text == NULL || text[0] == 0 || tag == NULL) {
        return wr_error(WEIR_INVALID,
                        "weir_device_tag: an argument is NULL, or the text is empty");
    }
    *tag = (weir_tag){device->bank.tags_base + wr_tags_intern(&device->bank, text)};
    return WEIR_OK;
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
