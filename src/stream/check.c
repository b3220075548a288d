/* SPDX-License-Identifier: MIT */
/* weir_device_check: all walkers, all sums. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"

static weir_result wrong(const char *where, const char *what)
{
    return wr_error(WEIR_INVALID, "check: %s: %s", where, what);
}

static weir_result check_reserved(weir_device *device)
{
    weir_usage usage = {0};
    WR_TRY(weir_device_memory_usage(device, &usage));
    wr_lock_take(&device->bank.lock);
    uint64_t reserved = WR_OWN(device->bank.reserved);
    wr_lock_leave(&device->bank.lock);
    if (usage.peak_in_use_bytes < usage.in_use_bytes ||
        usage.peak_reserved_bytes < usage.reserved_bytes) {
        return wrong("device", "a peak is below its value");
    }
    /* Only when nothing else is at work are the two readings of one moment. */
    return reserved == usage.reserved_bytes
               ? WEIR_OK
               : wr_error(WEIR_INVALID,
                          "check: reserved is %llu, its parts add up to %llu",
                          (unsigned long long)reserved,
                          (unsigned long long)usage.reserved_bytes);
}

/* Caps are held against a count of its own for each pool. Bytes in transit are in the
 * books of the first one. */
static weir_result check_pools(weir_device *device)
{
    wr_bank *bank = &device->bank;
    wr_totals pools[WR_POOL_MAX];
    wr_usage_pools(device, pools);
    for (uint32_t i = 0; i < bank->class_count && WR_GET(bank->transit) == 0; i++) {
        uint64_t reserved = WR_GET(bank->classes[i].reserved);
        if (reserved != wr_totals_reserved(&pools[i])) {
            return wr_error(WEIR_INVALID,
                            "check: pool \"%s\" has %llu bytes, its parts add up to %llu",
                            bank->classes[i].layout.name, (unsigned long long)reserved,
                            (unsigned long long)wr_totals_reserved(&pools[i]));
        }
    }
    return WEIR_OK;
}

weir_result weir_device_check(weir_device *device)
{
    WR_TRY(wr_fork_check());
    if (device == NULL) {
        return wr_error(WEIR_INVALID, "weir_device_check: the device is NULL");
    }
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(&device->bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        const char *what = wr_manager_walk(manager);
        char name[WR_NAME_BYTES];
        __builtin_memcpy(name, manager->name, sizeof name);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
        if (what != NULL) {
            return wrong(name, what);
        }
    }
    const char *what = wr_bank_walk(&device->bank);
    WR_TRY(what != NULL ? wrong("bank", what) : check_pools(device));
    return check_reserved(device);
}
