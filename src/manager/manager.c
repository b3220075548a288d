/* SPDX-License-Identifier: MIT */
/* Reserving with all that may have to be looked at, and the roster of managers. Locks and
 * sequence counts as in manager.h; the hot path is in hot.c. */
#include "manager.h"

#include "cleanup.h"
#include "epochs.h"
#include "graph.h"
#include "guard.h"
#include "hot.h"
#include "ladder.h"
#include "range.h"
#include "route.h"
#include "shared.h"
#include "waits.h"

#include "base/memory.h"
#include "base/result.h"

#include <stdio.h>
#include <string.h>

#define PUBLISH_BYTES UINT64_C(65536)
#define FEW_STREAMS 16u /* so few that one can look at what all of them hold */
#define POLL_ALLOCATIONS 16u
#define CHECK_STEP 16u
#define SHARING_STEP 8u

/* ---- coming and going ---- */

/* Whoever finds the manager in the roster finds it named. */
static void name_manager(wr_manager *manager, const char *name)
{
    if (name != NULL) {
        snprintf(manager->name, sizeof manager->name, "%s", name);
    } else {
        snprintf(manager->name, sizeof manager->name, "stream %u", manager->slot);
    }
}

static weir_result enter_roster(wr_manager *manager, const char *name)
{
    wr_bank *bank = manager->bank;
    wr_lock_take(&bank->roster_lock);
    uint32_t slot = 0;
    while (slot < bank->roster_count && bank->roster[slot] != NULL) {
        slot++;
    }
    bool room = wr_host_grow((void **)&bank->roster, &bank->roster_capacity, slot + 1u,
                             sizeof *bank->roster);
    if (room) {
        manager->slot = slot;
        name_manager(manager, name);
        bank->roster[slot] = manager;
        bank->roster_count =
            slot + 1 > bank->roster_count ? slot + 1 : bank->roster_count;
    }
    wr_lock_leave(&bank->roster_lock);
    return room ? WEIR_OK
                : wr_error(WEIR_OUT_OF_HOST_MEMORY,
                           "no host memory for the list of streams");
}

/* How far in_use may go before anybody has to hear of it. */
static void set_limits(wr_manager *manager)
{
    uint64_t told = WR_OWN(manager->published), peak = WR_OWN(manager->peak_in_use);
    uint64_t above = manager->alone ? UINT64_MAX : told + PUBLISH_BYTES - 1;
    manager->publish_above = above;
    manager->publish_below = manager->alone || manager->few || told < PUBLISH_BYTES
                                 ? 0
                                 : told - PUBLISH_BYTES + 1;
    manager->heed_above = above < peak ? above : peak;
}

/* A second stream comes: from now on all tell the bank what they hold. */
static void end_solitude(wr_bank *bank)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        manager->alone = false;
        manager->few = bank->roster_count < FEW_STREAMS;
        wr_manager_publish(manager);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
}

weir_result wr_manager_init(wr_manager *manager, wr_bank *bank, weir_driver_stream stream,
                            const char *name)
{
    end_solitude(bank);
    manager->bank = bank;
    manager->alone = bank->roster_count == 0;
    manager->few = bank->roster_count < FEW_STREAMS;
    set_limits(manager);
    manager->stream = stream;
    manager->serial = wr_guard_event(bank);
    manager->epoch = 1;
    manager->moment.settled_below = UINT64_C(1) << WR_TICK_BITS;
    WR_TRY(wr_routes_open(manager));
    weir_result result = enter_roster(manager, name);
    if (result != WEIR_OK) {
        wr_routes_close(manager);
    }
    return result;
}

static bool leave_roster(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    wr_lock_take(&bank->roster_lock);
    bool free_to_go = manager->pins == 0;
    if (free_to_go && manager->slot < bank->roster_count &&
        bank->roster[manager->slot] == manager) {
        bank->roster[manager->slot] = NULL;
        while (bank->roster_count > 0 && bank->roster[bank->roster_count - 1] == NULL) {
            bank->roster_count--;
        }
    }
    wr_lock_leave(&bank->roster_lock);
    return free_to_go;
}

/* What the stream counted stays counted. */
static void bequeath(wr_manager *manager, wr_pool *pool)
{
    wr_bank *bank = manager->bank;
    atomic_fetch_add(&bank->events.allocations, WR_OWN(pool->books.entered));
    atomic_fetch_add(&bank->events.releases, WR_OWN(pool->books.left));
    wr_counter_raise(&bank->classes[pool->number].bank.books.largest,
                     WR_OWN(pool->books.largest));
}

bool wr_manager_finish(wr_manager *manager)
{
    if (!leave_roster(manager)) {
        return false;
    }
    if (manager->guard_event != 0) {
        manager->bank->table->fence_release(manager->bank->driver, manager->guard_fence);
    }
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        bequeath(manager, &manager->pools[i]);
    }
    wr_routes_close(manager);
    wr_slab_trim(&manager->cache, 0);
    return true;
}

