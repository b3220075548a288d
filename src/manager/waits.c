/* SPDX-License-Identifier: MIT */
/* Batches and groups. See waits.h; everything under the manager's lock. */
#include "waits.h"

#include "epochs.h"
#include "fence.h"
#include "graph.h"
#include "uses.h"

#include "base/result.h"

#include <stddef.h>

/* Released slices that wait for the same fences; a slab record. */
typedef struct wr_group {
    _Atomic uint64_t word;
    wr_slice_id next;
    wr_slice_id first; /* slices, linked by held.link */
    uint32_t uses;     /* what those slices list, if one stream only */
    uint32_t wait_count;
    wr_slice_id waits[WR_USES_MAX];
} wr_group;

_Static_assert(sizeof(wr_group) <= sizeof(wr_slice), "it lives in a slab record");

static wr_group *group_of(wr_slice_id id)
{
    return (wr_group *)(void *)wr_slice_get(id);
}

/* What the stream has queued, in a fence of the caller's or one that stays the stream's
 * (`*lent`); 0: nothing. */
static weir_result find_queued(wr_manager *manager, weir_driver_fence *fence, bool *lent)
{
    wr_bank *bank = manager->bank;
    *lent = manager->capturing || manager->closing;
    *fence = manager->closing ? manager->closing_fence : manager->capture_fence;
    if (*lent) {
        return WEIR_OK;
    }
    *fence = 0;
    if (bank->table->stream_test(bank->driver, manager->stream) == WEIR_OK) {
        return WEIR_OK;
    }
    WR_COUNT(bank->events.fences);
    return bank->table->fence_record(bank->driver, manager->stream, fence);
}

/* Under the roster's lock, as the other stream may begin to capture any moment. */
static weir_result wait_on_device(wr_manager *stream, weir_driver_fence fence)
{
    wr_bank *bank = stream->bank;
    wr_lock_take(&bank->roster_lock);
    weir_result result =
        stream->capturing ? WEIR_NOT_READY
                          : bank->table->stream_wait(bank->driver, stream->stream, fence);
    wr_lock_leave(&bank->roster_lock);
    return result;
}

weir_result wr_waits_order(wr_manager *manager, wr_manager *stream)
{
    wr_bank *bank = manager->bank;
    weir_driver_fence fence;
    bool lent;
    WR_TRY(find_queued(manager, &fence, &lent));
    if (fence == 0) {
        return WEIR_OK;
    }
    weir_result result = wait_on_device(stream, fence);
    if (!lent) {
        bank->table->fence_release(bank->driver, fence);
    }
    return result;
}

void wr_waits_defer(wr_manager *manager, wr_slice *slice)
{
    slice->state = WR_SLICE_STATE_LIMBO;
    slice->held.link = manager->batch;
    manager->batch = wr_slice_id_of(slice);
    manager->batch_count++;
}

/* The slice waits for nobody any more. */
static void free_slice(wr_manager *manager, wr_slice *slice)
{
    wr_pool *pool = slice->pool;
    wr_sequence_begin(&manager->sequence);
    WR_SUB(pool->books.limbo, slice->extent_bytes);
    manager->dirty = true;
    wr_pool_release(pool, slice, wr_manager_mark(manager));
    wr_sequence_end(&manager->sequence);
}

void wr_waits_let_go(wr_manager *manager, wr_slice *slice)
{
    if (slice->held.uses == 0) {
        free_slice(manager, slice);
    } else {
        wr_waits_defer(manager, slice);
    }
}

/* ---- batches ---- */

/* Fences already recorded while one batch is being closed. */
typedef struct batch_fences {
    uint32_t count;
    struct {
        uint32_t slot;
        wr_slice_id wait;
    } at[WR_BATCH_MAX];
} batch_fences;

/* Records a fence for all that stream `*slot` has queued. NOT_READY: it cannot be done
 * now. OK with fence 0: nothing to wait for. `*slot` becomes the stream that the fence is
 * on: behind one that has ended, it is on this manager's. */
static weir_result record(wr_manager *manager, uint32_t *slot, weir_driver_fence *fence)
{
    wr_bank *bank = manager->bank;
    weir_result result = WEIR_OK;
    bool order_own = false;
    weir_driver_fence closing = 0;
    *fence = 0;
    wr_lock_take(&bank->roster_lock);
    wr_manager *other = *slot < bank->roster_count ? bank->roster[*slot] : NULL;
    if (other != NULL && other->closing) {
        closing = other->closing_fence;
        result = bank->table->fence_test(bank->driver, closing);
        order_own = result == WEIR_NOT_READY && !manager->capturing;
        if (order_own) {
            result = bank->table->stream_wait(bank->driver, manager->stream, closing);
        }
    } else if (other != NULL && other->capturing) {
        result = WEIR_NOT_READY;
    } else if (other != NULL) {
        result = bank->table->fence_record(bank->driver, other->stream, fence);
    }
    wr_lock_leave(&bank->roster_lock);
    if (result == WEIR_OK && order_own) {
        *slot = manager->slot;
        result = bank->table->fence_record(bank->driver, manager->stream, fence);
    }
    return result == WEIR_DEVICE_LOST ? WEIR_OK : result;
}

