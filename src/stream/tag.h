/* SPDX-License-Identifier: MIT */
/* The calling thread's tags. What a tag's number is, the thread remembers for its
 * innermost scope and, by their addresses, for the last texts that came with calls, so
 * that a tagged allocation looks nothing up. A memory holds for one state of one device's
 * tag table (its serial), and only for tags without a limit. */
#ifndef WR_STREAM_TAG_H
#define WR_STREAM_TAG_H

#include "manager/tags.h"

#include "base/hot.h"

#include <stddef.h>

#define WR_TAG_DEPTH_MAX 16u
#define WR_TAG_CALLS 16u  /* texts of calls that a thread remembers */
#define WR_TAG_PAGE 4096u /* memory comes and goes in multiples of this */

/* Set beside the number of a tag that has a limit. */
#define WR_TAG_LIMITED UINT64_C(0x10000)
/* In place of a number that the thread does not remember. */
#define WR_TAG_UNKNOWN UINT64_C(0x20000)

/* Read in place of a tag's bytes; see wr_tag_is_called. */
typedef uint64_t __attribute__((may_alias, aligned(1))) wr_tag_word;

typedef struct wr_scope_memory {
    uint64_t serial; /* 0: nothing is remembered */
    uint16_t tag;
} wr_scope_memory;

typedef struct wr_call_memory {
    _Alignas(64) const char *text; /* NULL: nothing is remembered */
    uint64_t serial;
    uint64_t word[2], mask[2]; /* the 16 bytes at `text`: the tag, its end; which count */
    const char *far; /* a text that is too long for that, or lies badly, in its place */
    uint16_t tag;
} wr_call_memory;

extern _Thread_local struct wr_thread_tags {
    uint32_t depth;
    wr_scope_memory scope; /* the innermost one's */
    wr_call_memory calls[WR_TAG_CALLS];
} wr_thread_tags;

/* Where the thread remembers a text: literals side by side have places of their own. */
static inline wr_call_memory *wr_tag_call(struct wr_thread_tags *tags, const char *text)
{
    _Static_assert(sizeof *tags->calls == 64, "number text / 8 lies at text * 8");
    uintptr_t offset = (uintptr_t)text * 8 % sizeof tags->calls;
    return (void *)((char *)tags->calls + offset / 64 * 64);
}

/* Looks the tag of a call up (NULL: the scope's), and remembers it. */
WR_COLD uint64_t wr_tag_look_up(wr_bank *bank, const char *text);

/* Whether `text`, which lies where the remembered one did, still says the same. What
 * lies behind it is read too, but masked out; all 16 bytes are on one page, so that they
 * are there if the first one is. Sanitizers count bytes and would not agree. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static inline bool
wr_tag_is_called(const wr_call_memory *call, const char *text)
{
    const wr_tag_word *at = (const wr_tag_word *)(const void *)text;
    return (((at[0] ^ call->word[0]) & call->mask[0]) |
            ((at[1] ^ call->word[1]) & call->mask[1])) == 0;
}

static inline bool wr_tag_has_scope(void)
{
    return wr_thread_tags.depth != 0;
}

/* The number of the tag that an allocation on this device gets, or WR_TAG_UNKNOWN. */
static inline uint64_t wr_tag_known(const wr_bank *bank, const char *text)
{
    struct wr_thread_tags *tags = &wr_thread_tags;
    if (text == NULL) {
        if (WR_LIKELY(tags->depth == 0)) {
            return 0;
        }
        if (WR_LIKELY(tags->scope.serial == WR_OWN(bank->tags_serial))) {
            return tags->scope.tag;
        }
    } else {
        const wr_call_memory *call = wr_tag_call(tags, text);
        if (call->text == text && call->serial == WR_OWN(bank->tags_serial) &&
            wr_tag_is_called(call, text)) {
            return call->tag;
        }
    }
    return WR_TAG_UNKNOWN;
}

/* The number, maybe with WR_TAG_LIMITED. */
static inline uint64_t wr_tag_of(wr_bank *bank, const char *text)
{
    uint64_t tag = wr_tag_known(bank, text);
    return tag == WR_TAG_UNKNOWN ? wr_tag_look_up(bank, text) : tag;
}

#endif
