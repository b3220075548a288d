/* SPDX-License-Identifier: MIT */
/* A lifeline tells whether another process still has something of ours: a pipe whose one
 * end we hold, while every process that has the thing holds the other. When the last of
 * them has closed it, or has died, ours hangs up. Nothing is ever written.
 *
 *      ours: watch  <---- pipe ----  lives: the peers', and ours until we have dropped it
 *
 * A child forked by a process that holds `lives` holds it too until it executes another
 * program or ends.
 *
 * Guard: the caller's lock. */
#ifndef WR_BASE_LIFELINE_H
#define WR_BASE_LIFELINE_H

#include <weir/base.h>

typedef struct wr_lifeline {
    int watch;    /* the end that hangs up; -1: it is not ours to watch */
    int lives;    /* the end that keeps it from hanging up; -1: closed */
    bool is_held; /* somebody else may have it still */
} wr_lifeline;

/* One of our own, with both ends; NULL and a text: no host memory or no descriptors. */
wr_lifeline *wr_lifeline_create(void);
/* A peer's: holds a copy of `lives` until it is destroyed. */
wr_lifeline *wr_lifeline_join(int lives);
/* NULL is fine. */
void wr_lifeline_destroy(wr_lifeline *lifeline);

/* A copy of the other end for one more peer; -1 and errno if there is none. */
int wr_lifeline_share(const wr_lifeline *lifeline);

/* We have dropped it: whether nobody else has it any more. Never waits. */
bool wr_lifeline_has_ended(wr_lifeline *lifeline);

#endif
