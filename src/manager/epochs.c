/* SPDX-License-Identifier: MIT */
#include "epochs.h"

#include "fence.h"
#include "guard.h"

#include <stddef.h>

/* All epochs up to `epoch` have passed. */
static void advance(wr_manager *manager, uint64_t epoch)
{
    wr_sequence_begin(&manager->sequence);
    for (uint64_t e = manager->passed + 1; e <= epoch; e++) {
        wr_slice_id *wait = &manager->epoch_wait[e % WR_EPOCH_SLOTS];
        if (*wait != 0) {
            wr_fence_release(manager, *wait);
            *wait = 0;
        }
    }
    manager->passed = epoch;
    manager->settled_event = manager->epoch_event[epoch % WR_EPOCH_SLOTS];
    wr_guard_note(manager, manager->settled_event);
    manager->moment.settled_below = (epoch + 1) << WR_TICK_BITS;
    wr_sequence_end(&manager->sequence);
}

void wr_epochs_pass_all(wr_manager *manager)
{
    manager->epoch_event[manager->epoch % WR_EPOCH_SLOTS] = wr_guard_event(manager->bank);
    advance(manager, manager->epoch);
    manager->epoch++;
    manager->dirty = false;
}

void wr_epochs_close(wr_manager *manager)
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
        wr_fence_create(manager, fence, manager->slot);
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

void wr_epochs_settle(wr_manager *manager, bool fence)
{
    if ((!manager->dirty && manager->passed + 1 == manager->epoch) ||
        manager->capturing) {
        return;
    }
    if (own_stream_is_idle(manager)) {
        wr_epochs_pass_all(manager);
        return;
    }
    manager->has_queued = true;
    while (manager->passed + 1 < manager->epoch) {
        wr_slice_id wait = manager->epoch_wait[(manager->passed + 1) % WR_EPOCH_SLOTS];
        if (wait == 0 || !wr_fence_has_passed(manager, wait, 0)) {
            break;
        }
        advance(manager, manager->passed + 1);
    }
    if (fence) {
        wr_epochs_close(manager);
    }
}
