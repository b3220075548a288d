/* SPDX-License-Identifier: MIT */
#include "ladder.h"

#include "cleanup.h"
#include "grow.h"
#include "guard.h"
#include "harvest.h"
#include "shortage.h"
#include "waits.h"

#include "base/result.h"

#include <stddef.h>

#define CLIMBS_MAX 10000u /* against endless races with other threads */

typedef struct ladder {
    wr_manager *manager;
    wr_bank *bank;
    wr_request request;
    wr_pool *pool;
    uint64_t run_bytes;
    wr_slice *slice;
    bool stalled, retried, driven;
    uint32_t climbs;
} ladder;

/* Own memory: what others released, what has passed. False: no host memory. */
static bool try_own(ladder *l, bool poll)
{
    wr_manager *manager = l->manager;
    wr_manager_lock(manager);
    bool prepared = wr_grow_prepare(manager, l->pool);
    if (prepared) {
        wr_waits_close_batch(manager);
        if (poll && l->bank->roster_count > 1) {
            wr_waits_settle(manager, true);
        }
        if (poll) {
            wr_waits_poll(manager);
        }
        l->slice = wr_manager_try_reserve(manager, &l->request);
        wr_slab_trim_above(&manager->cache);
    }
    wr_manager_unlock(manager);
    return prepared;
}

static bool got_slice(ladder *l)
{
    return try_own(l, false) && l->slice != NULL;
}

/* Waits for one fence of a manager; false if it waits for nothing that can be waited for.
 */
static bool wait_for(ladder *l, wr_manager *manager, bool groups)
{
    wr_bank *bank = l->bank;
    weir_driver_fence fence = 0;
    wr_manager_lock(manager);
    wr_waits_close_batch(manager);
    wr_slice_id wait = manager->capturing ? 0 : wr_waits_oldest(manager, groups, &fence);
    wr_manager_unlock(manager);
    if (fence == 0) {
        return false;
    }
    WR_COUNT(bank->events.fence_waits);
    bool passed = bank->table->fence_wait(bank->driver, fence) == WEIR_OK;
    wr_manager_lock(manager);
    if (wait != 0) {
        wr_waits_drop(manager, wait, passed);
    }
    wr_waits_poll(manager);
    wr_waits_settle(manager, false);
    wr_manager_unlock(manager);
    return passed;
}

/* The rung of waiting: own slices that other streams use, then others', then this stream.
 */
static bool wait_once(ladder *l)
{
    if (l->bank->options.no_wait) {
        return false;
    }
    bool waited = wait_for(l, l->manager, true);
    uint32_t slot = 0;
    wr_manager *other;
    while (!waited && (other = wr_manager_next(l->bank, &slot)) != NULL) {
        waited = other != l->manager && wait_for(l, other, false);
        wr_manager_unpin(other);
    }
    waited = waited || wait_for(l, l->manager, false) || wr_guard_wait(l->bank);
    if (waited && !l->stalled) {
        l->stalled = true;
        WR_COUNT(l->bank->events.stalls);
    }
    return waited;
}

/* The rung of giving back: just enough of what nobody holds anywhere else. */
static bool give_back(ladder *l)
{
    wr_harvest want = {.at_most_bytes = l->run_bytes, .cover = true};
    want.pages_only =
        l->pool->layout->granular; /* growth has used the granules already */
    wr_loot loot = {0};
    wr_harvest_take_all(l->bank, l->manager, &want, false, &loot);
    uint64_t returned = wr_loot_give_back(l->bank, &loot);
    atomic_fetch_add_explicit(&l->bank->events.pressure_bytes, returned,
                              memory_order_relaxed);
    l->driven = l->driven && returned == 0;
    return returned > 0;
}

/* The driver may still hold what it was handed back. Once per request: what the request
 * itself takes and drops again is no progress. */
static bool drive_progress(ladder *l)
{
    wr_bank *bank = l->bank;
    const weir_driver_table *table = bank->table;
    if (l->driven || table->pending_bytes == NULL || table->progress == NULL) {
        return false;
    }
    l->driven = true;
    uint64_t before = table->pending_bytes(bank->driver);
    return before > 0 && table->progress(bank->driver, true) == WEIR_OK &&
           table->pending_bytes(bank->driver) < before;
}

static bool is_capturing(wr_bank *bank)
{
    bool capturing = false;
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        capturing |= bank->roster[i] != NULL && bank->roster[i]->capturing;
    }
    wr_lock_leave(&bank->roster_lock);
    return capturing;
}

/* Something was made free, so that trying again makes sense. */
static bool make_room(ladder *l)
{
    bool made =
        !is_capturing(l->bank) && (drive_progress(l) || give_back(l) || wait_once(l));
    if (made && !l->retried) {
        l->retried = l->request.loose = true;
        WR_COUNT(l->bank->events.retries);
    }
    return made;
}

static bool is_shortage(weir_result result)
{
    return result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT;
}

/* One way up; OK with a slice, OK without one when another thread was faster. */
static weir_result climb(ladder *l)
{
    if (!try_own(l, true)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a slice's record");
    }
    if (l->slice != NULL ||
        (wr_grow_from_bank(l->manager, l->pool, l->run_bytes, l->retried) &&
         got_slice(l)) ||
        (wr_grow_by_lending(l->manager, l->pool, l->run_bytes, l->retried) &&
         got_slice(l)) ||
        (wr_grow_by_pooling(l->manager, l->pool, l->run_bytes) && got_slice(l))) {
        return WEIR_OK;
    }
    WR_TRY(wr_grow_from_driver(l->manager, l->pool, l->run_bytes, !l->retried));
    got_slice(l);
    wr_cleanup_periodic(l->manager);
    return WEIR_OK;
}

/* A failed request leaves no more reserved than before, even if the driver at first
 * refused to take new granules back. */
static void undo_growth(ladder *l, uint64_t before)
{
    uint64_t now = WR_GET(l->bank->reserved);
    if (now > before) {
        wr_harvest want = {.at_most_bytes = now - before};
        wr_loot loot = {0};
        wr_harvest_take_all(l->bank, l->manager, &want, false, &loot);
        wr_loot_give_back(l->bank, &loot);
    }
}

weir_result wr_ladder_reserve(wr_manager *manager, const wr_request *request,
                              wr_slice **slice)
{
    ladder l = {.manager = manager,
                .bank = manager->bank,
                .request = *request,
                .run_bytes = wr_request_run_bytes(request)};
    l.pool = wr_manager_route(manager, request->extent_bytes, request->persistent);
    if (l.pool == NULL) {
        return wr_error(WEIR_INVALID, "no pool of the preset serves %llu bytes",
                        (unsigned long long)request->requested_bytes);
    }
    weir_result result = WEIR_OUT_OF_MEMORY;
    uint64_t reserved = WR_GET(l.bank->reserved);
    if (request->extent_bytes <= l.bank->properties.capacity_bytes) {
        do {
            result = climb(&l);
        } while (l.slice == NULL && ++l.climbs < CLIMBS_MAX &&
                 (result == WEIR_OK || (is_shortage(result) && make_room(&l))));
    }
    if (l.slice != NULL) {
        *slice = l.slice;
        return WEIR_OK;
    }
    undo_growth(&l, reserved);
    result =
        result == WEIR_OK ? WEIR_OUT_OF_MEMORY : result; /* others were always faster */
    return is_shortage(result) ? wr_shortage_explain(manager, request, result) : result;
}
