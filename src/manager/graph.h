/* SPDX-License-Identifier: MIT */
/* Graphs: which slices a recording of a stream's work keeps.
 *
 *     none -> primed -> recording -> sealed -> destroyed
 *       \_______________^    \_ aborted: nothing is kept
 *
 * A graph holds a slice by an entry among the slice's uses (waits.h): its number, as a
 * slot from WR_SLOT_GRAPH on. So a release needs no word more than it has: a slice with
 * uses becomes limbo, goes through the batch, and from there, while a graph holds it, to
 * the manager's list `recorded`.
 *
 * What is made and released inside one recording is reused by that recording, in stream
 * order: such slices are in the state DROPPED, merged with their like, in the graph's own
 * index. They exist only while the manager records; sealing and aborting make them limbo.
 *
 * Guards: `slices` and the table of graphs by bank->graphs_lock, under which no other
 * lock is taken; `dropped` by the recording manager's lock; `streams` by launch_lock,
 * which is taken before any manager's. */
#ifndef WR_MANAGER_GRAPH_H
#define WR_MANAGER_GRAPH_H

#include "uses.h"

#include <weir/window.h>

typedef enum wr_graph_phase {
    WR_GRAPH_PHASE_PRIMED = 0,    /* keeps what warm-up drops */
    WR_GRAPH_PHASE_RECORDING = 1, /* the driver captures */
    WR_GRAPH_PHASE_SEALED = 2,    /* the program has it */
} wr_graph_phase;

struct weir_graph {
    wr_bank *bank;
    uint32_t number;
    wr_graph_phase phase;
    char name[WR_NAME_BYTES]; /* until it is sealed, its stream's */
    uint64_t handle;          /* the driver's, once sealed */
    wr_manager *origin;       /* who records it; NULL once sealed */
    wr_slice_id *slices;      /* recording: other streams'; sealed: all, constant */
    size_t slice_count, slice_capacity;
    wr_index *dropped; /* one per class */
    wr_lock launch_lock;
    uint64_t *streams; /* serials of the streams it was launched on */
    size_t stream_count, stream_capacity;
};

/* A graph that nothing is in yet, entered in the bank's table; NULL: no host memory. */
weir_graph *wr_graph_create(wr_manager *origin);

/* Nothing listed is kept for it any more: its slices are free, or wait for the streams
 * that used them. Takes their managers' locks in turn. Frees the graph. */
void wr_graph_discard(weir_graph *graph);

/* The use that stands for a graph. */
static inline uint32_t wr_graph_slot(const weir_graph *graph)
{
    return WR_SLOT_GRAPH + graph->number;
}

/* ---- under the recording manager's lock ---- */

/* A slice that this recording made and dropped, held again; NULL: none fits. */
wr_slice *wr_graph_reuse(weir_graph *graph, wr_pool *pool, const wr_request *request);

/* A slice just made on the stream belongs to the recording. */
void wr_graph_note(const weir_graph *graph, wr_slice *slice);

/* What was dropped inside becomes limbo. */
void wr_graph_spill(weir_graph *graph);

/* Lists all slices that the graph holds; false: no host memory. */
bool wr_graph_list(weir_graph *graph);

/* Lets go of what the recording's own stream made; what others hold stays as it is. */
void wr_graph_let_go(weir_graph *graph);

/* ---- under a manager's lock ---- */

/* Takes a released slice that graphs hold. */
WR_COLD void wr_graph_keep(wr_manager *manager, wr_slice *slice);

/* A buffer of this manager's is used by work that `stream` records. NOT_READY: it records
 * none. */
weir_result wr_graph_add(wr_manager *manager, wr_slice *slice, wr_manager *stream);

/* For reports: adds what was dropped and graphs keep to `bytes[number]`. */
void wr_graph_count(wr_manager *manager, uint64_t *bytes, uint32_t graphs);

/* NULL, or what is wrong. */
const char *wr_graph_walk(wr_manager *manager);

/* ---- with no lock held ---- */

/* How many numbers are in use. */
uint32_t wr_graph_numbers(wr_bank *bank);
/* "graph decode", "stream s1 (capturing)"; "" for a number that no graph has. */
void wr_graph_title(wr_bank *bank, uint32_t number, char *title, size_t title_bytes);
/* The sealed graph with the lowest number, NULL if there is none. */
weir_graph *wr_graph_first(wr_bank *bank);

#endif
