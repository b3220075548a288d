/* SPDX-License-Identifier: MIT */
/* Giving back: on request, on the allocation path, by time. With no lock held. */
#ifndef WR_MANAGER_CLEANUP_H
#define WR_MANAGER_CLEANUP_H

#include "manager.h"

/* Explicit cleanup; fills all of the outcome but who pins. BUSY while a stream is
 * capturing; when one begins meanwhile, what is left to give back stays. */
weir_result wr_cleanup_run(wr_bank *bank, const weir_cleanup_desc *desc,
                           weir_cleanup_outcome *outcome);

/* Periodic: on the allocation path, what no longer serves anyone. */
void wr_cleanup_periodic(wr_manager *manager);

/* Exclusive pools, whose time is counted in requests of the stream: five checks to a
 * period, each of which wears pages that nobody holds, and each request for a page mends
 * it. Worn pages go back. With no lock held. */
void wr_cleanup_worn(wr_manager *manager);

/* The coarse clock of the device, from a reading of the driver's or the host's. */
uint64_t wr_idle_now_ms(const wr_bank *bank);
void wr_idle_set_tick(wr_bank *bank, uint64_t now_ms);

/* Stamps use with the time and gives back what nobody used for idle_ms. What was given
 * back and soon asked for again waits longer: at most 8 times as long, half of it per
 * quiet period. */
void wr_idle_run(wr_bank *bank, uint64_t now_ms);

/* Under bank->lock: bytes were asked of the driver; were they given back by time just
 * before? */
void wr_idle_note_demand(wr_bank *bank, wr_class *class, uint64_t bytes);

/* True if there is anything that time could give back. Takes every lock once. */
bool wr_idle_has_work(wr_bank *bank);

/* A stream has ended: what it has goes to the bank as soon as its work has passed. Takes
 * the manager's lock. True when all has gone. */
bool wr_cleanup_retire(wr_manager *manager);

#endif
