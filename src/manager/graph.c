/* SPDX-License-Identifier: MIT */
/* What graphs hold; see graph.h. The calls of the driver are in capture.c. */
#include "graph.h"

#include "grow.h"
#include "waits.h"

#include "base/memory.h"
#include "base/result.h"

#include <stdio.h>
#include <string.h>

/* ---- the table ---- */

static bool enter_table(weir_graph *graph)
{
    wr_bank *bank = graph->bank;
    wr_lock_take(&bank->graphs_lock);
    uint32_t number = 0;
    while (number < bank->graph_count && bank->graphs[number] != NULL) {
        number++;
    }
    bool room = wr_host_grow((void **)&bank->graphs, &bank->graph_capacity, number + 1u,
                             sizeof(weir_graph *));
    if (room) {
        graph->number = number;
        bank->graphs[number] = graph;
        bank->graph_count = number < bank->graph_count ? bank->graph_count : number + 1;
    }
    wr_lock_leave(&bank->graphs_lock);
    return room;
}

static void leave_table(weir_graph *graph)
{
    wr_bank *bank = graph->bank;
    wr_lock_take(&bank->graphs_lock);
    bank->graphs[graph->number] = NULL;
    while (bank->graph_count > 0 && bank->graphs[bank->graph_count - 1] == NULL) {
        bank->graph_count--;
    }
    wr_lock_leave(&bank->graphs_lock);
}

static void destroy(weir_graph *graph)
{
    wr_host_free(graph->slices);
    wr_host_free(graph->streams);
    wr_host_free(graph->dropped);
    wr_host_free(graph);
}

weir_graph *wr_graph_create(wr_manager *origin)
{
    weir_graph *graph = wr_host_alloc(sizeof *graph);
    if (graph == NULL) {
        return NULL;
    }
    graph->bank = origin->bank;
    graph->origin = origin;
    memcpy(graph->name, origin->name, sizeof graph->name);
    graph->dropped = wr_index_create(graph->bank->class_count);
    if (graph->dropped == NULL || !enter_table(graph)) {
        destroy(graph);
        return NULL;
    }
    return graph;
}

uint32_t wr_graph_numbers(wr_bank *bank)
{
    wr_lock_take(&bank->graphs_lock);
    uint32_t count = bank->graph_count;
    wr_lock_leave(&bank->graphs_lock);
    return count;
}

void wr_graph_title(wr_bank *bank, uint32_t number, char *title, size_t title_bytes)
{
    static const char *const forms[] = {
        [WR_GRAPH_PHASE_PRIMED] = "stream %s (priming)",
        [WR_GRAPH_PHASE_RECORDING] = "stream %s (capturing)",
        [WR_GRAPH_PHASE_SEALED] = "graph %s",
    };
    title[0] = 0;
    wr_lock_take(&bank->graphs_lock);
    const weir_graph *graph = number < bank->graph_count ? bank->graphs[number] : NULL;
    if (graph != NULL) {
        snprintf(title, title_bytes, forms[graph->phase], graph->name);
    }
    wr_lock_leave(&bank->graphs_lock);
}

weir_graph *wr_graph_first(wr_bank *bank)
{
    weir_graph *found = NULL;
    wr_lock_take(&bank->graphs_lock);
    for (uint32_t i = 0; i < bank->graph_count && found == NULL; i++) {
        weir_graph *graph = bank->graphs[i];
        found = graph != NULL && graph->phase == WR_GRAPH_PHASE_SEALED ? graph : NULL;
    }
    wr_lock_leave(&bank->graphs_lock);
    return found;
}

/* ---- reuse inside a recording ---- */

static bool is_plain(const wr_pool *pool)
{
    return !pool->layout->exact && !pool->layout->whole;
}

/* Takes out a slice that begins right, or has room to; `*bytes` is what to cut of it. */
static wr_slice *take_dropped(wr_index *index, const wr_pool *pool,
                              const wr_request *request, uint64_t *bytes)
{
    uint64_t mask = request->alignment_bytes == 0 ? 0 : request->alignment_bytes - 1;
    *bytes = wr_request_run_bytes(request);
    if (!is_plain(pool)) {
        return wr_index_take_equal(index, *bytes);
    }
    wr_slice *slice = wr_index_find(index, request->extent_bytes);
    if (slice != NULL && (slice->address & mask) == 0) {
        *bytes = request->extent_bytes;
        wr_index_remove(index, slice);
        return slice;
    }
    return wr_index_take(index, *bytes);
}

