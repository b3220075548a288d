/* SPDX-License-Identifier: MIT */
/* The entries that a tensor was made from, as one backward has them: claimed, so that
 * they are nobody else's, and newest first, so that each comes after all that was made
 * from it. Leaves are in it too, but belong to nobody: several backwards may be on their
 * way to one. */
#ifndef WR_TENSOR_WALK_H
#define WR_TENSOR_WALK_H

#include "entry.h"

typedef struct wr_walk_item {
    wr_entry *entry;       /* one reference */
    weir_tensor *gradient; /* so far; NULL: none */
} wr_walk_item;

/* Zeroed at the start. */
typedef struct wr_walk {
    wr_walk_item *items;
    uint32_t count;
    uint32_t capacity;
} wr_walk;

/* All entries that lead to `root`, or none. INVALID where an earlier backward has used
 * the tape up, BUSY where another one is using it, OUT_OF_HOST_MEMORY. */
weir_result wr_walk_claim(wr_walk *walk, wr_entry *root);
/* Of an entry that is in it. */
wr_walk_item *wr_walk_find(const wr_walk *walk, const wr_entry *entry);
/* Gives the entries back, used up or as they were, and the gradients. */
void wr_walk_finish(wr_walk *walk, bool is_spent);

#endif
