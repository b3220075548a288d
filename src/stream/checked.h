/* SPDX-License-Identifier: MIT */
/* Checked mode, for devices whose memory the host sees: behind every buffer lie bytes of
 * a known pattern (its canary), which are looked at when the last reference goes; what
 * was released is filled with another pattern and, where the program runs under the
 * address sanitizer, closed to it. A release from within queued work still holds: what
 * the stream may be using is left as it is. */
#ifndef WR_STREAM_CHECKED_H
#define WR_STREAM_CHECKED_H

#include "manager/manager.h"

/* Whether devices are to be opened in checked mode, by option or by WEIR_CHECKED=1. */
bool wr_checked_is_wanted(bool option);

/* The bytes that a request of this manager gets beyond what was asked for; 0 when it is
 * not in checked mode. */
uint64_t wr_checked_margin(const wr_manager *manager);

/* A held slice is about to become a buffer's: opens its bytes and lays the canary. */
void wr_checked_arm(wr_slice *slice);

/* The last reference is gone and the handle is stale: looks at the canary, poisons, gives
 * the slice back. INVALID, with a text, if something was written behind the buffer. */
weir_result wr_checked_release(weir_buffer buffer, wr_slice *slice);

/* Every buffer that the launch names is alive and may be used on the stream: it is the
 * stream's own, or weir_buffer_use declared it there. INVALID or STALE otherwise. */
weir_result wr_checked_launch(weir_stream *stream, const weir_launch *launch);

#endif
