/* SPDX-License-Identifier: MIT */
/* Waiting for the own stream. Releases belong to the current epoch. Nothing is recorded
 * at the driver until bytes are to leave the stream; then the stream is tested for idle,
 * or the epoch is closed with one fence. When it has passed, so have all older ones. All
 * functions: under the manager's lock. */
#ifndef WR_MANAGER_EPOCHS_H
#define WR_MANAGER_EPOCHS_H

#include "manager.h"

/* Finds out, without waiting, how far the own stream has come. `fence`: if there are
 * releases that have not passed, close their epoch with a fence, so that they will. */
void wr_epochs_settle(wr_manager *manager, bool fence);

/* Closes the current epoch with a fence, if something was released in it and that can be
 * done now. */
void wr_epochs_close(wr_manager *manager);

/* All queued work has passed, or never will. */
void wr_epochs_pass_all(wr_manager *manager);

#endif
