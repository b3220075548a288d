/* SPDX-License-Identifier: MIT */
/* Epochs, batches, groups. See waits.h; everything under the manager's lock. */
#include "waits.h"

#include "graph.h"
#include "guard.h"

#include "base/result.h"

#include <stddef.h>
#include <string.h>

#define SET_SLOTS 10u

/* Three more uses of a slab record. `word` stays what it is. */
typedef struct wr_use_set {
    _Atomic uint64_t word;
    wr_slice_id more; /* another set, 0 none */
    uint32_t count;
    uint32_t slots[SET_SLOTS];
} wr_use_set;

typedef struct wr_wait {
    _Atomic uint64_t word;
    weir_driver_fence fence;
    uint32_t slot;       /* the stream it was recorded on */
    uint32_t references; /* groups, the epoch, waiters; the fence goes with the last */
    uint32_t tested;     /* number of the poll that tested it last */
    bool passed;
} wr_wait;

typedef struct wr_group {
    _Atomic uint64_t word;
    wr_slice_id next;
    wr_slice_id first; /* slices, linked by held.link */
    uint32_t uses;     /* what those slices list, if one stream only */
    uint32_t wait_count;
    wr_slice_id waits[SET_SLOTS];
} wr_group;

_Static_assert(sizeof(wr_use_set) <= sizeof(wr_slice) &&
                   sizeof(wr_wait) <= sizeof(wr_slice) &&
                   sizeof(wr_group) <= sizeof(wr_slice),
               "they live in slab records");

static wr_use_set *set_of(wr_slice_id id)
{
    return (wr_use_set *)(void *)wr_slice_get(id);
}

static wr_wait *wait_of(wr_slice_id id)
{
    return (wr_wait *)(void *)wr_slice_get(id);
}

static wr_group *group_of(wr_slice_id id)
{
    return (wr_group *)(void *)wr_slice_get(id);
}

/* A record for other use, zeroed but for its word. The cache has one. */
static wr_slice_id take_record(wr_manager *manager)
{
    wr_slice *slice = wr_slab_pop(&manager->cache);
    memset((char *)slice + sizeof slice->word, 0, sizeof *slice - sizeof slice->word);
    return wr_slice_id_of(slice);
}

static void leave_record(wr_manager *manager, wr_slice_id id)
{
    wr_slab_push(&manager->cache, wr_slice_get(id));
}

/* ---- uses ---- */

static uint32_t slot_of(uint32_t use)
{
    return (use >> 1) - 1;
}

static bool set_has(uint32_t uses, uint32_t slot)
{
    if ((uses & WR_USES_SET) == 0) {
        return uses == wr_waits_use_of(slot);
    }
    for (wr_slice_id id = uses & ~WR_USES_SET; id != 0; id = set_of(id)->more) {
        for (uint32_t i = 0; i < set_of(id)->count; i++) {
            if (set_of(id)->slots[i] == slot) {
                return true;
            }
        }
    }
    return false;
}

weir_result wr_waits_add_use(wr_manager *manager, wr_slice *slice, uint32_t slot)
{
    uint32_t uses = slice->held.uses;
    if (uses == 0) {
        slice->held.uses = wr_waits_use_of(slot);
        return WEIR_OK;
    }
    if (set_has(uses, slot)) {
        return WEIR_OK;
    }
    if (!wr_slab_fill(&manager->cache, WR_POOL_SPARES)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "weir_buffer_use: no host memory for the use");
    }
    bool is_set = (uses & WR_USES_SET) != 0;
    wr_slice_id id = uses & ~WR_USES_SET;
    if (!is_set || set_of(id)->count == SET_SLOTS) {
        wr_slice_id fresh = take_record(manager);
        set_of(fresh)->more = is_set ? id : 0;
        if (!is_set) {
            set_of(fresh)->slots[set_of(fresh)->count++] = slot_of(uses);
        }
        id = fresh;
    }
    set_of(id)->slots[set_of(id)->count++] = slot;
    slice->held.uses = WR_USES_SET | id;
    return WEIR_OK;
}

bool wr_waits_has_use(const wr_slice *slice, uint32_t slot)
{
    return slice->held.uses != 0 && set_has(slice->held.uses, slot);
}

/* The place of a slot in a row of sets, NULL if it is in none. */
static uint32_t *place_in_sets(wr_slice_id id, uint32_t slot)
{
    for (; id != 0; id = set_of(id)->more) {
        for (uint32_t i = 0; i < set_of(id)->count; i++) {
            if (set_of(id)->slots[i] == slot) {
                return &set_of(id)->slots[i];
            }
        }
    }
    return NULL;
}

