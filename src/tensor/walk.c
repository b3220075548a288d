/* SPDX-License-Identifier: MIT */
#include "walk.h"

#include "tape.h"

#include "kernel/memory.h"

#include <string.h>

/* ---- claim ---- */

static weir_result no_memory(void)
{
    return wr_fail(WEIR_OUT_OF_HOST_MEMORY,
                   "weir_tensor_backward: no host memory for a list of entries");
}

static bool make_room(wr_walk *walk)
{
    if (walk->count < walk->capacity) {
        return true;
    }
    uint32_t capacity = walk->capacity == 0 ? 64 : 2 * walk->capacity;
    wr_walk_item *items = wr_memory_alloc(capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    if (walk->count > 0) {
        memcpy(items, walk->items, walk->count * sizeof *items);
    }
    wr_memory_free(walk->items);
    walk->items = items;
    walk->capacity = capacity;
    return true;
}

/* Under the tape's lock. Leaves come once for each way that leads to them. */
static weir_result claim_one(wr_walk *walk, wr_entry *entry)
{
    if (entry->claim == walk) {
        return WEIR_OK;
    }
    if (entry->is_spent) {
        return wr_fail(
            WEIR_INVALID,
            "weir_tensor_backward: an earlier backward has used up the tape that the tensor was "
            "made on; give that one keep_tape, or compute the tensor again");
    }
    if (entry->claim != NULL) {
        return wr_fail(WEIR_BUSY,
                       "weir_tensor_backward: another thread is going back through "
                       "the same tape");
    }
    if (!make_room(walk)) {
        return no_memory();
    }
    if (entry->rule != NULL) {
        entry->claim = walk;
    }
    wr_entry_retain(entry);
    walk->items[walk->count++] = (wr_walk_item){.entry = entry};
    return WEIR_OK;
}

static weir_result claim_all(wr_walk *walk, wr_entry *root)
{
    WR_TRY(claim_one(walk, root));
    for (uint32_t i = 0; i < walk->count; i++) {
        const wr_entry *entry = walk->items[i].entry;
        for (uint32_t k = 0; k < entry->input_count; k++) {
            if (entry->inputs[k].entry != NULL) {
                WR_TRY(claim_one(walk, entry->inputs[k].entry));
            }
        }
    }
    return WEIR_OK;
}

/* Under the tape's lock. */
static void disclaim(wr_walk *walk, bool is_spent)
{
    for (uint32_t i = 0; i < walk->count; i++) {
        wr_entry *entry = walk->items[i].entry;
        if (entry->rule != NULL) {
            entry->claim = NULL;
            entry->is_spent = is_spent;
        }
    }
}

static void release_all(wr_walk *walk)
{
    for (uint32_t i = 0; i < walk->count; i++) {
        weir_tensor_drop(walk->items[i].gradient);
        wr_entry_release(walk->items[i].entry);
    }
    wr_memory_free(walk->items);
}

/* ---- order ---- */

/* Lets the item at `from` sink in the heap of the first `count`, oldest on top. */
static void sink(wr_walk_item *items, uint32_t from, uint32_t count)
{
    wr_walk_item sinking = items[from];
    for (uint32_t child = 2 * from + 1; child < count; child = 2 * from + 1) {
        if (child + 1 < count &&
            items[child + 1].entry->serial < items[child].entry->serial) {
            child++;
        }
        if (sinking.entry->serial <= items[child].entry->serial) {
            break;
        }
        items[from] = items[child];
        from = child;
    }
    items[from] = sinking;
}

static void sort(wr_walk_item *items, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;) {
        sink(items, i, count);
    }
    for (uint32_t last = count; last-- > 1;) {
        wr_walk_item oldest = items[0];
        items[0] = items[last];
        items[last] = oldest;
        sink(items, 0, last);
    }
}

/* Leaves that came several times stay once. */
static void order(wr_walk *walk)
{
    uint32_t kept = 0;
    sort(walk->items, walk->count);
    for (uint32_t i = 0; i < walk->count; i++) {
        if (kept > 0 && walk->items[kept - 1].entry == walk->items[i].entry) {
            wr_entry_release(walk->items[i].entry);
        } else {
            walk->items[kept++] = walk->items[i];
        }
    }
    walk->count = kept;
}

/* ---- the walk ---- */

weir_result wr_walk_claim(wr_walk *walk, wr_entry *root)
{
    wr_tape_lock();
    weir_result result = claim_all(walk, root);
    if (result != WEIR_OK) {
        disclaim(walk, false);
    }
    wr_tape_unlock();
    if (result != WEIR_OK) {
        release_all(walk);
        return result;
    }
    order(walk);
    return WEIR_OK;
}

void wr_walk_finish(wr_walk *walk, bool is_spent)
{
    for (uint32_t i = 0; i < walk->count && is_spent; i++) {
        if (walk->items[i].entry->rule != NULL) {
            wr_entry_spend(walk->items[i].entry);
        }
    }
    wr_tape_lock();
    disclaim(walk, is_spent);
    wr_tape_unlock();
    release_all(walk);
}

wr_walk_item *wr_walk_find(const wr_walk *walk, const wr_entry *entry)
{
    uint32_t low = 0;
    uint32_t high = walk->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        bool is_before = entry->serial > walk->items[middle].entry->serial;
        high = is_before ? middle : high;
        low = is_before ? low : middle;
    }
    return &walk->items[low];
}
