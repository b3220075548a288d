/* SPDX-License-Identifier: MIT */
#include "cleanup.h"

#include "capture.h"
#include "epochs.h"
#include "guard.h"
#include "harvest.h"
#include "shared.h"
#include "waits.h"

#include "base/result.h"

#include <stdio.h>
#include <string.h>

/* Waits for the oldest fence that a manager's released memory waits for; false if there
 * is none. */
static bool wait_oldest(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    weir_driver_fence fence = 0;
    wr_manager_lock(manager);
    wr_waits_catch_up(manager, false);
    wr_slice_id wait = wr_waits_oldest(manager, false, &fence);
    wr_manager_unlock(manager);
    if (fence == 0) {
        return false;
    }
    WR_COUNT(bank->events.fence_waits);
    weir_result result = bank->table->fence_wait(bank->driver, fence);
    bool passed = result == WEIR_OK || result == WEIR_DEVICE_LOST;
    wr_manager_lock(manager);
    if (wait != 0) {
        wr_waits_drop(manager, wait, passed);
    }
    wr_manager_unlock(manager);
    return passed;
}

/* Waits for all of them, unless a capture begins meanwhile. */
static void wait_all(wr_manager *manager)
{
    wr_barrier *barrier = &manager->bank->barrier;
    for (bool waited = true; waited && wr_barrier_enter(barrier);) {
        waited = wait_oldest(manager);
        wr_barrier_leave(barrier);
    }
}

static void wait_guards(wr_bank *bank)
{
    for (bool waited = true; waited && wr_barrier_enter(&bank->barrier);) {
        waited = wr_guard_wait(bank);
        wr_barrier_leave(&bank->barrier);
    }
}

static uint64_t floor_of(const wr_bank *bank, const weir_cleanup_desc *desc)
{
    if (desc->keep_bytes != 0 || desc->keep_none) {
        return desc->keep_bytes;
    }
    return bank->options.keep_bytes;
}

/* What the floor and at_most allow to go. */
static uint64_t allowance(wr_bank *bank, const weir_cleanup_desc *desc)
{
    uint64_t reserved = WR_GET(bank->reserved), floor = floor_of(bank, desc);
    uint64_t above = reserved > floor ? reserved - floor : 0;
    return desc->at_most_bytes != 0 && desc->at_most_bytes < above ? desc->at_most_bytes
                                                                   : above;
}

/* Who has most of the deferred bytes. */
static void name_deferred(wr_bank *bank, weir_cleanup_outcome *outcome)
{
    enum { SLOTS = 256 };
    uint64_t bytes[SLOTS] = {0}, graphs[SLOTS] = {0};
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        wr_waits_count(manager, bytes, SLOTS);
        wr_graph_count(manager, graphs, SLOTS);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    uint64_t most = 0;
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count && i < SLOTS; i++) {
        if (bytes[i] > most && bank->roster[i] != NULL) {
            most = bytes[i];
            memcpy(outcome->deferred_stream, bank->roster[i]->name,
                   sizeof outcome->deferred_stream);
        }
    }
    wr_lock_leave(&bank->roster_lock);
    uint64_t exported = wr_shared_count_abroad(bank);
    if (exported > most) {
        most = exported;
        snprintf(outcome->deferred_stream, sizeof outcome->deferred_stream, "exported");
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (graphs[i] > most) {
            most = graphs[i];
            wr_graph_title(bank, i, outcome->deferred_stream,
                           sizeof outcome->deferred_stream);
        }
    }
}

static void fill_outcome(wr_bank *bank, weir_cleanup_outcome *outcome)
{
    wr_totals totals = {0};
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        wr_manager_recount(manager);
        for (uint32_t i = 0; i < bank->class_count; i++) {
            wr_books_sum(&manager->pools[i].books, &totals);
        }
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    wr_bank_recount(bank);
    wr_lock_take(&bank->lock);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_books_sum(&bank->classes[i].bank.books, &totals);
    }
    wr_lock_leave(&bank->lock);
    outcome->deferred_bytes = totals.deferred;
    outcome->pinned_bytes = totals.pinned;
    outcome->kept_bytes = totals.releasable;
    if (totals.deferred > 0) {
        name_deferred(bank, outcome);
    }
    outcome->driver_deferred_bytes = wr_bank_pending(bank);
}

/* What may still be under somebody's undeclared work waits for that stream. */
static void add_withheld(weir_cleanup_outcome *outcome, const wr_loot *loot)
{
    if (loot->withheld_bytes > 0) {
        outcome->kept_bytes -= loot->withheld_bytes < outcome->kept_bytes
                                   ? loot->withheld_bytes
                                   : outcome->kept_bytes;
        outcome->deferred_bytes += loot->withheld_bytes;
        memcpy(outcome->deferred_stream, loot->withheld_by,
               sizeof outcome->deferred_stream);
    }
}

/* Gives the driver the time it needs, as long as that helps. Once in any case: it may
 * have memory of its own that it can do without, for copies. */
