/* SPDX-License-Identifier: MIT */
#include "arguments.h"

#include "error.h"

#include "kernel/memory.h"

#include <string.h>

/* FNV-1a. */
static uint64_t hash_of(const unsigned char *bytes, size_t count)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

static void empty(wr_arguments_entry *entry)
{
    if (entry->last_use != 0) {
        weir_buffer_release(entry->buffer);
        wr_memory_free(entry->words);
        *entry = (wr_arguments_entry){0};
    }
}

/* The entry with these bytes, or else the one to be replaced; free ones are the oldest.
 */
static wr_arguments_entry *choose(wr_arguments *arguments, const void *words,
                                  size_t bytes, uint64_t hash)
{
    wr_arguments_entry *oldest = &arguments->entries[0];
    for (uint32_t i = 0; i < WR_ARGUMENTS_ENTRIES; i++) {
        wr_arguments_entry *entry = &arguments->entries[i];
        if (entry->last_use != 0 && entry->hash == hash && entry->bytes == bytes &&
            memcmp(entry->words, words, bytes) == 0) {
            return entry;
        }
        oldest = entry->last_use < oldest->last_use ? entry : oldest;
    }
    empty(oldest);
    return oldest;
}

static weir_result fill(wr_arguments_entry *entry, weir_stream *stream, const void *words,
                        size_t bytes)
{
    const weir_buffer_desc desc = {.tag = "arguments"};
    weir_buffer buffer;
    void *copy = wr_memory_alloc(bytes);
    if (copy == NULL) {
        return wr_fail(
            WEIR_OUT_OF_HOST_MEMORY,
            "weir_tensor: no host memory for a launch's %zu bytes of arguments", bytes);
    }
    weir_result result = weir_buffer_create(stream, bytes, &desc, &buffer);
    if (result != WEIR_OK) {
        goto undo_copy;
    }
    result = weir_buffer_write(buffer, 0, words, bytes);
    if (result != WEIR_OK) {
        goto undo_buffer;
    }
    memcpy(copy, words, bytes);
    entry->words = copy;
    entry->bytes = bytes;
    entry->buffer = buffer;
    return WEIR_OK;

undo_buffer:
    weir_buffer_release(buffer);
undo_copy:
    wr_memory_free(copy);
    return result;
}

weir_result wr_arguments_place(wr_arguments *arguments, weir_stream *stream,
                               const void *words, size_t bytes, weir_buffer *buffer)
{
    uint64_t hash = hash_of(words, bytes);
    wr_arguments_entry *entry = choose(arguments, words, bytes, hash);
    if (entry->last_use == 0) {
        WR_TRY(fill(entry, stream, words, bytes));
        entry->hash = hash;
        arguments->writes++;
    }
    entry->last_use = ++arguments->uses;
    *buffer = entry->buffer;
    return WEIR_OK;
}

void wr_arguments_clear(wr_arguments *arguments)
{
    for (uint32_t i = 0; i < WR_ARGUMENTS_ENTRIES; i++) {
        empty(&arguments->entries[i]);
    }
}
