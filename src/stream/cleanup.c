/* SPDX-License-Identifier: MIT */
/* Explicit cleanup: hooks first, then the manager's part, then who pins the rest. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"
#include "manager/cleanup.h"

#include <string.h>

static void name_pinning(wr_bank *bank, weir_cleanup_outcome *outcome)
{
    weir_pinning most;
    wr_survey_pinning(bank, &most, 1);
    outcome->pinned_by = most.buffer;
    outcome->pinned_by_bytes = most.buffer_bytes;
    memcpy(outcome->pinned_by_tag, most.tag, sizeof outcome->pinned_by_tag);
}

weir_result weir_device_memory_cleanup(weir_device *device, const weir_cleanup_desc *desc,
                                       weir_cleanup_outcome *outcome)
{
    const weir_cleanup_desc defaults = {0};
    desc = desc == NULL ? &defaults : desc;
    WR_TRY(wr_fork_check());
    if (device == NULL || (desc->size != 0 && desc->size != sizeof *desc) ||
        (outcome != NULL && outcome->size != 0 && outcome->size != sizeof *outcome)) {
        return wr_error(WEIR_INVALID,
                        "weir_device_memory_cleanup: the device is NULL, or "
                        "options or outcome are of another size");
    }
    if (!desc->no_drain) {
        wr_hooks_before_cleanup(device);
        WR_TRY(wr_fork_check()); /* a hook may have forked */
    }
    weir_cleanup_outcome done = {.size = outcome == NULL ? 0 : outcome->size};
    WR_TRY(wr_cleanup_run(&device->bank, desc, &done));
    if (done.pinned_bytes > 0) {
        name_pinning(&device->bank, &done);
    }
    wr_stream_reap(device);
    if (outcome != NULL) {
        *outcome = done;
    }
    return WEIR_OK;
}
