/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include "cleanup.h"
#include "ladder.h"
#include "waits.h"

#include "base/memory.h"
#include "base/result.h"

#include <stdio.h>
#include <string.h>

/* ---- windows ---- */

/* Under the lock: while a window is open, no request is ordinary. */
static void update_gate(wr_manager *manager)
{
    if (manager->window_depth > 0 || manager->recording != NULL) {
        manager->gate |= WR_GATE_WINDOW;
    } else {
        manager->gate &= (uint8_t)~WR_GATE_WINDOW;
    }
}

weir_result wr_window_begin(wr_manager *manager)
{
    weir_result result = WEIR_OK;
    wr_manager_lock(manager);
    if (manager->window_depth == UINT32_MAX) {
        result = wr_error(WEIR_LIMIT, "weir_window_begin: 2^32 - 1 windows are open");
    } else {
        manager->window_depth++;
        update_gate(manager);
    }
    wr_manager_unlock(manager);
    return result;
}

weir_result wr_window_end(wr_manager *manager)
{
    weir_result result = WEIR_OK;
    wr_manager_lock(manager);
    if (manager->window_depth == 0) {
        result =
            wr_error(WEIR_INVALID, "weir_window_end: stream \"%s\" has no window to end",
                     manager->name);
    } else {
        manager->window_depth--;
        update_gate(manager);
    }
    wr_manager_unlock(manager);
    return result;
}

/* ---- recording: under the manager's lock ---- */

static weir_result check_driver(const wr_bank *bank)
{
    const weir_driver_table *table = bank->table;
    bool can = table->capture_begin != NULL && table->capture_end != NULL &&
               table->capture_abort != NULL && table->graph_launch != NULL &&
               table->graph_destroy != NULL;
    return can ? WEIR_OK
               : wr_error(WEIR_UNSUPPORTED, "driver %s captures no graphs", table->name);
}

static weir_result refuse(const wr_manager *manager, const char *function)
{
    const weir_graph *graph = manager->recording;
    const char *state = manager->closing     ? "closed"
                        : graph == NULL      ? "not capturing"
                        : manager->capturing ? "capturing already"
                                             : "being primed for a capture";
    return wr_error(WEIR_INVALID, "%s: stream \"%s\" is %s", function, manager->name,
                    state);
}

static void set_recording(wr_manager *manager, weir_graph *graph)
{
    wr_lock_take(&manager->bank->graphs_lock);
    manager->recording = graph;
    wr_lock_leave(&manager->bank->graphs_lock);
    update_gate(manager);
}

/* The roster's lock, too: whoever tests or records on a stream looks under it. False: a
 * thread is in a call that a capture must not meet. */
static bool set_capturing(wr_manager *manager, bool capturing)
{
    wr_lock_take(&manager->bank->roster_lock);
    bool can = !capturing || manager->visitors == 0;
    manager->capturing = capturing && can;
    wr_lock_leave(&manager->bank->roster_lock);
    return can;
}

bool wr_capture_enter(wr_manager *manager)
{
    wr_lock_take(&manager->bank->roster_lock);
    bool can = !manager->capturing;
    manager->visitors += can;
    wr_lock_leave(&manager->bank->roster_lock);
    return can;
}

void wr_capture_leave(wr_manager *manager)
{
    wr_lock_take(&manager->bank->roster_lock);
    manager->visitors--;
    wr_lock_leave(&manager->bank->roster_lock);
}

static void set_phase(weir_graph *graph, wr_graph_phase phase)
{
    wr_lock_take(&graph->bank->graphs_lock);
    graph->phase = phase;
    wr_lock_leave(&graph->bank->graphs_lock);
}

/* A recording that keeps what is dropped, if the stream has none yet. */
static weir_result start_recording(wr_manager *manager, weir_graph **fresh)
{
    if (manager->recording != NULL) {
        return WEIR_OK;
    }
    *fresh = wr_graph_create(manager);
    if (*fresh == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a graph");
    }
    set_recording(manager, *fresh);
    return WEIR_OK;
}

/* Nothing may be recorded at a capturing stream: what others will want to wait for is
 * fenced before. */
static weir_result fence_queued(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    weir_result result = bank->table->stream_test(bank->driver, manager->stream);
    if (result == WEIR_NOT_READY) {
        WR_COUNT(bank->events.fences);
        result = bank->table->fence_record(bank->driver, manager->stream,
                                           &manager->capture_fence);
    }
    return result;
}

static void drop_fence(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    if (manager->capture_fence != 0) {
        bank->table->fence_release(bank->driver, manager->capture_fence);
        manager->capture_fence = 0;
    }
}

