/* SPDX-License-Identifier: MIT */
#include "ladder.h"

#include "cleanup.h"
#include "epochs.h"
#include "grow.h"
#include "guard.h"
#include "harvest.h"
#include "route.h"
#include "shortage.h"
#include "tags.h"
#include "waits.h"

#include "base/fork.h"
#include "base/result.h"

#include <stddef.h>

#define CLIMBS_MAX 10000u /* against endless races with other threads */

typedef struct ladder {
    wr_manager *manager;
    wr_bank *bank;
    wr_request request;
    wr_pool *first; /* the pool for such requests */
    wr_pool *pool;  /* it, or a later one while it is full */
    uint64_t run_bytes;
    wr_slice *slice;
    bool full;   /* the last refusal was the pool's own cap */
    bool busy;   /* a stream that may have room was at work, and not asked */
    bool spends; /* new granules are cheap: others are not asked yet */
    bool stalled, retried, driven;
    uint32_t climbs;
    uint64_t reclaimed; /* number of the last reclaim callback that was called */
    wr_charge *charge;  /* the request's; or NULL */
} ladder;

/* What was found was too large for the limit of the tag. */
static bool is_over(const ladder *l)
{
    return l->charge != NULL && l->charge->over_bytes != 0;
}

static void reserve(ladder *l)
{
    l->slice = wr_manager_try_reserve(l->manager, &l->request);
}

/* Own memory: what others released, what has passed; then (`ask`) that of the bank and
 * of other streams. False: no host memory. */
static bool try_own(ladder *l, bool ask)
{
    wr_manager *manager = l->manager;
    wr_manager_lock(manager);
    bool prepared = wr_grow_prepare(manager, l->pool);
    if (prepared) {
        wr_waits_close_batch(manager);
        if (ask && l->bank->roster_count > 1) {
            wr_epochs_settle(manager, true);
        }
        if (ask) {
            wr_waits_poll(manager);
        }
        reserve(l);
    }
    if (prepared && ask && !l->spends && l->slice == NULL && !is_over(l) &&
        wr_grow_prepare(manager, l->pool) &&
        wr_grow_by_borrowing(manager, l->pool, l->run_bytes, l->retried, &l->busy)) {
        reserve(l);
    }
    wr_slab_trim_above(&manager->cache);
    wr_manager_unlock(manager);
    return prepared;
}

static bool got_slice(ladder *l)
{
    return try_own(l, false) && (l->slice != NULL || is_over(l));
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
    wr_epochs_settle(manager, false);
    wr_manager_unlock(manager);
    return passed;
}

/* The rung of waiting: own slices that other streams use, then others', then this stream.
 */
static bool wait_somewhere(ladder *l)
{
    bool waited = wait_for(l, l->manager, true);
    uint32_t slot = 0;
    wr_manager *other;
    while (!waited && (other = wr_manager_next(l->bank, &slot)) != NULL) {
        waited = other != l->manager && wait_for(l, other, false);
        wr_manager_unpin(other);
    }
    return waited || wait_for(l, l->manager, false) || wr_guard_wait(l->bank);
}

static bool wait_once(ladder *l)
{
    if (l->bank->options.no_wait || !wr_barrier_enter(&l->bank->barrier)) {
        return false;
    }
    bool waited = wait_somewhere(l);
    wr_barrier_leave(&l->bank->barrier);
    if (waited && !l->stalled) {
        l->stalled = true;
        WR_COUNT(l->bank->events.stalls);
    }
    return waited;
}

static bool give_back_of(ladder *l, const wr_harvest *want)
{
    wr_loot loot = {0};
    wr_harvest_take_all(l->bank, l->manager, want, false, &loot);
    uint64_t returned = wr_loot_give_back(l->bank, &loot);
    atomic_fetch_add_explicit(&l->bank->events.pressure_bytes, returned,
                              memory_order_relaxed);
    l->driven = l->driven && returned == 0;
    return returned > 0;
}

