/* SPDX-License-Identifier: MIT */
/* Graphs of the fake: two forms that may not be mistaken for each other. */
#include "state.h"

#include <stdlib.h>

static _Thread_local int capture_mode; /* CU_STREAM_CAPTURE_MODE_GLOBAL */

wr_cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    atomic_fetch_add(&fake_cuda_control()->calls[FAKE_capture_mode], 1);
    int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return WR_CU_SUCCESS;
}

wr_cu_graph fake_graph_create(bool is_exec)
{
    wr_cu_graph graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        abort();
    }
    graph->is_exec = is_exec;
    atomic_fetch_add(&fake_cuda_control()->graphs, 1);
    return graph;
}

wr_cu_result cuGraphInstantiateWithFlags(wr_cu_exec *exec, wr_cu_graph graph,
                                         unsigned long long flags)
{
    wr_cu_result result = fake_enter(FAKE_graph_instantiate);
    if (result != WR_CU_SUCCESS) {
        return result;
    }
    if (graph->is_exec || flags != 0) {
        return WR_CU_INVALID_VALUE;
    }
    *exec = (wr_cu_exec)(void *)fake_graph_create(true);
    return WR_CU_SUCCESS;
}

static wr_cu_result end_graph(wr_cu_graph graph, bool is_exec)
{
    if (graph == NULL || graph->is_exec != is_exec) {
        return WR_CU_INVALID_VALUE;
    }
    free(graph);
    atomic_fetch_sub(&fake_cuda_control()->graphs, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuGraphDestroy(wr_cu_graph graph)
{
    wr_cu_result result = fake_enter(FAKE_graph_destroy);
    return result == WR_CU_SUCCESS ? end_graph(graph, false) : result;
}

wr_cu_result cuGraphExecDestroy(wr_cu_exec exec)
{
    wr_cu_result result = fake_enter(FAKE_exec_destroy);
    return result == WR_CU_SUCCESS ? end_graph((wr_cu_graph)(void *)exec, true) : result;
}