wr_slice *wr_graph_reuse(weir_graph *graph, wr_pool *pool, const wr_request *request)
{
    wr_index *index = &graph->dropped[pool->number];
    uint64_t bytes;
    wr_slice *slice = take_dropped(index, pool, request, &bytes);
    if (slice == NULL) {
        return NULL;
    }
    if (slice->extent_bytes > bytes) {
        wr_slice *rest = wr_slab_pop(pool->cache);
        wr_page_split(wr_page_get(slice->page), slice, slice->address + bytes, rest);
        wr_index_insert(index, rest);
    }
    wr_graph_note(graph, slice);
    slice->state = WR_SLICE_STATE_HELD;
    WR_SUB(pool->books.limbo, slice->extent_bytes);
    return slice;
}

void wr_graph_note(const weir_graph *graph, wr_slice *slice)
{
    slice->held.uses = wr_uses_of(wr_graph_slot(graph));
}

static void push_recorded(wr_manager *manager, wr_slice *slice)
{
    slice->state = WR_SLICE_STATE_LIMBO;
    slice->held.link = manager->recorded;
    manager->recorded = wr_slice_id_of(slice);
    manager->recorded_bytes += slice->extent_bytes;
}

void wr_graph_keep(wr_manager *manager, wr_slice *slice)
{
    const weir_graph *graph = manager->recording;
    if (graph == NULL || graph->phase != WR_GRAPH_PHASE_RECORDING ||
        slice->held.uses != wr_uses_of(wr_graph_slot(graph))) {
        push_recorded(manager, slice);
        return;
    }
    wr_pool *pool = slice->pool;
    wr_index *index = &graph->dropped[pool->number];
    slice->state = WR_SLICE_STATE_DROPPED;
    if (is_plain(pool)) {
        wr_pool_merge(index, &manager->cache, wr_page_get(slice->page), slice);
    } else {
        wr_index_insert(index, slice);
    }
}

void wr_graph_spill(weir_graph *graph)
{
    for (uint32_t i = 0; i < graph->bank->class_count; i++) {
        wr_slice *slice;
        while ((slice = wr_index_take(&graph->dropped[i], WR_UNIT_BYTES)) != NULL) {
            wr_graph_note(graph, slice);
            push_recorded(graph->origin, slice);
        }
    }
}

/* ---- what a graph holds ---- */

static bool append(weir_graph *graph, const wr_slice *slice)
{
    if (!wr_host_grow((void **)&graph->slices, &graph->slice_capacity,
                      graph->slice_count + 1, sizeof *graph->slices)) {
        return false;
    }
    graph->slices[graph->slice_count++] = wr_slice_id_of(slice);
    return true;
}

/* Under bank->graphs_lock. The recording's own slices are found by their uses. */
static weir_result add(weir_graph *graph, wr_manager *manager, wr_slice *slice)
{
    bool foreign = manager != graph->origin;
    if (wr_uses_has(slice, wr_graph_slot(graph))) {
        return WEIR_OK;
    }
    if (foreign && !append(graph, slice)) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "weir_buffer_use: no host memory for the graph's list");
    }
    weir_result result = wr_uses_add(manager, slice, wr_graph_slot(graph));
    graph->slice_count -= foreign && result != WEIR_OK;
    return result;
}

weir_result wr_graph_add(wr_manager *manager, wr_slice *slice, wr_manager *stream)
{
    wr_bank *bank = manager->bank;
    weir_result result = WEIR_NOT_READY;
    wr_lock_take(&bank->graphs_lock);
    weir_graph *graph = stream->recording;
    if (graph != NULL && graph->phase == WR_GRAPH_PHASE_RECORDING) {
        result = add(graph, manager, slice);
    }
    wr_lock_leave(&bank->graphs_lock);
    return result;
}

static bool is_held_by(const weir_graph *graph, const wr_slice *slice)
{
    return (slice->state == WR_SLICE_STATE_HELD ||
            slice->state == WR_SLICE_STATE_LIMBO) &&
           wr_uses_has(slice, wr_graph_slot(graph));
}

typedef struct listing {
    weir_graph *graph;
    bool complete;
} listing;

static void visit_list(void *context, wr_page *page, wr_slice *slice)
{
    (void)page;
    listing *l = context;
    if (is_held_by(l->graph, slice)) {
        l->complete = append(l->graph, slice) && l->complete;
    }
}

static void visit_remove(void *context, wr_page *page, wr_slice *slice)
{
    (void)page;
    const weir_graph *graph = context;
    if (is_held_by(graph, slice)) {
        wr_uses_remove(graph->origin, slice, wr_graph_slot(graph));
    }
}

