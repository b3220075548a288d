/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include "grow.h"
#include "route.h"
#include "shortage.h"
#include "tags.h"

#include "base/fork.h"
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

static uint64_t least_bytes(wr_manager *manager, const wr_request *request)
{
    const wr_pool *pool =
        wr_route_find(manager, 0, request, wr_request_run_bytes(request));
    return pool != NULL ? wr_grow_least_bytes(pool, request) : request->extent_bytes;
}

/* Counts the request's extent for its tag; false when its limit has no room even then. */
static bool charge(wr_bank *bank, const wr_request *request, uint64_t *before)
{
    wr_tag_count *tag = &bank->tags[request->tag];
    uint64_t bytes = request->charge->bytes;
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
        tried = bank->reclaim(bank, needed, &request->charge->callback);
    } while (tried);
    /* Once more, whatever the last one said; it may have forked, too. */
    return !wr_fork_is_child() && wr_tags_charge(tag, bytes, before);
}

static void uncharge(wr_tag_count *tag, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&tag->extents, bytes, memory_order_relaxed);
}

/* A recording reuses what it has dropped as it is: only here may that be too large. */
static bool is_over(const wr_tag_count *tag, const wr_slice *slice, wr_charge *charge)
{
    uint64_t limit = WR_GET(tag->limit_bytes);
    bool over =
        limit != 0 && slice->extent_bytes > charge->bytes && WR_GET(tag->extents) > limit;
    charge->over_bytes = over ? slice->extent_bytes : 0;
    return over;
}

/* A slice that was larger than what was asked made the tag too full; true: a callback has
 * released something. */
static bool reclaim_over(wr_bank *bank, const wr_request *request)
{
    const wr_tag_count *tag = &bank->tags[request->tag];
    uint64_t limit = WR_GET(tag->limit_bytes);
    uint64_t wanted = WR_GET(tag->extents) + request->charge->over_bytes;
    return bank->reclaim(bank, wanted > limit ? wanted - limit : 0,
                         &request->charge->callback);
}

weir_result wr_limits_reserve(wr_manager *manager, const wr_request *request,
                              wr_slice **slice)
{
    wr_bank *bank = manager->bank;
    wr_tag_count *tag = &bank->tags[request->tag];
    wr_charge charged = {.callback = 0};
    uint64_t least = least_bytes(manager, request);
    wr_request limited = *request;
    limited.charge = &charged;
    weir_result result;
    uint64_t before = 0;
    do {
        charged.over_bytes = 0;
        charged.bytes = least;
        if (!charge(bank, &limited, &before)) {
            charged.over_bytes = least;
            break;
        }
        result = wr_manager_reserve(manager, &limited, slice);
        if (result == WEIR_OK && !is_over(tag, *slice, &charged)) {
            return WEIR_OK;
        }
        if (result == WEIR_OK) {
            wr_manager_release(*slice);
        } else {
            uncharge(tag, charged.bytes);
        }
        if (charged.over_bytes == 0) {
            return result;
        }
        before = WR_GET(tag->extents);
    } while (reclaim_over(bank, &limited));
    WR_TRY(wr_fork_check());
    wr_shortage shortage = {.limit = WEIR_LIMIT_KIND_TAG,
                            .wanted_bytes = charged.over_bytes,
                            .taken_bytes = before};
    return wr_shortage_explain(manager, request, WEIR_LIMIT, &shortage);
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
