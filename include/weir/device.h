/* SPDX-License-Identifier: MIT */
/* A device: one opened driver, its bank of unheld memory, and the streams that draw from
 * it.
 *
 * Devices do not survive fork(): in the child of a process that had one open, every
 * function of this header and of stream.h, memory.h and report.h returns FORKED, NULL, 0
 * or "" and touches nothing. Once a driver call has returned DEVICE_LOST, allocations and
 * work fail with it, everything that gives back succeeds quietly. */
#ifndef WEIR_DEVICE_H
#define WEIR_DEVICE_H

#include <weir/driver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_device weir_device;
typedef struct weir_stream weir_stream;

typedef enum weir_pool_kind {
    WEIR_POOL_KIND_ARENA = 0,      /* pages or granules to demand, cut into slices */
    WEIR_POOL_KIND_SLICED = 1,     /* pages of one size, cut into slices */
    WEIR_POOL_KIND_EXCLUSIVE = 2,  /* a page for each buffer, reused by what fits */
    WEIR_POOL_KIND_PERSISTENT = 3, /* reused by equal sizes only */
    WEIR_POOL_KIND_ADAPTIVE = 4,   /* pages that grow with the largest request */
    WEIR_POOL_KIND_SHARED = 5,     /* a page for each buffer that other processes may map;
                                      never reused; not for lists, a device has its own */
} weir_pool_kind;

/* One pool of an explicit list. A request goes to the first pool of the list that serves
 * its size. `persistent` ones go to the persistent pool, which need not be listed: a list
 * has at most 32 pools, that one included. A sliced pool without a cap also serves what
 * is more than 80 % of its page. Sizes are rounded up to the device's alignment. */
typedef struct weir_pool_desc {
    weir_pool_kind kind;
    uint64_t max_slice_bytes; /* the largest request served; 0: any, or a whole page */
    uint64_t page_bytes;      /* sliced: the size of its pages; else 0 */
    uint64_t cap_bytes;       /* see weir_device_pool_limit(); at least a page; 0: none */
    uint64_t idle_count;      /* exclusive: a page that nobody held for so many requests
                                 of its stream goes back; 0: 5,000, and as many more per
                                 GiB of max_slice_bytes */
} weir_pool_desc;

/* Options of a device. Zeroed (or a NULL pointer) is the default of everything. */
typedef struct weir_device_desc {
    size_t size;         /* sizeof(weir_device_desc), or 0 for this first layout */
    const char *preset;  /* "elastic" (NULL), "adaptive", "subslices", "exclusive" */
    uint64_t idle_ms;    /* unheld memory unused for so long goes back; 0: 5,000 */
    bool no_idle;        /* never give back by time */
    bool no_thread;      /* no reclaimer thread: time passes only in weir_device_tick() */
    uint64_t keep_bytes; /* reclaim, and cleanup by default, stop at this `reserved` */
    uint64_t limit_bytes; /* most `reserved` allowed; 0: no limit */
    bool no_wait;         /* an allocation never waits for the device, it fails instead */
    bool trust_uses;      /* unmap after a buffer's declared uses, ask no other stream */
    bool no_granules;     /* pages whole, even where the driver has granules */
    bool checked; /* on host memory: find writes behind buffers when they are released,
                     poison what was released; also by WEIR_CHECKED=1 */
    const void *driver_config;   /* driver-specific (weir_sim_desc for "sim"), or NULL */
    const weir_pool_desc *pools; /* an explicit list, in place of a preset; copied */
    size_t pool_count;
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

/* Closes all the same: live buffers become stale handles. Other threads may be releasing
 * buffers meanwhile. NULL is a no-op. */
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

/* The preset's name, "pools" for an explicit list. Valid until close, or until the preset
 * is replaced. */
WEIR_API const char *weir_device_preset(const weir_device *device);

/* Replaces the layout of pools by a preset's (NULL: "elastic") or, with `preset` NULL, by
 * a list, on a device without live buffers: waits for queued work and gives all memory
 * back first. Pools are the device's, for all its streams alike, so their caps and peaks
 * start anew too. With live buffers: BUSY, nothing changes, and the error text names
 * bytes and holders. BUSY also if the driver keeps some memory, or a stream is capturing.
 * No other call may be under way. */
WEIR_API weir_result weir_device_preset_replace(weir_device *device, const char *preset,
                                                const weir_pool_desc *pools,
                                                size_t pool_count);

/* What the reclaimer thread does, once, at the time `now_ms` (any clock that never goes
 * back; 0: the device's own): stamps use with the new time and gives back what has been
 * idle for long. Any thread. */
WEIR_API weir_result weir_device_tick(weir_device *device, uint64_t now_ms);

/* Waits for all work queued on every stream of the device. */
WEIR_API weir_result weir_device_sync(weir_device *device);

/* ---- limits: set at any time, by any thread; 0 removes one; none takes a buffer ---- */

/* The most `reserved` of the device. Where an allocation would need more, memory that
 * nobody holds is given back, reclaim callbacks are called, and then it fails with LIMIT.
 */
WEIR_API weir_result weir_device_limit(weir_device *device, uint64_t limit_bytes);

/* The most `reserved` of the pool with this name (weir_pool_report.name), over all
 * streams. Requests that it has no room for go to the next pool of the preset that serves
 * them; where there is none, as with the device's limit. NOT_FOUND: no such pool. */
WEIR_API weir_result weir_device_pool_limit(weir_device *device, const char *pool,
                                            uint64_t limit_bytes);

/* The most that live buffers with this tag take, padding included. Where an allocation
 * with the tag would take more, reclaim callbacks are called, and then it fails with
 * LIMIT. Tags without a limit cost nothing for it. INVALID: an empty tag. LIMIT: the
 * device knows so many tags that this one would count as "other". */
WEIR_API weir_result weir_device_tag_limit(weir_device *device, const char *tag,
                                           uint64_t limit_bytes);

/* ---- reclaim callbacks ---- */

/* Asked to release what the program can do without, when an allocation finds no room:
 * about `needed_bytes` of it, on the thread that allocates, with no lock of Weir's held.
 * Returns whether anything was released, so that trying again makes sense.
 *
 * Any Weir function may be called inside but weir_device_close and weir_device_abandon of
 * this device. An allocation inside may fail like any other, but calls no callbacks. A
 * callback runs on one thread at a time; so no lock that one takes may be held while
 * allocating. */
typedef bool (*weir_reclaim_fn)(void *context, weir_device *device,
                                uint64_t needed_bytes);

/* Adds a callback. They are called in order of registration, each at most once per
 * allocation, until one has released something and the allocation fits; last, after
 * unheld memory has been given back and fences have been waited for, and not while a
 * stream is capturing. At most 8 (LIMIT). */
WEIR_API weir_result weir_device_reclaim_add(weir_device *device,
                                             weir_reclaim_fn callback, void *context);

/* Removes the callback that was added with this context; NOT_FOUND if there is none. When
 * it returns, the callback is not running on another thread and will not run again. A
 * callback may remove itself; two must not remove each other. */
WEIR_API weir_result weir_device_reclaim_remove(weir_device *device,
                                                weir_reclaim_fn callback, void *context);

#ifdef __cplusplus
}
#endif
#endif