/* The rung of giving back: just enough of what nobody holds anywhere else. */
static bool give_back(ladder *l)
{
    wr_harvest want = {.at_most_bytes = l->run_bytes, .cover = true};
    want.pages_only =
        l->pool->layout->granular; /* growth has used the granules already */
    return give_back_of(l, &want);
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
    if (before == 0 || !wr_barrier_enter(&bank->barrier)) {
        return false;
    }
    weir_result result = table->progress(bank->driver, true);
    wr_barrier_leave(&bank->barrier);
    return result == WEIR_OK && table->pending_bytes(bank->driver) < before;
}

/* Goes on with the next pool that serves the request. */
static bool spill(ladder *l)
{
    wr_pool *next =
        wr_route_find(l->manager, l->pool->number + 1, &l->request, l->run_bytes);
    if (next != NULL) {
        l->request.pool = l->pool = next;
    }
    return next != NULL;
}

/* In a pool at its cap only its own memory is worth giving back. */
static bool give_back_own(ladder *l)
{
    wr_harvest want = {
        .at_most_bytes = l->run_bytes, .cover = true, .only_class = l->pool->number + 1};
    return give_back_of(l, &want);
}

/* All pools that serve the request are full: from the first one again. */
static bool wait_for_room(ladder *l)
{
    l->request.pool = l->pool = l->first;
    return wait_once(l);
}

/* The last rung: the program's own callbacks, each once. */
static bool reclaim(ladder *l)
{
    uint64_t *after = l->charge != NULL ? &l->charge->callback : &l->reclaimed;
    return l->bank->reclaim(l->bank, l->run_bytes, after);
}

static bool make_some_room(ladder *l)
{
    return (l->full ? wait_for_room(l)
                    : drive_progress(l) || give_back(l) || wait_once(l)) ||
           reclaim(l);
}

/* Something was made free, so that trying again makes sense; or another pool will do. */
static bool make_room(ladder *l)
{
    bool capturing = wr_barrier_is_up(&l->bank->barrier);
    bool made = l->full && !capturing && give_back_own(l);
    if (!made && l->full && spill(l)) {
        return true;
    }
    if (capturing && !l->request.loose) {
        l->retried = l->request.loose = true; /* that much needs no forbidden call */
        return true;
    }
    made = made || (!capturing && make_some_room(l));
    if (made && !l->retried) {
        l->retried = l->request.loose = true;
        WR_COUNT(l->bank->events.retries);
    }
    return made;
}

/* A little new memory, or else what others have. */
static bool spend(ladder *l)
{
    l->spends = false;
    return (wr_grow_by_spending(l->manager, l->pool, l->run_bytes) && got_slice(l)) ||
           (try_own(l, true) && (l->slice != NULL || is_over(l)));
}

/* Before anything grows: new memory may be more than what the tag was charged, in a later
 * pool for one. False, and it is over, if the tag's limit has no room for that. */
static bool may_grow(ladder *l)
{
    wr_charge *charge = l->charge;
    uint64_t before, bytes = wr_grow_least_bytes(l->pool, &l->request);
    if (charge == NULL || bytes <= charge->bytes) {
        return true;
    }
    if (!wr_tags_charge(wr_tags_get(l->bank, l->request.tag), bytes - charge->bytes,
                        &before)) {
        charge->over_bytes = bytes;
        return false;
    }
    charge->bytes = bytes;
    return true;
}

static bool is_shortage(weir_result result)
{
    return result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT;
}

