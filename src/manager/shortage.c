/* SPDX-License-Identifier: MIT */
#include "shortage.h"

#include "tags.h"

#include "base/result.h"

#include <stdio.h>

#define NAMED_TAGS 4

typedef struct shortage {
    wr_totals totals;
    uint64_t largest_hole;
} shortage;

static void add_manager(wr_manager *manager, shortage *s)
{
    wr_manager_lock(manager);
    wr_manager_recount(manager);
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        wr_pool *pool = &manager->pools[i];
        wr_books_sum(&pool->books, &s->totals);
        uint64_t hole = wr_index_largest(pool->index);
        s->largest_hole = hole > s->largest_hole ? hole : s->largest_hole;
    }
    wr_manager_unlock(manager);
}

static void append_holders(wr_bank *bank)
{
    weir_tag_usage tags[NAMED_TAGS];
    size_t count = wr_tags_list(bank, tags, NAMED_TAGS);
    for (size_t i = 0; i < count && i < NAMED_TAGS; i++) {
        wr_error_append("%s %s %llu bytes in %llu buffers",
                        i == 0 ? "; largest holders:" : ",",
                        tags[i].tag[0] == 0 ? "untagged" : tags[i].tag,
                        (unsigned long long)tags[i].in_use_bytes,
                        (unsigned long long)tags[i].live_count);
    }
}

static void describe(wr_bank *bank, const wr_request *request, weir_result result,
                     const shortage *s)
{
    char limit[48] = "no limit";
    if (WR_GET(bank->limit_bytes) != 0) {
        snprintf(limit, sizeof limit, "limit %llu",
                 (unsigned long long)WR_GET(bank->limit_bytes));
    }
    wr_error(
        result,
        "%s: %llu bytes requested; capacity %llu, %s, reserved %llu, in_use %llu, deferred "
        "%llu, pinned %llu, largest hole %llu",
        result == WEIR_LIMIT ? "limit reached" : "out of memory",
        (unsigned long long)request->requested_bytes,
        (unsigned long long)bank->properties.capacity_bytes, limit,
        (unsigned long long)WR_GET(bank->reserved), (unsigned long long)s->totals.in_use,
        (unsigned long long)s->totals.deferred, (unsigned long long)s->totals.pinned,
        (unsigned long long)s->largest_hole);
}

weir_result wr_shortage_explain(wr_manager *manager, const wr_request *request,
                                weir_result result)
{
    wr_bank *bank = manager->bank;
    shortage s = {.largest_hole = 0};
    char driver[WR_ERROR_BYTES];
    wr_error_save(driver);
    uint32_t slot = 0;
    wr_manager *each;
    while ((each = wr_manager_next(bank, &slot)) != NULL) {
        add_manager(each, &s);
        wr_manager_unpin(each);
    }
    if (result == WEIR_LIMIT) {
        WR_COUNT(bank->events.limits);
    } else {
        WR_COUNT(bank->events.ooms);
    }
    describe(bank, request, result, &s);
    append_holders(bank);
    wr_error_append("; drop buffers, or ask for less");
    if (result != WEIR_LIMIT && driver[0] != 0) {
        wr_error_append("; the driver: %.200s", driver);
    }
    return result;
}
