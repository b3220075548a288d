/* SPDX-License-Identifier: MIT */
/* Reclaim callbacks: what an allocation that finds no room asks the program for. A thread
 * that is inside one runs no other, so that they never nest. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"

static _Thread_local weir_device *inside; /* the device whose callback runs here */

weir_result weir_device_reclaim_add(weir_device *device, weir_reclaim_fn callback,
                                    void *context)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || callback == NULL) {
        return wr_error(WEIR_INVALID,
                        "weir_device_reclaim_add: the device or the callback is NULL");
    }
    const wr_function functions[WR_CALLBACK_FUNCTIONS] = {(wr_function)callback};
    return wr_callbacks_add(&device->reclaims, functions, context)
               ? WEIR_OK
               : wr_error(WEIR_LIMIT,
                          "a device has at most %u reclaim callbacks; remove one first",
                          WR_CALLBACK_MAX);
}

weir_result weir_device_reclaim_remove(weir_device *device, weir_reclaim_fn callback,
                                       void *context)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || callback == NULL) {
        return wr_error(WEIR_INVALID,
                        "weir_device_reclaim_remove: the device or the callback is NULL");
    }
    return wr_callbacks_remove(&device->reclaims, (wr_function)callback, context)
               ? WEIR_OK
               : wr_error(WEIR_NOT_FOUND,
                          "device %s has no such reclaim callback with this context",
                          device->name);
}

typedef struct reclaim_call {
    weir_device *device;
    uint64_t needed_bytes;
    bool released;
} reclaim_call;

static void call_reclaim(void *argument, const wr_callback *callback)
{
    reclaim_call *call = argument;
    weir_reclaim_fn function = (weir_reclaim_fn)callback->functions[0];
    WR_COUNT(call->device->bank.events.callbacks);
    inside = call->device;
    call->released = function(callback->context, call->device, call->needed_bytes);
    inside = NULL;
}

static bool reclaim(wr_bank *bank, uint64_t needed_bytes, uint64_t *after)
{
    weir_device *device = (weir_device *)(void *)bank;
    reclaim_call call = {.device = device, .needed_bytes = needed_bytes};
    bool any = inside == NULL;
    while (any && !call.released) {
        uint64_t number =
            wr_callbacks_run_next(&device->reclaims, *after, call_reclaim, &call);
        any = number != 0;
        *after = any ? number : *after;
    }
    return call.released && !wr_fork_is_child(); /* a callback may have forked */
}

void wr_reclaim_init(weir_device *device)
{
    wr_callbacks_init(&device->reclaims);
    device->bank.reclaim = reclaim;
}

void wr_reclaim_finish(weir_device *device)
{
    wr_callbacks_finish(&device->reclaims);
}

bool wr_reclaim_is_inside(const weir_device *device)
{
    return inside == device;
}
