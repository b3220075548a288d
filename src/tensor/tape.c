/* SPDX-License-Identifier: MIT */
#include "tape.h"

#include "rule.h"

#include "kernel/dtype.h"

#include <weir/autodiff.h>

static pthread_mutex_t tape = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local uint64_t pauses;

void wr_tape_lock(void)
{
    pthread_mutex_lock(&tape);
}

void wr_tape_unlock(void)
{
    pthread_mutex_unlock(&tape);
}

/* ---- pauses ---- */

void wr_tape_pause(void)
{
    pauses++;
}

void wr_tape_resume(void)
{
    pauses--;
}

weir_result weir_tape_pause(void)
{
    wr_tape_pause();
    return WEIR_OK;
}

weir_result weir_tape_resume(void)
{
    if (pauses == 0) {
        return wr_fail(WEIR_INVALID, "weir_tape_resume: the thread's tape is not paused");
    }
    wr_tape_resume();
    return WEIR_OK;
}

/* ---- noting ---- */

static bool is_tracked(const wr_note *note, const weir_tensor *result)
{
    bool tracked = false;
    for (uint32_t k = 0; k < note->operand_count; k++) {
        tracked |= note->operands[k]->entry != NULL;
    }
    return tracked && pauses == 0 && wr_dtype_is_float(result->storage->dtype) &&
           note->rule->gradient != NULL;
}

/* All that the gradients of the tracked inputs are made from. */
static uint32_t needs_of(const wr_note *note)
{
    uint32_t needs = 0;
    for (uint32_t k = 0; k < note->operand_count; k++) {
        uint32_t which = k < WR_RULE_INPUTS ? k : WR_RULE_INPUTS - 1;
        needs |= note->operands[k]->entry != NULL ? note->rule->needs[which] : 0;
    }
    return needs;
}

/* The same elements, untracked. `is_made`: the tape may be all that keeps them, so their
 * bytes carry its tag; leaves, and what was never tracked, are kept by somebody else. */
static weir_result save(const wr_note *note, const weir_tensor *tensor, bool is_made,
                        weir_tensor **saved)
{
    if (is_made) {
        wr_storage_retag(tensor->storage, WR_TAPE_TAG);
    }
    return wr_tensor_create(note->who, tensor->storage, &tensor->view, saved);
}

static weir_result fill_input(const wr_note *note, uint32_t k, bool is_needed,
                              wr_input *input)
{
    const weir_tensor *operand = note->operands[k];
    wr_entry *entry = operand->entry;
    input->shape = operand->view.shape;
    input->dtype = operand->storage->dtype;
    if (is_needed) {
        WR_TRY(save(note, operand, entry != NULL && entry->rule != NULL, &input->saved));
    }
    if (entry != NULL) {
        wr_entry_retain(entry);
        input->entry = entry;
    }
    return WEIR_OK;
}

static weir_result fill(const wr_note *note, const weir_tensor *result, wr_entry *entry)
{
    uint32_t needs = needs_of(note);
    entry->rule = note->rule;
    entry->attributes = note->attributes;
    for (uint32_t k = 0; k < note->operand_count; k++) {
        bool is_needed = k < 31 && (needs & WR_NEEDS_OPERAND(k)) != 0;
        WR_TRY(fill_input(note, k, is_needed, &entry->inputs[k]));
    }
    return (needs & WR_NEEDS_RESULT) != 0 ? save(note, result, true, &entry->result)
                                          : WEIR_OK;
}

static weir_result no_memory(const char *who)
{
    return wr_fail(WEIR_OUT_OF_HOST_MEMORY, "%s: no host memory for the tape", who);
}

weir_result wr_tape_note(const wr_note *note, weir_tensor **tensor)
{
    if (!is_tracked(note, *tensor)) {
        return WEIR_OK;
    }
    wr_entry *entry = wr_entry_create(note->operand_count);
    weir_result result =
        entry != NULL ? fill(note, *tensor, entry) : no_memory(note->who);
    if (result != WEIR_OK) {
        wr_entry_release(entry);
        weir_tensor_drop(*tensor);
        *tensor = NULL;
        return result;
    }
    (*tensor)->entry = entry;
    return WEIR_OK;
}

/* ---- leaves ---- */

static weir_result same_elements(const char *who, const weir_tensor *operand,
                                 weir_tensor **tensor)
{
    if (operand == NULL || tensor == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the %s is NULL", who,
                       operand == NULL ? "operand" : "place for the result");
    }
    return wr_tensor_create(who, operand->storage, &operand->view, tensor);
}

weir_result weir_tensor_detach(weir_tensor *operand, weir_tensor **tensor)
{
    return same_elements("weir_tensor_detach", operand, tensor);
}

weir_result weir_tensor_track(weir_tensor *operand, weir_tensor **tensor)
{
    const char *who = "weir_tensor_track";
    weir_tensor *fresh = NULL;
    WR_TRY(same_elements(who, operand, tensor != NULL ? &fresh : NULL));
    if (!wr_dtype_is_float(fresh->storage->dtype)) {
        weir_tensor_drop(fresh);
        return wr_fail(WEIR_INVALID,
                       "%s: the operand is %s, and only floats have "
                       "gradients; cast it",
                       who, wr_dtype_name(operand->storage->dtype));
    }
    fresh->entry = wr_entry_create(0);
    if (fresh->entry == NULL) {
        weir_tensor_drop(fresh);
        return no_memory(who);
    }
    *tensor = fresh;
    return WEIR_OK;
}

bool weir_tensor_is_tracked(const weir_tensor *tensor)
{
    return tensor != NULL && tensor->entry != NULL;
}

static weir_result check_leaf(const char *who, const weir_tensor *leaf)
{
    bool is_leaf = leaf != NULL && leaf->entry != NULL && leaf->entry->rule == NULL;
    return is_leaf ? WEIR_OK
                   : wr_fail(WEIR_INVALID,
                             "%s: only leaves, which weir_tensor_track makes, keep a "
                             "gradient; this is %s",
                             who,
                             leaf == NULL          ? "NULL"
                             : leaf->entry == NULL ? "an untracked tensor"
                                                   : "a result");
}

weir_result weir_tensor_gradient(const weir_tensor *leaf, weir_tensor **gradient)
{
    const char *who = "weir_tensor_gradient";
    WR_TRY(check_leaf(who, leaf));
    if (gradient == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the place for the result is NULL", who);
    }
    wr_tape_lock();
    weir_tensor *found = weir_tensor_clone(leaf->entry->gradient);
    wr_tape_unlock();
    if (found == NULL) {
        return wr_fail(WEIR_NOT_FOUND,
                       "%s: no weir_tensor_backward has come to the leaf yet", who);
    }
    *gradient = found;
    return WEIR_OK;
}

weir_result weir_tensor_gradient_clear(weir_tensor *leaf)
{
    WR_TRY(check_leaf("weir_tensor_gradient_clear", leaf));
    wr_tape_lock();
    weir_tensor *gone = leaf->entry->gradient;
    leaf->entry->gradient = NULL;
    wr_tape_unlock();
    weir_tensor_drop(gone);
    return WEIR_OK;
}
