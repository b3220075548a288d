/* SPDX-License-Identifier: MIT */
/* A pool: the slices of one size group that one owner (a stream, or the bank) has, and
 * the index of the free ones. A pool never calls the driver; what it lacks the manager
 * brings.
 *
 * Kinds differ in three flags of their layout. Plain pools (arena, sliced, adaptive) cut
 * slices from free runs, best fit, and merge them on release. `whole` pools (exclusive)
 * hand out whole pages. `exact` pools (persistent) reuse a released slice for an equal
 * size only; with granules such slices are kept aside, unmerged, until they are flushed.
 *
 * Guard: the owner's lock. */
#ifndef WR_POOL_POOL_H
#define WR_POOL_POOL_H

#include "index.h"

#include "base/hot.h"
#include "page/page.h"

#include <weir/report.h>

/* What a pool is for; part of a preset. Constant while the device is open. */
typedef struct wr_layout {
    weir_pool_kind kind;
    char name[32];
    uint64_t min_bytes, max_bytes; /* extents served... */
    uint64_t near_bytes;           /* ...and from here to a page; 0: no others */
    uint64_t page_bytes;           /* of new pages; 0: to demand */
    uint64_t cap_bytes;            /* most `reserved` at first; 0: no limit */
    uint64_t idle_count;  /* exclusive: requests until an unheld page goes; 0: never */
    bool granular;        /* spans of a device-wide range; else whole pages */
    bool whole;           /* one slice per page */
    bool exact;           /* reuse by equal size only */
    bool shared;          /* pages that other processes may map: one buffer each, once */
    uint32_t slack_shift; /* whole: a page may be larger by 1/2^n; 0: by any */
} wr_layout;

typedef struct wr_pool {
    wr_books books;
    wr_index *index; /* free slices; wr_index_none until first needed */
    wr_index *kept;  /* exact pools with granules: released slices, unmerged */
    const wr_layout *layout;
    const wr_moment *moment;
    wr_slab_cache *cache;
    struct wr_manager *manager; /* NULL: the bank's */
    wr_page *range;             /* its class's, once it has one; NULL for whole pages */
    wr_page *plain_range;       /* the same, if the pool is plain; else NULL */
    uint64_t hot_bytes;         /* larger requests need a second look; see wr_pool_heed */
    bool plain;                 /* cuts slices from free runs: neither whole nor exact */
    bool in_chunks;             /* its granules may come in chunks: see tight.c */
    uint32_t number;            /* its place in the preset */
    uint64_t granule_bytes;     /* of its ranges; 0: it has whole pages */
    wr_counter chunks_made;     /* for this pool, by the driver */
    wr_counter borrowings;      /* from other streams lately, and books.entered when */
    wr_counter borrowings_from; /* they began; see manager/grow.c */
    uint64_t tight_until; /* while books.entered is below: placed tightly (tight.c) */
    uint64_t tight_spent; /* searches and granules moved for that so far */
    uint32_t tight_skips, tight_pause; /* searches to leave out; the last such pause */
    uint64_t unheld_tick;   /* granular: no whole free chunk was released before; 0: not
                               known. A guess at the wrap of ticks. */
    uint64_t demand_bytes;  /* page size now (adaptive), or decaying request size */
    wr_page *outdated;      /* pages that serve no new requests, by next_outdated */
    uint64_t checked_count; /* exclusive: the owner's requests at the last check */
} wr_pool;

/* The most spare records that one call below takes. */
#define WR_POOL_SPARES 4u

/* Allocates the indexes if they are not there yet; false: no host memory. */
bool wr_pool_open(wr_pool *pool);
void wr_pool_close(wr_pool *pool);

/* A held slice of at least `extent_bytes` (a multiple of the unit) cut from what the pool
 * has, or NULL. The cache has spares and the pool is open. */
wr_slice *wr_pool_try_reserve(wr_pool *pool, uint64_t extent_bytes);
/* The same from a plain pool, whose first bin that is not empty, from the extent's on, is
 * `bin`. */
wr_slice *wr_pool_try_reserve_plain(wr_pool *pool, uint64_t extent_bytes, uint64_t bin);
/* The same from a pool of whole pages, in a page of any size. */
wr_slice *wr_pool_try_reserve_loose(wr_pool *pool, uint64_t extent_bytes);
/* The same with an address that is a multiple of `alignment_bytes`, or an extent that has
 * room for it (whole and exact pools). */
wr_slice *wr_pool_try_reserve_aligned(wr_pool *pool, uint64_t extent_bytes,
                                      uint64_t alignment_bytes);

/* After a pool with granules has had to grow it cuts its runs with care for a while, so
 * that as few granules as can be are left partly held (tight.c). */
static inline bool wr_pool_is_tight(const wr_pool *pool)
{
    return WR_OWN(pool->books.entered) < pool->tight_until;
}
static inline void wr_pool_begin_tight(wr_pool *pool, uint64_t until)
{
    pool->tight_until = until;
    pool->hot_bytes = 0;
}

/* Where a driver is paid by chunk, chunks are large, and a cut through one pins the rest
 * of it. A request of WR_CAREFUL_BYTES or more then takes, among the tightest runs, the
 * one that keeps most whole chunks; not before the pool has had a request beyond
 * WR_CARE_FROM_BYTES, since what smaller ones leave serves the next of them. */
