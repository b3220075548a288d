/* SPDX-License-Identifier: MIT */
/* The manager of one stream, the bank of one device, and what both share.
 *
 * A manager has one pool per layout of the preset and serves its stream's requests from
 * them. What it lacks comes, in this order (ladder.c), from the bank, from other
 * managers' unheld memory, from the driver. What the driver gets back leaves through
 * harvest.c.
 *
 * Locks, in the order in which one thread may take them:
 *   manager->lock      the manager, its pools and their slices      (never two managers'
 * at once, but by try, in snapshots) bank->lock         bank pools, bare addresses,
 * reserved bank->roster_lock  the list of managers bank->graphs_lock, tags_lock  under
 * which no other is taken. No driver call that can wait for the
 * device is made under any of them. Memory that is on its way to or from the driver is in
 * transit: in no index, so that nobody places there.
 *
 * Sequence counts (base/atomic.h) are odd while the books of their owner change; a move
 * between two owners makes both odd. */
#ifndef WR_MANAGER_MANAGER_H
#define WR_MANAGER_MANAGER_H

#include "barrier.h"

#include "base/lock.h"
#include "driver/loss.h"
#include "pool/pool.h"

#include <weir/memory.h>

#define WR_LIST_MAX 32u                /* pools that a list may have */
#define WR_POOL_MAX (WR_LIST_MAX + 1u) /* and the one that is shared with processes */
#define WR_ROUTE_MAX (3u * WR_POOL_MAX + 1u) /* a pool serves at most two stretches */
#define WR_EPOCH_SLOTS 8u /* so many epochs can wait for their fences at once */
#define WR_TAG_MAX                                                                       \
    256u /* tag 0: untagged; WR_TAG_OTHER: what found no room in the table */
#define WR_TAG_OTHER 1u
#define WR_TAG_SLOTS (2u * WR_TAG_MAX)
#define WR_NAME_BYTES 32u

/* One layout of the preset, device-wide. Guard: bank->lock, but for what is constant. */
typedef struct wr_class {
    wr_layout layout;       /* constant */
    wr_page *range;         /* granular: the range of addresses; constant once there */
    wr_pool bank;           /* unheld memory */
    wr_index *bare;         /* granular: addresses without memory */
    uint64_t returned_idle; /* given back by time, lately; see idle.c */
    wr_page *whole_pages;   /* by next */
    wr_counter pages;       /* pages, or committed granules */
    wr_counter pages_peak;
    wr_counter reserved;  /* bytes of all its owners */
    uint64_t promised;    /* bytes being asked of the driver, or moved here, right now */
    wr_counter cap_bytes; /* most `reserved` allowed; 0: no limit */
    wr_counter spills;    /* requests that went elsewhere because of it */
} wr_class;

/* Streams share it, so all but the limit change atomically. */
typedef struct wr_tag_count {
    wr_counter in_use, peak;
    wr_counter extents; /* in_use + padding, and what limited requests have asked for */
    wr_counter live;
    wr_counter limit_bytes; /* most `extents` allowed; 0: no limit. Guard: tags_lock */
    uint64_t unused[3];     /* a cache line each */
} wr_tag_count;

typedef struct wr_events {
#define WR_EVENT_FIELD(name, text) wr_counter name;
    WEIR_EVENT_LIST(WR_EVENT_FIELD)
#undef WR_EVENT_FIELD
} wr_events;

/* Requests of up to `bytes`, and more than the route before, go to `pool`. */
typedef struct wr_route {
    uint64_t bytes;
    wr_pool *pool; /* wr_pool_none: no pool serves them */
} wr_route;

struct wr_bank;

#define WR_GATE_CLOSED 1u  /* the stream has ended */
#define WR_GATE_LOST 2u    /* the device is lost */
#define WR_GATE_CHECKED 4u /* checked mode */
#define WR_GATE_WINDOW 8u  /* a window is open, see capture.h */

