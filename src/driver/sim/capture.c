/* SPDX-License-Identifier: MIT */
/* Graph capture. What is queued on a capturing stream goes into the graph and not to the
 * device; testing, waiting for or recording a fence on it fails and spoils the capture,
 * as with CUDA. */
#include "sim.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

static weir_result begin(wr_sim *sim, weir_driver_stream handle)
{
    wr_sim_stream *stream;
    WR_TRY(wr_sim_check_alive(sim, "capture_begin"));
    WR_TRY(wr_sim_get_stream(sim, "capture_begin", handle, &stream));
    if (stream->is_capturing) {
        return wr_error(WEIR_INVALID,
                        "sim: capture_begin: the stream is capturing already");
    }
    stream->is_capturing = true;
    stream->is_spoiled = false;
    return WEIR_OK;
}

weir_result wr_sim_capture_begin(weir_driver *driver, weir_driver_stream stream)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = begin(sim, stream);
    wr_lock_leave(&sim->lock);
    return result;
}

/* Ends the capture of a stream, good or not. */
static weir_result stop(wr_sim *sim, const char *call, weir_driver_stream handle,
                        wr_sim_stream **stream)
{
    WR_TRY(wr_sim_check_alive(sim, call));
    WR_TRY(wr_sim_get_stream(sim, call, handle, stream));
    if (!(*stream)->is_capturing) {
        return wr_error(WEIR_INVALID, "sim: %s: the stream is not capturing", call);
    }
    (*stream)->is_capturing = false;
    return WEIR_OK;
}

static weir_result make_graph(wr_sim *sim, uint64_t *graph)
{
    size_t index = 0;
    while (index < sim->graph_count && sim->graphs[index].is_live) {
        index++;
    }
    if (!wr_host_grow((void **)&sim->graphs, &sim->graph_capacity, index + 1,
                      sizeof sim->graphs[0])) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "sim: no memory for a graph");
    }
    sim->graph_count = index == sim->graph_count ? index + 1 : sim->graph_count;
    sim->graphs[index].is_live = true;
    *graph = wr_sim_handle(++sim->graphs[index].generation, index);
    return WEIR_OK;
}

static weir_result end(wr_sim *sim, weir_driver_stream handle, uint64_t *graph)
{
    wr_sim_stream *stream;
    WR_TRY(stop(sim, "capture_end", handle, &stream));
    if (stream->is_spoiled) {
        return wr_error(WEIR_DRIVER,
                        "sim: capture_end: the capture was spoiled by a fence call"
                        " on its stream; there is no graph");
    }
    return make_graph(sim, graph);
}

weir_result wr_sim_capture_end(weir_driver *driver, weir_driver_stream stream,
                               uint64_t *graph)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = end(sim, stream, graph);
    wr_lock_leave(&sim->lock);
    return result;
}

weir_result wr_sim_capture_abort(weir_driver *driver, weir_driver_stream stream)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_sim_stream *stopped;
    wr_lock_take(&sim->lock);
    weir_result result = stop(sim, "capture_abort", stream, &stopped);
    wr_lock_leave(&sim->lock);
    return result;
}

static wr_sim_graph *graph_at(const wr_sim *sim, uint64_t handle)
{
    uint32_t index = (uint32_t)handle - 1;
    if (index >= sim->graph_count) {
        return NULL;
    }
    wr_sim_graph *graph = &sim->graphs[index];
    return graph->is_live && graph->generation == handle >> 32 ? graph : NULL;
}

static weir_result launch(wr_sim *sim, weir_driver_stream handle, uint64_t graph)
{
    wr_sim_stream *stream;
    WR_TRY(wr_sim_check_alive(sim, "graph_launch"));
    WR_TRY(wr_sim_get_stream(sim, "graph_launch", handle, &stream));
    if (graph_at(sim, graph) == NULL) {
        return wr_error(WEIR_INVALID,
                        "sim: graph_launch: 0x%" PRIx64 " is no graph, or was destroyed",
                        graph);
    }
    return wr_sim_queue_item(sim, stream);
}

weir_result wr_sim_graph_launch(weir_driver *driver, weir_driver_stream stream,
                                uint64_t graph)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = launch(sim, stream, graph);
    wr_lock_leave(&sim->lock);
    return result;
}

void wr_sim_graph_destroy(weir_driver *driver, uint64_t handle)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    wr_sim_graph *graph = graph_at(sim, handle);
    WR_ASSERT(graph != NULL);
    if (graph != NULL) {
        graph->is_live = false;
    }
    wr_lock_leave(&sim->lock);
}
