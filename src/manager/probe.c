/* SPDX-License-Identifier: MIT */
/* See probe.h. Under roster_lock no stream is closed meanwhile. */
#include "probe.h"

#include <stddef.h>

/* A stream that may be asked: one that is open, and that is not recording a graph. */
static const wr_manager *find_stream(const wr_bank *bank)
{
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        const wr_manager *manager = bank->roster[i];
        if (manager != NULL && !manager->closing && !manager->capturing) {
            return manager;
        }
    }
    return NULL;
}

void wr_probe_driver(wr_bank *bank)
{
    wr_lock_take(&bank->roster_lock);
    const wr_manager *asked = find_stream(bank);
    if (asked != NULL) {
        (void)bank->table->stream_test(bank->driver, asked->stream);
    }
    for (uint32_t i = 0; wr_loss_is_lost(&bank->loss) && i < bank->roster_count; i++) {
        if (bank->roster[i] != NULL) {
            bank->roster[i]->gate |= WR_GATE_LOST;
        }
    }
    wr_lock_leave(&bank->roster_lock);
}
