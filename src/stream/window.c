/* SPDX-License-Identifier: MIT */
/* Windows and graphs at the public boundary. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"
#include "manager/capture.h"

static weir_result check_stream(const weir_stream *stream, const char *function)
{
    WR_TRY(wr_fork_check());
    return stream != NULL ? WEIR_OK
                          : wr_error(WEIR_INVALID, "%s: the stream is NULL", function);
}

weir_result weir_window_begin(weir_stream *stream)
{
    WR_TRY(check_stream(stream, "weir_window_begin"));
    WR_TRY(wr_hooks_drain(stream));
    return wr_window_begin(&stream->manager);
}

weir_result weir_window_end(weir_stream *stream)
{
    WR_TRY(check_stream(stream, "weir_window_end"));
    WR_TRY(wr_hooks_drain(stream));
    return wr_window_end(&stream->manager);
}

weir_result weir_capture_prime(weir_stream *stream)
{
    WR_TRY(check_stream(stream, "weir_capture_prime"));
    WR_TRY(wr_hooks_drain(stream));
    return wr_capture_prime(&stream->manager);
}

weir_result weir_capture_begin(weir_stream *stream)
{
    WR_TRY(check_stream(stream, "weir_capture_begin"));
    WR_TRY(wr_hooks_drain(stream));
    return wr_capture_begin(&stream->manager);
}

weir_result weir_capture_end(weir_stream *stream, const char *name, weir_graph **graph)
{
    WR_TRY(check_stream(stream, "weir_capture_end"));
    if (graph == NULL) {
        return wr_error(WEIR_INVALID,
                        "weir_capture_end: the place for the graph is NULL");
    }
    weir_result result = wr_hooks_drain(stream);
    if (result != WEIR_OK) {
        char text[WR_ERROR_BYTES];
        wr_error_save(text);
        wr_capture_abort(&stream->manager); /* the recording lacks what was queued */
        wr_error_restore(text);
        return result;
    }
    return wr_capture_end(&stream->manager, name, graph);
}

weir_result weir_capture_abort(weir_stream *stream)
{
    WR_TRY(check_stream(stream, "weir_capture_abort"));
    return wr_capture_abort(&stream->manager);
}

weir_result weir_graph_launch(weir_graph *graph, weir_stream *stream)
{
    WR_TRY(check_stream(stream, "weir_graph_launch"));
    if (graph == NULL) {
        return wr_error(WEIR_INVALID, "weir_graph_launch: the graph is NULL");
    }
    return wr_graph_launch(graph, &stream->manager);
}

weir_result weir_graph_destroy(weir_graph *graph)
{
    WR_TRY(wr_fork_check());
    if (graph != NULL) {
        wr_graph_destroy(graph);
    }
    return WEIR_OK;
}

const char *weir_graph_name(const weir_graph *graph)
{
    return graph == NULL || wr_fork_is_child() ? "" : graph->name;
}
