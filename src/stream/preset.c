/* SPDX-License-Identifier: MIT */
/* Replacing the preset: what is held or cannot go back refuses it. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"
#include "manager/cleanup.h"
#include "manager/replace.h"

#include <string.h>

static const char function[] = "weir_device_preset_replace";

static weir_result refuse_live(wr_bank *bank)
{
    uint64_t live = 0, bytes = 0;
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        live += wr_manager_live(manager);
        bytes += WR_OWN(manager->in_use);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    if (live == 0) {
        return WEIR_OK;
    }
    char text[24];
    wr_error(WEIR_BUSY, "%s: %s in %llu buffers are still held:", function,
             weir_format_bytes(bytes, text), (unsigned long long)live);
    wr_holders_append(bank);
    wr_error_append("; release them first");
    return WEIR_BUSY;
}

/* Gives everything back, waiting for work and driver. */
static weir_result empty(weir_device *device)
{
    wr_bank *bank = &device->bank;
    weir_cleanup_outcome outcome = {0};
    WR_TRY(wr_cleanup_run(bank, &(weir_cleanup_desc){.wait = true, .keep_none = true},
                          &outcome));
    wr_stream_reap(device);
    uint64_t left = WR_GET(bank->reserved);
    if (left != 0) {
        char text[24];
        return wr_error(WEIR_BUSY,
                        "%s: %s cannot be given back yet; wait for the streams' work, or "
                        "for the driver, and try again",
                        function, weir_format_bytes(left, text));
    }
    return WEIR_OK;
}

weir_result weir_device_preset_replace(weir_device *device, const char *preset,
                                       const weir_pool_desc *pools, size_t pool_count)
{
    WR_TRY(wr_fork_check());
    if (device == NULL) {
        return wr_error(WEIR_INVALID, "%s: the device is NULL", function);
    }
    wr_layouts layouts;
    WR_TRY(wr_layouts_get(&device->bank, preset, pools, pool_count, function, &layouts));
    wr_hooks_before_cleanup(device);
    WR_TRY(refuse_live(&device->bank));
    bool enabled = device->reclaimer.enabled;
    wr_reclaimer_finish(device);
    weir_result result = empty(device);
    if (result == WEIR_OK) {
        result = wr_replace_layouts(&device->bank, &layouts);
    }
    if (result == WEIR_OK) {
        memcpy(device->preset, layouts.name, sizeof device->preset);
    }
    memset(&device->reclaimer, 0, sizeof device->reclaimer);
    wr_reclaimer_init(device, enabled);
    return result;
}
