/* SPDX-License-Identifier: MIT */
/* Limits hold because bytes are promised before the driver is asked for them. */
#include "promise.h"

#include "cleanup.h"
#include "shortage.h"

#include "base/result.h"

weir_result wr_bank_promise(wr_bank *bank, uint64_t bytes)
{
    weir_result result = WEIR_OK;
    wr_shortage_note_wanted(bytes);
    wr_lock_take(&bank->lock);
    uint64_t limit = WR_OWN(bank->limit_bytes);
    uint64_t taken = WR_OWN(bank->reserved) + bank->promised;
    if (limit != 0 && (taken > limit || bytes > limit - taken)) {
        result =
            wr_error(WEIR_LIMIT,
                     "the device limit of %llu bytes leaves %llu, and %llu are needed",
                     (unsigned long long)limit,
                     (unsigned long long)(taken > limit ? 0 : limit - taken),
                     (unsigned long long)bytes);
    } else {
        bank->promised += bytes;
    }
    wr_lock_leave(&bank->lock);
    return result;
}

weir_result wr_class_promise(wr_bank *bank, wr_class *class, uint64_t bytes, bool *full)
{
    weir_result result = WEIR_OK;
    wr_shortage_note_wanted(bytes);
    wr_lock_take(&bank->lock);
    uint64_t cap = WR_OWN(class->cap_bytes);
    uint64_t taken = WR_OWN(class->reserved) + class->promised;
    *full = cap != 0 && (taken > cap || bytes > cap - taken);
    if (*full) {
        result = wr_error(WEIR_LIMIT,
                          "the limit of %llu bytes of pool \"%s\" leaves %llu, and %llu "
                          "are needed",
                          (unsigned long long)cap, class->layout.name,
                          (unsigned long long)(taken > cap ? 0 : cap - taken),
                          (unsigned long long)bytes);
    } else {
        class->promised += bytes;
    }
    wr_lock_leave(&bank->lock);
    return result;
}

void wr_bank_add_reserved(wr_bank *bank, wr_class *class, uint64_t bytes, uint64_t pages)
{
    WR_ADD(bank->reserved, bytes);
    WR_ADD(class->reserved, bytes);
    wr_idle_note_demand(bank, class, bytes);
    wr_counter_raise(&bank->peak_reserved, WR_OWN(bank->reserved));
    WR_ADD(class->pages, pages);
    wr_counter_raise(&class->pages_peak, WR_OWN(class->pages));
}
