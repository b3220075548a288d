/* SPDX-License-Identifier: MIT */
#include "fence.h"

#include <stddef.h>

void wr_fence_release(wr_manager *manager, wr_slice_id id)
{
    wr_fence *fence = wr_fence_get(id);
    if (--fence->references == 0) {
        manager->bank->table->fence_release(manager->bank->driver, fence->fence);
        wr_record_leave(manager, id);
    }
}

/* A fence on a stream that is capturing is not touched. */
static weir_result test_fence(wr_bank *bank, const wr_fence *fence)
{
    wr_lock_take(&bank->roster_lock);
    const wr_manager *other =
        fence->slot < bank->roster_count ? bank->roster[fence->slot] : NULL;
    weir_result result = other != NULL && other->capturing
                             ? WEIR_NOT_READY
                             : bank->table->fence_test(bank->driver, fence->fence);
    wr_lock_leave(&bank->roster_lock);
    return result;
}

bool wr_fence_has_passed(wr_manager *manager, wr_slice_id id, uint32_t poll)
{
    wr_fence *fence = wr_fence_get(id);
    if (!fence->passed && (poll == 0 || fence->tested != poll)) {
        weir_result result = test_fence(manager->bank, fence);
        fence->passed = result == WEIR_OK || result == WEIR_DEVICE_LOST;
        fence->tested = poll;
    }
    return fence->passed;
}

wr_slice_id wr_fence_create(wr_manager *manager, weir_driver_fence fence, uint32_t slot)
{
    wr_slice_id id = wr_record_take(manager);
    wr_fence_get(id)->fence = fence;
    wr_fence_get(id)->slot = slot;
    wr_fence_get(id)->references = 1;
    WR_COUNT(manager->bank->events.fences);
    return id;
}