#define WR_CAREFUL_BYTES (UINT64_C(8) << 20)
#define WR_CARE_FROM_BYTES (UINT64_C(32) << 20)
static inline bool wr_pool_wants_care(const wr_pool *pool, uint64_t extent_bytes)
{
    return pool->in_chunks && extent_bytes >= WR_CAREFUL_BYTES &&
           WR_OWN(pool->books.largest) > WR_CARE_FROM_BYTES;
}
wr_slice *wr_pool_try_reserve_careful(wr_pool *pool, uint64_t extent_bytes);

/* Requests are hot up to the largest so far, while they are cut from the range without
 * care. */
static inline void wr_pool_heed(wr_pool *pool)
{
    bool hot = pool->plain_range != NULL && !wr_pool_is_tight(pool);
    uint64_t largest = WR_OWN(pool->books.largest);
    uint64_t most =
        wr_pool_wants_care(pool, largest) ? WR_CAREFUL_BYTES - WR_UNIT_BYTES : largest;
    pool->hot_bytes = hot ? most : 0;
}

/* The pool has slices of a range from now on. */
static inline void wr_pool_set_range(wr_pool *pool, wr_page *range)
{
    pool->range = range;
    pool->plain_range = pool->plain ? range : NULL;
}

/* Whether a request is to look for a better place first (manager/range.h). */
#define WR_TIGHT_BYTES (UINT64_C(8) << 20)
static inline bool wr_pool_wants_search(const wr_pool *pool, uint64_t bytes)
{
    return bytes >= WR_TIGHT_BYTES && wr_pool_is_tight(pool) && pool->tight_skips == 0;
}
/* Cuts a held slice from a run that is out of the index, or from the next larger one, at
 * the end of either that leaves most whole granules. */
WR_APART wr_slice *wr_pool_carve_tight(wr_pool *pool, wr_slice *slice,
                                       uint64_t extent_bytes);

/* Hands out a certain free slice of a pool of whole pages, all of it. */
wr_slice *wr_pool_take(wr_pool *pool, wr_slice *slice);

/* Makes a held or limbo slice free and leaves a mark on its granules. Cannot fail. */
void wr_pool_release(wr_pool *pool, wr_slice *slice, uint64_t mark);
/* Merges a free slice of a plain pool, not in its index yet, with its free neighbours. */
void wr_pool_merge_free(wr_pool *pool, wr_page *page, wr_slice *slice);

/* Undoes a reserve: the slice is free, and nothing waits for it that did not before. */
void wr_pool_put_back(wr_pool *pool, wr_slice *slice);

/* Kept slices that were released before tick `older` (all: UINT64_MAX) become ordinary
 * free ones. */
void wr_pool_flush_kept(wr_pool *pool, uint64_t now_tick, uint64_t min_age);

/* ---- coming and going of whole granules; each slice on its way is in transit, in no
 * index and in nobody's books ---- */

/* Takes a free slice out of index and books; it stays linked in the pool's span. */
void wr_pool_detach(wr_pool *pool, wr_slice *slice);
/* The reverse: merges it with its free neighbours, as they are by now. */
void wr_pool_attach(wr_pool *pool, wr_slice *slice);

/* Cuts [begin, end), whole granules that have passed, out of a free slice in the index;
 * the part is linked nowhere any more. Takes two spares. */
wr_slice *wr_pool_cut(wr_pool *pool, wr_slice *slice, uint64_t begin, uint64_t end);
/* Links a backed slice of whole granules into the pool's spans, with nothing to wait for.
 */
void wr_pool_enter(wr_pool *pool, wr_slice *slice);
/* Enter and attach. */
void wr_pool_adopt(wr_pool *pool, wr_slice *slice);

/* Merges a slice with neighbours of its state and puts it into `index`, which holds that
 * state's slices of this owner (NULL: they are in none). Records that become spare go to
 * `cache`. */
wr_slice *wr_pool_merge(wr_index *index, wr_slab_cache *cache, wr_page *page,
                        wr_slice *slice);

/* Brings books.whole and books.settled up to date (recount.c). */
void wr_pool_recount(wr_pool *pool);

/* Free bytes that another process may still have; they wait for nothing else. */
uint64_t wr_pool_count_abroad(const wr_pool *pool);

/* A page of this pool serves no new requests from now on: its free slices leave the
 * index. */
void wr_pool_outdate(wr_pool *pool, wr_page *page);
/* Undoes the listing of an outdated page that is about to go. */
void wr_pool_forget_outdated(wr_pool *pool, wr_page *page);

/* Checks the index against itself; the pages are walked apart. NULL or what is wrong. */
const char *wr_pool_walk(const wr_pool *pool);

static inline bool wr_layout_accepts(const wr_layout *layout, uint64_t extent_bytes)
{
    return (extent_bytes >= layout->min_bytes && extent_bytes <= layout->max_bytes) ||
           (layout->near_bytes != 0 && extent_bytes >= layout->near_bytes &&
            extent_bytes <= layout->page_bytes);
}

#endif
