/* SPDX-License-Identifier: MIT */
/* Buffers: the public face of slices. A handle is looked at without a lock: its record is
 * always mapped, and its word says whether the generation still lives. */
#include "checked.h"
#include "device.h"
#include "tag.h"

#include "base/fork.h"
#include "base/hot.h"
#include "base/result.h"
#include "manager/capture.h"
#include "manager/handle.h"
#include "manager/limits.h"
#include "manager/probe.h"
#include "manager/tags.h"
#include "manager/uses.h"
#include "manager/waits.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

#define ALIGNMENT_MAX (UINT64_C(1) << 21)

/* ---- handles ---- */

static weir_result refuse_handle(weir_buffer buffer, const char *function)
{
    WR_TRY(wr_fork_check());
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

/* ---- create ---- */

static weir_result check_request(const weir_stream *stream, uint64_t bytes,
                                 const weir_buffer_desc *desc, const weir_buffer *buffer)
{
    WR_TRY(wr_fork_check());
    if (stream == NULL || buffer == NULL) {
        return wr_error(
            WEIR_INVALID,
            "weir_buffer_create: the stream or the place for the buffer is NULL");
    }
    if (bytes == 0 || bytes > WR_REQUEST_MAX) {
        return wr_error(
            WEIR_INVALID,
            "weir_buffer_create: %llu bytes requested; a buffer has 1 byte to 16 TiB",
            (unsigned long long)bytes);
    }
    if (stream->manager.closing) {
        return wr_error(WEIR_INVALID, "weir_buffer_create: stream \"%s\" is closed",
                        stream->manager.name);
    }
    WR_TRY(wr_loss_check(&stream->manager.bank->loss));
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
                                  const weir_buffer_desc *desc, uint64_t tag,
                                  wr_slice **slice)
{
    uint64_t margin = wr_checked_margin(&stream->manager);
    wr_request request = {.requested_bytes = bytes,
                          .extent_bytes =
                              (bytes + margin + WR_UNIT_BYTES - 1) & ~(WR_UNIT_BYTES - 1),
                          .tag = (uint16_t)tag,
                          .persistent = stream->manager.window_depth > 0};
    if (desc != NULL) {
        request.persistent |= desc->persistent;
        request.shared = desc->exportable;
        if (desc->alignment_bytes > WR_UNIT_BYTES && !request.shared) {
            request.alignment_bytes = desc->alignment_bytes;
            request.alignment_shift = (uint8_t)__builtin_ctzll(desc->alignment_bytes);
        }
    }
    return (tag & WR_TAG_LIMITED) != 0
               ? wr_limits_reserve(&stream->manager, &request, slice)
               : wr_manager_reserve(&stream->manager, &request, slice);
}

static inline const char *text_of(const weir_buffer_desc *desc)
{
    return desc == NULL ? NULL : desc->tag;
}

/* Two options in one look. */
static inline uint16_t wishes_of(const weir_buffer_desc *desc)
{
    uint16_t wishes;
    _Static_assert(offsetof(weir_buffer_desc, exportable) ==
                       offsetof(weir_buffer_desc, persistent) + 1,
                   "they lie side by side");
    memcpy(&wishes, &desc->persistent, sizeof wishes);
    return wishes;
}

/* Nothing in the options is for create. */
static inline bool is_ordinary(const weir_buffer_desc *desc)
{
    return desc == NULL || ((desc->size == 0 || desc->size == sizeof *desc) &&
                            desc->alignment_bytes == 0 && !wishes_of(desc));
}

static weir_buffer hand_out(const weir_stream *stream, wr_slice *slice, bool exportable)
{
    bool checked = (stream->manager.gate & WR_GATE_CHECKED) != 0 && !exportable;
    if (checked) {
        wr_checked_arm(slice);
    }
    return wr_handle_hand_out(slice, checked ? WR_WORD_CHECKED | 1 : 1);
}

/* Arguments that are not valid, options that matter, streams that are not ordinary. */
static WR_COLD weir_result create_with_care(weir_stream *stream, uint64_t bytes,
                                            const weir_buffer_desc *desc,
                                            weir_buffer *buffer)
{
    wr_slice *slice = NULL;
    WR_TRY(check_request(stream, bytes, desc, buffer));
    WR_TRY(create(stream, bytes, desc, wr_tag_of(stream->manager.bank, text_of(desc)),
                  &slice));
    bool exportable = desc != NULL && desc->exportable; /* others may see its bytes */
    *buffer = hand_out(stream, slice, exportable);
    return WEIR_OK;
}

/* A tag's limit comes before everything else. */
static WR_COLD weir_result create_limited(weir_stream *stream, uint64_t bytes,
                                          uint64_t tag, weir_buffer *buffer)
{
    wr_slice *slice = NULL;
    WR_TRY(create(stream, bytes, NULL, tag, &slice));
    *buffer = wr_handle_hand_out(slice, 1);
    return WEIR_OK;
}

static WR_COLD weir_result create_looking_up(weir_stream *stream, uint64_t bytes,
                                             const weir_buffer_desc *desc,
                                             weir_buffer *buffer)
{
    uint64_t tag = wr_tag_look_up(stream->manager.bank, text_of(desc));
    return (tag & WR_TAG_LIMITED) == 0
               ? wr_manager_create(&stream->manager, bytes, tag, buffer)
               : create_limited(stream, bytes, tag, buffer);
}

static inline uint64_t request_max(void)
{
    return atomic_load_explicit(&wr_wiped.request_max, memory_order_relaxed);
}

weir_result weir_buffer_create(weir_stream *stream, uint64_t bytes,
                               const weir_buffer_desc *desc, weir_buffer *buffer)
{
    if (WR_UNLIKELY(stream == NULL) || WR_UNLIKELY(buffer == NULL) ||
        WR_UNLIKELY(bytes - 1 >= request_max()) || WR_UNLIKELY(!is_ordinary(desc)) ||
        WR_UNLIKELY(stream->manager.gate != 0)) {
        return create_with_care(stream, bytes, desc, buffer);
    }
    if (WR_LIKELY(text_of(desc) == NULL) && WR_LIKELY(!wr_tag_has_scope())) {
        return wr_manager_create(&stream->manager, bytes, 0, buffer);
    }
    uint64_t tag = wr_tag_known(stream->manager.bank, text_of(desc));
    return WR_LIKELY(tag != WR_TAG_UNKNOWN)
               ? wr_manager_create(&stream->manager, bytes, tag, buffer)
               : create_looking_up(stream, bytes, desc, buffer);
}

/* Also where a tag of the device has a limit. */
static WR_COLD weir_result create_tagged_with_care(weir_stream *stream, uint64_t bytes,
                                                   weir_tag tag, weir_buffer *buffer)
{
    wr_slice *slice = NULL;
    if (tag.value == 0) {
        return weir_buffer_create(stream, bytes, NULL, buffer);
    }
    WR_TRY(check_request(stream, bytes, NULL, buffer));
    wr_bank *bank = stream->manager.bank;
    uint64_t number = tag.value - bank->tags_base;
    if (number >= atomic_load_explicit(&bank->tag_count, memory_order_acquire)) {
        return wr_error(WEIR_INVALID,
                        "weir_buffer_create_tagged: {%llu} is no tag of the stream's "
                        "device; weir_device_tag looks one up",
                        (unsigned long long)tag.value);
    }
    bool limited = WR_GET(bank->tags[number].limit_bytes) != 0;
    if (!limited && stream->manager.gate == 0) {
        return wr_manager_create(&stream->manager, bytes, number, buffer);
    }
    number |= limited ? WR_TAG_LIMITED : 0;
    WR_TRY(create(stream, bytes, NULL, number, &slice));
    *buffer = hand_out(stream, slice, false);
    return WEIR_OK;
}

weir_result weir_buffer_create_tagged(weir_stream *stream, uint64_t bytes, weir_tag tag,
                                      weir_buffer *buffer)
{
    if (WR_UNLIKELY(stream == NULL) || WR_UNLIKELY(buffer == NULL) ||
        WR_UNLIKELY(bytes - 1 >= request_max()) ||
        WR_UNLIKELY(stream->manager.gate != 0)) {
        return create_tagged_with_care(stream, bytes, tag, buffer);
    }
    const wr_bank *bank = stream->manager.bank;
    uint64_t number = tag.value - bank->tags_base;
    return WR_LIKELY(number < WR_OWN(bank->plain_count))
               ? wr_manager_create(&stream->manager, bytes, number, buffer)
               : create_tagged_with_care(stream, bytes, tag, buffer);
}

/* ---- references ---- */

weir_result weir_buffer_retain(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
    while (slice != NULL) {
        if ((wr_word_references(word) | WR_WORD_CHECKED) == UINT32_MAX) {
            return wr_error(WEIR_LIMIT,
                            "weir_buffer_retain: the buffer has 2^31 - 1 references");
        }
        if (atomic_compare_exchange_weak_explicit(&slice->word, &word, word + 1,
                                                  memory_order_acq_rel,
                                                  memory_order_acquire)) {
            return WEIR_OK;
        }
        slice = wr_handle_find(buffer, &word);
    }
    return refuse_handle(buffer, "weir_buffer_retain");
}

static inline uint64_t next_generation(uint64_t word)
{
    return (uint64_t)(uint32_t)(wr_word_generation(word) + 1) << 32;
}

static inline bool exchange(wr_slice *slice, uint64_t *word, uint64_t after)
{
    return atomic_compare_exchange_weak_explicit(
        &slice->word, word, after, memory_order_acq_rel, memory_order_acquire);
}

/* Of several references, of a buffer in checked mode, or of none at all. */
static __attribute__((noinline)) weir_result release_shared(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
    while (slice != NULL) {
        uint32_t references = wr_word_references(word);
        bool last = (references & ~WR_WORD_CHECKED) == 1;
        if (exchange(slice, &word, last ? next_generation(word) : word - 1)) {
            if (last && references != 1) {
                return wr_checked_release(buffer, slice);
            }
            if (last) {
                wr_manager_release(slice);
            }
            return WEIR_OK;
        }
        slice = wr_handle_find(buffer, &word);
    }
    return refuse_handle(buffer, "weir_buffer_release");
}

/* Most buffers have one reference: then the word is known, and is exchanged unseen. */
weir_result weir_buffer_release(weir_buffer buffer)
{
    if (WR_LIKELY(wr_slab_has(buffer.index))) {
        wr_slice *slice = wr_slice_get(buffer.index);
        uint64_t word = (uint64_t)buffer.generation << 32 | 1;
        if (WR_LIKELY(atomic_compare_exchange_strong_explicit(
                &slice->word, &word, next_generation(word), memory_order_acq_rel,
                memory_order_relaxed))) {
            wr_manager_release(slice);
            return WEIR_OK;
        }
    }
    return release_shared(buffer);
}

/* ---- use on another stream ---- */

/* Under the own manager's lock. Recorded work orders itself when it is launched. */
static weir_result use(wr_manager *own, wr_slice *slice, wr_manager *stream)
{
    weir_result result =
        stream->capturing ? wr_graph_add(own, slice, stream) : WEIR_NOT_READY;
    if (result != WEIR_NOT_READY || stream == own) {
        return result == WEIR_NOT_READY ? WEIR_OK : result;
    }
    WR_TRY(wr_waits_order(own, stream));
    return wr_uses_add(own, slice, stream->slot);
}

/* NOT_READY: just now the stream begins to capture. */
static weir_result use_locked(wr_manager *own, wr_slice *slice, wr_manager *stream)
{
    wr_manager_lock(own);
    weir_result result = use(own, slice, stream);
    wr_manager_unlock(own);
    return result;
}

weir_result weir_buffer_use(weir_buffer buffer, weir_stream *stream)
{
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
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
    if (&stream->manager == own && !own->capturing) {
        return WEIR_OK;
    }
    weir_result result;
    while ((result = use_locked(own, slice, &stream->manager)) == WEIR_NOT_READY) {
        sched_yield();
    }
    return wr_probe_heed(own->bank, result);
}

/* ---- looking ---- */

uint64_t weir_buffer_address(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
    return slice == NULL ? 0 : wr_slice_begin(slice);
}

uint64_t weir_buffer_bytes(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
    return slice == NULL ? 0 : slice->held.requested_bytes;
}

uint64_t weir_buffer_extent(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
    return slice == NULL ? 0 : slice->extent_bytes;
}

uint32_t weir_buffer_references(weir_buffer buffer)
{
    uint64_t word;
    return wr_handle_find(buffer, &word) == NULL
               ? 0
               : wr_word_references(word) & (uint32_t)~WR_WORD_CHECKED;
}

weir_stream *weir_buffer_stream(weir_buffer buffer)
{
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
    return slice == NULL ? NULL : wr_stream_of(slice->pool->manager);
}

/* ---- data ---- */

static weir_result check_range(weir_buffer buffer, uint64_t offset, const void *data,
                               uint64_t bytes, wr_slice **slice, const char *function)
{
    uint64_t word;
    *slice = wr_handle_find(buffer, &word);
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
    wr_bank *bank = own->bank;
    uint64_t address = wr_slice_begin(slice) + offset_bytes;
    return bytes == 0 ? WEIR_OK
                      : wr_probe_heed(bank, bank->table->write(bank->driver, own->stream,
                                                               address, data, bytes));
}

weir_result weir_buffer_read(weir_buffer buffer, uint64_t offset_bytes, void *data,
                             uint64_t bytes)
{
    wr_slice *slice;
    WR_TRY(check_range(buffer, offset_bytes, data, bytes, &slice, "weir_buffer_read"));
    wr_manager *own = slice->pool->manager;
    if (own->capturing) {
        return wr_capture_refuse_on(own, "weir_buffer_read");
    }
    wr_bank *bank = own->bank;
    uint64_t address = wr_slice_begin(slice) + offset_bytes;
    return bytes == 0 ? WEIR_OK
                      : wr_probe_heed(bank, bank->table->read(bank->driver, own->stream,
                                                              address, data, bytes));
}
