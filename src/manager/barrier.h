/* SPDX-License-Identifier: MIT */
/* The barrier in front of driver calls that a graph capture forbids: those that free,
 * decommit or move memory, and those in which the host waits.
 *
 *     if (wr_barrier_enter(&bank->barrier)) {
 *         ... one such call ...
 *         wr_barrier_leave(&bank->barrier);
 *     }
 *
 * Entering never waits. Raising it waits for those inside, with no lock held; from then
 * on nobody gets in until it is as often lowered. */
#ifndef WR_MANAGER_BARRIER_H
#define WR_MANAGER_BARRIER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct wr_barrier {
    pthread_mutex_t mutex;
    pthread_cond_t left;
    uint32_t inside; /* calls under way */
    uint32_t raised; /* captures under way */
} wr_barrier;

void wr_barrier_init(wr_barrier *barrier);
void wr_barrier_finish(wr_barrier *barrier);

/* False: a stream is capturing, and the call must not be made. */
bool wr_barrier_enter(wr_barrier *barrier);
void wr_barrier_leave(wr_barrier *barrier);

void wr_barrier_raise(wr_barrier *barrier);
void wr_barrier_lower(wr_barrier *barrier);
bool wr_barrier_is_up(wr_barrier *barrier);

#endif
