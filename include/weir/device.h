/* SPDX-License-Identifier: MIT */
/* A device: one opened driver, its bank of unheld memory, and the streams that draw from
 * it. */
#ifndef WEIR_DEVICE_H
#define WEIR_DEVICE_H

#include <weir/driver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_device weir_device;
typedef struct weir_stream weir_stream;

/* Options of a device. Zeroed (or a NULL pointer) is the default of everything. */
typedef struct weir_device_desc {
    size_t size;         /* sizeof(weir_device_desc), or 0 for this first layout */
    const char *preset;  /* "elastic" (NULL), "adaptive" */
    uint64_t idle_ms;    /* unheld memory unused for so long goes back; 0: 5,000 */
    bool no_idle;        /* never give back by time */
    bool no_thread;      /* no reclaimer thread: time passes only in weir_device_tick() */
    uint64_t keep_bytes; /* reclaim, and cleanup by default, stop at this `reserved` */
    uint64_t limit_bytes; /* most `reserved` allowed; 0: no limit */
    bool no_wait;         /* an allocation never waits for the device, it fails instead */
    bool trust_uses;      /* unmap after a buffer's declared uses, ask no other stream */
    bool no_granules;     /* pages whole, even where the driver has granules */
    const void *driver_config; /* driver-specific (weir_sim_desc for "sim"), or NULL */
} weir_device_desc;

/* Opens "host", "sim", "cuda:0"...: a driver's name, and behind a colon what the driver
 * is to open. The caller owns the device and closes it. On failure `*device` is
 * untouched. Errors: NOT_FOUND (no such driver or device), INVALID, UNSUPPORTED,
 * OUT_OF_HOST_MEMORY, DRIVER. */
WEIR_API weir_result weir_device_open(const char *name, const weir_device_desc *desc,
                                      weir_device **device);

/* The same on a driver of the caller's own. `table` outlives the device. */
WEIR_API weir_result weir_device_open_driver(const weir_driver_table *table,
                                             const char *argument,
                                             const weir_device_desc *desc,
                                             weir_device **device);

/* Gives everything back and closes. With live buffers: BUSY, nothing changes, and the
 * error text names the holders by tag and size. NULL is OK. No other call may be under
 * way. */
WEIR_API weir_result weir_device_close(weir_device *device);

/* Closes all the same: live buffers become stale handles. NULL is a no-op. */
WEIR_API void weir_device_abandon(weir_device *device);

/* The stream that exists from open to close. Cannot fail. */
WEIR_API weir_stream *weir_device_default_stream(weir_device *device);

/* The open driver, for driver-specific calls. Owned by the device. */
WEIR_API weir_driver *weir_device_driver(weir_device *device);

/* What the driver said at open. Filled copy; any thread. */
WEIR_API weir_result weir_device_properties(weir_device *device,
                                            weir_driver_properties *properties);

/* "host", "sim", "cuda:0": the name it was opened by. Valid until close. */
WEIR_API const char *weir_device_name(const weir_device *device);

/* The preset's name. Valid until close. */
WEIR_API const char *weir_device_preset(const weir_device *device);

/* What the reclaimer thread does, once, at the time `now_ms` (any clock that never goes
 * back; 0: the device's own): stamps use with the new time and gives back what has been
 * idle for long. Any thread. */
WEIR_API weir_result weir_device_tick(weir_device *device, uint64_t now_ms);

/* Waits for all work queued on every stream of the device. */
WEIR_API weir_result weir_device_sync(weir_device *device);

/* Changes the device limit while running; 0 removes it. Takes no buffer in use. */
WEIR_API weir_result weir_device_limit(weir_device *device, uint64_t limit_bytes);

#ifdef __cplusplus
}
#endif
#endif
