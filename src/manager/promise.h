/* SPDX-License-Identifier: MIT */
/* Bytes on their way into the books. What is about to be asked of the driver is promised
 * first, and stays so until it is reserved or given up, so that two threads cannot pass a
 * limit together. */
#ifndef WR_MANAGER_PROMISE_H
#define WR_MANAGER_PROMISE_H

#include "manager.h"

/* Checks the device's limit and counts the bytes; the caller subtracts them from
 * bank->promised (under the lock) when they are in the books. LIMIT changes nothing. */
weir_result wr_bank_promise(wr_bank *bank, uint64_t bytes);
/* The same for one pool's cap, where bytes that are moved from other pools count too; by
 * the way `*full` becomes true when the cap refuses. */
weir_result wr_class_promise(wr_bank *bank, wr_class *class, uint64_t bytes, bool *full);
/* Under bank->lock: new memory is there. */
void wr_bank_add_reserved(wr_bank *bank, wr_class *class, uint64_t bytes, uint64_t pages);

#endif
