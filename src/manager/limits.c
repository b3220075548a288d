/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include "shortage.h"
#include "tags.h"

#include "base/result.h"

#include <string.h>

/* What other threads have released is counted as the tag's until somebody takes the
 * lock. */
static void drain_all(wr_bank *bank)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
}

/* Counts the request's extent for its tag; false when its limit has no room even then. */
static bool charge(wr_bank *bank, const wr_request *request, uint64_t *before)
{
    wr_tag_count *tag = &bank->tags[request->tag];
    uint64_t bytes = request->extent_bytes, callback = 0;
    if (wr_tags_charge(tag, bytes, before)) {
        return true;
    }
    bool tried;
    do {
        drain_all(bank);
        if (wr_tags_charge(tag, bytes, before)) {
            return true;
        }
        uint64_t limit = WR_GET(tag->limit_bytes);
        uint64_t needed = *before + bytes > limit ? *before + bytes - limit : 0;
        tried = bank->reclaim(bank, needed, &callback);
    } while (tried);
    return false;
}

static void uncharge(wr_tag_count *tag, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&tag->extents, bytes, memory_order_relaxed);
}

/* A slice may be larger than what was charged, as pages that are handed out whole are. */
static bool is_over(const wr_tag_count *tag, const wr_slice *slice, uint64_t charged)
{
    uint64_t limit = WR_GET(tag->limit_bytes);
    return limit != 0 && slice->extent_bytes > charged && WR_GET(tag->extents) > limit;
}

weir_result wr_limits_reserve(wr_manager *manager, const wr_request *request,
                              wr_slice **slice)
{
    wr_bank *bank = manager->bank;
    wr_tag_count *tag = &bank->tags[request->tag];
    wr_request charged = *request;
    uint64_t before = 0;
    wr_shortage shortage = {.limit = WEIR_LIMIT_KIND_TAG,
                            .wanted_bytes = request->extent_bytes};
    if (!charge(bank, request, &before)) {
        shortage.taken_bytes = before;
        return wr_shortage_explain(manager, request, WEIR_LIMIT, &shortage);
    }
    charged.charged_bytes = request->extent_bytes;
    weir_result result = wr_manager_reserve(manager, &charged, slice);
    if (result != WEIR_OK) {
        uncharge(tag, charged.charged_bytes);
        return result;
    }
    if (is_over(tag, *slice, charged.charged_bytes)) {
        shortage.wanted_bytes = (*slice)->extent_bytes;
        wr_manager_release(*slice);
        shortage.taken_bytes = WR_GET(tag->extents);
        return wr_shortage_explain(manager, request, WEIR_LIMIT, &shortage);
    }
    return WEIR_OK;
}

static void append_pools(const wr_bank *bank)
{
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_error_append("%s \"%s\"", i == 0 ? "" : ",", bank->classes[i].layout.name);
    }
}

weir_result wr_limits_set_pool(wr_bank *bank, const char *name, uint64_t limit_bytes)
{
    bool found = false;
    wr_bank_lock(bank);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_class *class = &bank->classes[i];
        if (strcmp(class->layout.name, name) == 0) {
            WR_PUT(class->cap_bytes, limit_bytes);
            found = true;
        }
    }
    if (!found) {
        wr_error(WEIR_NOT_FOUND,
                 "there is no pool \"%s\"; the device's pools are:", name);
        append_pools(bank);
    }
    wr_bank_unlock(bank);
    return found ? WEIR_OK : WEIR_NOT_FOUND;
}
