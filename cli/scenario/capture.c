/* SPDX-License-Identifier: MIT */
/* Graph capture: `capture begin`, `end`, `abort` and `destroy`. `end` and `abort` mean
 * the capture that began last. */
#include "array.h"
#include "run.h"

static bool begin(wr_scn_run *run, const wr_scn_statement *statement)
{
    wr_scn_stream *stream;
    weir_result result;
    if (!wr_scn_stream_get(run, statement->stream, &stream, &result)) {
        return false;
    }
    if (result != WEIR_OK) {
        return wr_scn_accept(run, "weir_stream_create", result);
    }
    if (!wr_scn_array_grow((void **)&run->captures, &run->capture_capacity,
                           run->capture_count + 1, sizeof *run->captures)) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    result = weir_capture_begin(stream->stream);
    if (!run->sim && result == WEIR_UNSUPPORTED) {
        return wr_scn_skip(run, "capture");
    }
    if (result == WEIR_OK) {
        run->captures[run->capture_count++] = (size_t)(stream - run->streams);
    }
    return wr_scn_accept(run, "weir_capture_begin", result);
}

/* The stream that began to capture last; NULL without a reason to fail if --fail-call, or
 * a failing driver, has kept it from beginning. */
static bool get_capturing(wr_scn_run *run, weir_stream **stream)
{
    *stream = NULL;
    if (run->capture_count > 0) {
        *stream = run->streams[run->captures[run->capture_count - 1]].stream;
        return true;
    }
    return run->is_child || wr_scn_is_faulty(run) ||
           wr_scn_wrong(run, "no stream is capturing");
}

/* The place of a graph's name. */
static bool add_graph(wr_scn_run *run, wr_scn_text name, weir_graph ***graph)
{
    char key[WR_SCN_NAME_BYTES];
    if (!wr_scn_expand(run, name, key)) {
        return false;
    }
    size_t number = wr_scn_names_add(&run->graph_names, key);
    if (number == WR_SCN_NO_NAME ||
        !wr_scn_array_grow((void **)&run->graphs, &run->graph_capacity, number + 1,
                           sizeof *run->graphs)) {
        return wr_scn_wrong(run, "the host has no memory");
    }
    *graph = &run->graphs[number];
    return true;
}

static const char *name_of(const wr_scn_run *run, weir_graph *const *graph)
{
    return run->graph_names.names[graph - run->graphs];
}

static bool end(wr_scn_run *run, const wr_scn_statement *statement)
{
    weir_stream *stream;
    weir_graph **graph;
    if (!get_capturing(run, &stream) || !add_graph(run, statement->name, &graph)) {
        return false;
    }
    if (!stream) {
        return true;
    }
    if (*graph) {
        return wr_scn_wrong(run, "graph '%s' exists already", name_of(run, graph));
    }
    weir_result result = weir_capture_end(stream, name_of(run, graph), graph);
    run->capture_count -= !run->is_child;
    return wr_scn_accept(run, "weir_capture_end", result);
}

static bool abort_last(wr_scn_run *run)
{
    weir_stream *stream;
    if (!get_capturing(run, &stream)) {
        return false;
    }
    if (!stream) {
        return true;
    }
    run->capture_count -= !run->is_child;
    return wr_scn_accept(run, "weir_capture_abort", weir_capture_abort(stream));
}

static bool destroy(wr_scn_run *run, const wr_scn_statement *statement)
{
    weir_graph **graph;
    if (!add_graph(run, statement->name, &graph)) {
        return false;
    }
    if (!*graph) {
        return run->is_child || wr_scn_is_faulty(run) ||
               wr_scn_wrong(run, "there is no graph '%s'", name_of(run, graph));
    }
    weir_result result = weir_graph_destroy(*graph);
    *graph = run->is_child ? *graph : NULL;
    return wr_scn_accept(run, "weir_graph_destroy", result);
}

bool wr_scn_run_capture(wr_scn_run *run, const wr_scn_statement *statement)
{
    switch (statement->kind) {
    case WR_SCN_CAPTURE_BEGIN:
        return begin(run, statement);
    case WR_SCN_CAPTURE_END:
        return end(run, statement);
    case WR_SCN_CAPTURE_ABORT:
        return abort_last(run);
    default:
        return destroy(run, statement);
    }
}

void wr_scn_graphs_release(wr_scn_run *run)
{
    while (run->capture_count > 0) {
        weir_capture_abort(run->streams[run->captures[--run->capture_count]].stream);
    }
    for (size_t i = 0; i < run->graph_capacity; i++) {
        weir_graph_destroy(run->graphs[i]);
        run->graphs[i] = NULL;
    }
}
