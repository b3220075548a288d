/* SPDX-License-Identifier: MIT */
/* Device and stream objects behind the public API. */
#ifndef WR_STREAM_DEVICE_H
#define WR_STREAM_DEVICE_H

#include "callbacks.h"

#include "manager/manager.h"

#include <weir/report.h>

#include <pthread.h>

/* The idle reclaimer's thread (reclaimer.c). */
typedef struct wr_reclaimer {
    pthread_mutex_t mutex;
    pthread_cond_t wanted;
    pthread_t thread;
    bool started;             /* guard: mutex */
    bool stop;                /* guard: mutex */
    bool enabled;             /* constant: a thread may be started */
    struct weir_device *next; /* in the list of devices that may have a thread */
} wr_reclaimer;

struct weir_stream {
    wr_manager manager; /* first: the manager is the stream */
    weir_device *device;
    bool adopted;
    bool is_default;
    weir_stream *next; /* in device->streams, guard: device->lock */
    wr_callbacks hooks;
};

struct weir_device {
    wr_bank bank;      /* first: the bank is the device */
    weir_device *next; /* open devices (devices.c), guard: theirs, like the next two */
    uint64_t number;   /* rises with every opening */
    uint32_t pins;     /* cleanups over all devices that are at this one */
    char name[64];
    char preset[WR_NAME_BYTES];
    wr_lock lock; /* streams; never held together with another lock but the roster's */
    weir_stream *streams; /* all, the ended ones too */
    weir_stream *default_stream;
    wr_lock reap_lock; /* one reaper at a time */
    wr_reclaimer reclaimer;
    wr_callbacks reclaims;            /* the program's, called when there is no room */
    struct wr_starts *_Atomic starts; /* see pointer.c; own addresses only, or NULL */
};

static inline weir_stream *wr_stream_of(wr_manager *manager)
{
    return (weir_stream *)(void *)manager;
}

/* Sizes above are mistakes: 16 TiB. */
#define WR_REQUEST_MAX (UINT64_C(1) << 44)

/* stream.c */
weir_result wr_stream_open(weir_device *device, const weir_stream_desc *desc,
                           weir_stream **stream);
/* Ends a stream whatever it holds, waiting for its work; used by close and abandon. */
void wr_stream_end(weir_stream *stream);
/* Frees ended streams whose memory has all gone to the bank. */
void wr_stream_reap(weir_device *device);

/* devices.c: the open devices of the process. */
void wr_devices_add(weir_device *device);
/* Waits while a cleanup over all devices is at this one. */
void wr_devices_remove(weir_device *device);
/* Whether this thread is inside a hook of such a cleanup of the device. */
bool wr_devices_is_inside(const weir_device *device);

/* hooks.c */

void wr_hooks_before_cleanup(weir_device *device);
void wr_hooks_before_close(weir_device *device);
void wr_hooks_stream_closes(weir_stream *stream);
/* Has what is queued above Weir submitted: before waits, and where windows begin and end.
 */
weir_result wr_hooks_drain(weir_stream *stream);

/* reclaimer.c */
void wr_reclaimer_init(weir_device *device, bool enabled);
/* Joins the thread; also done for all devices when the process ends. */
void wr_reclaimer_finish(weir_device *device);

/* reclaim.c */
void wr_reclaim_init(weir_device *device);
void wr_reclaim_finish(weir_device *device);
/* Whether the calling thread is inside a reclaim callback of the device. */
bool wr_reclaim_is_inside(const weir_device *device);

/* pointer.c: forgets a device's pointers. */
void wr_pointer_finish(weir_device *device);

/* holders.c: "weights 64.0 MiB in 1 buffer, ..." appended to the last error. */
void wr_holders_append(wr_bank *bank);
/* Makes every live buffer of a manager a stale handle and its bytes free. */
void wr_holders_evict(wr_manager *manager);

/* survey.c: who pins what, the largest first, for cleanup's outcome and reports. */
void wr_survey_pinning(wr_bank *bank, weir_pinning *pinning, size_t capacity);

/* usage.c: all books at one moment. What other threads have released but nobody has
 * drained is `remote`: in use in the pools, deferred in the usage. */
typedef struct wr_snapshot {
    wr_totals pools[WR_POOL_MAX]; /* bytes in transit are in the first one */
    wr_remote remote;
    uint64_t transit;
    uint64_t reserved; /* counted apart from the pools' books, like the next */
    uint64_t pool_reserved[WR_POOL_MAX];
} wr_snapshot;
void wr_usage_read(weir_device *device, weir_usage *usage, wr_snapshot *s);

#endif
