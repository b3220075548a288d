/* SPDX-License-Identifier: MIT */
/* What goes on the tape. */
#ifndef WR_TENSOR_TAPE_H
#define WR_TENSOR_TAPE_H

#include "entry.h"

/* The tag of what the tape keeps. */
#define WR_TAPE_TAG "autodiff"

/* An operation that has been recorded, or a view. */
typedef struct wr_note {
    const char *who;
    const wr_rule *rule; /* not NULL */
    uint32_t operand_count;
    weir_tensor *const *operands;
    wr_attributes attributes;
} wr_note;

/* Gives a fresh tensor, which nobody else has yet, its entry, if one of the operands is
 * tracked, the rule has a gradient, the result is of floats, and the thread's tape is not
 * paused. On failure the tensor is dropped and `*tensor` NULL. OUT_OF_HOST_MEMORY. */
weir_result wr_tape_note(const wr_note *note, weir_tensor **tensor);

/* For threads that compute gradients or steps. */
void wr_tape_pause(void);
void wr_tape_resume(void);

/* Held for moments, with nothing below it. */
void wr_tape_lock(void);
void wr_tape_unlock(void);

#endif
