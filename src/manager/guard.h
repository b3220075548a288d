/* SPDX-License-Identifier: MIT */
/* Guards: before memory is unmapped, every stream of the device that was at work since
 * its release has passed a fence, so that a forgotten weir_buffer_use is stale data at
 * worst, not an illegal address. (Option trust_uses skips this.)
 *
 * Order is told by a device-wide count of events. An owner's settled memory was released
 * before its settled_event (an epoch's before its epoch_event); a stream that was idle,
 * or passed a fence recorded, at event e cannot touch anything released before e. Guard
 * of all fields: bank->roster_lock. No waiting call is made under it. */
#ifndef WR_MANAGER_GUARD_H
#define WR_MANAGER_GUARD_H

#include "manager.h"

/* A new event, later than all before. Any lock or none. */
uint64_t wr_guard_event(wr_bank *bank);

/* The event that all streams but `owner` (NULL: all) have passed; records fences on those
 * that have not passed `event` yet, so that they will. `blocker` gets the name of one of
 * them. */
uint64_t wr_guard_floor(wr_bank *bank, const wr_manager *owner, uint64_t event,
                        char blocker[WR_NAME_BYTES]);

/* What of the manager's memory has settled was released before this event; under its
 * lock. */
static inline uint64_t wr_guard_settled_event(const wr_manager *manager)
{
    return manager->settled_event > manager->borrowed_event ? manager->settled_event
                                                            : manager->borrowed_event;
}

/* The event before which all of a slice of the bank's was released. Under bank->lock. */
uint64_t wr_guard_bank_event(const wr_slice *slice);

/* Under bank->lock: what the bank takes over next was released before `event`. */
void wr_guard_stamp_bank(wr_bank *bank, uint64_t event);

/* Under its lock: the manager takes over what was released before `event`. */
static inline void wr_guard_borrow_until(wr_manager *manager, uint64_t event)
{
    manager->borrowed_event =
        event > manager->borrowed_event ? event : manager->borrowed_event;
}

/* Under both locks: the manager takes over a slice of the bank's. */
void wr_guard_borrow(wr_manager *manager, const wr_slice *slice);

/* A stream's own fence of that event has passed. Under its lock or none. */
void wr_guard_note(wr_manager *manager, uint64_t event);

/* Waits, with no lock held, for one stream that has not passed; false if there is none.
 */
bool wr_guard_wait(wr_bank *bank);

#endif