typedef struct wr_manager {
    wr_lock lock;
    wr_counter sequence;
    wr_moment moment;
    uint64_t epoch;  /* of releases now */
    uint64_t passed; /* the last epoch whose queued work has completed */
    bool dirty;      /* something was released in this epoch */
    bool has_queued; /* the stream was found at work, once at least */
    _Atomic bool
        closing; /* the stream has ended; what is left goes when its work has passed */
    _Atomic bool capturing;
    uint32_t visitors;    /* threads in calls that a capture must not meet; roster_lock */
    _Atomic uint8_t gate; /* WR_GATE_ bits: why requests are not ordinary; 0: they are */
    uint32_t pins;        /* guard: roster_lock; visitors that hold no lock */
    wr_slab_cache cache;
    wr_pool *pools;            /* one per class */
    uint64_t counted_sequence; /* of the last recount */
    struct wr_bank *bank;
    uint32_t slot;   /* its place in the roster */
    uint64_t serial; /* no other stream of the device ever has the same */
    weir_driver_stream stream;
    char name[WR_NAME_BYTES];

    /* What an allocation must look at first, and all of it at once. */
    union {
        struct {
            /* Releases by threads that did not get the lock: a list linked by held.link.
             * Anyone pushes, the lock's holder drains. */
            _Atomic wr_slice_id remote;
            /* Releases with uses elsewhere (waits.c). */
            wr_slice_id batch;  /* not fenced yet, linked by held.link */
            wr_slice_id groups; /* fenced */
            uint32_t sharing; /* others want what has not passed yet: allocations to go on
                                 closing epochs */
        };
        wr_counter waiting[2]; /* 0: none of these */
    };
    wr_counter remote_requested, remote_extent; /* what the list moves from in_use and
                                                   padding to deferred */
    uint32_t batch_count;
    uint32_t polls;                         /* number of the last poll, never 0 */
    wr_slice_id epoch_wait[WR_EPOCH_SLOTS]; /* fences of closed epochs, by epoch */
    weir_driver_fence closing_fence;

    /* Guards (guard.h). */
    uint64_t settled_event; /* settled memory was released before... */
    uint64_t
        borrowed_event; /* ...or, what came from the bank, before this; guard: lock */
    uint64_t
        epoch_event[WR_EPOCH_SLOTS];    /* when closed epochs were closed; guard: lock */
    uint64_t guard_passed, guard_event; /* guard: roster_lock, as the next */
    weir_driver_fence guard_fence;

#if WEIR_CHECK >= 3
    uint32_t walk_step;
#endif
    /* Windows (graph.h, capture.h). */
    _Atomic uint32_t window_depth;        /* persistent windows that are open */
    struct weir_graph *_Atomic recording; /* guard: lock and graphs_lock */
    wr_slice_id recorded;            /* released slices that graphs hold, by held.link */
    uint64_t recorded_bytes;         /* theirs */
    weir_driver_fence capture_fence; /* capturing: what was queued before; 0: nothing */
    uint64_t capture_ms;             /* capturing: since when */

    uint32_t polled; /* allocations since waits were last polled */
    wr_counter in_use, peak_in_use;
    wr_counter published;                  /* in_use as the bank has been told */
    uint64_t publish_above, publish_below; /* in_use beyond makes it tell the bank */
    uint64_t heed_above; /* in_use beyond is for wr_manager_heed: that, or a new peak */
    bool alone;          /* its peak is the device's: it need not */
    bool few;            /* nor of less, as whoever needs to know can ask all */
    uint32_t unhurried;  /* requests that the hot path did not serve */
    wr_route routes[WR_ROUTE_MAX]; /* by bytes; the last one goes to UINT64_MAX */
} wr_manager;

typedef struct wr_options {
    uint64_t idle_ms;
    uint64_t keep_bytes;
    bool no_idle, no_wait, trust_uses;
} wr_options;

