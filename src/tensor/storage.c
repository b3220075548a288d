/* SPDX-License-Identifier: MIT */
#include "storage.h"

#include "error.h"

#include "kernel/memory.h"

#include <string.h>

wr_storage *wr_storage_create(weir_dtype dtype, uint64_t element_count)
{
    wr_storage *storage = wr_memory_alloc(sizeof *storage);
    if (storage != NULL) {
        storage->references = 1;
        storage->dtype = dtype;
        storage->element_count = element_count;
    }
    return storage;
}

void wr_storage_retain(wr_storage *storage)
{
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
}

/* The buffer's release can only fail as stale, after the device was abandoned; then
 * nothing is owed. */
void wr_storage_release(wr_storage *storage)
{
    if (storage == NULL ||
        atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (storage->buffer.generation != 0) {
        weir_buffer_release(storage->buffer);
    }
    wr_memory_free(storage->failure_text);
    wr_memory_free(storage);
}

wr_storage_state wr_storage_state_of(const wr_storage *storage)
{
    return (wr_storage_state)atomic_load_explicit(&storage->state, memory_order_acquire);
}

static void leave_pending(wr_storage *storage, wr_storage_state state)
{
    storage->node = NULL;
    atomic_store_explicit(&storage->state, (uint32_t)state, memory_order_release);
}

void wr_storage_become_ready(wr_storage *storage, weir_buffer buffer, const char *tag)
{
    storage->buffer = buffer;
    strncpy(storage->tag, tag, sizeof storage->tag - 1);
    leave_pending(storage, WR_STORAGE_STATE_READY);
}

void wr_storage_become_failed(wr_storage *storage, weir_result failure)
{
    const char *text = weir_last_error();
    size_t bytes = strlen(text) + 1;
    storage->failure = failure;
    storage->failure_text = wr_memory_alloc(bytes);
    if (storage->failure_text != NULL) {
        memcpy(storage->failure_text, text, bytes);
    }
    leave_pending(storage, WR_STORAGE_STATE_FAILED);
}

weir_result wr_storage_failure(const wr_storage *storage)
{
    return wr_fail(storage->failure, "%s",
                   storage->failure_text != NULL ? storage->failure_text
                                                 : weir_result_text(storage->failure));
}