wr_manager *wr_manager_next(wr_bank *bank, uint32_t *slot)
{
    wr_manager *manager = NULL;
    wr_lock_take(&bank->roster_lock);
    while (manager == NULL && *slot < bank->roster_count) {
        manager = bank->roster[(*slot)++];
    }
    if (manager != NULL) {
        manager->pins++;
    }
    if (manager != NULL && wr_loss_is_lost(&bank->loss)) {
        manager->gate |= WR_GATE_LOST;
    }
    wr_lock_leave(&bank->roster_lock);
    return manager;
}

void wr_manager_unpin(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    wr_lock_take(&bank->roster_lock);
    manager->pins--;
    wr_lock_leave(&bank->roster_lock);
}

/* ---- books ---- */

/* Tells the bank what the manager holds; returns what all have told it. */
static uint64_t tell(wr_manager *manager)
{
    uint64_t in_use = WR_OWN(manager->in_use);
    uint64_t change = in_use - WR_OWN(manager->published);
    WR_PUT(manager->published, in_use);
    return change + atomic_fetch_add_explicit(&manager->bank->published, change,
                                              memory_order_acq_rel);
}

/* What all streams hold; those that hold less than they have told tell it now.
 * `*all` is false if one of them was at work just then. */
static uint64_t sum_held(const wr_manager *manager, bool *all)
{
    wr_bank *bank = manager->bank;
    uint64_t bytes = WR_OWN(manager->in_use);
    *all = true;
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        wr_manager *other = bank->roster[i];
        if (other == NULL || other == manager) {
            continue;
        }
        uint64_t held = WR_GET(other->in_use), told = WR_GET(other->published);
        bytes += held;
        if (told <= held) {
            continue; /* it will tell a rise; who takes its lock disturbs it */
        }
        bool free_now = wr_lock_try(&other->lock);
        *all = *all && free_now;
        if (free_now) {
            if (other->few) {
                tell(other);
                set_limits(other);
            }
            wr_lock_leave(&other->lock);
        }
    }
    wr_lock_leave(&bank->roster_lock);
    return bytes;
}

WR_COLD void wr_manager_publish(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    uint64_t told = WR_OWN(manager->published), held;
    if (manager->alone) {
        wr_counter_raise(&bank->peak_in_use, wr_manager_peak(manager));
    }
    if (WR_OWN(manager->in_use) != told) {
        held = tell(manager);
        if (WR_OWN(manager->in_use) > told && held > WR_GET(bank->peak_in_use)) {
            bool all = true;
            held = manager->few ? sum_held(manager, &all) : held;
            wr_counter_raise(&bank->peak_in_use, held);
            if (!all) { /* ask again at the next rise */
                atomic_fetch_sub_explicit(&bank->published,
                                          WR_OWN(manager->published) - told,
                                          memory_order_acq_rel);
                WR_PUT(manager->published, told);
            }
        }
    }
    set_limits(manager);
}

WR_COLD void wr_manager_heed(wr_manager *manager)
{
    uint64_t in_use = WR_OWN(manager->in_use);
    if (in_use > WR_OWN(manager->peak_in_use)) {
        WR_PUT(manager->peak_in_use, in_use);
    }
    if (in_use > manager->publish_above || in_use < manager->publish_below) {
        wr_manager_publish(manager);
    } else {
        set_limits(manager);
    }
}

void wr_manager_recount(wr_manager *manager)
{
    uint64_t sequence = WR_OWN(manager->sequence);
    if (manager->counted_sequence == sequence) {
        return;
    }
    wr_sequence_begin(&manager->sequence);
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        wr_pool_recount(&manager->pools[i]);
    }
    wr_sequence_end(&manager->sequence);
    manager->counted_sequence = WR_OWN(manager->sequence);
}

uint64_t wr_manager_live(const wr_manager *manager)
{
    uint64_t live = 0;
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        live += wr_books_live(&manager->pools[i].books);
    }
    return live;
}

/* ---- reserve ---- */

static inline void enter(wr_manager *manager)
{
    if (__builtin_expect(
            atomic_load_explicit(&manager->remote, memory_order_relaxed) != 0, 0)) {
        wr_manager_drain(manager);
    }
    wr_manager_check(manager);
}

void wr_manager_lock(wr_manager *manager)
{
    wr_lock_take(&manager->lock);
    enter(manager);
}

bool wr_manager_try_lock(wr_manager *manager)
{
    bool taken = wr_lock_try(&manager->lock);
    if (taken) {
        enter(manager);
    }
    return taken;
}

/* A slice of a tag with a limit may be larger than what was charged, as pages are that
 * are handed out whole: then the rest is charged, or it goes back. */