static void wait_for_driver(wr_bank *bank)
{
    uint64_t before = wr_bank_pending(bank);
    bool helped = bank->table->progress != NULL;
    while (helped && wr_barrier_enter(&bank->barrier)) {
        weir_result result = bank->table->progress(bank->driver, true);
        wr_barrier_leave(&bank->barrier);
        uint64_t now = wr_bank_pending(bank);
        helped = result == WEIR_OK && now > 0 && now < before;
        before = now;
    }
}

weir_result wr_cleanup_run(wr_bank *bank, const weir_cleanup_desc *desc,
                           weir_cleanup_outcome *outcome)
{
    WR_TRY(wr_capture_refuse(bank, "cleanup"));
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        if (desc->wait) {
            wait_all(manager);
        }
        wr_cleanup_retire(manager);
        wr_manager_unpin(manager);
    }
    if (desc->wait && !bank->options.trust_uses) {
        wait_guards(bank);
    }
    wr_harvest want = {.at_most_bytes = allowance(bank, desc)};
    wr_loot loot = {0};
    wr_harvest_take_all(bank, NULL, &want, true, &loot);
    outcome->returned_bytes = wr_loot_give_back(bank, &loot);
    atomic_fetch_add_explicit(&bank->events.explicit_bytes, outcome->returned_bytes,
                              memory_order_relaxed);
    if (desc->wait) {
        wait_for_driver(bank);
    }
    fill_outcome(bank, outcome);
    add_withheld(outcome, &loot);
    return WEIR_OK;
}

void wr_cleanup_periodic(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    wr_harvest want = {.at_most_bytes = UINT64_MAX, .outdated_only = true};
    wr_loot loot = {0};
    wr_manager_lock(manager);
    wr_waits_poll(manager);
    bool any = false;
    for (uint32_t i = 0; i < bank->class_count; i++) {
        any |= manager->pools[i].outdated != NULL;
    }
    if (any && !wr_barrier_is_up(&bank->barrier)) {
        wr_epochs_settle(manager, false);
        wr_harvest_take(bank, manager, &want, &loot);
    }
    wr_manager_unlock(manager);
    atomic_fetch_add_explicit(&bank->events.periodic_bytes,
                              wr_loot_give_back(bank, &loot), memory_order_relaxed);
    wr_cleanup_worn(manager);
}

/* ---- exclusive pools ---- */

static uint64_t count_requests(const wr_manager *manager)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        count += WR_OWN(manager->pools[i].books.entered);
    }
    return count;
}

static bool is_due(const wr_pool *pool, uint64_t requests)
{
    uint64_t period = pool->layout->idle_count;
    return period != 0 && requests - pool->checked_count >= (period + 4) / WR_PAGE_WORN;
}

static bool any_is_due(const wr_manager *manager, uint64_t requests)
{
    bool due = false;
    for (uint32_t i = 0; i < manager->bank->class_count && !due; i++) {
        due = is_due(&manager->pools[i], requests);
    }
    return due && !manager->capturing;
}

/* Under the lock. */
static void check_pools(wr_manager *manager, uint64_t requests, wr_loot *loot)
{
    wr_epochs_settle(manager, false);
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        if (is_due(&manager->pools[i], requests)) {
            wr_harvest want = {
                .at_most_bytes = UINT64_MAX, .only_class = i + 1, .worn = true};
            wr_harvest_take(manager->bank, manager, &want, loot);
            manager->pools[i].checked_count = requests;
        }
    }
}

void wr_cleanup_worn(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    wr_loot loot = {0};
    wr_manager_lock(manager);
    uint64_t requests = count_requests(manager);
    if (any_is_due(manager, requests)) {
        check_pools(manager, requests, &loot);
    }
    wr_manager_unlock(manager);
    atomic_fetch_add_explicit(&bank->events.periodic_bytes,
                              wr_loot_give_back(bank, &loot), memory_order_relaxed);
}

/* ---- streams that have ended ---- */

/* All unheld memory of the manager, pages and granules, outdated or not, goes to the
 * bank. */
static void hand_over(wr_manager *manager)
{
    wr_harvest all = {.at_most_bytes = UINT64_MAX, .keeps_mapping = true};
    wr_loot loot = {0};
    wr_harvest_take(manager->bank, manager, &all, &loot);
    wr_loot_keep(manager->bank, &loot);
}

/* Others' memory may wait for what the stream had queued. */
static bool has_passed(const wr_bank *bank, weir_driver_fence fence)
{
    weir_result result = bank->table->fence_test(bank->driver, fence);
    return result == WEIR_OK || result == WEIR_DEVICE_LOST;
}

bool wr_cleanup_retire(wr_manager *manager)
{
    wr_manager_lock(manager);
    bool gone = false;
    if (manager->closing) {
        wr_waits_catch_up(manager, false);
        hand_over(manager);
        gone = wr_waits_is_quiet(manager) && wr_manager_live(manager) == 0 &&
               manager->recorded == 0 &&
               has_passed(manager->bank, manager->closing_fence);
    }
    wr_manager_unlock(manager);
    return gone;
}
