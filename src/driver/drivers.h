/* SPDX-License-Identifier: MIT */
/* The built-in drivers in the order of preference. A driver is its folder and one line
 * here. */
#ifndef WR_DRIVER_DRIVERS_H
#define WR_DRIVER_DRIVERS_H

#include <weir/driver.h>

#define WR_DRIVER_LIST(X)                                                                \
    X(host)                                                                              \
    X(sim)                                                                               \
    X(cuda)                                                                              \
    X(pinned)                                                                            \
    X(webgpu)

#define WR_DRIVER_DECLARE(name) extern const weir_driver_table wr_driver_##name;
WR_DRIVER_LIST(WR_DRIVER_DECLARE)
#undef WR_DRIVER_DECLARE

#endif
