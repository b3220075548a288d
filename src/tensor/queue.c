/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include "dispatch.h"
#include "error.h"

#include <errno.h>
#include <string.h>

/* False on the thread that holds it: a reclaim callback is computing. */
static bool take(wr_queue *queue)
{
    return pthread_mutex_lock(&queue->mutex) != EDEADLK;
}

static void leave(wr_queue *queue)
{
    pthread_mutex_unlock(&queue->mutex);
}

static weir_result refuse_reentry(const wr_queue *queue)
{
    return wr_fail(WEIR_BUSY,
                   "weir_tensor: stream \"%s\" is running its queue; a reclaim callback "
                   "may drop tensors, not compute",
                   weir_stream_name(queue->stream));
}

/* ---- what is needed ---- */

/* Closes the gaps that removed nodes have left. */
static void compact(wr_queue *queue)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        if (queue->nodes[i] != NULL) {
            queue->nodes[kept++] = queue->nodes[i];
        }
    }
    queue->count = kept;
}

/* From the newest on, so that what only skipped nodes wanted is skipped too. */
static void skip_unwanted(wr_queue *queue)
{
    for (uint32_t i = queue->count; i-- > 0;) {
        wr_node *node = queue->nodes[i];
        if (atomic_load_explicit(&node->storage->references, memory_order_acquire) == 1) {
            wr_node_destroy(node);
            queue->nodes[i] = NULL;
            queue->counters.skipped++;
        }
    }
    compact(queue);
}

/* What a target needs has been recorded before it; without one everything is needed. */
static void mark_needed(wr_queue *queue, const wr_storage *target)
{
    for (uint32_t i = queue->count; i-- > 0;) {
        wr_node *node = queue->nodes[i];
        node->is_needed |= target == NULL || node->storage == target;
        for (uint32_t k = 0; node->is_needed && k < node->operand_count; k++) {
            wr_node *source = node->operands[k].storage->node;
            if (source != NULL) {
                source->is_needed = true;
            }
        }
    }
}

/* The needed nodes in order; their number. Takes the marks off. */
static uint32_t take_needed(wr_queue *queue, wr_node *needed[WR_QUEUE_LENGTH])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        if (queue->nodes[i]->is_needed) {
            needed[count++] = queue->nodes[i];
        }
        queue->nodes[i]->is_needed = false;
    }
    return count;
}

/* ---- running ---- */

/* The nodes have run, or never will. Newest first: operands outlive who reads them. */
static void remove_nodes(wr_queue *queue, wr_node *const *nodes, uint32_t count)
{
    for (uint32_t n = count; n-- > 0;) {
        uint32_t i = 0;
        while (queue->nodes[i] != nodes[n]) {
            i++;
        }
        wr_node_destroy(nodes[n]);
        queue->nodes[i] = NULL;
    }
}

/* The thread's last error says why. */
static void fail_nodes(wr_node *const *nodes, uint32_t count, weir_result failure)
{
    for (uint32_t n = 0; n < count; n++) {
        wr_storage_become_failed(nodes[n]->storage, failure);
    }
}

/* What is before a node has run, so an operand that is not there has failed. */
static weir_result check_operands(const wr_node *node)
{
    for (uint32_t k = 0; k < node->operand_count; k++) {
        const wr_storage *storage = node->operands[k].storage;
        if (wr_storage_state_of(storage) == WR_STORAGE_STATE_FAILED) {
            return wr_storage_failure(storage);
        }
    }
    return WEIR_OK;
}

static weir_result run_named(wr_queue *queue, wr_node *node)
{
    WR_TRY(check_operands(node));
    return wr_named_run(queue, node);
}

