/* SPDX-License-Identifier: MIT */
/* From a buffer's handle to its slice. */
#ifndef WR_MANAGER_HANDLE_H
#define WR_MANAGER_HANDLE_H

#include "page/slice.h"

#include <weir/memory.h>

/* The live slice of a handle, and its word; NULL if there is none. No lock: records are
 * always mapped, and the word says whether the generation still lives. */
static inline wr_slice *wr_handle_find(weir_buffer buffer, uint64_t *word)
{
    if (!wr_slab_has(buffer.index)) {
        return NULL;
    }
    wr_slice *slice = wr_slice_get(buffer.index);
    *word = atomic_load_explicit(&slice->word, memory_order_acquire);
    bool lives =
        wr_word_generation(*word) == buffer.generation && wr_word_references(*word) != 0;
    return lives ? slice : NULL;
}

/* The first reference to a slice, whose word is as it is said, and the handle. */
static inline weir_buffer wr_handle_make(wr_slice *slice, uint64_t word,
                                         uint64_t reference)
{
    atomic_store_explicit(&slice->word, word | reference, memory_order_release);
    return (weir_buffer){.index = wr_slice_id_of(slice),
                         .generation = wr_word_generation(word)};
}

static inline weir_buffer wr_handle_hand_out(wr_slice *slice, uint64_t reference)
{
    uint64_t word = atomic_load_explicit(&slice->word, memory_order_relaxed);
    return wr_handle_make(slice, word, reference);
}

#endif
