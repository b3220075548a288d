/* SPDX-License-Identifier: MIT */
/* Graphs of the CUDA driver. A stream is captured in relaxed mode: calls that CUDA calls
 * unsafe are then not held against the capture, whichever thread makes them; that none of
 * them touches the capturing stream itself is Weir's own care. A graph is named by its
 * executable form; the recorded form goes as soon as that is made. */
#include "cuda.h"

#include "base/result.h"

#include <stddef.h>

static weir_result failed(const wr_cuda *cuda, wr_cu_result result, const char *entry,
                          const char *call)
{
    return wr_cu_failed(&cuda->api, result, entry, call);
}

weir_result wr_cuda_capture_begin(weir_driver *driver, weir_driver_stream stream)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    wr_cuda_stream *capturing = wr_cuda_stream_of(stream);
    WR_TRY(wr_cuda_enter(cuda, "capture_begin"));
    wr_cu_result result =
        cuda->api.capture_begin(capturing->native, WR_CU_CAPTURE_RELAXED);
    wr_cuda_leave(cuda);
    atomic_store(&capturing->is_capturing, result == WR_CU_SUCCESS);
    return failed(cuda, result, "capture_begin", "cuStreamBeginCapture");
}

/* Ends the capture, good or not; NULL if there is no graph. Inside enter and leave. */
static wr_cu_result stop(const wr_cuda *cuda, weir_driver_stream stream,
                         wr_cu_graph *graph)
{
    wr_cuda_stream *capturing = wr_cuda_stream_of(stream);
    *graph = NULL;
    wr_cu_result result = cuda->api.capture_end(capturing->native, graph);
    atomic_store(&capturing->is_capturing, false);
    return result;
}

static weir_result make_graph(const wr_cuda *cuda, weir_driver_stream stream,
                              wr_cu_exec *exec)
{
    wr_cu_graph graph;
    WR_TRY(failed(cuda, stop(cuda, stream, &graph), "capture_end", "cuStreamEndCapture"));
    wr_cu_result result = cuda->api.graph_instantiate(exec, graph, 0);
    (void)cuda->api.graph_destroy(graph);
    return failed(cuda, result, "capture_end", "cuGraphInstantiateWithFlags");
}

weir_result wr_cuda_capture_end(weir_driver *driver, weir_driver_stream stream,
                                uint64_t *graph)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    wr_cu_exec exec = NULL;
    WR_TRY(wr_cuda_enter(cuda, "capture_end"));
    weir_result result = make_graph(cuda, stream, &exec);
    wr_cuda_leave(cuda);
    if (result == WEIR_OK) {
        *graph = (uint64_t)(uintptr_t)exec;
    }
    return result;
}

/* A capture that was spoiled says so when it ends, which is no failure here. */
weir_result wr_cuda_capture_abort(weir_driver *driver, weir_driver_stream stream)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    wr_cu_graph graph;
    WR_TRY(wr_cuda_enter(cuda, "capture_abort"));
    wr_cu_result result = stop(cuda, stream, &graph);
    if (graph != NULL) {
        (void)cuda->api.graph_destroy(graph);
    }
    wr_cuda_leave(cuda);
    bool is_spoiled = result >= WR_CU_CAPTURE_UNSUPPORTED && result <= WR_CU_CAPTURE_LAST;
    return is_spoiled ? WEIR_OK
                      : failed(cuda, result, "capture_abort", "cuStreamEndCapture");
}

weir_result wr_cuda_graph_launch(weir_driver *driver, weir_driver_stream stream,
                                 uint64_t graph)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    if (graph == 0) {
        return wr_error(WEIR_INVALID, "cuda: graph_launch: 0 is no graph");
    }
    WR_TRY(wr_cuda_enter(cuda, "graph_launch"));
    wr_cu_result result = cuda->api.graph_launch((wr_cu_exec)(uintptr_t)graph,
                                                 wr_cuda_stream_of(stream)->native);
    wr_cuda_leave(cuda);
    return failed(cuda, result, "graph_launch", "cuGraphLaunch");
}

/* Launches that are under way complete. */
void wr_cuda_graph_destroy(weir_driver *driver, uint64_t graph)
{
    const wr_cuda *cuda = wr_cuda_of(driver);
    if (graph != 0 && wr_cuda_enter(cuda, "graph_destroy") == WEIR_OK) {
        (void)cuda->api.exec_destroy((wr_cu_exec)(uintptr_t)graph);
        wr_cuda_leave(cuda);
    }
}
