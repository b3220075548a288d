/* SPDX-License-Identifier: MIT */
/* See checked.h.
 *
 *      begin          begin + requested        end of the slice
 *        [ the buffer's bytes ][ canary: at least MARGIN_BYTES ]
 *
 * Only the first CANARY_MAX bytes of what lies behind are laid and looked at: pools of
 * whole pages may leave megabytes there. */
#define _GNU_SOURCE
#include "checked.h"

#include "device.h"

#include "base/poison.h"
#include "base/result.h"
#include "manager/uses.h"

#include <stdlib.h>
#include <string.h>

#define MARGIN_BYTES UINT64_C(16)
#define CANARY_MAX UINT64_C(4096)

bool wr_checked_is_wanted(bool option)
{
    const char *text = secure_getenv("WEIR_CHECKED");
    return option || (text != NULL && strcmp(text, "1") == 0);
}

uint64_t wr_checked_margin(const wr_manager *manager)
{
    return (manager->gate & WR_GATE_CHECKED) != 0 ? MARGIN_BYTES : 0;
}

static uint64_t canary_bytes(const wr_slice *slice)
{
    uint64_t behind =
        wr_slice_end(slice) - (wr_slice_begin(slice) + slice->held.requested_bytes);
    return behind < CANARY_MAX ? behind : CANARY_MAX;
}

void wr_checked_arm(wr_slice *slice)
{
    uint64_t begin = wr_slice_begin(slice), bytes = slice->held.requested_bytes;
    wr_poison_open(begin, bytes);
    wr_poison_fill(begin + bytes, canary_bytes(slice), WR_POISON_CANARY);
    wr_poison_close(begin + bytes, wr_slice_end(slice) - (begin + bytes));
}

/* Whether nothing that is queued can still touch the slice. */
static bool is_done_with(const wr_bank *bank, const wr_manager *manager,
                         const wr_slice *slice)
{
    return slice->held.uses == 0 && !manager->capturing && !manager->closing &&
           bank->table->stream_test(bank->driver, manager->stream) == WEIR_OK;
}

static weir_result report_damage(weir_buffer buffer, const wr_slice *slice, uint64_t at)
{
    const char *tag = slice->pool->manager->bank->tag_names[slice->tag];
    uint64_t bytes = slice->held.requested_bytes;
    return wr_error(WEIR_INVALID,
                    "weir_buffer_release: buffer {%u, %u} (%s, %llu bytes) was overrun: "
                    "the byte at offset %llu, %llu behind its end, was written; the "
                    "buffer is released all the same",
                    buffer.index, buffer.generation, tag[0] == 0 ? "untagged" : tag,
                    (unsigned long long)bytes, (unsigned long long)(bytes + at),
                    (unsigned long long)(at + 1));
}

weir_result wr_checked_release(weir_buffer buffer, wr_slice *slice)
{
    wr_manager *manager = slice->pool->manager;
    uint64_t begin = wr_slice_begin(slice), bytes = slice->held.requested_bytes;
    uint64_t canary = canary_bytes(slice);
    weir_result result = WEIR_OK;
    uint64_t at = wr_poison_find_damage(begin + bytes, canary, WR_POISON_CANARY);
    if (at < canary) {
        result = report_damage(buffer, slice, at);
    }
    if (is_done_with(manager->bank, manager, slice)) {
        wr_poison_fill(begin, bytes, WR_POISON_FREED);
        wr_poison_close(slice->address, slice->extent_bytes);
    }
    wr_manager_release(slice);
    return result;
}

/* ---- launches ---- */

static weir_result check_use(weir_buffer buffer, weir_stream *stream)
{
    weir_stream *own = weir_buffer_stream(buffer);
    if (own == NULL) {
        return wr_error(WEIR_STALE,
                        "weir_stream_launch: buffer {%u, %u} has already been released",
                        buffer.index, buffer.generation);
    }
    wr_slice *slice = wr_slice_get(buffer.index);
    wr_manager_lock(&own->manager);
    bool declared = own == stream || (own->device == stream->device &&
                                      wr_uses_has(slice, stream->manager.slot));
    wr_manager_unlock(&own->manager);
    if (declared) {
        return WEIR_OK;
    }
    const char *tag = own->device->bank.tag_names[slice->tag];
    return wr_error(WEIR_INVALID,
                    "weir_stream_launch: buffer {%u, %u} (%s) of stream \"%s\" was never "
                    "declared for stream \"%s\"; call weir_buffer_use first",
                    buffer.index, buffer.generation, tag[0] == 0 ? "untagged" : tag,
                    own->manager.name, stream->manager.name);
}

weir_result wr_checked_launch(weir_stream *stream, const weir_launch *launch)
{
    if ((stream->manager.gate & WR_GATE_CHECKED) == 0) {
        return WEIR_OK;
    }
    for (size_t i = 0; launch->buffers != NULL && i < launch->buffer_count; i++) {
        WR_TRY(check_use(launch->buffers[i], stream));
    }
    return WEIR_OK;
}
