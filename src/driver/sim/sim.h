/* SPDX-License-Identifier: MIT */
/* The sim driver's own structures.
 *
 * A stream is a row of items, numbered from 0: pieces of work, and waits for other
 * streams.
 *
 *   items   0 1 2 3 4 5 6          `done` of them have completed, `queued` exist;
 *           # # # . . W .          a fence is (stream, number of items before it) and has
 * passed done    queued   once done reaches that number.
 *
 * Work completes when told: by weir_sim_finish, by a host wait, with a lag by
 * weir_sim_step. A wait completes by itself when all items before it have and its fence
 * has passed. Completing an item completes whatever it waits for, on other streams,
 * first. Waits always point to items that were queued earlier, so they make no circle.
 *
 * With a lag of N each item, and each fence that is recorded, keeps its stream busy until
 * weir_sim_step was called N times after it was queued; what is told completes sooner.
 *
 * Handles of streams, fences and graphs are a generation (upper half) and an index + 1,
 * so that old ones are told from new ones. One lock guards everything; no call waits. */
#ifndef WR_DRIVER_SIM_SIM_H
#define WR_DRIVER_SIM_SIM_H

#include "base/lock.h"
#include "driver/drivers.h"
#include "driver/regions.h"

#include <weir/sim.h>

/* Something that happens when a stream's `done` stands at `position`: a wait for `value`
 * items of `stream` (an index), or, in the other list, the step `value` at which the
 * items before `position` were queued. */
typedef struct wr_sim_note {
    uint64_t position;
    uint64_t value;
    uint32_t stream;
} wr_sim_note;

/* First in, first out. */
typedef struct wr_sim_notes {
    wr_sim_note *items;
    size_t first; /* index of the oldest */
    size_t end;   /* index behind the newest */
    size_t capacity;
} wr_sim_notes;

typedef struct wr_sim_stream {
    uint32_t generation; /* of the handle */
    bool is_live;        /* the slot is taken */
    bool is_open;        /* not closed by Weir yet */
    bool is_capturing;
    bool is_spoiled; /* the capture has failed */
    void *native;    /* what the caller gave at open; only handed back */
    uint64_t queued; /* items so far */
    uint64_t done;   /* of them completed */
    uint64_t wanted; /* while completing: items that must be; else 0 */
    uint32_t fences; /* fences, and waits of other streams, that name this one */
    wr_sim_notes waits;
    wr_sim_notes steps; /* only with a lag */
} wr_sim_stream;

typedef struct wr_sim_fence {
    uint32_t generation;
    bool is_live;
    uint32_t stream;    /* index */
    uint64_t position;  /* passed when the stream's done is at least this */
    uint32_t next_free; /* index + 1 of the next free slot; 0: none */
} wr_sim_fence;

typedef struct wr_sim_graph {
    uint32_t generation;
    bool is_live;
} wr_sim_graph;

typedef struct wr_sim_failure {
    uint64_t after; /* good calls first */
    uint64_t count; /* then so many failing ones */
} wr_sim_failure;

typedef struct wr_sim {
    weir_driver base;
    weir_sim_desc desc; /* constant, defaults filled in */
    wr_lock lock;       /* guards all below */
    wr_regions book;
    uint64_t next_address; /* never handed out before */
    weir_sim_ledger ledger;
    wr_sim_failure failures[WEIR_SIM_OP_COUNT];
    uint64_t fail_nth; /* calls until the one that fails; 0: none */
    bool is_gone;      /* after shutdown */
    uint64_t clock_ms;
    uint64_t step; /* calls of weir_sim_step */
    wr_sim_stream *streams;
    size_t stream_count, stream_capacity;
    wr_sim_fence *fences;
    size_t fence_count, fence_capacity;
    uint32_t free_fence; /* index + 1 of the first free slot; 0: none */
    wr_sim_graph *graphs;
    size_t graph_count, graph_capacity;
} wr_sim;

static inline wr_sim *wr_sim_of(weir_driver *driver)
{
    return (wr_sim *)driver;
}

static inline uint64_t wr_sim_handle(uint32_t generation, size_t index)
{
    return (uint64_t)generation << 32 | (uint32_t)(index + 1);
}

/* ---- sim.c: under the lock ---- */

