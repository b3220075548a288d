/* SPDX-License-Identifier: MIT */
/* Who holds live buffers, for error texts; and taking them away when a device is
 * abandoned. */
#include "device.h"

#include "base/result.h"
#include "manager/tags.h"

#include <sched.h>

#define NAMED 4

void wr_holders_append(wr_bank *bank)
{
    weir_tag_usage tags[NAMED];
    size_t count = wr_tags_list(bank, tags, NAMED);
    for (size_t i = 0; i < count && i < NAMED; i++) {
        char text[24];
        wr_error_append("%s %s %s in %llu buffers", i == 0 ? "" : ",",
                        tags[i].tag[0] == 0 ? "untagged" : tags[i].tag,
                        weir_format_bytes(tags[i].in_use_bytes, text),
                        (unsigned long long)tags[i].live_count);
    }
}

/* The next live buffer of a pool, seen while walking. */
static void find_live(void *context, wr_page *page, wr_slice *slice)
{
    (void)page;
    wr_slice **found = context;
    uint64_t word = atomic_load(&slice->word);
    if (*found == NULL && slice->state == WR_SLICE_STATE_HELD &&
        wr_word_references(word) > 0) {
        *found = slice;
    }
}

/* Makes one handle stale; false if it was gone already. */
static bool evict(wr_slice *slice)
{
    uint64_t word = atomic_load(&slice->word);
    while (wr_word_references(word) > 0) {
        uint64_t after = (uint64_t)(uint32_t)(wr_word_generation(word) + 1) << 32;
        if (atomic_compare_exchange_weak(&slice->word, &word, after)) {
            return true;
        }
    }
    return false;
}

static wr_slice *next_live(wr_manager *manager, uint32_t pool)
{
    wr_slice *slice = NULL;
    wr_manager_lock(manager);
    wr_lock_take(&manager->bank->lock);
    wr_pool_visit(manager->bank, &manager->pools[pool], find_live, &slice);
    wr_lock_leave(&manager->bank->lock);
    wr_manager_unlock(manager);
    return slice;
}

static void evict_all(wr_manager *manager)
{
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        wr_slice *slice;
        while ((slice = next_live(manager, i)) != NULL) {
            if (evict(slice)) {
                wr_manager_release(slice);
            }
        }
    }
}

/* Another thread may have made a handle stale just before and be about to give its slice
 * back; the manager stays until it has. */
void wr_holders_evict(wr_manager *manager)
{
    uint64_t live = 0;
    do {
        evict_all(manager);
        wr_manager_lock(manager);
        live = wr_manager_live(manager);
        wr_manager_unlock(manager);
        if (live > 0) {
            sched_yield();
        }
    } while (live > 0);
}
