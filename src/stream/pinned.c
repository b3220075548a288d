/* SPDX-License-Identifier: MIT */
/* From a device to the one that has pinned host memory for it; the driver knows its name.
 */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"

#include <weir/pinned.h>

weir_result weir_device_open_pinned(weir_device *device, const weir_device_desc *desc,
                                    weir_device **pinned)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || pinned == NULL) {
        return wr_error(WEIR_INVALID,
                        "weir_device_open_pinned: the device or the place for the pinned "
                        "one is NULL");
    }
    const char *name = device->bank.properties.pinned;
    if (name[0] == '\0') {
        return wr_error(
            WEIR_UNSUPPORTED,
            "weir_device_open_pinned: driver %s has no pinned host memory; use "
            "a device \"host\"",
            device->bank.table->name);
    }
    return weir_device_open(name, desc, pinned);
}
