/* SPDX-License-Identifier: MIT */
/* Where a range grows: the search for a window of addresses that needs the fewest
 * granules.
 *
 * A chain is a stretch of neighbouring segments that this pool may use: its own free
 * runs, unheld runs of the bank, bare addresses. The best window of a given length has
 * one end at a segment's border, so chains around a few dozen promising segments are
 * enough to look at.
 *
 *      chain:   [ own free ][  bank  ][    bare    ][ own free ][ bare ...
 *      window:        <------------------------------->
 */
#ifndef WR_MANAGER_PLACE_H
#define WR_MANAGER_PLACE_H

#include "manager.h"

#define WR_PLACE_SEGMENTS 5u

/* A slice and the part of it that the window covers. `slice` NULL: the untouched top. */
typedef struct wr_segment {
    wr_slice *slice;
    uint64_t begin, end;
} wr_segment;

typedef struct wr_place {
    wr_segment segments[WR_PLACE_SEGMENTS];
    uint32_t count;       /* 0: none found */
    uint64_t begin;       /* of the first segment */
    uint64_t whole_bytes; /* granules that nobody holds any part of, bare ones too */
    uint64_t bare_bytes;  /* granules that must be backed */
    uint64_t taken_bytes; /* own runs wholly, of others what is used: less is tighter */
} wr_place;

/* Finds a window of at least `run_bytes` for `pool` in the range of its class. Under the
 * manager's and the bank's lock. */
void wr_place_find(wr_bank *bank, wr_pool *pool, uint64_t run_bytes, wr_place *place);

/* The same among all free runs, also those that are backed and hold the window already:
 * what is sought is the window that takes the fewest whole granules. */
void wr_place_find_tight(wr_bank *bank, wr_pool *pool, uint64_t run_bytes,
                         wr_place *place);

#endif