static weir_result start_driver(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    WR_TRY(fence_queued(manager));
    if (!set_capturing(manager, true)) {
        drop_fence(manager);
        return wr_error(WEIR_BUSY,
                        "weir_capture_begin: another thread is waiting for stream \"%s\" "
                        "or launching a graph on it; begin when it is done",
                        manager->name);
    }
    weir_result result = bank->table->capture_begin(bank->driver, manager->stream);
    if (result != WEIR_OK) {
        set_capturing(manager, false);
        drop_fence(manager);
    }
    return result;
}

/* What the stream has made and dropped stays limbo, as long as the graph is there. */
static weir_graph *stop_recording(wr_manager *manager)
{
    weir_graph *graph = manager->recording;
    set_capturing(manager, false);
    drop_fence(manager);
    wr_waits_close_batch(manager);
    wr_graph_spill(graph);
    set_recording(manager, NULL);
    return graph;
}

/* ---- prime, begin ---- */

weir_result wr_capture_prime(wr_manager *manager)
{
    weir_graph *fresh = NULL;
    WR_TRY(check_driver(manager->bank));
    wr_manager_lock(manager);
    weir_result result = manager->closing || manager->recording != NULL
                             ? refuse(manager, "weir_capture_prime")
                             : start_recording(manager, &fresh);
    wr_manager_unlock(manager);
    return result;
}

/* Under the lock, with the barrier up. */
static weir_result begin(wr_manager *manager, weir_graph **fresh)
{
    if (manager->closing || manager->capturing) {
        return refuse(manager, "weir_capture_begin");
    }
    uint64_t now_ms = wr_idle_now_ms(manager->bank);
    wr_waits_catch_up(manager, false);
    WR_TRY(start_recording(manager, fresh));
    manager->capture_ms = now_ms;
    weir_result result = start_driver(manager);
    if (result != WEIR_OK && *fresh != NULL) {
        set_recording(manager, NULL);
        return result;
    }
    if (result == WEIR_OK) {
        wr_graph_let_go(manager->recording); /* what priming has kept */
        set_phase(manager->recording, WR_GRAPH_PHASE_RECORDING);
        *fresh = NULL;
    }
    return result;
}

weir_result wr_capture_begin(wr_manager *manager)
{
    weir_graph *fresh = NULL;
    WR_TRY(check_driver(manager->bank));
    wr_barrier_raise(&manager->bank->barrier);
    wr_manager_lock(manager);
    weir_result result = begin(manager, &fresh);
    wr_manager_unlock(manager);
    if (result != WEIR_OK) {
        wr_barrier_lower(&manager->bank->barrier);
    }
    if (fresh != NULL) {
        wr_graph_discard(fresh);
    }
    return result;
}

/* ---- end, abort ---- */

static void allow_all(wr_bank *bank)
{
    wr_barrier_lower(&bank->barrier);
    wr_ladder_settle(bank);
}

static void name_graph(weir_graph *graph, const char *name, uint64_t handle)
{
    wr_lock_take(&graph->bank->graphs_lock);
    if (name != NULL) {
        snprintf(graph->name, sizeof graph->name, "%s", name);
    } else {
        snprintf(graph->name, sizeof graph->name, "%u", graph->number);
    }
    graph->handle = handle;
    graph->origin = NULL;
    graph->phase = WR_GRAPH_PHASE_SEALED;
    wr_lock_leave(&graph->bank->graphs_lock);
    wr_host_free(graph->dropped);
    graph->dropped = NULL;
}

/* Under the lock: the graph owns what was recorded, or lets it go. */
static weir_result seal(weir_graph *graph, wr_manager *manager, const char *name,
                        weir_result result, uint64_t handle)
{
    wr_bank *bank = manager->bank;
    if (result == WEIR_OK && !wr_graph_list(graph)) {
        bank->table->graph_destroy(bank->driver, handle);
        result = wr_error(WEIR_OUT_OF_HOST_MEMORY,
                          "weir_capture_end: no host memory for the graph's list");
    }
    if (result == WEIR_OK) {
        name_graph(graph, name, handle);
    } else {
        wr_graph_let_go(graph);
    }
    return result;
}

weir_result wr_capture_end(wr_manager *manager, const char *name, weir_graph **graph_out)
{
    wr_bank *bank = manager->bank;
    wr_manager_lock(manager);
    if (!manager->capturing) {
        weir_result refused = refuse(manager, "weir_capture_end");
        wr_manager_unlock(manager);
        return refused;
    }
    uint64_t handle = 0;
    weir_result result = bank->table->capture_end(bank->driver, manager->stream, &handle);
    weir_graph *graph = stop_recording(manager);
    result = seal(graph, manager, name, result, handle);
    wr_manager_unlock(manager);
    allow_all(bank);
    if (result == WEIR_OK) {
        *graph_out = graph;
    } else {
        wr_graph_discard(graph);
    }
    return result;
}

