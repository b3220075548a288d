/* SPDX-License-Identifier: MIT */
/* Buffers that other processes can map. Each has a page of its own, made for it by the
 * driver's share entries, in the pool of the layout that is `shared`. Such a page is
 * outdated from the start: its free slice is in no index, so that it serves one buffer
 * only and goes back at the next occasion. One that was exported stays, as `deferred`,
 * until its lifeline says that no other process has it any more. */
#ifndef WR_MANAGER_SHARED_H
#define WR_MANAGER_SHARED_H

#include "manager.h"

#include <weir/share.h>

/* The pages of a device come in multiples of this. */
uint64_t wr_shared_page_bytes(const wr_bank *bank, uint64_t bytes);

/* A slice in a page of its own, new or (request->imported) another process's. On failure
 * everything is as before. */
weir_result wr_shared_reserve(wr_manager *manager, const wr_request *request,
                              wr_slice **slice);

/* Descriptors for the page of a held slice; the caller's. */
weir_result wr_shared_export(wr_slice *slice, int *memory, int *lives);

/* Released bytes that other processes may still have, of all streams and the bank. */
uint64_t wr_shared_count_abroad(wr_bank *bank);

#endif
