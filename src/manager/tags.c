/* SPDX-License-Identifier: MIT */
/* The tag table of a device: names are entered under tags_lock and never change, so
 * readers need none. Counts are atomics, since streams share them. */
#include "tags.h"

#include <string.h>

static bool find_below(const wr_bank *bank, uint32_t count, const char *name,
                       uint16_t *tag)
{
    for (uint32_t i = WR_TAG_OTHER; i < count; i++) {
        if (strcmp(bank->tag_names[i], name) == 0) {
            *tag = (uint16_t)i;
            return true;
        }
    }
    return false;
}

static void copy_name(char name[WR_NAME_BYTES], const char *text)
{
    size_t length = 0;
    while (length < WR_NAME_BYTES - 1 && text[length] != 0) {
        name[length] = text[length];
        length++;
    }
    name[length] = 0;
}

bool wr_tags_find(wr_bank *bank, const char *text, uint16_t *tag)
{
    char name[WR_NAME_BYTES];
    copy_name(name, text);
    return find_below(bank, atomic_load_explicit(&bank->tag_count, memory_order_acquire),
                      name, tag);
}

uint16_t wr_tags_intern(wr_bank *bank, const char *text)
{
    uint16_t tag = WR_TAG_OTHER;
    char name[WR_NAME_BYTES];
    if (text == NULL || text[0] == 0) {
        return 0;
    }
    copy_name(name, text);
    uint32_t count = atomic_load_explicit(&bank->tag_count, memory_order_acquire);
    if (find_below(bank, count, name, &tag)) {
        return tag;
    }
    wr_lock_take(&bank->tags_lock);
    count = atomic_load_explicit(&bank->tag_count, memory_order_acquire);
    if (count == 0) {
        strcpy(bank->tag_names[WR_TAG_OTHER], "other");
        count = WR_TAG_OTHER + 1;
    }
    if (!find_below(bank, count, name, &tag) && count < WR_TAG_MAX) {
        memcpy(bank->tag_names[count], name, sizeof name);
        tag = (uint16_t)count++;
    }
    atomic_store_explicit(&bank->tag_count, count, memory_order_release);
    wr_lock_leave(&bank->tags_lock);
    return tag;
}

/* Untagged: what the managers have beyond all tags. */
static void sum_untagged(wr_bank *bank, weir_tag_usage *usage)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        usage->in_use_bytes += WR_GET(manager->in_use);
        usage->live_count += wr_manager_live(manager);
        wr_manager_publish(manager);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    for (uint32_t i = 1; i < WR_TAG_MAX; i++) {
        uint64_t in_use = WR_GET(bank->tags[i].in_use), live = WR_GET(bank->tags[i].live);
        usage->in_use_bytes -=
            in_use < usage->in_use_bytes ? in_use : usage->in_use_bytes;
        usage->live_count -= live < usage->live_count ? live : usage->live_count;
    }
    usage->peak_in_use_bytes = WR_GET(bank->peak_in_use);
}

void wr_tags_sum(wr_bank *bank, uint16_t tag, weir_tag_usage *usage)
{
    memset(usage, 0, sizeof *usage);
    memcpy(usage->tag, bank->tag_names[tag], sizeof usage->tag);
    if (tag == 0) {
        sum_untagged(bank, usage);
        return;
    }
    usage->in_use_bytes = WR_GET(bank->tags[tag].in_use);
    usage->peak_in_use_bytes = WR_GET(bank->tags[tag].peak);
    usage->live_count = WR_GET(bank->tags[tag].live);
}

static void insert_sorted(weir_tag_usage *tags, size_t capacity, size_t count,
                          const weir_tag_usage *usage)
{
    size_t at = count < capacity ? count : capacity;
    while (at > 0 && tags[at - 1].in_use_bytes < usage->in_use_bytes) {
        if (at < capacity) {
            tags[at] = tags[at - 1];
        }
        at--;
    }
    if (at < capacity) {
        tags[at] = *usage;
    }
}

size_t wr_tags_list(wr_bank *bank, weir_tag_usage *tags, size_t capacity)
{
    size_t count = 0;
    uint32_t known = atomic_load_explicit(&bank->tag_count, memory_order_acquire);
    for (uint32_t i = 0; i == 0 || i < known; i++) {
        weir_tag_usage usage;
        wr_tags_sum(bank, (uint16_t)i, &usage);
        if (usage.live_count > 0) {
            insert_sorted(tags, capacity, count++, &usage);
        }
    }
    return count;
}
