/* SPDX-License-Identifier: MIT */
/* The way of a request that the manager's own free memory does not serve. */
#ifndef WR_MANAGER_LADDER_H
#define WR_MANAGER_LADDER_H

#include "manager.h"

#include "base/hot.h"

/* The rungs, in order: own slices whose fences have passed; the bank; other streams'
 * unheld memory; unheld granules moved and new ones from the driver; a wait for just
 * enough fences; unheld memory given back elsewhere; failure, with everything as it was.
 * No lock is held. */
WR_COLD weir_result wr_ladder_reserve(wr_manager *manager, const wr_request *request,
                                      wr_slice **slice);

/* After a capture, with no lock held: as much as failed requests have left reserved
 * meanwhile goes back, if it is unheld. */
void wr_ladder_settle(wr_bank *bank);

#endif
