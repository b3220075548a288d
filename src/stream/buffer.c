/* SPDX-License-Identifier: MIT */
/* Buffers: the public face of slices. A handle is looked at without a lock: its record is
 * always mapped, and its word says whether the generation still lives. */
#include "device.h"

#include "base/hot.h"
#include "base/result.h"
#include "manager/tags.h"
#include "manager/waits.h"

#define REQUEST_MAX (UINT64_C(1) << 44) /* 16 TiB: beyond, a size is a mistake */
#define ALIGNMENT_MAX (UINT64_C(1) << 21)

/* ---- handles ---- */

static weir_result refuse_handle(weir_buffer buffer, const char *function)
{
    if (buffer.index == 0 || buffer.generation == 0) {
        return wr_error(WEIR_INVALID, "%s: {%u, %u} is no buffer", function, buffer.index,
                        buffer.generation);
    }
    if (!wr_slab_has(buffer.index)) {
        return wr_error(WEIR_INVALID, "%s: handle {%u, %u} was never handed out",
                        function, buffer.index, buffer.generation);
    }
    return wr_error(WEIR_STALE, "%s: buffer {%u, %u} has already been released", function,
                    buffer.index, buffer.generation);
}

/* The live slice of a handle, NULL if there is none. */
static inline wr_slice *find(weir_buffer buffer, uint64_t *word)
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

/* ---- create ---- */

static weir_result check_request(const weir_stream *stream, uint64_t bytes,
                                 const weir_buffer_desc *desc, const weir_buffer *buffer)
{
    if (stream == NULL || buffer == NULL) {
        return wr_error(
            WEIR_INVALID,
            "weir_buffer_create: the stream or the place for the buffer is NULL");
    }
    if (bytes == 0 || bytes > REQUEST_MAX) {
        return wr_error(
            WEIR_INVALID,
            "weir_buffer_create: %llu bytes requested; a buffer has 1 byte to 16 TiB",
            (unsigned long long)bytes);
    }
    if (stream->manager.closing) {
        return wr_error(WEIR_INVALID, "weir_buffer_create: stream \"%s\" is closed",
                        stream->manager.name);
    }
    if (desc == NULL) {
        return WEIR_OK;
    }
    uint64_t alignment = desc->alignment_bytes;
    if ((desc->size != 0 && desc->size != sizeof *desc) ||
        (alignment & (alignment - 1)) != 0 || alignment > ALIGNMENT_MAX) {
        return wr_error(
            WEIR_INVALID,
            "weir_buffer_create: an alignment of %llu is no power of two up to 2 MiB, "
            "or options of another size",
            (unsigned long long)alignment);
    }
    return WEIR_OK;
}

/* Whatever is not an ordinary request of a size alone. */
static WR_COLD weir_result create(weir_stream *stream, uint64_t bytes,
                                  const weir_buffer_desc *desc, uint16_t tag,
                                  wr_slice **slice)
{
    wr_request request = {.requested_bytes = bytes,
                          .extent_bytes =
                              (bytes + WR_UNIT_BYTES - 1) & ~(WR_UNIT_BYTES - 1),
                          .tag = tag};
    if (desc != NULL) {
        request.persistent = desc->persistent;
        if (desc->alignment_bytes > WR_UNIT_BYTES) {
            request.alignment_bytes = desc->alignment_bytes;
            request.alignment_shift = (uint8_t)__builtin_ctzll(desc->alignment_bytes);
        }
    }
    return wr_manager_reserve(&stream->manager, &request, slice);
}

weir_result weir_buffer_create(weir_stream *stream, uint64_t bytes,
                               const weir_buffer_desc *desc, weir_buffer *buffer)
{
    if (WR_UNLIKELY(stream == NULL || buffer == NULL || bytes - 1 >= REQUEST_MAX ||
                    desc != NULL || stream->manager.closing)) {
        WR_TRY(check_request(stream, bytes, desc, buffer));
    }
    uint16_t tag = desc != NULL && desc->tag != NULL
                       ? wr_tags_intern(stream->manager.bank, desc->tag)
                       : wr_tag_current(stream->manager.bank);
    wr_slice *slice = NULL;
    if (desc == NULL || (!desc->persistent && desc->alignment_bytes <= WR_UNIT_BYTES)) {
        slice = wr_manager_reserve_hot(&stream->manager, bytes, tag);
    }
    if (WR_UNLIKELY(slice == NULL)) {
        WR_TRY(create(stream, bytes, desc, tag, &slice));
    }
    uint64_t word = atomic_load_explicit(&slice->word, memory_order_relaxed);
    atomic_store_explicit(&slice->word, word | 1, memory_order_release);
    *buffer = (weir_buffer){.index = wr_slice_id_of(slice),
                            .generation = wr_word_generation(word)};
    return WEIR_OK;
}

/* ---- references ---- */