void wr_waits_remove_use(wr_manager *manager, wr_slice *slice, uint32_t slot)
{
    uint32_t uses = slice->held.uses;
    if ((uses & WR_USES_SET) == 0) {
        slice->held.uses = uses == wr_waits_use_of(slot) ? 0 : uses;
        return;
    }
    wr_use_set *first = set_of(uses & ~WR_USES_SET);
    uint32_t *place = place_in_sets(uses & ~WR_USES_SET, slot);
    if (place == NULL) {
        return;
    }
    *place = first->slots[--first->count];
    if (first->count == 0) {
        slice->held.uses = first->more == 0 ? 0 : WR_USES_SET | first->more;
        leave_record(manager, uses & ~WR_USES_SET);
    }
}

uint32_t wr_waits_graph_of(const wr_slice *slice)
{
    uint32_t uses = slice->held.uses;
    if ((uses & WR_USES_SET) == 0) {
        return uses >= wr_waits_use_of(WR_SLOT_GRAPH) ? slot_of(uses) : 0;
    }
    for (wr_slice_id id = uses & ~WR_USES_SET; id != 0; id = set_of(id)->more) {
        for (uint32_t i = 0; i < set_of(id)->count; i++) {
            if (set_of(id)->slots[i] >= WR_SLOT_GRAPH) {
                return set_of(id)->slots[i];
            }
        }
    }
    return 0;
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
    manager->moment.mark =
        manager->epoch << WR_TICK_BITS | (WR_OWN(manager->bank->tick) & WR_TICK_MASK);
    wr_sequence_begin(&manager->sequence);
    WR_SUB(pool->books.limbo, slice->extent_bytes);
    manager->dirty = true;
    wr_pool_release(pool, slice);
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

/* ---- waits ---- */

static void unreference(wr_manager *manager, wr_slice_id id)
{
    wr_wait *wait = wait_of(id);
    if (--wait->references == 0) {
        manager->bank->table->fence_release(manager->bank->driver, wait->fence);
        leave_record(manager, id);
    }
}

/* A fence on a stream that is capturing is not touched. */
static weir_result test_fence(wr_bank *bank, const wr_wait *wait)
{
    wr_lock_take(&bank->roster_lock);
    const wr_manager *other =
        wait->slot < bank->roster_count ? bank->roster[wait->slot] : NULL;
    weir_result result = other != NULL && other->capturing
                             ? WEIR_NOT_READY
                             : bank->table->fence_test(bank->driver, wait->fence);
    wr_lock_leave(&bank->roster_lock);
    return result;
}

static bool has_passed(wr_manager *manager, wr_slice_id id, uint32_t poll)
{
    wr_wait *wait = wait_of(id);
    if (!wait->passed && (poll == 0 || wait->tested != poll)) {
        weir_result result = test_fence(manager->bank, wait);
        wait->passed = result == WEIR_OK || result == WEIR_DEVICE_LOST;
        wait->tested = poll;
    }
    return wait->passed;
}

static wr_slice_id new_wait(wr_manager *manager, weir_driver_fence fence, uint32_t slot)
{
    wr_slice_id id = take_record(manager);
    wait_of(id)->fence = fence;
    wait_of(id)->slot = slot;
    wait_of(id)->references = 1;
    WR_COUNT(manager->bank->events.fences);
    return id;
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
    *id = fence == 0 ? 0 : new_wait(manager, fence, fence_slot);
    if (fences->count < WR_BATCH_MAX) {
        fences->at[fences->count].slot = slot;
        fences->at[fences->count++].wait = *id;
    } else if (*id != 0) {
        wait_of(*id)->references = 0; /* nobody else will ask for it */
    }
    return true;
}

static void add_wait(wr_group *group, wr_slice_id wait)
{
    if (wait != 0) {
        group->waits[group->wait_count++] = wait;
        wait_of(wait)->references++;
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
        if (!find_wait(manager, fences, slot_of(uses), &wait)) {
            return false;
        }
        add_wait(group, wait);
        slice->held.uses = 0;
        return true;
    }
    wr_use_set *set = set_of(uses & ~WR_USES_SET);
    while (set->count > 0) {
        if (!find_wait(manager, fences, set->slots[set->count - 1], &wait)) {
            return false;
        }
        add_wait(group, wait);
        set->count--;
    }
    wr_slice_id more = set->more;
    leave_record(manager, uses & ~WR_USES_SET);
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
    if (wr_waits_graph_of(slice) != 0) {
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
    if (!wr_slab_fill(&manager->cache, SET_SLOTS + 1 + WR_POOL_SPARES)) {
        return false;
    }
    id = take_record(manager);
    wr_group *group = group_of(id);
    group->uses = (uses & WR_USES_SET) != 0 ? 0 : uses;
    bool filled = fill_group(manager, fences, group, slice);
    if (group->wait_count == 0) {
        leave_record(manager, id);
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
            unreference(manager, fences.at[i].wait);
        }
    }
}

/* ---- polling ---- */

static void free_group(wr_manager *manager, wr_slice_id id)
{
    wr_group *group = group_of(id);
    wr_slice_id slice_id = group->first;
    leave_record(manager, id);
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
               has_passed(manager, group->waits[group->wait_count - 1], poll)) {
            unreference(manager, group->waits[--group->wait_count]);
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

/* ---- epochs ---- */

/* All epochs up to `epoch` have passed. */
static void advance(wr_manager *manager, uint64_t epoch)
{
    wr_sequence_begin(&manager->sequence);
    for (uint64_t e = manager->passed + 1; e <= epoch; e++) {
        wr_slice_id *wait = &manager->epoch_wait[e % WR_EPOCH_SLOTS];
        if (*wait != 0) {
            unreference(manager, *wait);
            *wait = 0;
        }
    }
    manager->passed = epoch;
    manager->settled_event = manager->epoch_event[epoch % WR_EPOCH_SLOTS];
    wr_guard_note(manager, manager->settled_event);
    manager->moment.settled_below = (epoch + 1) << WR_TICK_BITS;
    wr_sequence_end(&manager->sequence);
}

static void pass_all(wr_manager *manager)
{
    manager->epoch_event[manager->epoch % WR_EPOCH_SLOTS] = wr_guard_event(manager->bank);
    advance(manager, manager->epoch);
    manager->epoch++;
    manager->dirty = false;
}

static void close_epoch(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    weir_driver_fence fence;
    if (!manager->dirty || manager->capturing || manager->closing ||
        manager->epoch + 1 - manager->passed > WR_EPOCH_SLOTS ||
        !wr_slab_fill(&manager->cache, 1 + WR_POOL_SPARES) ||
        bank->table->fence_record(bank->driver, manager->stream, &fence) != WEIR_OK) {
        return;
    }
    manager->epoch_wait[manager->epoch % WR_EPOCH_SLOTS] =
        new_wait(manager, fence, manager->slot);
    manager->epoch_event[manager->epoch % WR_EPOCH_SLOTS] = wr_guard_event(bank);
    manager->epoch++;
    manager->dirty = false;
}

static bool own_stream_is_idle(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    weir_result result =
        manager->closing ? bank->table->fence_test(bank->driver, manager->closing_fence)
                         : bank->table->stream_test(bank->driver, manager->stream);
    return result == WEIR_OK || result == WEIR_DEVICE_LOST;
}

void wr_waits_settle(wr_manager *manager, bool fence)
{
    if ((!manager->dirty && manager->passed + 1 == manager->epoch) ||
        manager->capturing) {
        return;
    }
    if (own_stream_is_idle(manager)) {
        pass_all(manager);
        return;
    }
    manager->has_queued = true;
    while (manager->passed + 1 < manager->epoch) {
        wr_slice_id wait = manager->epoch_wait[(manager->passed + 1) % WR_EPOCH_SLOTS];
        if (wait == 0 || !has_passed(manager, wait, 0)) {
            break;
        }
        advance(manager, manager->passed + 1);
    }
    if (fence) {
        close_epoch(manager);
    }
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
            close_epoch(manager);
        }
        if (manager->passed + 1 < manager->epoch) {
            found = manager->epoch_wait[(manager->passed + 1) % WR_EPOCH_SLOTS];
        }
    }
    if (found != 0) {
        wait_of(found)->references++;
        *fence = wait_of(found)->fence;
    }
    return found;
}

void wr_waits_drop(wr_manager *manager, wr_slice_id wait, bool passed)
{
    wait_of(wait)->passed |= passed;
    unreference(manager, wait);
}

void wr_waits_forget(wr_manager *manager)
{
    wr_waits_close_batch(manager);
    for (wr_slice_id id = manager->groups; id != 0; id = group_of(id)->next) {
        for (uint32_t i = 0; i < group_of(id)->wait_count; i++) {
            wait_of(group_of(id)->waits[i])->passed = true;
        }
    }
    wr_waits_poll(manager);
    pass_all(manager);
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
        uint32_t uses = wr_waits_graph_of(slice) == 0 ? slice->held.uses : 0;
        uint32_t slot = (uses & WR_USES_SET) != 0 ? set_of(uses & ~WR_USES_SET)->slots[0]
                                                  : slot_of(uses);
        add_bytes(bytes, slots, slot, slice->extent_bytes);
    }
    for (wr_slice_id id = manager->groups; id != 0; id = group_of(id)->next) {
        wr_wait *wait = wait_of(group_of(id)->waits[group_of(id)->wait_count - 1]);
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
