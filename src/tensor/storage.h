/* SPDX-License-Identifier: MIT */
/* What tensors are views of: elements that exist in a buffer, or are still to be
 * computed.
 *
 *     PENDING  a node of a queue will make them     node, queue
 *     READY    they are in a buffer                 buffer
 *     FAILED   they never will be                   failure, failure_text
 *
 * A storage leaves PENDING once, under its queue's lock, and never comes back; the other
 * fields are written before the state is. */
#ifndef WR_TENSOR_STORAGE_H
#define WR_TENSOR_STORAGE_H

#include <weir/tensor.h>

#include <stdatomic.h>

typedef struct wr_queue wr_queue;
typedef struct wr_node wr_node;

#define WR_TAG_BYTES 32

typedef enum wr_storage_state {
    WR_STORAGE_STATE_PENDING = 0,
    WR_STORAGE_STATE_READY = 1,
    WR_STORAGE_STATE_FAILED = 2,
} wr_storage_state;

typedef struct wr_storage {
    /* Held by tensors, by the operands of nodes, and by the queue while PENDING. Who
     * finds only references of his own has the storage to himself. */
    _Atomic uint32_t references;
    _Atomic uint32_t state; /* wr_storage_state */
    weir_dtype dtype;
    uint64_t element_count;
    wr_queue *queue; /* whose node makes the elements; of no use once not PENDING */
    wr_node *node;   /* guard: the queue's lock */
    char tag[WR_TAG_BYTES]; /* of the buffer */
    weir_buffer buffer;     /* one reference; none if it was taken over in place */
    weir_result failure;
    char *failure_text; /* may be NULL */
} wr_storage;

/* PENDING, with one reference; NULL without memory. */
wr_storage *wr_storage_create(weir_dtype dtype, uint64_t element_count);
void wr_storage_retain(wr_storage *storage);
/* NULL is a no-op. */
void wr_storage_release(wr_storage *storage);

wr_storage_state wr_storage_state_of(const wr_storage *storage);

/* Under the queue's lock. `buffer` brings its reference along; `tag` is the one that it
 * was made with. */
void wr_storage_become_ready(wr_storage *storage, weir_buffer buffer, const char *tag);
/* The text is the thread's last error. */
void wr_storage_become_failed(wr_storage *storage, weir_result failure);

/* A FAILED storage's result, with its text as the thread's last error. */
weir_result wr_storage_failure(const wr_storage *storage);

#endif
