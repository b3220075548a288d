/* SPDX-License-Identifier: MIT */
/* From a buffer's handle to its slice. */
#ifndef WR_MANAGER_HANDLE_H
#define WR_MANAGER_HANDLE_H

#include "page/slice.h"

#include <weir/memory.h>

#include <stddef.h>
#include <string.h>

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

/* The handle of a slice that nobody refers to: what `index` and the word's generation
 * say.
 */
static inline weir_buffer wr_handle_make(wr_slice_id index, uint64_t word)
{
    weir_buffer buffer;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t both = word | index;
    _Static_assert(offsetof(weir_buffer, generation) == 4 && sizeof buffer == 8,
                   "a handle is a word with the index in place of the references");
    memcpy(&buffer, &both, sizeof buffer);
#else
    buffer = (weir_buffer){.index = index, .generation = wr_word_generation(word)};
#endif
    return buffer;
}

/* The first reference to a slice, and the handle. */
static inline weir_buffer wr_handle_hand_out(wr_slice *slice, uint64_t reference)
{
    uint64_t word = atomic_load_explicit(&slice->word, memory_order_relaxed);
    atomic_store_explicit(&slice->word, word | reference, memory_order_release);
    return wr_handle_make(wr_slice_id_of(slice), word);
}

#endif
