/* SPDX-License-Identifier: MIT */
/* The books of one owner (a stream's pool, or the bank's): where its bytes are, kept
 * incrementally. Written under the owner's lock, read by anyone (see base/atomic.h).
 *
 *      reserved = in_use + padding + limbo + free
 *      free     = whole + the rest          whole: in granules that one free run covers
 *      whole    = settled + the rest        settled: the granule's last release has
 * passed
 *
 * From these follow the words of the reports: deferred is limbo and what is whole but not
 * settled; releasable is settled; pinned is what is free but not whole, since somebody
 * holds a part of its granule. Padding is what the equation leaves.
 *
 * reserved, in_use, limbo and free are kept with every step. whole and settled are
 * counted from the free runs when somebody asks (wr_pool_recount, under the lock); a
 * reader that finds the owner at work takes them as last counted, within the bounds that
 * the equations set, so that sums are exact in any case.
 *
 * A granule's last release is its mark, epoch << WR_TICK_BITS | tick; the owner's moment
 * says which marks have passed. */
#ifndef WR_PAGE_BOOKS_H
#define WR_PAGE_BOOKS_H

#include "base/atomic.h"

#include <stdbool.h>

#define WR_TICK_BITS 24 /* ticks of WR_TICK_MS: 12 days */
#define WR_TICK_MS 64
#define WR_TICK_MASK ((UINT64_C(1) << WR_TICK_BITS) - 1)

typedef struct wr_books {
    wr_counter reserved; /* bytes of the owner's granules and pages */
    wr_counter in_use;   /* requested bytes of held slices */
    wr_counter limbo;    /* extents of slices that wait for other streams' fences */
    wr_counter free;     /* extents of free slices */
    wr_counter whole;    /* of those, in granules that lie in one free run */
    wr_counter settled;  /* of those, in granules whose mark has passed */
    wr_counter entered;  /* slices that were held, in all... */
    wr_counter left;     /* ...and that no longer are */
    wr_counter largest;  /* the largest request served */
} wr_books;

/* Where an owner stands in time. */
typedef struct wr_moment {
    uint64_t mark;          /* the bank's: what arrives leaves it on its granules */
    uint64_t settled_below; /* marks below have passed; UINT64_MAX: all */
} wr_moment;

static inline bool wr_moment_has_passed(const wr_moment *moment, uint64_t mark)
{
    return mark < moment->settled_below;
}

static inline uint64_t wr_books_live(const wr_books *books)
{
    return WR_GET(books->entered) - WR_GET(books->left);
}

/* Sums for reports. */
typedef struct wr_totals {
    uint64_t in_use, padding, deferred, releasable, pinned, live, largest;
} wr_totals;

static inline void wr_books_sum(const wr_books *books, wr_totals *totals)
{
    uint64_t reserved = WR_GET(books->reserved), in_use = WR_GET(books->in_use);
    uint64_t limbo = WR_GET(books->limbo), free = WR_GET(books->free);
    uint64_t whole = WR_GET(books->whole), settled = WR_GET(books->settled);
    whole = whole < free ? whole : free;
    settled = settled < whole ? settled : whole;
    uint64_t largest = WR_GET(books->largest);
    totals->in_use += in_use;
    totals->padding += reserved - in_use - limbo - free;
    totals->deferred += limbo + whole - settled;
    totals->releasable += settled;
    totals->pinned += free - whole;
    totals->live += wr_books_live(books);
    totals->largest = largest > totals->largest ? largest : totals->largest;
}

static inline uint64_t wr_totals_reserved(const wr_totals *totals)
{
    return totals->in_use + totals->padding + totals->deferred + totals->releasable +
           totals->pinned;
}

#endif
