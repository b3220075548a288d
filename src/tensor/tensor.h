/* SPDX-License-Identifier: MIT */
/* What the files of the tensor layer share. Failing functions set the thread's last
 * error. */
#ifndef WR_TENSOR_TENSOR_H
#define WR_TENSOR_TENSOR_H

#include "error.h"
#include "queue.h"
#include "storage.h"
#include "view.h"

typedef struct wr_entry wr_entry;

struct weir_tensor {
    _Atomic uint64_t references; /* clones are the same object */
    wr_storage *storage;         /* one reference */
    wr_view view;                /* of it; fixed */
    wr_entry *entry;             /* on the tape; one reference; NULL: not tracked */
};

/* A tensor with one reference; takes one on the storage. OUT_OF_HOST_MEMORY. */
weir_result wr_tensor_create(const char *who, wr_storage *storage, const wr_view *view,
                             weir_tensor **tensor);

/* weir_tensor_where with a number as the second choice. */
weir_result wr_tensor_where_scalar(weir_tensor *condition, weir_tensor *one, double other,
                                   weir_tensor **tensor);

/* Whether it shows its storage's elements, all of them, in their order. */
bool wr_tensor_is_plain(const weir_tensor *tensor);

#endif