/* The wait for stream `slot` in this batch: `*id` 0 if there is nothing to wait for. */
static bool find_wait(wr_manager *manager, batch_fences *fences, uint32_t slot,
                      wr_slice_id *id)
{
    for (uint32_t i = 0; i < fences->count; i++) {
        if (fences->at[i].slot == slot) {
            *id = fences->at[i].wait;
            return true;
        }
    }
    weir_driver_fence fence;
    uint32_t fence_slot = slot;
    if (record(manager, &fence_slot, &fence) != WEIR_OK) {
        return false;
    }
    *id = fence == 0 ? 0 : wr_fence_create(manager, fence, fence_slot);
    if (fences->count < WR_BATCH_MAX) {
        fences->at[fences->count].slot = slot;
        fences->at[fences->count++].wait = *id;
    } else if (*id != 0) {
        wr_fence_get(*id)->references = 0; /* nobody else will ask for it */
    }
    return true;
}

static void add_wait(wr_group *group, wr_slice_id wait)
{
    if (wait != 0) {
        group->waits[group->wait_count++] = wait;
        wr_fence_get(wait)->references++;
    }
}

/* Fills a group with the waits of `uses` (one stream, or one set record, which is
 * consumed). */
static bool fill_group(wr_manager *manager, batch_fences *fences, wr_group *group,
                       wr_slice *slice)
{
    uint32_t uses = slice->held.uses;
    wr_slice_id wait;
    if ((uses & WR_USES_SET) == 0) {
        if (!find_wait(manager, fences, wr_uses_slot(uses), &wait)) {
            return false;
        }
        add_wait(group, wait);
        slice->held.uses = 0;
        return true;
    }
    wr_use_set *set = wr_use_set_get(uses & ~WR_USES_SET);
    while (set->count > 0) {
        if (!find_wait(manager, fences, set->slots[set->count - 1], &wait)) {
            return false;
        }
        add_wait(group, wait);
        set->count--;
    }
    wr_slice_id more = set->more;
    wr_record_leave(manager, uses & ~WR_USES_SET);
    slice->held.uses = more == 0 ? 0 : WR_USES_SET | more;
    return true;
}

/* Looks for a group of this batch (those before `end`) that waits for just the same
 * stream. */
static wr_slice_id find_group(const wr_manager *manager, uint32_t uses, wr_slice_id end)
{
    if ((uses & WR_USES_SET) != 0) {
        return 0;
    }
    for (wr_slice_id id = manager->groups; id != end; id = group_of(id)->next) {
        if (group_of(id)->uses == uses) {
            return id;
        }
    }
    return 0;
}

static void join_group(wr_slice_id id, wr_slice *slice)
{
    slice->held.link = group_of(id)->first;
    group_of(id)->first = wr_slice_id_of(slice);
}

/* Puts one slice of the batch where it belongs. False: it must stay in the batch. */
static bool sort_slice(wr_manager *manager, batch_fences *fences, wr_slice *slice,
                       wr_slice_id end)
{
    uint32_t uses = slice->held.uses;
    if (wr_uses_graph(slice) != 0) {
        wr_graph_keep(manager, slice);
        return true;
    }
    if (uses == 0) {
        free_slice(manager, slice); /* the graph that held it is gone */
        return true;
    }
    wr_slice_id id = find_group(manager, uses, end);
    if (id != 0) {
        slice->held.uses = 0;
        join_group(id, slice);
        return true;
    }
    if (!wr_slab_fill(&manager->cache, WR_USES_MAX + 1 + WR_POOL_SPARES)) {
        return false;
    }
    id = wr_record_take(manager);
    wr_group *group = group_of(id);
    group->uses = (uses & WR_USES_SET) != 0 ? 0 : uses;
    bool filled = fill_group(manager, fences, group, slice);
    if (group->wait_count == 0) {
        wr_record_leave(manager, id);
        if (filled && slice->held.uses == 0) {
            free_slice(manager, slice);
            return true;
        }
        return false;
    }
    /* Where not all could be fenced, the rest of the uses is looked at when these passed.
     */
    group->next = manager->groups;
    manager->groups = id;
    join_group(id, slice);
    return true;
}

void wr_waits_close_batch(wr_manager *manager)
{
    if (manager->batch == 0) {
        return;
    }
    batch_fences fences = {.count = 0};
    wr_slice_id id = manager->batch, end = manager->groups;
    manager->batch = 0;
    manager->batch_count = 0;
    while (id != 0) {
        wr_slice *slice = wr_slice_get(id);
        id = slice->held.link;
        if (!sort_slice(manager, &fences, slice, end)) {
            wr_waits_defer(manager, slice);
        }
    }
    for (uint32_t i = 0; i < fences.count; i++) {
        if (fences.at[i].wait != 0) {
            wr_fence_release(manager, fences.at[i].wait);
        }
    }
}

