/* SPDX-License-Identifier: MIT */
/* The tag table of a device: names are entered under tags_lock and never change, so
 * readers need none. They are found by hash, with open addressing; a slot is filled last.
 */
#include "tags.h"

#include <string.h>

static uint64_t next_serial(void)
{
    static wr_counter last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static uint32_t hash(const char name[WR_NAME_BYTES])
{
    uint64_t words[WR_NAME_BYTES / 8], sum = 0;
    memcpy(words, name, sizeof words);
    for (size_t i = 0; i < WR_NAME_BYTES / 8; i++) {
        sum = (sum ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        sum ^= sum >> 32;
    }
    return (uint32_t)sum;
}

/* The slot that holds the name, or the free one where it would go. */
static _Atomic uint16_t *find_slot(wr_bank *bank, const char name[WR_NAME_BYTES])
{
    for (uint32_t i = hash(name);; i++) {
        _Atomic uint16_t *slot = &bank->tag_slots[i % WR_TAG_SLOTS];
        uint16_t tag = atomic_load_explicit(slot, memory_order_acquire);
        if (tag == 0 || memcmp(bank->tag_names[tag], name, WR_NAME_BYTES) == 0) {
            return slot;
        }
    }
}

static uint16_t find(wr_bank *bank, const char name[WR_NAME_BYTES])
{
    return atomic_load_explicit(find_slot(bank, name), memory_order_acquire);
}

/* As below. */
static void count_plain(wr_bank *bank)
{
    WR_PUT(bank->plain_count, bank->limited_count == 0 ? bank->tag_count : 0);
}

/* Under tags_lock, or before anyone else knows the bank. */
static uint16_t enter(wr_bank *bank, const char name[WR_NAME_BYTES], uint32_t number)
{
    memcpy(bank->tag_names[number], name, WR_NAME_BYTES);
    atomic_store_explicit(find_slot(bank, name), (uint16_t)number, memory_order_release);
    atomic_store_explicit(&bank->tag_count, number + 1, memory_order_release);
    count_plain(bank);
    return (uint16_t)number;
}

void wr_tags_open(wr_bank *bank)
{
    bank->tags_base = next_serial() << 16;
    WR_PUT(bank->tags_serial, next_serial());
    enter(bank, (const char[WR_NAME_BYTES]){"other"}, WR_TAG_OTHER);
}

size_t wr_tags_name_length(const char *text)
{
    const char *end = memchr(text, 0, WR_NAME_BYTES - 1);
    return end == NULL ? WR_NAME_BYTES - 1 : (size_t)(end - text);
}

void wr_tags_copy_name(char name[WR_NAME_BYTES], const char *text)
{
    memset(name, 0, WR_NAME_BYTES);
    memcpy(name, text, wr_tags_name_length(text));
}

bool wr_tags_find(wr_bank *bank, const char *text, uint16_t *tag)
{
    char name[WR_NAME_BYTES];
    wr_tags_copy_name(name, text);
    *tag = find(bank, name);
    return *tag != 0;
}

uint16_t wr_tags_intern(wr_bank *bank, const char *text)
{
    char name[WR_NAME_BYTES];
    if (text == NULL || text[0] == 0) {
        return 0;
    }
    wr_tags_copy_name(name, text);
    uint32_t count = atomic_load_explicit(&bank->tag_count, memory_order_acquire);
    uint16_t tag = find(bank, name);
    if (tag != 0 || count == WR_TAG_MAX) {
        return tag != 0 ? tag : WR_TAG_OTHER;
    }
    wr_lock_take(&bank->tags_lock);
    count = atomic_load_explicit(&bank->tag_count, memory_order_relaxed);
    tag = find(bank, name);
    if (tag == 0) {
        tag = count < WR_TAG_MAX ? enter(bank, name, count) : WR_TAG_OTHER;
    }
    wr_lock_leave(&bank->tags_lock);
    return tag;
}

/* ---- limits ---- */

bool wr_tags_set_limit(wr_bank *bank, const char *text, uint64_t limit_bytes)
{
    uint16_t tag = wr_tags_intern(bank, text);
    char name[WR_NAME_BYTES];
    wr_tags_copy_name(name, text);
    if (memcmp(bank->tag_names[tag], name, WR_NAME_BYTES) != 0) {
        return false;
    }
    wr_lock_take(&bank->tags_lock);
    bank->limited_count -= WR_OWN(bank->tags[tag].limit_bytes) != 0;
    bank->limited_count += limit_bytes != 0;
    count_plain(bank);
    WR_PUT(bank->tags[tag].limit_bytes, limit_bytes);
    WR_PUT(bank->tags_serial, next_serial());
    wr_lock_leave(&bank->tags_lock);
    return true;
}

bool wr_tags_charge(wr_tag_count *tag, uint64_t bytes, uint64_t *before)
{
    uint64_t limit = WR_GET(tag->limit_bytes);
    *before = WR_GET(tag->extents);
    do {
        if (limit != 0 && (*before > limit || bytes > limit - *before)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&tag->extents, before,
                                                    *before + bytes, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

/* ---- reading ---- */

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
    const wr_tag_count *count = &bank->tags[tag];
    usage->in_use_bytes = WR_GET(count->in_use);
    usage->peak_in_use_bytes = WR_GET(count->peak);
    if (usage->peak_in_use_bytes < usage->in_use_bytes) {
        usage->peak_in_use_bytes = usage->in_use_bytes;
    }
    usage->live_count = WR_GET(count->live);
    uint64_t extents = WR_GET(count->extents);
    usage->padding_bytes =
        extents > usage->in_use_bytes ? extents - usage->in_use_bytes : 0;
    usage->limit_bytes = WR_GET(count->limit_bytes);
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
