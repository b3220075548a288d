/* SPDX-License-Identifier: MIT */
/* Operations that follow each other on the same elements, in one pass: a block of values
 * stays in vector registers from the first operand to the result,
 *
 *     load x -> * a -> + b -> relu -> store y
 *
 * one small function per link, each of which ends in a jump to the next. Bit for bit the
 * same as the loops of operation.h, one after the other. No state, no lock. */
#ifndef WR_KERNEL_CHAIN_H
#define WR_KERNEL_CHAIN_H

#include <weir/kernel.h>

#define WR_CHAIN_ROW 64u

/* Where a link's other operand is. */
typedef enum wr_link_form {
    WR_LINK_FORM_SAME = 0, /* one value for all elements; also: there is no other */
    WR_LINK_FORM_EACH = 1, /* a value for each */
    WR_LINK_FORM_ROW = 2,  /* one for each of a row, and for the next row the same */
} wr_link_form;

typedef struct wr_link {
    uint8_t op;         /* weir_op, one that wr_chain_takes */
    uint8_t form;       /* wr_link_form */
    bool is_left;       /* the other operand is the left one: other - chain */
    const void *values; /* the other operand's; NULL if the operation has one operand */
} wr_link;

typedef struct wr_chain {
    const void *from; /* the first operand's values */
    void *to;         /* may be an operand's */
    uint64_t row;     /* elements, if there are such links: a multiple of WR_CHAIN_ROW */
    uint32_t link_count;
    wr_link links[WEIR_EXPRESSION_STEPS];
    bool streams; /* past the caches; wr_chain_settle before anybody reads it */
} wr_chain;

/* Whether an operation on values of that dtype can be a link. */
bool wr_chain_takes(weir_op op, weir_dtype operand);

void wr_chain_run(const wr_chain *chain, uint64_t count);

/* What this thread has streamed is in memory. */
void wr_chain_settle(void);

#endif