static weir_result run_group(wr_queue *queue, wr_node *const *nodes, uint32_t count,
                             uint32_t *members)
{
    wr_group group;
    *members = 1;
    WR_TRY(check_operands(nodes[0]));
    wr_group_fill(&group, nodes, count);
    while (group.member_count > 1 && !wr_dispatch_fits(queue, &group)) {
        wr_group_fill(&group, nodes, group.member_count / 2);
    }
    *members = group.member_count;
    return wr_dispatch_run(queue, &group);
}

/* One launch for as many of the first nodes as can share it; `*done` have left the queue
 * then. */
static weir_result run_some(wr_queue *queue, wr_node *const *nodes, uint32_t count,
                            uint32_t *done)
{
    uint32_t members = 1;
    weir_result result = nodes[0]->named != NULL
                             ? run_named(queue, nodes[0])
                             : run_group(queue, nodes, count, &members);
    *done = 0;
    if (wr_is_shortage(result)) {
        return result;
    }
    if (result != WEIR_OK) {
        fail_nodes(nodes, members, result);
    }
    remove_nodes(queue, nodes, members);
    *done = members;
    return result;
}

/* Goes on after failures that trying again would not mend. */
static weir_result drain(wr_queue *queue, const wr_storage *target)
{
    wr_node *needed[WR_QUEUE_LENGTH];
    skip_unwanted(queue);
    mark_needed(queue, target);
    uint32_t count = take_needed(queue, needed);
    weir_result failure = WEIR_OK;
    for (uint32_t first = 0; first < count && !wr_is_shortage(failure);) {
        uint32_t done;
        weir_result result = run_some(queue, needed + first, count - first, &done);
        failure = result != WEIR_OK ? result : failure;
        first += done;
    }
    compact(queue);
    return failure;
}

weir_result wr_queue_drain(wr_queue *queue, const wr_storage *target)
{
    if (!take(queue)) {
        return refuse_reentry(queue);
    }
    weir_result result = drain(queue, target);
    leave(queue);
    return result;
}

weir_result wr_queue_record(wr_queue *queue, wr_node *node)
{
    weir_result result = WEIR_OK;
    if (!take(queue)) {
        result = refuse_reentry(queue);
        goto undo_node;
    }
    if (queue->count == WR_QUEUE_LENGTH) {
        result = drain(queue, NULL);
        if (queue->count == WR_QUEUE_LENGTH) {
            goto undo_lock;
        }
    }
    node->storage->queue = queue;
    node->storage->node = node;
    queue->nodes[queue->count++] = node;
    queue->counters.recorded++;
    leave(queue);
    return WEIR_OK;

undo_lock:
    leave(queue);
undo_node:
    wr_node_destroy(node);
    return result;
}

void wr_storage_retag(wr_storage *storage, const char *tag)
{
    wr_queue *queue = storage->queue;
    if (wr_storage_state_of(storage) != WR_STORAGE_STATE_PENDING || !take(queue)) {
        return;
    }
    if (storage->node != NULL) {
        strncpy(storage->node->tag, tag, sizeof storage->node->tag - 1);
    }
    leave(queue);
}

void wr_storage_copy_tag(wr_storage *storage, char tag[WR_TAG_BYTES])
{
    wr_queue *queue = storage->queue;
    bool is_pending =
        wr_storage_state_of(storage) == WR_STORAGE_STATE_PENDING && take(queue);
    const wr_node *node = is_pending ? storage->node : NULL;
    memcpy(tag, node != NULL ? node->tag : storage->tag, WR_TAG_BYTES);
    if (is_pending) {
        leave(queue);
    }
}

weir_result wr_storage_settle(wr_storage *storage)
{
    if (wr_storage_state_of(storage) == WR_STORAGE_STATE_PENDING) {
        weir_result result = wr_queue_drain(storage->queue, NULL);
        if (wr_storage_state_of(storage) == WR_STORAGE_STATE_PENDING) {
            return result;
        }
    }
    return wr_storage_state_of(storage) == WR_STORAGE_STATE_READY
               ? WEIR_OK
               : wr_storage_failure(storage);
}
