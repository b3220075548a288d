/* SPDX-License-Identifier: MIT */
/* Launch arguments in device memory, for drivers that want them there: small buffers,
 * tagged "arguments", kept for launches with equal arguments. At most
 * WR_ARGUMENTS_ENTRIES of them; the one unused for longest makes room. Guarded by the
 * queue's lock. */
#ifndef WR_TENSOR_ARGUMENTS_H
#define WR_TENSOR_ARGUMENTS_H

#include <weir/tensor.h>

#define WR_ARGUMENTS_ENTRIES 64

typedef struct wr_arguments_entry {
    uint64_t hash;
    uint64_t last_use; /* 0: the entry is free */
    void *words;       /* what is in the buffer */
    size_t bytes;
    weir_buffer buffer;
} wr_arguments_entry;

typedef struct wr_arguments {
    uint64_t uses;
    uint64_t writes;
    wr_arguments_entry entries[WR_ARGUMENTS_ENTRIES];
} wr_arguments;

/* A buffer that holds these bytes once the stream gets there. It stays the cache's, until
 * the next call. */
weir_result wr_arguments_place(wr_arguments *arguments, weir_stream *stream,
                               const void *words, size_t bytes, weir_buffer *buffer);

/* Releases all buffers. */
void wr_arguments_clear(wr_arguments *arguments);

#endif