/* One way up; OK with a slice, OK without one when another thread was faster. */
static weir_result climb(ladder *l)
{
    l->busy = false;
    l->spends = !l->retried && wr_grow_spends(l->manager, l->pool, l->run_bytes);
    if (!try_own(l, true)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a slice's record");
    }
    if (l->slice != NULL || is_over(l) || (l->spends && spend(l)) ||
        (l->busy && wr_grow_by_lending(l->manager, l->pool, l->run_bytes, l->retried) &&
         got_slice(l)) ||
        (wr_grow_by_pooling(l->manager, l->pool, l->run_bytes) && got_slice(l)) ||
        !may_grow(l)) {
        return WEIR_OK;
    }
    WR_TRY(wr_grow_from_driver(l->manager, l->pool, l->run_bytes, !l->retried, &l->full));
    got_slice(l);
    wr_cleanup_periodic(l->manager);
    return WEIR_OK;
}

/* Gives back so many bytes that nobody holds. While a stream is capturing it must not:
 * then they stay unheld, and are owed. */
static void undo(wr_bank *bank, wr_manager *first, uint64_t bytes)
{
    wr_harvest want = {.at_most_bytes = bytes, .cover = true};
    wr_loot loot = {0};
    wr_harvest_take_all(bank, first, &want, false, &loot);
    uint64_t returned = wr_loot_give_back(bank, &loot);
    if (returned < bytes && wr_barrier_is_up(&bank->barrier)) {
        atomic_fetch_add_explicit(&bank->owed, bytes - returned, memory_order_relaxed);
    }
}

/* A failed request leaves no more reserved than before, even if the driver at first
 * refused to take new granules back. */
static void undo_growth(const ladder *l, uint64_t before)
{
    uint64_t now = WR_GET(l->bank->reserved);
    if (now > before) {
        undo(l->bank, l->manager, now - before);
    }
}

void wr_ladder_settle(wr_bank *bank)
{
    uint64_t owed = atomic_exchange_explicit(&bank->owed, 0, memory_order_relaxed);
    if (owed > 0) {
        undo(bank, NULL, owed);
    }
}

static weir_result explain(const ladder *l, weir_result result)
{
    wr_shortage shortage = {.class = &l->bank->classes[l->pool->number],
                            .wanted_bytes = wr_shortage_wanted()};
    if (result == WEIR_LIMIT) {
        shortage.limit = l->full ? WEIR_LIMIT_KIND_POOL : WEIR_LIMIT_KIND_DEVICE;
    }
    return wr_shortage_explain(l->manager, &l->request, result, &shortage);
}

weir_result wr_ladder_reserve(wr_manager *manager, const wr_request *request,
                              wr_slice **slice)
{
    ladder l = {.manager = manager,
                .bank = manager->bank,
                .request = *request,
                .charge = request->charge,
                .run_bytes = wr_request_run_bytes(request)};
    l.first = l.pool = l.request.pool = wr_route_find(manager, 0, request, l.run_bytes);
    if (l.pool == NULL) {
        return wr_error(WEIR_INVALID, "no pool of the preset serves %llu bytes",
                        (unsigned long long)request->requested_bytes);
    }
    weir_result result = WEIR_OUT_OF_MEMORY;
    uint64_t reserved = WR_GET(l.bank->reserved);
    wr_shortage_note_wanted(l.run_bytes);
    if (request->extent_bytes <= l.bank->properties.capacity_bytes) {
        do {
            result = climb(&l);
        } while (l.slice == NULL && !is_over(&l) && ++l.climbs < CLIMBS_MAX &&
                 (result == WEIR_OK || (is_shortage(result) && make_room(&l))));
    }
    if (l.slice != NULL) {
        if (l.pool != l.first) {
            WR_COUNT(l.bank->classes[l.first->number].spills);
        }
        *slice = l.slice;
        return WEIR_OK;
    }
    WR_TRY(wr_fork_check()); /* a callback may have forked */
    undo_growth(&l, reserved);
    if (is_over(&l)) {
        return WEIR_LIMIT; /* limits.c says why */
    }
    result =
        result == WEIR_OK ? WEIR_OUT_OF_MEMORY : result; /* others were always faster */
    return is_shortage(result) ? explain(&l, result) : result;
}
