/* SPDX-License-Identifier: MIT */
/* Whether the driver is still there. A driver that has shut down before Weir (at the end
 * of a process, say) is not to be handed memory calls any more, so before those it is
 * asked something harmless first. With no lock held. */
#ifndef WR_MANAGER_PROBE_H
#define WR_MANAGER_PROBE_H

#include "manager.h"

#include "base/hot.h"

/* Tests a stream, unless the device is known to be lost. If it is, the gates of all
 * managers say so from now on. */
void wr_probe_driver(wr_bank *bank);

/* For the result of a driver call that was made with no lock held. */
static inline weir_result wr_probe_heed(wr_bank *bank, weir_result result)
{
    if (WR_UNLIKELY(result == WEIR_DEVICE_LOST)) {
        wr_probe_driver(bank);
    }
    return result;
}

#endif