weir_result weir_buffer_retain(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = find(buffer, &word);
    while (slice != NULL) {
        if (wr_word_references(word) == UINT32_MAX) {
            return wr_error(WEIR_LIMIT,
                            "weir_buffer_retain: the buffer has 2^32 - 1 references");
        }
        if (atomic_compare_exchange_weak_explicit(&slice->word, &word, word + 1,
                                                  memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return WEIR_OK;
        }
        slice = find(buffer, &word);
    }
    return refuse_handle(buffer, "weir_buffer_retain");
}

weir_result weir_buffer_release(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = find(buffer, &word);
    while (slice != NULL) {
        bool last = wr_word_references(word) == 1;
        uint64_t after =
            last ? (uint64_t)(uint32_t)(wr_word_generation(word) + 1) << 32 : word - 1;
        if (atomic_compare_exchange_weak_explicit(
                &slice->word, &word, after, memory_order_acq_rel, memory_order_acquire)) {
            if (last) {
                wr_manager_release(slice);
            }
            return WEIR_OK;
        }
        slice = find(buffer, &word);
    }
    return refuse_handle(buffer, "weir_buffer_release");
}

/* ---- use on another stream ---- */

/* Makes `stream` wait, on the device, for what the buffer's own stream has queued. */
static weir_result order_behind(wr_manager *own, weir_stream *stream)
{
    wr_bank *bank = own->bank;
    if (bank->table->stream_test(bank->driver, own->stream) == WEIR_OK) {
        return WEIR_OK; /* nothing is queued */
    }
    weir_driver_fence fence = 0;
    WR_TRY(bank->table->fence_record(bank->driver, own->stream, &fence));
    WR_COUNT(bank->events.fences);
    weir_result result =
        bank->table->stream_wait(bank->driver, stream->manager.stream, fence);
    bank->table->fence_release(bank->driver, fence);
    return result;
}

weir_result weir_buffer_use(weir_buffer buffer, weir_stream *stream)
{
    uint64_t word;
    wr_slice *slice = find(buffer, &word);
    if (slice == NULL) {
        return refuse_handle(buffer, "weir_buffer_use");
    }
    if (stream == NULL) {
        return wr_error(WEIR_INVALID, "weir_buffer_use: the stream is NULL");
    }
    wr_manager *own = slice->pool->manager;
    if (stream->manager.bank != own->bank || stream->manager.closing) {
        return wr_error(WEIR_INVALID,
                        "weir_buffer_use: stream \"%s\" is closed, or of another device",
                        stream->manager.name);
    }
    if (&stream->manager == own) {
        return WEIR_OK;
    }
    wr_manager_lock(own);
    weir_result result = order_behind(own, stream);
    if (result == WEIR_OK) {
        result = wr_waits_add_use(own, slice, stream->manager.slot);
    }
    wr_manager_unlock(own);
    return result;
}

/* ---- looking ---- */

/* Where the buffer begins in its slice. */
static uint64_t begin_of(const wr_slice *slice)
{
    uint64_t mask = (UINT64_C(1) << slice->alignment_shift) - 1;
    return (slice->address + mask) & ~mask;
}

uint64_t weir_buffer_address(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = find(buffer, &word);
    return slice == NULL ? 0 : begin_of(slice);
}

uint64_t weir_buffer_bytes(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = find(buffer, &word);
    return slice == NULL ? 0 : slice->held.requested_bytes;
}

uint64_t weir_buffer_extent(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = find(buffer, &word);
    return slice == NULL ? 0 : slice->extent_bytes;
}

uint32_t weir_buffer_references(weir_buffer buffer)
{
    uint64_t word;
    return find(buffer, &word) == NULL ? 0 : wr_word_references(word);
}

weir_stream *weir_buffer_stream(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = find(buffer, &word);
    return slice == NULL ? NULL : wr_stream_of(slice->pool->manager);
}

/* ---- data ---- */

static weir_result check_range(weir_buffer buffer, uint64_t offset, const void *data,
                               uint64_t bytes, wr_slice **slice, const char *function)
{
    uint64_t word;
    *slice = find(buffer, &word);
    if (*slice == NULL) {
        return refuse_handle(buffer, function);
    }
    uint64_t size = (*slice)->held.requested_bytes;
    if ((data == NULL && bytes > 0) || offset > size || bytes > size - offset) {
        return wr_error(
            WEIR_INVALID,
            "%s: %llu bytes at offset %llu of a buffer of %llu, or the data is NULL",
            function, (unsigned long long)bytes, (unsigned long long)offset,
            (unsigned long long)size);
    }
    return WEIR_OK;
}

weir_result weir_buffer_write(weir_buffer buffer, uint64_t offset_bytes, const void *data,
                              uint64_t bytes)
{
    wr_slice *slice;
    WR_TRY(check_range(buffer, offset_bytes, data, bytes, &slice, "weir_buffer_write"));
    wr_manager *own = slice->pool->manager;
    return bytes == 0
               ? WEIR_OK
               : own->bank->table->write(own->bank->driver, own->stream,
                                         begin_of(slice) + offset_bytes, data, bytes);
}

weir_result weir_buffer_read(weir_buffer buffer, uint64_t offset_bytes, void *data,
                             uint64_t bytes)
{
    wr_slice *slice;
    WR_TRY(check_range(buffer, offset_bytes, data, bytes, &slice, "weir_buffer_read"));
    wr_manager *own = slice->pool->manager;
    return bytes == 0
               ? WEIR_OK
               : own->bank->table->read(own->bank->driver, own->stream,
                                        begin_of(slice) + offset_bytes, data, bytes);
}
