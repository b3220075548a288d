/* SPDX-License-Identifier: MIT */
/* Windows of a stream: persistent ones, and the recording of its work into a graph. What
 * the calls promise is in weir/window.h. Wrong order: INVALID, nothing changes. With no
 * lock held. */
#ifndef WR_MANAGER_CAPTURE_H
#define WR_MANAGER_CAPTURE_H

#include "graph.h"

#include <weir/report.h>

weir_result wr_window_begin(wr_manager *manager);
weir_result wr_window_end(wr_manager *manager);

weir_result wr_capture_prime(wr_manager *manager);
weir_result wr_capture_begin(wr_manager *manager);
weir_result wr_capture_end(wr_manager *manager, const char *name, weir_graph **graph);
weir_result wr_capture_abort(wr_manager *manager);

weir_result wr_graph_launch(weir_graph *graph, wr_manager *manager);
void wr_graph_destroy(weir_graph *graph);

/* The device ends: recordings are aborted, graphs destroyed. */
void wr_capture_finish(wr_bank *bank);

/* OK while no stream is capturing; else BUSY, naming one and since when. `what` begins
 * the text. */
weir_result wr_capture_refuse(wr_bank *bank, const char *what);

/* BUSY: what would wait for a stream that is capturing. */
weir_result wr_capture_refuse_on(const wr_manager *manager, const char *function);

/* For calls of the driver that wait for the stream or launch graphs on it: from a true
 * `enter` to `leave` the stream does not start to capture. False: it is capturing. */
bool wr_capture_enter(wr_manager *manager);
void wr_capture_leave(wr_manager *manager);

/* The stream that has been capturing longest; false: none is. */
bool wr_capture_find(wr_bank *bank, weir_capturing *capturing);

#endif
