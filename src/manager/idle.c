/* SPDX-License-Identifier: MIT */
/* Time: the coarse clock, and giving back by it.
 *
 * Hysteresis. What time gave back and the program asked for again within the period
 * counts as hot: so many bytes wait `hot_factor` times as long from then on. The factor
 * doubles with each such return, up to 8, and halves in each period without one; at 1
 * nothing is hot. Guard of the hot fields: bank->lock. */
#include "cleanup.h"

#include "harvest.h"
#include "waits.h"

#include "base/time.h"

#include <stddef.h>

#define HOT_FACTOR_MAX 8u
#define DRIVES_MAX 4u /* steps of an idle driver that may change nothing */

uint64_t wr_idle_now_ms(const wr_bank *bank)
{
    return bank->table->now_ms != NULL ? bank->table->now_ms(bank->driver) : wr_now_ms();
}

void wr_idle_set_tick(wr_bank *bank, uint64_t now_ms)
{
    uint64_t passed_ms = now_ms > bank->opened_ms ? now_ms - bank->opened_ms : 0;
    wr_counter_raise(&bank->tick, passed_ms / WR_TICK_MS + 1);
}

static uint64_t period_ticks(const wr_bank *bank)
{
    return (bank->options.idle_ms + WR_TICK_MS - 1) / WR_TICK_MS;
}

void wr_idle_note_demand(wr_bank *bank, wr_class *class, uint64_t bytes)
{
    uint64_t returned = class->returned_idle;
    if (returned == 0) {
        return;
    }
    uint64_t hot = bytes < returned ? bytes : returned;
    class->returned_idle = returned - hot;
    WR_ADD(bank->hot_bytes, hot);
    if (WR_OWN(bank->hot_raised_tick) != WR_OWN(bank->returned_tick)) {
        /* Once per giving back, however many requests take it up again. */
        WR_PUT(bank->hot_raised_tick, WR_OWN(bank->returned_tick));
        uint64_t factor = WR_OWN(bank->hot_factor);
        WR_PUT(bank->hot_factor, factor >= HOT_FACTOR_MAX ? HOT_FACTOR_MAX : factor * 2);
    }
    WR_PUT(bank->hot_tick, WR_OWN(bank->tick));
}

/* A period without demand for what went: forget it, and halve the factor. */
static void cool_down(wr_bank *bank)
{
    uint64_t now = WR_OWN(bank->tick), period = period_ticks(bank);
    wr_lock_take(&bank->lock);
    uint64_t factor = WR_OWN(bank->hot_factor);
    if (factor == 0) {
        WR_PUT(bank->hot_factor, 1);
    }
    if (now - WR_OWN(bank->returned_tick) > period) {
        for (uint32_t i = 0; i < bank->class_count; i++) {
            bank->classes[i].returned_idle = 0;
        }
    }
    while (WR_OWN(bank->hot_factor) > 1 &&
           now - WR_OWN(bank->hot_tick) > 2 * period * WR_OWN(bank->hot_factor)) {
        WR_ADD(bank->hot_tick, 2 * period);
        WR_PUT(bank->hot_factor, WR_OWN(bank->hot_factor) / 2);
    }
    if (WR_OWN(bank->hot_factor) <= 1) {
        WR_PUT(bank->hot_bytes, 0);
    }
    wr_lock_leave(&bank->lock);
}

/* Bytes of unheld memory of at least that age, everywhere. */
static uint64_t count_idle(wr_bank *bank, uint64_t min_age)
{
    wr_harvest want = {.at_most_bytes = UINT64_MAX, .min_age = min_age};
    wr_lock_take(&bank->lock);
    uint64_t bytes = wr_harvest_count(bank, NULL, &want);
    wr_lock_leave(&bank->lock);
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        wr_waits_catch_up(manager, true);
        wr_manager_publish(manager);
        bytes += wr_harvest_count(bank, manager, &want);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    return bytes;
}

static uint64_t above_floor(wr_bank *bank)
{
    uint64_t reserved = WR_GET(bank->reserved);
    return reserved > bank->options.keep_bytes ? reserved - bank->options.keep_bytes : 0;
}

static uint64_t give_back(wr_bank *bank, uint64_t min_age, uint64_t at_most)
{
    uint64_t above = above_floor(bank);
    wr_harvest want = {.at_most_bytes = at_most < above ? at_most : above,
                       .min_age = min_age};
    wr_loot loot = {.by_time = true};
    wr_harvest_take_all(bank, NULL, &want, true, &loot);
    return wr_loot_give_back(bank, &loot);
}

static void note_returned(wr_bank *bank, uint64_t bytes)
{
    if (bytes == 0) {
        return;
    }
    atomic_fetch_add_explicit(&bank->events.idle_bytes, bytes, memory_order_relaxed);
    wr_lock_take(&bank->lock);
    WR_PUT(bank->returned_tick, WR_OWN(bank->tick));
    wr_lock_leave(&bank->lock);
}

/* What the driver was handed back and has not let go of: it may need a push, and on an
 * idle device nobody else gives it one. One that does not move though no work comes first
 * is left alone until there is something new. */
static bool may_drive(wr_bank *bank)
{
    if (bank->options.no_idle || bank->table->progress == NULL) {
        return false;
    }
    uint64_t pending = wr_bank_pending(bank);
    if (pending != WR_OWN(bank->driven_bytes)) {
        WR_PUT(bank->driven_bytes, pending);
        WR_PUT(bank->drives, 0);
    }
    return pending != 0 && WR_OWN(bank->drives) < DRIVES_MAX;
}

static void drive(wr_bank *bank)
{
    if (may_drive(bank) && wr_barrier_enter(&bank->barrier)) {
        weir_result result = bank->table->progress(bank->driver, false);
        wr_barrier_leave(&bank->barrier);
        if (result != WEIR_NOT_READY) {
            WR_ADD(bank->drives, 1);
        }
    }
}

void wr_idle_run(wr_bank *bank, uint64_t now_ms)
{
    wr_idle_set_tick(bank, now_ms);
    cool_down(bank);
    uint64_t period = period_ticks(bank);
    uint64_t idle = count_idle(bank, period);
    if (bank->options.no_idle || wr_barrier_is_up(&bank->barrier)) {
        return;
    }
    uint64_t hot = WR_GET(bank->hot_bytes), factor = WR_GET(bank->hot_factor);
    uint64_t returned = 0;
    if (idle > hot) {
        returned = give_back(bank, period, idle - hot);
    }
    if (idle > returned && hot > 0) {
        returned += give_back(bank, period * factor, UINT64_MAX);
    }
    note_returned(bank, returned);
    drive(bank);
}

static uint64_t work_bytes(const wr_pool *pool)
{
    const wr_books *books = &pool->books;
    return WR_GET(books->limbo) + WR_GET(books->whole);
}

bool wr_idle_has_work(wr_bank *bank)
{
    bool work = WR_GET(bank->hot_factor) > 1;
    wr_bank_recount(bank);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        work |= work_bytes(&bank->classes[i].bank) > 0;
    }
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager); /* what is being released right now is seen */
        wr_manager_recount(manager);
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < bank->class_count; i++) {
            bytes += work_bytes(&manager->pools[i]);
        }
        work |= bytes > manager->recorded_bytes; /* time does not free what graphs hold */
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    return (work && above_floor(bank) > 0) || may_drive(bank);
}