typedef struct wr_bank {
    weir_driver *driver;
    const weir_driver_table *table;
    weir_driver_properties properties;
    wr_options options;
    uint64_t granule_bytes; /* 0: pages whole */
    wr_loss loss;           /* what `driver` and `table` are of: a door that shuts */

    wr_lock lock;
    wr_counter sequence;
    wr_moment
        moment; /* everything has passed; the mark is the event of the last arrival... */
    uint64_t newest_event; /* ...and this the newest of all */
    wr_slab_cache cache;
    wr_class classes[WR_POOL_MAX];
    uint32_t class_count;
    wr_counter transit; /* bytes between owners or on their way back; releasable */
    wr_counter reserved, peak_reserved;
    uint64_t promised; /* bytes being asked of the driver right now */
    wr_counter limit_bytes;
    wr_counter owed; /* left reserved by requests that failed during a capture */

    wr_counter event; /* see guard.h */
    /* On lines of their own: all streams write the first two, all read the next two. */
    char apart_before[64];
    wr_counter published, peak_in_use; /* in_use of all managers, as published */
    char apart[64];
    wr_counter tick;   /* WR_TICK_MS since open */
    wr_counter parked; /* 1: the reclaimer sleeps and wants to be woken */
    char apart_behind[64];
    wr_counter hot_bytes, hot_factor, hot_tick, hot_raised_tick; /* see idle.c */
    wr_counter returned_tick;
    wr_counter driven_bytes, drives; /* pending bytes, and steps that left them so */
    uint64_t opened_ms;
    void (*wake)(
        struct wr_bank *bank); /* wakes the reclaimer; may hold a manager's lock */
    /* Calls the program's reclaim callbacks, those after number `*after`, until one says
     * that it released something; with no lock held. */
    bool (*reclaim)(struct wr_bank *bank, uint64_t needed_bytes, uint64_t *after);

    wr_lock roster_lock;
    wr_manager **roster; /* by slot; NULL where none */
    size_t roster_capacity;
    _Atomic uint32_t roster_count; /* written under the lock */

    wr_barrier barrier; /* what no thread does while a stream is capturing */
    wr_lock graphs_lock;
    struct weir_graph **graphs; /* by number; NULL where none; guard: graphs_lock */
    size_t graph_capacity;
    uint32_t graph_count;

    wr_lock tags_lock;
    char tag_names[WR_TAG_MAX][WR_NAME_BYTES];
    uint64_t tags_base;     /* a weir_tag is that and a number; unique in the process */
    uint32_t limited_count; /* tags with a limit; guard: tags_lock */
    wr_counter plain_count; /* tag_count while no tag has a limit, else 0 */
    _Atomic uint32_t tag_count;
    _Atomic uint16_t tag_slots[WR_TAG_SLOTS]; /* numbers, found by a name's hash */
    wr_counter tags_serial; /* never 0, unique in the process, a new one for new limits */
    wr_tag_count tags[WR_TAG_MAX];

    wr_events events;
} wr_bank;

/* ---- the bank ---- */

/* Sets up the classes of a preset on an open driver (preset.h). On failure nothing is
 * left. */
struct wr_layouts;
weir_result wr_bank_init(wr_bank *bank, const struct wr_layouts *layouts);
/* Gives all pages and ranges back. All managers are gone; nothing is held. */
void wr_bank_finish(wr_bank *bank);

static inline void wr_sequence_begin(wr_counter *sequence)
{
    wr_sequence_step(sequence);
}

static inline void wr_sequence_end(wr_counter *sequence)
{
    wr_sequence_step(sequence);
}

/* Bytes handed back that the driver has not let go of. */
static inline uint64_t wr_bank_pending(const wr_bank *bank)
{
    return bank->table->pending_bytes == NULL ? 0
                                              : bank->table->pending_bytes(bank->driver);
}

/* Takes bank->lock and makes its sequence odd; the other undoes both. */
void wr_bank_lock(wr_bank *bank);
void wr_bank_unlock(wr_bank *bank);

/* ---- managers ---- */

/* Enters a new manager into the roster. `manager` is zeroed memory of the caller's. */
weir_result wr_manager_init(wr_manager *manager, wr_bank *bank, weir_driver_stream stream,
                            const char *name);
/* Leaves the roster and frees what the manager has; false, nothing done, while it is
 * pinned. */
bool wr_manager_finish(wr_manager *manager);

/* Visits managers without holding the roster: `*slot` starts at 0; NULL at the end. Each
 * one returned is pinned, so that it stays, until wr_manager_unpin. */
wr_manager *wr_manager_next(wr_bank *bank, uint32_t *slot);
void wr_manager_unpin(wr_manager *manager);

/* The first pool that serves a request. NULL: none does. */
wr_pool *wr_manager_route(wr_manager *manager, uint64_t extent_bytes, bool persistent);

/* What a request whose tag has a limit is counted with (limits.h). */
typedef struct wr_charge {
    uint64_t bytes; /* counted for the tag already */
    uint64_t
        over_bytes;    /* the slice found was so large that the limit refused it; or 0 */
    uint64_t callback; /* number of the last reclaim callback that was called */
} wr_charge;

