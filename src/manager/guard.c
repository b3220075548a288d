/* SPDX-License-Identifier: MIT */
#include "guard.h"

#include <stddef.h>
#include <string.h>

uint64_t wr_guard_event(wr_bank *bank)
{
    return atomic_fetch_add_explicit(&bank->event, 1, memory_order_acq_rel) + 1;
}

static weir_result test_stream(const wr_bank *bank, const wr_manager *manager)
{
    return manager->closing
               ? bank->table->fence_test(bank->driver, manager->closing_fence)
               : bank->table->stream_test(bank->driver, manager->stream);
}

static bool is_over(weir_result result)
{
    return result == WEIR_OK || result == WEIR_DEVICE_LOST;
}

/* Brings guard_passed up to date as far as that needs no waiting. */
static void update(wr_bank *bank, wr_manager *manager, uint64_t event)
{
    if (manager->guard_passed >= event || manager->capturing) {
        return;
    }
    if (is_over(test_stream(bank, manager))) {
        manager->guard_passed = wr_guard_event(bank);
    }
    if (manager->guard_event != 0 &&
        (manager->guard_passed >= event ||
         is_over(bank->table->fence_test(bank->driver, manager->guard_fence)))) {
        bank->table->fence_release(bank->driver, manager->guard_fence);
        if (manager->guard_passed < manager->guard_event) {
            manager->guard_passed = manager->guard_event;
        }
        manager->guard_event = 0;
    }
    if (manager->guard_passed < event && manager->guard_event == 0 && !manager->closing &&
        bank->table->fence_record(bank->driver, manager->stream, &manager->guard_fence) ==
            WEIR_OK) {
        manager->guard_event = wr_guard_event(bank);
        WR_COUNT(bank->events.fences);
    }
}

void wr_guard_note(wr_manager *manager, uint64_t event)
{
    wr_bank *bank = manager->bank;
    wr_lock_take(&bank->roster_lock);
    if (manager->guard_passed < event) {
        manager->guard_passed = event;
    }
    wr_lock_leave(&bank->roster_lock);
}

uint64_t wr_guard_floor(wr_bank *bank, const wr_manager *owner, uint64_t event,
                        char blocker[WR_NAME_BYTES])
{
    uint64_t floor = UINT64_MAX;
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        wr_manager *manager = bank->roster[i];
        if (manager == NULL || manager == owner) {
            continue;
        }
        update(bank, manager, event);
        floor = manager->guard_passed < floor ? manager->guard_passed : floor;
        if (manager->guard_passed < event) {
            memcpy(blocker, manager->name, WR_NAME_BYTES);
        }
    }
    wr_lock_leave(&bank->roster_lock);
    return floor;
}

uint64_t wr_guard_bank_event(const wr_slice *slice)
{
    const wr_page *page = wr_page_get(slice->page);
    uint32_t last = wr_page_granule(page, wr_slice_end(slice) - 1);
    uint64_t newest = 0;
    for (uint32_t g = wr_page_granule(page, slice->address); g <= last;
         g = wr_page_chunk_end(page, g)) {
        newest = page->marks[g] > newest ? page->marks[g] : newest;
    }
    return newest >> WR_TICK_BITS;
}

void wr_guard_stamp_bank(wr_bank *bank, uint64_t event)
{
    bank->moment.mark = event << WR_TICK_BITS;
    bank->newest_event = event > bank->newest_event ? event : bank->newest_event;
}

void wr_guard_borrow(wr_manager *manager, const wr_slice *slice)
{
    wr_guard_borrow_until(manager, wr_guard_bank_event(slice));
}

/* A fence behind all that a stream at work has queued: a fresh one, or the last one of a
 * stream that has ended, which is not the caller's to release. */
static bool find_fence(wr_bank *bank, const wr_manager *manager, weir_driver_fence *fence)
{
    if (manager->capturing || is_over(test_stream(bank, manager))) {
        return false;
    }
    if (manager->closing) {
        *fence = manager->closing_fence;
        return true;
    }
    return bank->table->fence_record(bank->driver, manager->stream, fence) == WEIR_OK;
}

static wr_manager *pick(wr_bank *bank, weir_driver_fence *fence, uint64_t *event)
{
    wr_manager *found = NULL;
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count && found == NULL; i++) {
        wr_manager *manager = bank->roster[i];
        if (manager != NULL && find_fence(bank, manager, fence)) {
            found = manager;
            found->pins++;
            *event = wr_guard_event(bank);
        }
    }
    wr_lock_leave(&bank->roster_lock);
    return found;
}

bool wr_guard_wait(wr_bank *bank)
{
    weir_driver_fence fence = 0;
    uint64_t event = 0;
    wr_manager *manager = pick(bank, &fence, &event);
    if (manager == NULL) {
        return false;
    }
    WR_COUNT(bank->events.fence_waits);
    bool passed = is_over(bank->table->fence_wait(bank->driver, fence));
    wr_lock_take(&bank->roster_lock);
    if (fence != manager->closing_fence) {
        bank->table->fence_release(bank->driver, fence);
    }
    if (passed && manager->guard_passed < event) {
        manager->guard_passed = event;
    }
    manager->pins--;
    wr_lock_leave(&bank->roster_lock);
    return passed;
}