weir_result wr_capture_abort(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    wr_manager_lock(manager);
    if (manager->recording == NULL) {
        weir_result refused = refuse(manager, "weir_capture_abort");
        wr_manager_unlock(manager);
        return refused;
    }
    bool captured = manager->capturing;
    weir_result result =
        captured ? bank->table->capture_abort(bank->driver, manager->stream) : WEIR_OK;
    weir_graph *graph = stop_recording(manager);
    wr_graph_let_go(graph);
    wr_manager_unlock(manager);
    if (captured) {
        allow_all(bank);
    }
    wr_graph_discard(graph);
    return result;
}

/* ---- graphs ---- */

static bool knows_stream(const weir_graph *graph, const wr_manager *manager)
{
    size_t i = 0;
    while (i < graph->stream_count && graph->streams[i] != manager->serial) {
        i++;
    }
    return i < graph->stream_count;
}

/* The slice is used on a stream that is not its own; `ordered`: that waits for its own
 * stream already. */
static weir_result use_slice(wr_slice *slice, wr_manager *stream, bool ordered)
{
    wr_manager *own = slice->pool->manager;
    wr_manager_lock(own);
    weir_result result = ordered ? WEIR_OK : wr_waits_order(own, stream);
    if (result == WEIR_OK) {
        result = wr_uses_add(own, slice, stream->slot);
    }
    wr_manager_unlock(own);
    return result;
}

/* The first launch on a stream. Uses that were added before a failure do no harm. */
static weir_result adopt_stream(weir_graph *graph, wr_manager *manager)
{
    const wr_manager *ordered = manager;
    if (!wr_host_grow((void **)&graph->streams, &graph->stream_capacity,
                      graph->stream_count + 1, sizeof *graph->streams)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "weir_graph_launch: no host memory for the stream's use");
    }
    for (size_t i = 0; i < graph->slice_count; i++) {
        wr_slice *slice = wr_slice_get(graph->slices[i]);
        wr_manager *own = slice->pool->manager;
        if (own != manager) {
            WR_TRY(use_slice(slice, manager, own == ordered));
            ordered = own;
        }
    }
    graph->streams[graph->stream_count++] = manager->serial;
    return WEIR_OK;
}

weir_result wr_graph_launch(weir_graph *graph, wr_manager *manager)
{
    wr_bank *bank = graph->bank;
    if (manager->bank != bank || manager->closing) {
        return wr_error(
            WEIR_INVALID,
            "weir_graph_launch: stream \"%s\" is closed, or of another device",
            manager->name);
    }
    if (!wr_capture_enter(manager)) {
        return wr_error(WEIR_BUSY,
                        "weir_graph_launch: stream \"%s\" is capturing; end or abort it, "
                        "or launch on another stream",
                        manager->name);
    }
    wr_lock_take(&graph->launch_lock);
    weir_result result =
        knows_stream(graph, manager) ? WEIR_OK : adopt_stream(graph, manager);
    wr_lock_leave(&graph->launch_lock);
    if (result == WEIR_OK) {
        result = bank->table->graph_launch(bank->driver, manager->stream, graph->handle);
    }
    wr_capture_leave(manager);
    return result;
}

void wr_graph_destroy(weir_graph *graph)
{
    graph->bank->table->graph_destroy(graph->bank->driver, graph->handle);
    wr_graph_discard(graph);
}

void wr_capture_finish(wr_bank *bank)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        if (manager->recording != NULL) {
            wr_capture_abort(manager);
        }
        wr_manager_unpin(manager);
    }
    weir_graph *graph;
    while ((graph = wr_graph_first(bank)) != NULL) {
        wr_graph_destroy(graph);
    }
}

/* ---- saying so ---- */

bool wr_capture_find(wr_bank *bank, weir_capturing *capturing)
{
    bool found = false;
    uint64_t since_ms = 0;
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count; i++) {
        const wr_manager *manager = bank->roster[i];
        if (manager != NULL && manager->capturing &&
            (!found || manager->capture_ms < since_ms)) {
            found = true;
            since_ms = manager->capture_ms;
            memcpy(capturing->stream, manager->name, sizeof capturing->stream);
        }
    }
    wr_lock_leave(&bank->roster_lock);
    uint64_t now_ms = found ? wr_idle_now_ms(bank) : 0;
    capturing->for_ms = now_ms > since_ms ? now_ms - since_ms : 0;
    return found;
}

weir_result wr_capture_refuse(wr_bank *bank, const char *what)
{
    weir_capturing capturing;
    return wr_capture_find(bank, &capturing)
               ? wr_error(WEIR_BUSY,
                          "%s: stream \"%s\" has been capturing for %llu ms; end or "
                          "abort that first",
                          what, capturing.stream, (unsigned long long)capturing.for_ms)
               : WEIR_OK;
}

weir_result wr_capture_refuse_on(const wr_manager *manager, const char *function)
{
    return wr_error(WEIR_BUSY,
                    "%s: stream \"%s\" is capturing, and to wait for it would spoil "
                    "that; end or abort it first",
                    function, manager->name);
}