/* What a request is; filled by the caller of reserve. */
typedef struct wr_request {
    uint64_t requested_bytes;
    uint64_t extent_bytes;
    uint64_t alignment_bytes; /* 0 or a power of two above the unit */
    uint8_t alignment_shift;  /* its logarithm */
    uint16_t tag;
    wr_charge *charge; /* NULL: the tag has no limit */
    bool persistent;
    bool shared;                       /* in a page that other processes may map... */
    const struct weir_share *imported; /* ...which is another process's; or NULL */
    bool loose;      /* out of memory otherwise: a whole page of any size will do */
    wr_pool *pool;   /* NULL: the first that serves it */
    wr_slice *given; /* hand out this free slice of the pool; or NULL */
} wr_request;

/* Takes the lock, drains what others released; wr_manager_unlock leaves it. */
void wr_manager_lock(wr_manager *manager);
/* The same if nobody has the lock; it may be called with another manager's held. */
bool wr_manager_try_lock(wr_manager *manager);
static inline void wr_manager_unlock(wr_manager *manager)
{
    wr_lock_leave(&manager->lock);
}

/* Under the lock: a slice from what the manager has, entered in the books, or NULL. */
wr_slice *wr_manager_try_reserve(wr_manager *manager, const wr_request *request);

/* A slice by all means there are (ladder.c). On failure everything is as before, and the
 * error text says why. */
weir_result wr_manager_reserve(wr_manager *manager, const wr_request *request,
                               wr_slice **slice);

/* The same for an ordinary request of a stream without a gate, whose tag has no limit
 * (hot.c): a buffer with one reference. */
weir_result wr_manager_create(wr_manager *manager, uint64_t bytes, uint64_t tag,
                              weir_buffer *buffer);

/* The last reference to a slice is gone (hot.c). Never waits, never fails. */
void wr_manager_release(wr_slice *slice);

/* Under the lock: processes releases that other threads left. */
void wr_manager_drain(wr_manager *manager);

/* Under the lock: what a release now leaves on its granules. */
static inline uint64_t wr_manager_mark(const wr_manager *manager)
{
    uint64_t tick = WR_OWN(manager->bank->tick);
    return manager->epoch << WR_TICK_BITS | (tick & WR_TICK_MASK);
}

/* Under the lock: tells the bank the change of in_use since the last time. */
void wr_manager_publish(wr_manager *manager);
/* Under the lock: in_use has risen above heed_above, or fallen below publish_below. */
void wr_manager_heed(wr_manager *manager);

/* The most that in_use ever was, also while it rises. */
static inline uint64_t wr_manager_peak(const wr_manager *manager)
{
    uint64_t peak = WR_GET(manager->peak_in_use), in_use = WR_GET(manager->in_use);
    return in_use > peak ? in_use : peak;
}

/* Under the lock: brings the split of free bytes up to date; nothing if nothing changed.
 */
void wr_manager_recount(wr_manager *manager);
void wr_bank_recount(wr_bank *bank);

/* Live slices, counted under the lock. */
uint64_t wr_manager_live(const wr_manager *manager);

/* What releases by other threads have left: it counts as deferred instead of in use. */
typedef struct wr_remote {
    uint64_t requested, extent;
} wr_remote;

/* Reads the books of a manager (or of the bank), without a lock, once. False: they
 * changed meanwhile. */
bool wr_manager_read(wr_manager *manager, wr_totals totals[WR_POOL_MAX],
                     wr_remote *remote);
bool wr_bank_read(wr_bank *bank, wr_totals totals[WR_POOL_MAX], uint64_t *reserved);

/* Calls `visit` for every slice of a pool, the bank's or a manager's, under its lock and
 * the bank's. */
typedef void (*wr_slice_visitor)(void *context, wr_page *page, wr_slice *slice);
void wr_pool_visit(wr_bank *bank, wr_pool *pool, wr_slice_visitor visit, void *context);

/* Walks everything the manager (or the bank) owns and compares with the books; under its
 * lock. NULL, or what is wrong. */
const char *wr_manager_walk(wr_manager *manager);
const char *wr_bank_walk(wr_bank *bank);

#endif
