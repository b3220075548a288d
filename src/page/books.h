/* SPDX-License-Identifier: MIT */
/* The books of one owner (a stream's pool, or the bank's): where its bytes are, kept
 * incrementally. Written under the owner's lock, read by anyone (see base/atomic.h).
 *
 * A free byte lies in a granule. While work that was queued before the granule's last release
 * may still run, the byte is deferred; after that it is releasable if its whole granule is free
 * and pinned if a live neighbour shares the granule. Which of these holds follows from the
 * granule's mark (time of last release: epoch << WR_TICK_BITS | tick) and the owner's moment. So
 * free bytes are counted per epoch that has not passed, and when it passes they move to slot 0
 * in one addition. */
#ifndef WR_PAGE_BOOKS_H
#define WR_PAGE_BOOKS_H

#include "base/atomic.h"

#define WR_TICK_BITS 24 /* ticks of WR_TICK_MS: 12 days */
#define WR_TICK_MS 64
#define WR_TICK_MASK ((UINT64_C(1) << WR_TICK_BITS) - 1)

#define WR_EPOCH_SLOTS 8 /* so many epochs can wait for their fences at once */

typedef struct wr_free_bytes {
    wr_counter whole;   /* in granules that nobody holds any part of */
    wr_counter partial; /* in granules that are partly held */
} wr_free_bytes;

typedef struct wr_books {
    wr_counter in_use;  /* requested bytes of held slices */
    wr_counter padding; /* the rest of their extents */
    wr_counter limbo;   /* extents of slices that wait for other streams' fences */
    wr_counter live;    /* held slices */
    wr_counter largest; /* the largest request served */
    wr_free_bytes age[1 + WR_EPOCH_SLOTS]; /* 0: passed; else by epoch */
} wr_books;

/* Where an owner stands in time. */
typedef struct wr_moment {
    uint64_t mark;          /* what a release now leaves on its granules */
    uint64_t settled_below; /* marks below have passed; UINT64_MAX: all */
} wr_moment;

static inline unsigned wr_moment_slot(const wr_moment *moment, uint64_t mark)
{
    return mark < moment->settled_below
               ? 0
               : 1 + (unsigned)((mark >> WR_TICK_BITS) % WR_EPOCH_SLOTS);
}

/* Sums for reports. */
typedef struct wr_totals {
    uint64_t in_use, padding, deferred, releasable, pinned, live, largest;
} wr_totals;

static inline void wr_books_sum(wr_books *books, wr_totals *totals)
{
    totals->in_use += WR_GET(books->in_use);
    totals->padding += WR_GET(books->padding);
    totals->live += WR_GET(books->live);
    uint64_t deferred = WR_GET(books->limbo);
    for (unsigned slot = 1; slot <= WR_EPOCH_SLOTS; slot++) {
        deferred += WR_GET(books->age[slot].whole) + WR_GET(books->age[slot].partial);
    }
    totals->deferred += deferred;
    totals->releasable += WR_GET(books->age[0].whole);
    totals->pinned += WR_GET(books->age[0].partial);
    uint64_t largest = WR_GET(books->largest);
    totals->largest = largest > totals->largest ? largest : totals->largest;
}

static inline uint64_t wr_totals_reserved(const wr_totals *totals)
{
    return totals->in_use + totals->padding + totals->deferred + totals->releasable +
           totals->pinned;
}

#endif