/* ---- polling ---- */

static void free_group(wr_manager *manager, wr_slice_id id)
{
    wr_group *group = group_of(id);
    wr_slice_id slice_id = group->first;
    wr_record_leave(manager, id);
    while (slice_id != 0) {
        wr_slice *slice = wr_slice_get(slice_id);
        slice_id = slice->held.link;
        if (slice->held.uses != 0) {
            wr_waits_defer(manager, slice);
        } else {
            free_slice(manager, slice);
        }
    }
}

bool wr_waits_poll(wr_manager *manager)
{
    uint32_t poll = manager->polls += manager->polls == UINT32_MAX ? 2 : 1;
    bool freed = false;
    wr_slice_id *link = &manager->groups;
    while (*link != 0) {
        wr_slice_id id = *link;
        wr_group *group = group_of(id);
        while (group->wait_count > 0 &&
               wr_fence_has_passed(manager, group->waits[group->wait_count - 1], poll)) {
            wr_fence_release(manager, group->waits[--group->wait_count]);
        }
        if (group->wait_count == 0) {
            *link = group->next;
            free_group(manager, id);
            freed = true;
        } else {
            link = &group->next;
        }
    }
    return freed;
}

void wr_waits_catch_up(wr_manager *manager, bool fence)
{
    wr_waits_close_batch(manager);
    wr_waits_poll(manager);
    wr_epochs_settle(manager, fence);
}

wr_slice_id wr_waits_oldest(wr_manager *manager, bool groups, weir_driver_fence *fence)
{
    wr_slice_id found = 0;
    for (wr_slice_id id = manager->groups; id != 0; id = group_of(id)->next) {
        found = group_of(id)->waits[group_of(id)->wait_count - 1];
    }
    if (found == 0 && !groups && manager->closing) {
        /* The stream has ended: its last fence stands for all of it, and needs no
         * reference while the manager is pinned. */
        *fence = wr_waits_is_quiet(manager) ? 0 : manager->closing_fence;
    } else if (found == 0 && !groups) {
        if (manager->passed + 1 == manager->epoch) {
            wr_epochs_close(manager);
        }
        if (manager->passed + 1 < manager->epoch) {
            found = manager->epoch_wait[(manager->passed + 1) % WR_EPOCH_SLOTS];
        }
    }
    if (found != 0) {
        wr_fence_get(found)->references++;
        *fence = wr_fence_get(found)->fence;
    }
    return found;
}

void wr_waits_drop(wr_manager *manager, wr_slice_id wait, bool passed)
{
    wr_fence_get(wait)->passed |= passed;
    wr_fence_release(manager, wait);
}

void wr_waits_forget(wr_manager *manager)
{
    wr_waits_close_batch(manager);
    for (wr_slice_id id = manager->groups; id != 0; id = group_of(id)->next) {
        for (uint32_t i = 0; i < group_of(id)->wait_count; i++) {
            wr_fence_get(group_of(id)->waits[i])->passed = true;
        }
    }
    wr_waits_poll(manager);
    wr_epochs_pass_all(manager);
}

bool wr_waits_is_quiet(const wr_manager *manager)
{
    return manager->batch == 0 && manager->groups == 0 && !manager->dirty &&
           manager->passed + 1 == manager->epoch;
}

/* ---- reports ---- */

static uint64_t list_bytes(wr_slice_id id)
{
    uint64_t bytes = 0;
    for (; id != 0; id = wr_slice_get(id)->held.link) {
        bytes += wr_slice_get(id)->extent_bytes;
    }
    return bytes;
}

static void add_bytes(uint64_t *bytes, uint32_t slots, uint32_t slot, uint64_t count)
{
    if (slot < slots) {
        bytes[slot] += count;
    }
}

void wr_waits_count(wr_manager *manager, uint64_t *bytes, uint32_t slots)
{
    for (wr_slice_id id = manager->batch; id != 0; id = wr_slice_get(id)->held.link) {
        wr_slice *slice = wr_slice_get(id);
        uint32_t uses = wr_uses_graph(slice) == 0 ? slice->held.uses : 0;
        uint32_t slot = (uses & WR_USES_SET) != 0
                            ? wr_use_set_get(uses & ~WR_USES_SET)->slots[0]
                            : wr_uses_slot(uses);
        add_bytes(bytes, slots, slot, slice->extent_bytes);
    }
    for (wr_slice_id id = manager->groups; id != 0; id = group_of(id)->next) {
        wr_fence *wait = wr_fence_get(group_of(id)->waits[group_of(id)->wait_count - 1]);
        add_bytes(bytes, slots, wait->slot, list_bytes(group_of(id)->first));
    }
    wr_manager_recount(manager);
    uint64_t own = 0;
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        wr_books *books = &manager->pools[i].books;
        own += WR_OWN(books->whole) - WR_OWN(books->settled) -
               wr_pool_count_abroad(&manager->pools[i]);
    }
    add_bytes(bytes, slots, manager->slot, own);
}
