/* SPDX-License-Identifier: MIT */
/* Snapshots of the books. Read without locks and accepted only if no owner's sequence
 * count changed meanwhile; after a few tries all locks are taken instead. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"
#include "manager/epochs.h"
#include "manager/waits.h"

#include <sched.h>
#include <string.h>

#define TRIES 8

/* Lets each stream find out how far it has come, so that `deferred` is what really waits.
 */
static void settle_all(wr_bank *bank)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        wr_waits_catch_up(manager, false);
        wr_manager_publish(manager);
        wr_manager_recount(manager);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    wr_bank_recount(bank);
}

/* Under roster_lock: one try. All sequences are read before and after everything else. */
static bool try_read(wr_bank *bank, wr_snapshot *s)
{
    uint64_t sum = WR_GET(bank->sequence);
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        sum += bank->roster[i] == NULL ? 0 : WR_GET(bank->roster[i]->sequence);
    }
    bool steady = wr_bank_read(bank, s->pools, &s->reserved);
    s->transit = WR_GET(bank->transit);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        s->pool_reserved[i] = WR_GET(bank->classes[i].reserved);
    }
    for (uint32_t i = 0; i < bank->roster_count && steady; i++) {
        steady = bank->roster[i] == NULL ||
                 wr_manager_read(bank->roster[i], s->pools, &s->remote);
    }
    uint64_t after = WR_GET(bank->sequence);
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        after += bank->roster[i] == NULL ? 0 : WR_GET(bank->roster[i]->sequence);
    }
    return steady && sum == after;
}

/* Takes every lock by try, so that the order of locks does not matter. */
static bool try_read_locked(wr_bank *bank, wr_snapshot *s)
{
    uint32_t held = 0;
    bool all = true;
    for (; held < bank->roster_count && all; held++) {
        all = bank->roster[held] == NULL || wr_lock_try(&bank->roster[held]->lock);
    }
    held -= !all;
    bool read = false;
    if (all && wr_lock_try(&bank->lock)) {
        read = try_read(bank, s);
        wr_lock_leave(&bank->lock);
    }
    while (held-- > 0) {
        if (bank->roster[held] != NULL) {
            wr_lock_leave(&bank->roster[held]->lock);
        }
    }
    return read;
}

static void read_snapshot(wr_bank *bank, wr_snapshot *s)
{
    bool read = false;
    for (int tries = 0; !read; tries++) {
        wr_lock_take(&bank->roster_lock);
        read = tries < TRIES ? try_read(bank, s) : try_read_locked(bank, s);
        wr_lock_leave(&bank->roster_lock);
        if (!read && tries >= TRIES) {
            sched_yield();
        }
    }
}

static void add_totals(wr_totals *sum, const wr_totals *part)
{
    sum->in_use += part->in_use;
    sum->padding += part->padding;
    sum->deferred += part->deferred;
    sum->releasable += part->releasable;
    sum->pinned += part->pinned;
    sum->live += part->live;
}

/* What other threads have released but nobody has drained counts as deferred. */
static void apply_remote(wr_totals *sum, const wr_remote *remote)
{
    sum->in_use -= remote->requested;
    sum->padding -= remote->extent - remote->requested;
    sum->deferred += remote->extent;
}

static void fill_usage(weir_usage *usage, const wr_totals *sum)
{
    usage->in_use_bytes = sum->in_use;
    usage->padding_bytes = sum->padding;
    usage->deferred_bytes = sum->deferred;
    usage->releasable_bytes = sum->releasable;
    usage->pinned_bytes = sum->pinned;
    usage->reserved_bytes = wr_totals_reserved(sum);
    usage->live_count = sum->live;
}

/* Buffers of streams that have ended are in the events already. */
static void count_pairs(const wr_manager *manager, weir_usage *usage)
{
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        usage->allocations += WR_GET(manager->pools[i].books.entered);
        usage->releases += WR_GET(manager->pools[i].books.left);
    }
}

static void fill_events(wr_bank *bank, weir_usage *usage)
{
#define COPY(name, text) usage->name = WR_GET(bank->events.name);
    WEIR_EVENT_LIST(COPY)
#undef COPY
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        if (bank->roster[i] != NULL) {
            count_pairs(bank->roster[i], usage);
        }
    }
    wr_lock_leave(&bank->roster_lock);
}

void wr_usage_read(weir_device *device, weir_usage *usage, wr_snapshot *s)
{
    wr_bank *bank = &device->bank;
    wr_totals sum = {0};
    settle_all(bank);
    read_snapshot(bank, s);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        add_totals(&sum, &s->pools[i]);
    }
    apply_remote(&sum, &s->remote);
    *usage = (weir_usage){.size = usage->size};
    fill_usage(usage, &sum);
    wr_counter_raise(&bank->peak_in_use, usage->in_use_bytes);
    usage->peak_in_use_bytes = WR_GET(bank->peak_in_use);
    usage->peak_reserved_bytes = WR_GET(bank->peak_reserved);
    usage->driver_deferred_bytes = wr_bank_pending(bank);
    fill_events(bank, usage);
}

static weir_result check_usage(const void *object, const weir_usage *usage)
{
    WR_TRY(wr_fork_check());
    if (object == NULL || usage == NULL ||
        (usage->size != 0 && usage->size != sizeof *usage)) {
        return wr_error(
            WEIR_INVALID,
            "memory usage: an argument is NULL, or the usage of another size");
    }
    return WEIR_OK;
}

weir_result weir_device_memory_usage(weir_device *device, weir_usage *usage)
{
    wr_snapshot s;
    WR_TRY(check_usage(device, usage));
    wr_usage_read(device, usage, &s);
    return WEIR_OK;
}

weir_result weir_stream_memory_usage(weir_stream *stream, weir_usage *usage)
{
    WR_TRY(check_usage(stream, usage));
    wr_manager *manager = &stream->manager;
    wr_totals pools[WR_POOL_MAX] = {0}, sum = {0};
    wr_remote remote = {0};
    wr_manager_lock(manager);
    wr_epochs_settle(manager, false);
    wr_manager_recount(manager);
    while (!wr_manager_read(manager, pools, &remote)) { /* others release */
        memset(pools, 0, sizeof pools);
        remote = (wr_remote){0};
        sched_yield();
    }
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        add_totals(&sum, &pools[i]);
    }
    *usage = (weir_usage){.size = usage->size};
    apply_remote(&sum, &remote);
    fill_usage(usage, &sum);
    usage->peak_in_use_bytes = wr_manager_peak(manager);
    count_pairs(manager, usage);
    wr_manager_unlock(manager);
    return WEIR_OK;
}