static void visit_own(weir_graph *graph, wr_slice_visitor visit, void *context)
{
    wr_bank *bank = graph->bank;
    wr_lock_take(&bank->lock);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_pool_visit(bank, &graph->origin->pools[i], visit, context);
    }
    wr_lock_leave(&bank->lock);
}

bool wr_graph_list(weir_graph *graph)
{
    listing l = {.graph = graph, .complete = true};
    visit_own(graph, visit_list, &l);
    return l.complete;
}

/* Under a manager's lock: what no graph holds any more is free, or waits for streams. */
static void sweep(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    wr_slice_id *link = &manager->recorded;
    while (*link != 0) {
        wr_slice *slice = wr_slice_get(*link);
        if (wr_uses_graph(slice) != 0) {
            link = &slice->held.link;
            continue;
        }
        *link = slice->held.link;
        manager->recorded_bytes -= slice->extent_bytes;
        wr_waits_let_go(manager, slice);
    }
    if (WR_OWN(bank->parked) != 0) {
        bank->wake(bank);
    }
}

void wr_graph_let_go(weir_graph *graph)
{
    visit_own(graph, visit_remove, graph);
    sweep(graph->origin);
}

static wr_manager *owner_at(const weir_graph *graph, size_t at)
{
    return at < graph->slice_count ? wr_slice_get(graph->slices[at])->pool->manager
                                   : NULL;
}

/* Lets go of the listed slices from `at` on that have the same owner; returns the next.
 */
static size_t let_go_listed(const weir_graph *graph, size_t at)
{
    wr_manager *manager = owner_at(graph, at);
    wr_manager_lock(manager);
    do {
        wr_uses_remove(manager, wr_slice_get(graph->slices[at]), wr_graph_slot(graph));
    } while (owner_at(graph, ++at) == manager);
    sweep(manager);
    wr_manager_unlock(manager);
    return at;
}

void wr_graph_discard(weir_graph *graph)
{
    for (size_t at = 0; at < graph->slice_count;) {
        at = let_go_listed(graph, at);
    }
    leave_table(graph);
    destroy(graph);
}

/* ---- reports and checks ---- */

static void count_list(wr_slice_id id, uint64_t *bytes, uint32_t graphs)
{
    for (; id != 0; id = wr_slice_get(id)->held.link) {
        const wr_slice *slice = wr_slice_get(id);
        uint32_t slot = wr_uses_graph(slice);
        if (slot != 0 && slot - WR_SLOT_GRAPH < graphs) {
            bytes[slot - WR_SLOT_GRAPH] += slice->extent_bytes;
        }
    }
}

static uint64_t index_bytes(const wr_index *index)
{
    uint64_t bytes = 0;
    const wr_slice *slice = wr_index_find(index, 0);
    while (slice != NULL) {
        bytes += slice->extent_bytes;
        slice = wr_index_next(index, slice);
    }
    return bytes;
}

void wr_graph_count(wr_manager *manager, uint64_t *bytes, uint32_t graphs)
{
    const weir_graph *graph = manager->recording;
    count_list(manager->batch, bytes, graphs);
    count_list(manager->recorded, bytes, graphs);
    for (uint32_t i = 0; graph != NULL && i < manager->bank->class_count; i++) {
        if (graph->number < graphs) {
            bytes[graph->number] += index_bytes(&graph->dropped[i]);
        }
    }
}

static const char *walk_recorded(const wr_manager *manager)
{
    uint64_t bytes = 0;
    for (wr_slice_id id = manager->recorded; id != 0;) {
        const wr_slice *slice = wr_slice_get(id);
        if (slice->state != WR_SLICE_STATE_LIMBO || wr_uses_graph(slice) == 0) {
            return "a slice in the list of what graphs hold is held by none";
        }
        bytes += slice->extent_bytes;
        id = slice->held.link;
    }
    return bytes == manager->recorded_bytes
               ? NULL
               : "the bytes that graphs hold are not those of their list";
}

const char *wr_graph_walk(wr_manager *manager)
{
    const weir_graph *graph = manager->recording;
    const char *wrong = walk_recorded(manager);
    uint64_t count = 0, bytes = 0;
    for (uint32_t i = 0; graph != NULL && wrong == NULL && i < manager->bank->class_count;
         i++) {
        wrong = wr_index_walk(&graph->dropped[i], WR_SLICE_STATE_DROPPED, &count, &bytes);
    }
    return wrong;
}
