/* SPDX-License-Identifier: MIT */
/* The drivers that the suite of operations runs on. One that cannot be opened here is
 * skipped, with its reason. */
#ifndef WR_TESTS_TENSOR_DRIVERS_H
#define WR_TESTS_TENSOR_DRIVERS_H

#include "device.h"

#include <stdio.h>
#include <string.h>

/* Name, whether it has every operation; if not, UNSUPPORTED skips the case. */
#define DRIVER_LIST(X)                                                                   \
    X(host, true)                                                                        \
    X(cuda, true)                                                                        \
    X(webgpu, true)

static char why_not[512];   /* there is no device; "" if there is */
static bool has_everything; /* of the driver */

static inline int open_driver(const char *name, bool is_complete)
{
    weir_device_desc desc = {.no_idle = true, .no_thread = true};
    why_not[0] = '\0';
    device = NULL;
    has_everything = is_complete;
    weir_result result = weir_device_open(name, &desc, &device);
    if (result == WEIR_OK) {
        stream = weir_device_default_stream(device);
        return 0;
    }
    snprintf(why_not, sizeof why_not, "%s: %s", name, weir_last_error());
    return result == WEIR_NOT_FOUND ? 0 : -1;
}

#define OPEN_DRIVER(name, is_complete)                                                   \
    static inline int open_driver_##name(void **state)                                   \
    {                                                                                    \
        (void)state;                                                                     \
        return open_driver(#name, is_complete);                                          \
    }
DRIVER_LIST(OPEN_DRIVER)
#undef OPEN_DRIVER

static inline int close_driver(void **state)
{
    return device != NULL ? close_device(state) : 0;
}

static inline void skip_without_device(void)
{
    if (device == NULL) {
        print_message("skipped: %s\n", why_not);
        skip();
    }
}

/* Whether a case cannot run; anything else than OK is a failure. */
static inline bool is_missing(const char *name, weir_result result)
{
    if (result == WEIR_UNSUPPORTED && !has_everything) {
        print_message("skipped: %s: %s\n", name, weir_last_error());
        return true;
    }
    if (result != WEIR_OK) {
        fail_msg("%s: %s", name, weir_last_error());
    }
    return false;
}

#endif
