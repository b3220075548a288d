/* SPDX-License-Identifier: MIT */
/* The calling thread's tags. What a tag's number is, the thread remembers for its
 * innermost scope and for the last text that came with a call, so that a tagged
 * allocation looks nothing up. A memory holds for one state of one device's tag table
 * (its serial), and only for tags without a limit. */
#ifndef WR_STREAM_TAG_H
#define WR_STREAM_TAG_H

#include "manager/tags.h"

#include "base/hot.h"

#include <stddef.h>

#define WR_TAG_DEPTH_MAX 16u
#define WR_TAG_WORDS 5u /* a tag and its end lie in so many aligned words at most */

/* Set beside the number of a tag that has a limit. */
#define WR_TAG_LIMITED UINT64_C(0x10000)

/* Read in place of a tag's bytes; see wr_tag_is_called. */
typedef uint64_t __attribute__((may_alias)) wr_tag_word;

typedef struct wr_scope_memory {
    uint64_t serial; /* 0: nothing is remembered */
    uint16_t tag;
} wr_scope_memory;

typedef struct wr_call_memory {
    const char *text;
    uint64_t serial;
    uint16_t tag;
    uint16_t words;
    uint64_t word[WR_TAG_WORDS], mask[WR_TAG_WORDS]; /* of the words that hold the text */
} wr_call_memory;

extern _Thread_local struct wr_thread_tags {
    uint32_t depth;
    wr_scope_memory scope; /* the innermost one's */
    wr_call_memory call;
} wr_thread_tags;

/* Looks the tag of a call up (NULL: the scope's), and remembers it. */
WR_COLD uint64_t wr_tag_look_up(wr_bank *bank, const char *text);

/* Whether `text`, which lies where the remembered one did, still says the same. Aligned
 * words are compared, bytes around the text masked out: each word has a byte of the text,
 * for it is looked at only when the text went on until there, so that none can be
 * outside of memory. Sanitizers count bytes and would not agree. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static inline bool
wr_tag_is_called(const wr_call_memory *call, const char *text)
{
    const wr_tag_word *at = (const wr_tag_word *)((uintptr_t)text & ~(uintptr_t)7);
    uint32_t i = 0;
    do {
        if ((at[i] & call->mask[i]) != call->word[i]) {
            return false;
        }
    } while (++i < call->words);
    return true;
}

/* The number of the tag that an allocation on this device gets, maybe with
 * WR_TAG_LIMITED. */
static inline uint64_t wr_tag_of(wr_bank *bank, const char *text)
{
    const struct wr_thread_tags *tags = &wr_thread_tags;
    if (text == NULL) {
        if (WR_LIKELY(tags->depth == 0)) {
            return 0;
        }
        if (WR_LIKELY(tags->scope.serial == WR_OWN(bank->tags_serial))) {
            return tags->scope.tag;
        }
    } else if (tags->call.text == text &&
               tags->call.serial == WR_OWN(bank->tags_serial) &&
               wr_tag_is_called(&tags->call, text)) {
        return tags->call.tag;
    }
    return wr_tag_look_up(bank, text);
}

#endif
