/* SPDX-License-Identifier: MIT */
/* Taking unheld memory out of pools, and what becomes of it: it is handed to the driver,
 * moved to other addresses, or lent to another stream through the bank. */
#ifndef WR_MANAGER_HARVEST_H
#define WR_MANAGER_HARVEST_H

#include "manager.h"

/* Which memory is wanted. */
typedef struct wr_harvest {
    uint64_t at_most_bytes; /* longest unheld first, never more than this */
    bool cover; /* at least that much, if there is as much: whole pages may go over */
    uint64_t min_age;    /* in ticks; 0: any */
    uint32_t only_class; /* 1 + the number of the one class wanted; 0: all */
    bool granules_only;  /* not whole pages */
    bool pages_only;
    bool passed_over; /* whole pages that have not served a request for a page before; the
                         others are noted for the next time */
    bool outdated_only; /* pages that serve no new requests */
    bool from_slack;    /* only from streams that have let go of much of what they had */
    bool keeps_mapping; /* it will stay mapped (lending), so that no guard is needed; from
                           everyone: into the bank, so nothing is taken from there */
    bool worn; /* pages of exclusive pools that enough checks have found unheld; for the
                  others this is one more check */
} wr_harvest;

/* Slices in transit, linked by held.link; held.requested_bytes is the event before which
 * they were released (guard.h). The bank's transit counter holds their bytes. */
typedef struct wr_loot {
    wr_slice_id first;
    uint64_t bytes;
    bool by_time;            /* it goes because nobody used it */
    uint64_t withheld_bytes; /* would have been taken, but a guard has not passed... */
    char withheld_by[WR_NAME_BYTES]; /* ...on this stream */
} wr_loot;

/* Takes what is wanted and has passed from a manager (under its lock) or from the bank
 * (manager NULL, no lock held) into `loot`. Never waits. */
void wr_harvest_take(wr_bank *bank, wr_manager *manager, const wr_harvest *want,
                     wr_loot *loot);

/* The same from everyone: the bank, then all managers, `first` first, settling each. With
 * no lock held. `fence`: streams that are not idle close their epochs, so that they will
 * pass. */
void wr_harvest_take_all(wr_bank *bank, wr_manager *first, const wr_harvest *want,
                         bool fence, wr_loot *loot);

/* Whether a stream has let go of much of what it had (in one class; UINT32_MAX: in any
 * with granules): then it will not miss what others take. One that holds nearly all it
 * has needs its holes itself, and two at work would take them from each other in turns. A
 * guess, without its lock. */
bool wr_manager_has_slack(const wr_manager *manager, uint32_t number);

/* What could be taken by the same rules, without taking; under the same lock. */
uint64_t wr_harvest_count(wr_bank *bank, wr_manager *manager, const wr_harvest *want);

/* Hands loot to the driver, with no lock held; what the driver refuses, and all of it
 * while a stream is capturing, stays in the bank.
 * Returns the bytes that went. */
uint64_t wr_loot_give_back(wr_bank *bank, wr_loot *loot);

/* Puts loot into the bank as unheld memory. */
void wr_loot_keep(wr_bank *bank, wr_loot *loot);

/* Under bank->lock: a slice in transit whose memory is gone; its addresses are the
 * bank's. */
void wr_bank_make_bare(wr_bank *bank, wr_slice *slice);

/* Under bank->lock: the class whose range or page the slice lies in. */
wr_class *wr_bank_class_of(wr_bank *bank, const wr_slice *slice);

#endif