static WR_COLD wr_slice *charge_rest(wr_manager *manager, wr_pool *pool, wr_slice *slice,
                                     const wr_request *request)
{
    wr_charge *charge = request->charge;
    uint64_t extent = slice->extent_bytes, before;
    if (extent > charge->bytes && !wr_tags_charge(&manager->bank->tags[request->tag],
                                                  extent - charge->bytes, &before)) {
        charge->over_bytes = extent;
        wr_pool_put_back(pool, slice);
        return NULL;
    }
    charge->bytes = extent > charge->bytes ? extent : charge->bytes;
    return slice;
}

wr_slice *wr_manager_try_reserve(wr_manager *manager, const wr_request *request)
{
    wr_pool *pool = request->pool;
    if (pool == NULL) {
        pool = wr_manager_route(manager, request->extent_bytes, request->persistent);
    }
    if (pool == NULL || manager->cache.count < WR_POOL_SPARES) {
        return NULL;
    }
    if (manager->batch != 0) {
        wr_waits_close_batch(manager);
    }
    if (manager->sharing != 0 && --manager->sharing % SHARING_STEP == 0) {
        wr_epochs_settle(manager, true);
    }
    if (manager->groups != 0 && ++manager->polled >= POLL_ALLOCATIONS) {
        manager->polled = 0;
        wr_waits_poll(manager);
    }
    weir_graph *recording = manager->recording;
    wr_sequence_begin(&manager->sequence);
    wr_slice *slice = recording == NULL ? NULL : wr_graph_reuse(recording, pool, request);
    if (request->given != NULL) {
        slice = wr_pool_take(pool, request->given);
    } else if (slice == NULL) {
        slice = __builtin_expect(request->alignment_bytes == 0, 1)
                    ? wr_pool_try_reserve(pool, request->extent_bytes)
                    : wr_pool_try_reserve_aligned(pool, request->extent_bytes,
                                                  request->alignment_bytes);
    }
    if (slice == NULL && __builtin_expect(request->loose, 0)) {
        slice = wr_pool_try_reserve_loose(pool, request->extent_bytes);
    }
    if (__builtin_expect(request->charge != NULL, 0) && slice != NULL &&
        recording == NULL) {
        slice = charge_rest(manager, pool, slice, request);
    }
    if (slice != NULL) {
        slice = wr_hot_enter(manager, pool, slice, request->requested_bytes, request->tag,
                             request->charge == NULL ? 0 : request->charge->bytes);
        slice->alignment_shift = request->alignment_shift;
        if (recording != NULL) {
            wr_graph_note(recording, slice);
        }
    }
    wr_sequence_end(&manager->sequence);
    return slice;
}

/* Under the lock: the pool, if a large request would leave it a worse cut than need be.
 */
static wr_pool *pool_to_make_tight(wr_manager *manager, const wr_request *request)
{
    wr_pool *pool = wr_manager_route(manager, request->extent_bytes, request->persistent);
    if (pool == NULL || !pool->plain || request->alignment_bytes != 0 ||
        !wr_pool_wants_search(pool, request->requested_bytes) ||
        manager->recording != NULL) {
        return NULL;
    }
    const wr_slice *best = wr_index_find(pool->index, request->extent_bytes);
    bool cuts =
        best != NULL && best->extent_bytes - request->extent_bytes >= pool->granule_bytes;
    return cuts ? pool : NULL;
}

weir_result wr_manager_reserve(wr_manager *manager, const wr_request *request,
                               wr_slice **slice_out)
{
    if (request->shared) {
        return wr_shared_reserve(manager, request, slice_out);
    }
    wr_manager_lock(manager);
    wr_pool *tight = pool_to_make_tight(manager, request);
    if (tight != NULL) {
        wr_manager_unlock(manager);
        wr_range_make_tight(manager, tight, request->extent_bytes);
        wr_manager_lock(manager);
    }
    wr_slice *slice = wr_manager_try_reserve(manager, request);
    bool check = ++manager->unhurried % CHECK_STEP == 0;
    wr_manager_unlock(manager);
    if (check) {
        wr_cleanup_worn(manager);
    }
    if (slice == NULL) {
        return wr_ladder_reserve(manager, request, slice_out);
    }
    *slice_out = slice;
    return WEIR_OK;
}

/* ---- reading ---- */

bool wr_manager_read(wr_manager *manager, wr_totals totals[WR_POOL_MAX],
                     wr_remote *remote)
{
    uint64_t before = WR_GET(manager->sequence);
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        wr_books_sum(&manager->pools[i].books, &totals[i]);
    }
    uint64_t extent = WR_GET(manager->remote_extent); /* in the order of push_remote */
    uint64_t requested = WR_GET(manager->remote_requested);
    remote->requested += requested;
    remote->extent += extent;
    return before % 2 == 0 && WR_GET(manager->sequence) == before && requested <= extent;
}
