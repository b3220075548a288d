/* SPDX-License-Identifier: MIT */
#include "uses.h"

#include "base/result.h"

#include <stddef.h>

static bool set_has(uint32_t uses, uint32_t slot)
{
    if ((uses & WR_USES_SET) == 0) {
        return uses == wr_uses_of(slot);
    }
    for (wr_slice_id id = uses & ~WR_USES_SET; id != 0; id = wr_use_set_get(id)->more) {
        for (uint32_t i = 0; i < wr_use_set_get(id)->count; i++) {
            if (wr_use_set_get(id)->slots[i] == slot) {
                return true;
            }
        }
    }
    return false;
}

weir_result wr_uses_add(wr_manager *manager, wr_slice *slice, uint32_t slot)
{
    uint32_t uses = slice->held.uses;
    if (uses == 0) {
        slice->held.uses = wr_uses_of(slot);
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
    if (!is_set || wr_use_set_get(id)->count == WR_USES_MAX) {
        wr_slice_id fresh = wr_record_take(manager);
        wr_use_set_get(fresh)->more = is_set ? id : 0;
        if (!is_set) {
            wr_use_set_get(fresh)->slots[wr_use_set_get(fresh)->count++] =
                wr_uses_slot(uses);
        }
        id = fresh;
    }
    wr_use_set_get(id)->slots[wr_use_set_get(id)->count++] = slot;
    slice->held.uses = WR_USES_SET | id;
    return WEIR_OK;
}

bool wr_uses_has(const wr_slice *slice, uint32_t slot)
{
    return slice->held.uses != 0 && set_has(slice->held.uses, slot);
}

/* The place of a slot in a row of sets, NULL if it is in none. */
static uint32_t *place_in_sets(wr_slice_id id, uint32_t slot)
{
    for (; id != 0; id = wr_use_set_get(id)->more) {
        for (uint32_t i = 0; i < wr_use_set_get(id)->count; i++) {
            if (wr_use_set_get(id)->slots[i] == slot) {
                return &wr_use_set_get(id)->slots[i];
            }
        }
    }
    return NULL;
}

void wr_uses_remove(wr_manager *manager, wr_slice *slice, uint32_t slot)
{
    uint32_t uses = slice->held.uses;
    if ((uses & WR_USES_SET) == 0) {
        slice->held.uses = uses == wr_uses_of(slot) ? 0 : uses;
        return;
    }
    wr_use_set *first = wr_use_set_get(uses & ~WR_USES_SET);
    uint32_t *place = place_in_sets(uses & ~WR_USES_SET, slot);
    if (place == NULL) {
        return;
    }
    *place = first->slots[--first->count];
    if (first->count == 0) {
        slice->held.uses = first->more == 0 ? 0 : WR_USES_SET | first->more;
        wr_record_leave(manager, uses & ~WR_USES_SET);
    }
}

uint32_t wr_uses_graph(const wr_slice *slice)
{
    uint32_t uses = slice->held.uses;
    if ((uses & WR_USES_SET) == 0) {
        return uses >= wr_uses_of(WR_SLOT_GRAPH) ? wr_uses_slot(uses) : 0;
    }
    for (wr_slice_id id = uses & ~WR_USES_SET; id != 0; id = wr_use_set_get(id)->more) {
        for (uint32_t i = 0; i < wr_use_set_get(id)->count; i++) {
            if (wr_use_set_get(id)->slots[i] >= WR_SLOT_GRAPH) {
                return wr_use_set_get(id)->slots[i];
            }
        }
    }
    return 0;
}
