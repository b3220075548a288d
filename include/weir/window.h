/* SPDX-License-Identifier: MIT */
/* Windows: stretches of a stream in which its allocations are persistent, or in which its
 * work is recorded into a graph.
 *
 *     weir_capture_begin(stream);
 *     weir_buffer_create(stream, bytes, NULL, &buffer);
 *     weir_buffer_use(weights, stream);
 *     ... launches on weir_stream_native(stream) ...
 *     weir_buffer_release(buffer);
 *     weir_capture_end(stream, "decode", &graph);
 *     weir_graph_launch(graph, stream);
 *     weir_graph_destroy(graph);
 *
 * A window counts for all threads that allocate on its stream. Calls in the wrong order
 * are INVALID and change nothing. */
#ifndef WEIR_WINDOW_H
#define WEIR_WINDOW_H

#include <weir/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- persistent windows ---- */

/* From here to the end all buffers made on the stream are persistent, as with the option
 * in weir_buffer_desc: for weights and caches. Windows nest. Any thread. */
WEIR_API weir_result weir_window_begin(weir_stream *stream);
WEIR_API weir_result weir_window_end(weir_stream *stream);

/* ---- graph capture ---- */

/* Recorded work that can be launched again and again. It holds exactly the memory that it
 * touches: the buffers that were made on the stream while it was recorded, and the older
 * ones for which weir_buffer_use named the stream meanwhile (its own, too). What the
 * program drops of it is `deferred` until the graph is destroyed, and what it still holds
 * then stays valid. */
typedef struct weir_graph weir_graph;

/* Optional, before the capture: until weir_capture_begin the stream keeps what it drops.
 * A warm-up run then takes all the memory that the capture can need, and the capture
 * takes none from the driver. Ended by weir_capture_begin or weir_capture_abort. */
WEIR_API weir_result weir_capture_prime(weir_stream *stream);

/* Starts recording the stream's work. Until the end no thread of this process frees,
 * decommits or moves memory of the device or waits for it on Weir's account, so:
 * - this call first waits for such driver calls that are under way;
 * - weir_device_memory_cleanup is BUSY, time gives nothing back;
 * - a request for which the device has no room fails at once, and spoils nothing; what
 *   it had got by then serves the next ones, and goes back when no stream captures.
 * Buffers that the recording makes and drops are reused inside it, by nobody else.
 * Several streams can record at once. UNSUPPORTED if the driver cannot. */
WEIR_API weir_result weir_capture_begin(weir_stream *stream);

/* Ends the recording. `name` is for reports: copied, at most 31 bytes; NULL: a number.
 * The caller owns the graph and destroys it before the device is closed. On failure the
 * recording is over as if aborted, and `*graph` is untouched. */
WEIR_API weir_result weir_capture_end(weir_stream *stream, const char *name,
                                      weir_graph **graph);

/* Throws the recording (or the priming) away: what was dropped is free once the stream
 * has passed, what is held stays held. */
WEIR_API weir_result weir_capture_abort(weir_stream *stream);

/* Queues the recorded work on a stream, any of the device's that is not capturing: BUSY.
 * Counts as a use of the graph's memory there, and orders the stream, on the device and
 * with its first launch there, behind the streams that the memory belongs to. Not while
 * another thread destroys the graph. */
WEIR_API weir_result weir_graph_launch(weir_graph *graph, weir_stream *stream);

/* What was dropped is free once the streams that launched the graph have passed. NULL is
 * OK. */
WEIR_API weir_result weir_graph_destroy(weir_graph *graph);

/* Valid until it is destroyed; "" for NULL. */
WEIR_API const char *weir_graph_name(const weir_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