/* Counts a call and fails it if that was asked for, or if the device is gone. */
weir_result wr_sim_enter(wr_sim *sim, weir_sim_op op);
/* The same for calls that are not counted. */
weir_result wr_sim_check_alive(const wr_sim *sim, const char *call);

/* ---- queue.c: under the lock ---- */

/* The stream that a handle names, closed or not; NULL if it is forgotten. */
wr_sim_stream *wr_sim_stream_at(const wr_sim *sim, weir_driver_stream handle);
/* The open stream that a handle names, or INVALID. */
weir_result wr_sim_get_stream(wr_sim *sim, const char *call, weir_driver_stream handle,
                              wr_sim_stream **stream);
/* OK unless the stream is capturing; then the capture is spoiled. */
weir_result wr_sim_refuse_capture(wr_sim_stream *stream, const char *call);
/* One more item on the stream; on a capturing one nothing, it goes into the graph. */
weir_result wr_sim_queue_item(wr_sim *sim, wr_sim_stream *stream);
/* One more item, a wait for `position` items of the stream with index `awaited`. */
weir_result wr_sim_queue_wait(wr_sim *sim, wr_sim_stream *stream, uint32_t awaited,
                              uint64_t position);
/* Completes the first `position` items of a stream and all that they wait for. */
void wr_sim_complete(wr_sim *sim, wr_sim_stream *stream, uint64_t position);
/* Completes what was queued `lag` steps ago. */
void wr_sim_complete_lagging(wr_sim *sim);
/* True while some stream has items that are not done. */
bool wr_sim_is_busy(const wr_sim *sim);
/* Forgets a stream that is closed, done and named by nobody. */
void wr_sim_reap(wr_sim_stream *stream);
void wr_sim_free_notes(wr_sim_stream *stream);

/* ---- entries of the table: space.c, streams.c, capture.c ---- */

weir_result wr_sim_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address);
weir_result wr_sim_page_free(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_sim_range_reserve(weir_driver *driver, uint64_t bytes, uint64_t *address);
weir_result wr_sim_range_free(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_sim_commit(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_sim_commit_chunks(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 uint64_t chunk_bytes);
weir_result wr_sim_decommit(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_sim_move(weir_driver *driver, uint64_t to, uint64_t from, uint64_t bytes);
weir_result wr_sim_memory_info(weir_driver *driver, weir_memory_info *info);
uint64_t wr_sim_pending_bytes(weir_driver *driver);
weir_result wr_sim_progress(weir_driver *driver, bool wait);
weir_result wr_sim_write(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                         const void *data, uint64_t bytes);
weir_result wr_sim_read(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                        void *data, uint64_t bytes);
weir_result wr_sim_copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                        uint64_t from, uint64_t bytes);

weir_result wr_sim_stream_open(weir_driver *driver, void *native,
                               weir_driver_stream *stream);
void wr_sim_stream_close(weir_driver *driver, weir_driver_stream stream);
void *wr_sim_stream_native(weir_driver *driver, weir_driver_stream stream);
weir_result wr_sim_stream_test(weir_driver *driver, weir_driver_stream stream);
weir_result wr_sim_stream_sync(weir_driver *driver, weir_driver_stream stream);
weir_result wr_sim_stream_wait(weir_driver *driver, weir_driver_stream stream,
                               weir_driver_fence fence);
weir_result wr_sim_fence_record(weir_driver *driver, weir_driver_stream stream,
                                weir_driver_fence *fence);
weir_result wr_sim_fence_test(weir_driver *driver, weir_driver_fence fence);
weir_result wr_sim_fence_wait(weir_driver *driver, weir_driver_fence fence);
void wr_sim_fence_release(weir_driver *driver, weir_driver_fence fence);
weir_result wr_sim_launch(weir_driver *driver, weir_driver_stream stream,
                          const weir_launch *launch);
weir_result wr_sim_queue(weir_driver *driver, weir_driver_stream stream);

weir_result wr_sim_capture_begin(weir_driver *driver, weir_driver_stream stream);
weir_result wr_sim_capture_end(weir_driver *driver, weir_driver_stream stream,
                               uint64_t *graph);
weir_result wr_sim_capture_abort(weir_driver *driver, weir_driver_stream stream);
weir_result wr_sim_graph_launch(weir_driver *driver, weir_driver_stream stream,
                                uint64_t graph);
void wr_sim_graph_destroy(weir_driver *driver, uint64_t graph);

#endif
