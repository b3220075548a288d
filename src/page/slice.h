/* SPDX-License-Identifier: MIT */
/* Slices: sub-ranges that tile a page, and the slab that holds their records.
 *
 * A record is one cache line and is known by its index, which is also the index of the
 * buffer handle: `word` holds generation and reference count, so that a release is one
 * compare-and-swap that checks both. Records never move and are never unmapped, so a
 * stale handle can always be looked at. All fields but `word` are guarded by the lock of
 * the pool that owns the slice (its stream's, or the bank's).
 *
 *      span of one owner:   [ held ][ free ][ held ][ held ][   free   ]
 *                             prev/next link neighbours; 0 at both borders
 *
 * Invariants: extents are multiples of WR_UNIT_BYTES; two free neighbours of one kind are
 * merged at the moment of release; nothing is renumbered. A release needs no new record.
 */
#ifndef WR_PAGE_SLICE_H
#define WR_PAGE_SLICE_H

#include "base/check.h"
#include "base/fork.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Every extent and address is a multiple. */
#define WR_UNIT_BYTES UINT64_C(256)
#define WR_UNIT_SHIFT 8

/* Where the record lies in the slab, in bytes; 0 is none. */
typedef uint32_t wr_slice_id;

typedef enum wr_slice_state {
    WR_SLICE_STATE_SPARE = 0,   /* in the slab, not part of any page */
    WR_SLICE_STATE_HELD = 1,    /* a live buffer */
    WR_SLICE_STATE_FREE = 2,    /* backed by memory, in its pool's index */
    WR_SLICE_STATE_BARE = 3,    /* addresses without memory; the bank's only */
    WR_SLICE_STATE_LIMBO = 4,   /* released, other streams' fences not passed */
    WR_SLICE_STATE_TRANSIT = 5, /* on its way to or from the driver; in no index */
    WR_SLICE_STATE_KEPT =
        6, /* free, but reused by equal size only; in the pool's kept index */
    WR_SLICE_STATE_OTHER = 7,   /* the record serves something else (see waits.h) */
    WR_SLICE_STATE_DROPPED = 8, /* limbo, for reuse by the recording that made it only */
} wr_slice_state;

struct wr_pool;

typedef struct wr_slice {
    _Atomic uint64_t word;  /* generation << 32 | references */
    uint64_t address;       /* device address */
    uint64_t extent_bytes;  /* real size */
    struct wr_pool *pool;   /* owner */
    wr_slice_id prev, next; /* neighbours in the owner's span */
    union {
        struct {
            uint64_t requested_bytes;
            uint32_t uses;    /* other streams that used it, see waits.h */
            wr_slice_id link; /* next in a list of released slices */
        } held;
        union {
            struct {
                wr_slice_id left, right; /* in the free index (pool/index.h): subtrees */
                wr_slice_id next_twin, previous_twin; /* slices of the same extent */
            };
            struct {
                uint64_t subtrees, twins; /* the same, to be compared with 0 */
            };
        } free;
        struct { /* of the first record of a batch of spares in the slab */
            wr_slice_id last, next;
            uint32_t count;
        } batch;
    };
    uint32_t page;           /* id, see page.h */
    uint8_t state;           /* wr_slice_state */
    uint8_t alignment_shift; /* the buffer begins at the first multiple of 1 << it */
    union {
        uint16_t tag; /* held: id in the device's tag table, 0 none */
        uint16_t bin; /* in a free index: which bin */
    };
} wr_slice;

_Static_assert(sizeof(wr_slice) == 64, "a slice record is one cache line");

/* The first record. Constant from the first wr_slab_open() on. */
extern wr_slice *wr_slab_base;

static inline wr_slice *wr_slice_get(wr_slice_id id)
{
    return (wr_slice *)(void *)((char *)wr_slab_base + id);
}

static inline wr_slice_id wr_slice_id_of(const wr_slice *slice)
{
    return (wr_slice_id)((const char *)slice - (const char *)wr_slab_base);
}

static inline uint64_t wr_slice_end(const wr_slice *slice)
{
    return slice->address + slice->extent_bytes;
}

/* Where the buffer begins in its slice. */
static inline uint64_t wr_slice_begin(const wr_slice *slice)
{
    uint64_t mask = (UINT64_C(1) << slice->alignment_shift) - 1;
    return (slice->address + mask) & ~mask;
}

static inline uint32_t wr_word_generation(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

/* Set beside the references of a buffer whose release is to be checked. */
#define WR_WORD_CHECKED (UINT64_C(1) << 31)

/* With the mark, if it is set; 0 only when there are none. */
static inline uint32_t wr_word_references(uint64_t word)
{
    return (uint32_t)word;
}

/* Spare records of one owner, so that the hot path touches nothing shared. */
typedef struct wr_slab_cache {
    wr_slice_id first; /* linked by next */
    uint32_t count;
} wr_slab_cache;

/* Reserves addresses for the records, once per process. False: no host memory. */
bool wr_slab_open(void);

/* Whether a number that somebody calls a slice's may be looked at: records below slab_end
 * were handed out at some time, and it only grows. No record may in a forked child. */
static inline bool wr_slab_has(uint32_t id)
{
    return id < atomic_load_explicit(&wr_wiped.slab_end, memory_order_acquire) &&
           id % sizeof(wr_slice) == 0;
}

/* Brings the cache to at least `count` spares; false, with what could be had, when the
 * host has no memory. Calls nothing but the host. */
bool wr_slab_fill(wr_slab_cache *cache, uint32_t count);

/* Gives all but `keep` spares back to the process-wide list. */
void wr_slab_trim(wr_slab_cache *cache, uint32_t keep);

/* Caches that many records have come to give most of them back. */
#define WR_SLAB_CACHE_MAX 512u
static inline void wr_slab_trim_above(wr_slab_cache *cache)
{
    if (cache->count > WR_SLAB_CACHE_MAX) {
        wr_slab_trim(cache, WR_SLAB_CACHE_MAX / 4);
    }
}

/* A spare record from a cache that has one. */
static inline wr_slice *wr_slab_pop(wr_slab_cache *cache)
{
    WR_ASSERT(cache->count > 0);
    wr_slice *slice = wr_slice_get(cache->first);
    cache->first = slice->next;
    cache->count--;
    return slice;
}

static inline void wr_slab_push(wr_slab_cache *cache, wr_slice *slice)
{
    slice->state = WR_SLICE_STATE_SPARE;
    slice->next = cache->first;
    cache->first = wr_slice_id_of(slice);
    cache->count++;
}

#endif
