/* SPDX-License-Identifier: MIT */
/* weir_device_check: all walkers, all sums. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"

static weir_result wrong(const char *where, const char *what)
{
    return wr_error(WEIR_INVALID, "check: %s: %s", where, what);
}

/* Counts of their own, against the sums of the books, in one snapshot: others may be at
 * work. Bytes in transit are in the books of the first pool. */
static weir_result check_sums(weir_device *device)
{
    wr_bank *bank = &device->bank;
    weir_usage usage = {0};
    wr_snapshot s;
    wr_usage_read(device, &usage, &s);
    for (uint32_t i = 0; i < bank->class_count && s.transit == 0; i++) {
        uint64_t sum = wr_totals_reserved(&s.pools[i]);
        if (s.pool_reserved[i] != sum) {
            return wr_error(WEIR_INVALID,
                            "check: pool \"%s\" has %llu bytes, its parts add up to %llu",
                            bank->classes[i].layout.name,
                            (unsigned long long)s.pool_reserved[i],
                            (unsigned long long)sum);
        }
    }
    if (s.reserved != usage.reserved_bytes) {
        return wr_error(WEIR_INVALID, "check: reserved is %llu, its parts add up to %llu",
                        (unsigned long long)s.reserved,
                        (unsigned long long)usage.reserved_bytes);
    }
    bool below = usage.peak_in_use_bytes < usage.in_use_bytes ||
                 usage.peak_reserved_bytes < usage.reserved_bytes;
    return below ? wrong("device", "a peak is below its value") : WEIR_OK;
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
    return what != NULL ? wrong("bank", what) : check_sums(device);
}
