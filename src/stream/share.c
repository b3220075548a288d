/* SPDX-License-Identifier: MIT */
/* Exporting and importing buffers. How shares travel is in base/share.c. */
#include "device.h"
#include "tag.h"

#include "base/fork.h"
#include "base/result.h"
#include "manager/handle.h"
#include "manager/limits.h"
#include "manager/shared.h"

weir_result weir_buffer_export(weir_buffer buffer, weir_share *share)
{
    WR_TRY(wr_fork_check());
    uint64_t word;
    wr_slice *slice = wr_handle_find(buffer, &word);
    if (share == NULL || (share->size != 0 && share->size != sizeof *share)) {
        return wr_error(
            WEIR_INVALID,
            "weir_buffer_export: the place for the share is NULL or of another size");
    }
    if (slice == NULL) {
        return wr_error(WEIR_STALE,
                        "weir_buffer_export: buffer {%u, %u} has been released, or was "
                        "never handed out",
                        buffer.index, buffer.generation);
    }
    int memory = -1, lives = -1;
    WR_TRY(wr_shared_export(slice, &memory, &lives));
    *share = (weir_share){.size = share->size,
                          .bytes = slice->held.requested_bytes,
                          .memory_file = memory,
                          .lives_file = lives};
    return WEIR_OK;
}

static weir_result check_import(const weir_stream *stream, const weir_share *share,
                                const weir_buffer_desc *desc, const weir_buffer *buffer)
{
    WR_TRY(wr_fork_check());
    if (stream == NULL || share == NULL || buffer == NULL ||
        (share->size != 0 && share->size != sizeof *share) ||
        (desc != NULL && desc->size != 0 && desc->size != sizeof *desc)) {
        return wr_error(WEIR_INVALID, "weir_buffer_import: an argument is NULL, or of "
                                      "another size");
    }
    if (share->bytes == 0 || share->bytes > WR_REQUEST_MAX) {
        return wr_error(WEIR_INVALID, "weir_buffer_import: a share of %llu bytes",
                        (unsigned long long)share->bytes);
    }
    if (stream->manager.closing) {
        return wr_error(WEIR_INVALID, "weir_buffer_import: stream \"%s\" is closed",
                        stream->manager.name);
    }
    return wr_loss_check(&stream->manager.bank->loss);
}

weir_result weir_buffer_import(weir_stream *stream, const weir_share *share,
                               const weir_buffer_desc *desc, weir_buffer *buffer)
{
    WR_TRY(check_import(stream, share, desc, buffer));
    wr_manager *manager = &stream->manager;
    uint64_t tag = wr_tag_of(manager->bank, desc == NULL ? NULL : desc->tag);
    wr_request request = {.requested_bytes = share->bytes,
                          .extent_bytes =
                              wr_shared_page_bytes(manager->bank, share->bytes),
                          .tag = (uint16_t)tag,
                          .shared = true,
                          .imported = share};
    wr_slice *slice = NULL;
    WR_TRY((tag & WR_TAG_LIMITED) != 0 ? wr_limits_reserve(manager, &request, &slice)
                                       : wr_manager_reserve(manager, &request, &slice));
    *buffer = wr_handle_hand_out(slice, 1);
    return WEIR_OK;
}
