/* SPDX-License-Identifier: MIT */
/* Making a pool larger: from the bank, from other streams, from the driver. With no lock
 * held; afterwards the pool has a free run that fits the request, unless another thread
 * was faster. */
#ifndef WR_MANAGER_GROW_H
#define WR_MANAGER_GROW_H

#include "manager.h"

/* Free run that a request needs: its extent and what its alignment may cost. */
uint64_t wr_request_run_bytes(const wr_request *request);

/* The largest unheld run of the bank, or the tightest page that fits (`loose`: of any
 * size). False: it has none. */
bool wr_grow_from_bank(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                       bool loose);

/* The same, or else another stream's unheld run that fits and has passed, taken over
 * directly; under the manager's lock, with which a lender's can only be tried. `*busy`: a
 * stream was at work just then and not asked. */
bool wr_grow_by_borrowing(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                          bool loose, bool *busy);

/* Whether new granules come before other streams' memory: once for so many
 * borrowings close together, and while `reserved` stays a little above the most that was
 * ever in use. Streams that each have some more than they need now take less from each
 * other. */
bool wr_grow_spends(const wr_manager *manager, const wr_pool *pool, uint64_t run_bytes);

/* New granules, with nothing moved there; no lock held. False: refused. */
bool wr_grow_by_spending(wr_manager *manager, wr_pool *pool, uint64_t run_bytes);

/* Under the manager's lock, before the ladder: borrowing, for a pool of granules that
 * other streams may have some for and that does not spend. */
bool wr_grow_from_others(wr_manager *manager, wr_pool *pool, uint64_t run_bytes);

/* Another stream's unheld run that fits and has passed, through the bank: no driver call.
 */
bool wr_grow_by_lending(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                        bool loose);

/* All unheld runs of the class that have passed, put together in the bank, where
 * neighbours of different streams join. No driver call. */
bool wr_grow_by_pooling(wr_manager *manager, wr_pool *pool, uint64_t run_bytes);

/* Memory at new addresses: unheld granules moved from elsewhere, then new ones of the
 * driver; or a page (`tidy`: pages that nobody asks for any more go back first).
 * OUT_OF_MEMORY, LIMIT: as before, but that unheld memory may be in the bank now; `*full`
 * says whether it was the pool's own cap. */
weir_result wr_grow_from_driver(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                                bool tidy, bool *full);

/* What a request takes of new memory, at least: where pages are handed out whole, one. */
uint64_t wr_grow_least_bytes(const wr_pool *pool, const wr_request *request);

/* Counts bytes that are about to be asked for, in the class and the bank. */
weir_result wr_grow_promise(wr_bank *bank, wr_class *class, uint64_t bytes, bool *full);

/* Under both locks: a new page becomes one free slice of the pool. */
void wr_grow_enter_page(wr_manager *manager, wr_pool *pool, wr_page *page,
                        wr_slice *slice);

/* Under the lock: the pool's indexes and spare records are there; false: no host memory.
 */
bool wr_grow_prepare(wr_manager *manager, wr_pool *pool);

#endif
