/* SPDX-License-Identifier: MIT */
/* What waits on one stream: operations in the order in which they were recorded.
 *
 *     record   a node at the end; nothing runs unless the queue is full
 *     drain    newest to oldest, what nobody needs any more goes; oldest to newest, the
 *              rest becomes groups, and each group a kernel
 *
 * Drops need no entry of their own: a waiting node has references on its operands, and a
 * result that nobody else has one on is not needed. A queue exists from the stream's
 * first tensor to its close.
 *
 * Lock: `mutex` guards all but what is set at creation. Two queues' locks are never held
 * together: what is needed of another queue is drained there first. While it is held the
 * program's reclaim callbacks may run; they may drop tensors, which takes no lock, and
 * find the queue busy for anything else. */
#ifndef WR_TENSOR_QUEUE_H
#define WR_TENSOR_QUEUE_H

#include "arguments.h"
#include "node.h"

#include <pthread.h>

#define WR_QUEUE_LENGTH 128

struct wr_queue {
    weir_stream *stream;
    uint32_t max_bindings;   /* of a launch */
    bool argument_buffers;   /* launches need theirs in device memory */
    bool exclusive_bindings; /* no buffer may be bound twice */
    pthread_mutex_t mutex;   /* guards all below */
    wr_node *nodes[WR_QUEUE_LENGTH];
    uint32_t count;
    wr_arguments arguments;
    weir_tensor_counters counters;
    wr_queue *next; /* in the registry, whose lock guards it */
};

/* The stream's queue, made if need be. `who` is the public function, for error texts. */
weir_result wr_queue_find(const char *who, weir_stream *stream, wr_queue **queue);

/* Takes the node over, on failure too. */
weir_result wr_queue_record(wr_queue *queue, wr_node *node);

/* Runs all that waits, or with a target what that needs. */
weir_result wr_queue_drain(wr_queue *queue, const wr_storage *target);

/* The bytes of a result that has not been computed yet will carry this tag. */
void wr_storage_retag(wr_storage *storage, const char *tag);

/* The tag that the storage's bytes carry, or will. */
void wr_storage_copy_tag(wr_storage *storage, char tag[WR_TAG_BYTES]);

/* Sees to it that a storage's elements are in a buffer once its stream gets there. */
weir_result wr_storage_settle(wr_storage *storage);

#endif
