/* SPDX-License-Identifier: MIT */
/* Tags: short names of who asked for bytes, numbered per device; their counts and limits.
 */
#ifndef WR_MANAGER_TAGS_H
#define WR_MANAGER_TAGS_H

#include "manager.h"

#include "base/hot.h"

/* An empty table, but for "other". */
void wr_tags_open(wr_bank *bank);

/* Bytes of a text that are kept: at most 31. */
size_t wr_tags_name_length(const char *text);
/* Those, with zeros behind. */
void wr_tags_copy_name(char name[WR_NAME_BYTES], const char *text);

/* The number of a tag, made up if new. 0: NULL or empty, untagged. When the table is
 * full, WR_TAG_OTHER. Any thread, no lock held or the manager's. */
uint16_t wr_tags_intern(wr_bank *bank, const char *text);

/* The number of a tag that was seen before; false if it was not. */
bool wr_tags_find(wr_bank *bank, const char *text, uint16_t *tag);

/* One tag's numbers; `usage` is overwritten. Tag 0 is what no tag holds; its peak is the
 * device's, which it cannot have passed. */
void wr_tags_sum(wr_bank *bank, uint16_t tag, weir_tag_usage *usage);

/* All tags with live buffers, largest first: fills at most `capacity`, returns how many.
 */
size_t wr_tags_list(wr_bank *bank, weir_tag_usage *tags, size_t capacity);

/* ---- counting: with every tagged buffer ---- */

/* In bytes, as compilers would take the table's place in the bank for so many tags. */
static inline wr_tag_count *wr_tags_get(wr_bank *bank, uint64_t tag)
{
    return (wr_tag_count *)(void *)((char *)bank->tags + tag * sizeof *bank->tags);
}

/* A held slice got a tag. `extent_bytes` of it are not counted already. */
static inline void wr_tags_enter(wr_tag_count *tag, uint64_t extent_bytes, uint64_t bytes)
{
    atomic_fetch_add_explicit(&tag->live, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tag->extents, extent_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&tag->in_use, bytes, memory_order_relaxed);
}

/* It is held no longer; `change`: its bytes, negative. The peak is looked at here and by
 * readers, not when in_use rises: what in_use falls from is the most since it fell last.
 */
static inline void wr_tags_leave(wr_tag_count *tag, uint64_t extent_bytes,
                                 uint64_t change)
{
    uint64_t most = atomic_fetch_add_explicit(&tag->in_use, change, memory_order_relaxed);
    if (WR_UNLIKELY(wr_counter_is_below(&tag->peak, most))) {
        /* In line, as the hot path calls nothing, but with registers of its own. */
        wr_tag_count *risen = tag;
        __asm__("" : "+r"(risen), "+r"(most));
        wr_counter_raise(&risen->peak, most);
    }
    atomic_fetch_sub_explicit(&tag->live, 1, memory_order_relaxed);
    /* Last, since a limit may let others in from here on. */
    atomic_fetch_sub_explicit(&tag->extents, extent_bytes, memory_order_release);
}

/* ---- limits ---- */

/* Sets a tag's limit, 0 removes it. False: the table has no room for the tag. */
bool wr_tags_set_limit(wr_bank *bank, const char *text, uint64_t limit_bytes);

/* Counts `bytes` of a request, if the limit allows them. `*before`: what was counted. */
bool wr_tags_charge(wr_tag_count *tag, uint64_t bytes, uint64_t *before);

#endif
