/* SPDX-License-Identifier: MIT */
/* The tape's entries. There is no list of them: an entry is held by the tensor that it
 * made, and by the entries made from that,
 *
 *     w ---> leaf <--- entry (mul) <--- entry (sum) <--- loss
 *                        saved: x
 *
 * so what no tensor can reach is gone with the last tensor that could. An entry never
 * holds a tracked tensor, so there are no cycles. Inputs are older than what is made from
 * them: their serials are smaller.
 *
 * References are atomic. The rest is fixed once the tensor is handed out, except for
 * what wr_tape_lock guards: a leaf's gradient, and whose backward an entry belongs to.
 * Whoever has claimed an entry has its inputs and what it saved to himself. */
#ifndef WR_TENSOR_ENTRY_H
#define WR_TENSOR_ENTRY_H

#include "tensor.h"

typedef struct wr_rule wr_rule;

typedef struct wr_input {
    wr_entry *entry;    /* one reference; NULL: not tracked */
    weir_tensor *saved; /* the operand, untracked; NULL: backward does not need it */
    weir_shape shape;
    weir_dtype dtype;
} wr_input;

/* What an operation took besides its operands; the rule knows which of it. */
typedef struct wr_attributes {
    bool has_scalar; /* the last operand is `scalar`... */
    double scalar;   /* ...as it was used, rounded to the dtype */
    uint32_t axes;   /* reduced: a bit for each dimension of the operand */
    uint32_t axis;
    uint64_t start;
    int64_t step;
    uint32_t order[WEIR_TENSOR_MAX_RANK]; /* dimension i of the result is order[i] of
                                             the operand */
} wr_attributes;

struct wr_entry {
    _Atomic uint64_t references;
    uint64_t serial;
    const wr_rule *rule; /* NULL: a leaf */
    wr_attributes attributes;
    weir_tensor *result;   /* saved, untracked; NULL: not needed */
    weir_tensor *gradient; /* a leaf's so far. Guard: the tape's lock */
    const void *claim;     /* the backward that is using it. Guard: the tape's lock */
    bool is_spent;  /* nothing is left to go back through. Guard: the tape's lock */
    wr_entry *next; /* while it is being freed */
    uint32_t input_count;
    wr_input inputs[];
};

/* With one reference, the newest serial, and no inputs filled in; NULL without memory. */
wr_entry *wr_entry_create(uint32_t input_count);
void wr_entry_retain(wr_entry *entry);
/* NULL is a no-op. However long the chain behind it, the stack stays flat. */
void wr_entry_release(wr_entry *entry);
/* Gives back what backward would need. */
void wr_entry_spend(wr_entry *entry);

#endif
