/* SPDX-License-Identifier: MIT */
/* Pages: address ranges in granules, and the arithmetic of who holds which part. No
 * driver is called here.
 *
 * A page with granules is a device-wide range in which every granule has one owner: a
 * stream's pool, or the bank's pool (unheld or bare ones). A run of granules of one owner
 * is a span; its slices are linked, and nobody follows a link into another owner's span.
 * A page without granules is one granule as large as itself.
 *
 * A chunk is a run of granules that the driver made at once, and can only move and take
 * back at once; it has one owner. Each granule knows how many of its chunk lie before and
 * behind it. Where the driver knows no chunks, each granule is one.
 *
 *      before     |  0  |  1  |  2  |  0  |  0  |  1  |
 *      behind     |  2  |  1  |  0  |  0  |  1  |  0  |
 *      chunks     [      first      ][ 2nd ][   3rd   ]
 *
 *      granules   |    0    |    1    |    2    |    3    |    4    |
 *      owner      |    A    |    A    |   bank  |    B    |    B    |
 *      slices     [ held ][ free     ][  bare  ][ held ][   free   ]
 *
 * Guards: granule g's borders and its chunk's mark belong to its owner's lock. `owner`
 * itself is written under the locks of both the old and the new owner, and read by
 * either. */
#ifndef WR_PAGE_PAGE_H
#define WR_PAGE_PAGE_H

#include "base/hot.h"
#include "books.h"
#include "slice.h"

#include "base/lifeline.h"

/* So worn, an unheld page goes back; so is a new one before its first request. */
#define WR_PAGE_WORN 5u

typedef struct wr_granule {
    struct wr_pool *_Atomic owner;
    wr_slice_id first; /* the slice at its start, if a span begins there */
    wr_slice_id last;  /* the slice at its end, if a span ends there */
} wr_granule;

typedef struct wr_page {
    uint64_t address;
    uint64_t bytes;
    uint64_t granule_bytes; /* = bytes for a whole page */
    uint64_t *marks;        /* per chunk, at its first granule: time of last release */
    wr_granule *granules;
    _Atomic uint64_t *chunks; /* per granule and one behind: how many of its chunk lie
                                 before it, and << 32 behind it; 0 for bare ones */
    wr_granule single;        /* storage for whole pages */
    _Atomic uint64_t single_chunks[2];
    uint64_t single_mark;
    uint32_t granule_count;
    uint32_t granule_shift; /* 63 for a whole page */
    uint32_t id;
    uint32_t next_spare;
    uint32_t touched; /* granules from here on have always been bare */
    bool in_chunks;   /* constant: granules may come in chunks */
    bool outdated;    /* serves no new requests; goes back when empty */
    bool passed_over; /* unheld when another page had to be asked for */
    uint8_t wear;     /* exclusive: checks that found it unheld, less its requests */
    struct wr_page *next_outdated;
    struct wr_page *next,
        *previous; /* whole pages of one class, guard: the bank's lock */
    struct wr_lifeline
        *lifeline; /* shared pages that another process may have, or NULL */
    void *storage; /* the arrays of a page with granules */
    uint64_t storage_bytes;
} wr_page;

/* Records of pages, like slices' never moved; handed out under a lock of their own. The
 * base is constant once the first page exists. */
extern wr_page *wr_page_base;

static inline wr_page *wr_page_get(uint32_t id)
{
    return wr_page_base + id;
}

/* A page with granules (granule_bytes a power of two; nobody owns them yet) or, with
 * granule_bytes 0, a whole one. `owner` owns a whole page; of granules nobody does yet.
 * NULL: no host memory. */
wr_page *wr_page_create(uint64_t address, uint64_t bytes, uint64_t granule_bytes,
                        struct wr_pool *owner);
void wr_page_destroy(wr_page *page);

static inline uint32_t wr_page_granule(const wr_page *page, uint64_t address)
{
    return (uint32_t)((address - page->address) >> page->granule_shift);
}

static inline uint64_t wr_page_granule_address(const wr_page *page, uint32_t granule)
{
    return page->address + granule * page->granule_bytes;
}

/* ---- chunks ---- */

/* How many granules of its chunk lie before this one, and behind it. */
static inline uint32_t wr_page_chunk_before(const wr_page *page, uint32_t granule)
{
    return (uint32_t)atomic_load_explicit(&page->chunks[granule], memory_order_relaxed);
}

static inline uint32_t wr_page_chunk_behind(const wr_page *page, uint32_t granule)
{
    return (
        uint32_t)(atomic_load_explicit(&page->chunks[granule], memory_order_relaxed) >>
                  32);
}

/* The first granule of the chunk that `granule` is in. */
static inline uint32_t wr_page_chunk_begin(const wr_page *page, uint32_t granule)
{
    return granule - wr_page_chunk_before(page, granule);
}

/* The granule behind that chunk. */
static inline uint32_t wr_page_chunk_end(const wr_page *page, uint32_t granule)
{
    return granule + 1 + wr_page_chunk_behind(page, granule);
}

/* The first granule from `granule` on, one behind the last at most, where a chunk begins.
 */
static inline uint32_t wr_page_chunk_from(const wr_page *page, uint32_t granule)
{
    uint64_t chunk = atomic_load_explicit(&page->chunks[granule], memory_order_relaxed);
    return granule + ((uint32_t)chunk == 0 ? 0 : 1 + (uint32_t)(chunk >> 32));
}

/* Notes that whole granules were backed in chunks of `chunk_bytes`, the last one shorter;
 * 0 makes each granule one, as bare ones must be. */
void wr_page_set_chunks(wr_page *page, uint64_t address, uint64_t bytes,
                        uint64_t chunk_bytes);
/* The chunks at `from` have gone to `to` of another page or this one. */
void wr_page_copy_chunks(wr_page *page, uint64_t to, const wr_page *source, uint64_t from,
                         uint64_t bytes);

/* Whether another process may still have the memory. */
static inline bool wr_page_is_abroad(const wr_page *page)
{
    return page->lifeline != NULL && page->lifeline->is_held;
}

/* ---- residency ---- */

/* The granules of the chunks that lie wholly in [address, address + bytes):
 * [*first, *end), maybe none. */
static inline void wr_page_whole(const wr_page *page, uint64_t address, uint64_t bytes,
                                 uint32_t *first, uint32_t *end)
{
    uint64_t begin = address - page->address;
    if (page->granule_shift == 63) {
        *first = begin != 0 || bytes != page->bytes;
        *end = 1;
        return;
    }
    *first = (uint32_t)((begin + page->granule_bytes - 1) >> page->granule_shift);
    *end = (uint32_t)((begin + bytes) >> page->granule_shift);
    uint32_t from = wr_page_chunk_from(page, *first);
    uint32_t to = wr_page_chunk_begin(page, *end);
    uint32_t most = *first < *end ? *end : *first;
    *first = from < most ? from : most;
    *end = to > *first ? to : *first;
}

/* Bytes of the chunks in the granules [first, end) whose marks have passed. */
static inline uint64_t wr_page_settled_bytes(const wr_page *page, const wr_moment *moment,
                                             uint32_t first, uint32_t end)
{
    uint64_t count = 0;
    for (uint32_t g = first, next; g < end; g = next) {
        next = wr_page_chunk_end(page, g);
        count += wr_moment_has_passed(moment, page->marks[g]) ? next - g : 0;
    }
    return count * page->granule_bytes;
}

/* Leaves a mark on the chunks from that of `granule` to that of `last`. */
static inline void wr_page_mark_chunks(wr_page *page, uint64_t granule, uint64_t last,
                                       uint64_t mark)
{
    uint64_t chunk = atomic_load_explicit(&page->chunks[granule], memory_order_relaxed);
    page->marks[granule - (uint32_t)chunk] = mark;
    for (uint64_t next; (next = granule + 1 + (chunk >> 32)) <= last; granule = next) {
        chunk = atomic_load_explicit(&page->chunks[next], memory_order_relaxed);
        page->marks[next] = mark;
    }
}

typedef uint64_t wr_two_marks __attribute__((vector_size(16), aligned(8), may_alias));

/* Two or more, by fours; what is left over is written twice rather than counted. */
static inline void wr_page_fill_marks(uint64_t *first, uint64_t *last, uint64_t mark)
{
    wr_two_marks two = {mark, mark};
    if (last - first >= 4) {
        do {
            *(wr_two_marks *)first = two;
            *(wr_two_marks *)(first + 2) = two;
            first += 4;
        } while (last - first >= 4);
        *(wr_two_marks *)(last - 3) = two;
    } else {
        *(wr_two_marks *)first = two;
    }
    *(wr_two_marks *)(last - 1) = two;
}

/* Leaves a mark on every chunk that the slice touches. */
static inline void wr_page_mark(wr_page *page, const wr_slice *slice, uint64_t mark)
{
    uint64_t begin = slice->address - page->address;
    uint64_t last = (begin + slice->extent_bytes - 1) >> page->granule_shift;
    uint64_t granule = begin >> page->granule_shift;
    if (WR_UNLIKELY(page->in_chunks)) {
        wr_page_mark_chunks(page, granule, last, mark);
        return;
    }
    uint64_t *first = &page->marks[granule];
    if (granule != last) {
        wr_page_fill_marks(first, &page->marks[last], mark);
    } else if (*first != mark) { /* eight granules, of several streams, share a line */
        *first = mark;
    }
}

/* ---- tiling ---- */

/* Cuts `slice` so that it ends at `end`; `rest`, a spare, becomes the slice behind it
 * with the same state, page and pool. */
static inline void wr_page_split(wr_page *page, wr_slice *slice, uint64_t end,
                                 wr_slice *rest)
{
    uint64_t kept_bytes = end - slice->address;
    wr_slice_id rest_id = wr_slice_id_of(rest), next = slice->next;
    rest->extent_bytes = slice->extent_bytes - kept_bytes;
    rest->address = end;
    rest->pool = slice->pool;
    rest->page = slice->page;
    rest->state = slice->state;
    rest->prev = wr_slice_id_of(slice);
    rest->next = next;
    slice->extent_bytes = kept_bytes;
    if (next != 0) {
        wr_slice_get(next)->prev = rest_id;
    } else {
        page->granules[wr_page_granule(page, wr_slice_end(rest) - 1)].last = rest_id;
    }
    slice->next = rest_id;
}

/* A slice that has none before it now begins its span. */
static inline void wr_page_begin_span(const wr_slice *slice)
{
    wr_page *page = wr_page_get(slice->page);
    page->granules[wr_page_granule(page, slice->address)].first = wr_slice_id_of(slice);
}

/* Cuts the first `bytes` off `run`, whose id is said: they become the slice `id`, a
 * spare, of the same page and pool; its state the caller sets. */
static inline void wr_page_cut(wr_slice *run, wr_slice_id run_id, uint64_t bytes,
                               wr_slice_id id)
{
    wr_slice *front = wr_slice_get(id);
    wr_slice_id previous = run->prev;
    front->address = run->address;
    front->extent_bytes = bytes;
    front->pool = run->pool;
    front->prev = previous;
    front->next = run_id;
    front->page = run->page;
    run->address += bytes;
    run->extent_bytes -= bytes;
    run->prev = id;
    if (previous != 0) {
        wr_slice_get(previous)->next = id;
    } else {
        wr_page_begin_span(front);
    }
}

/* The reverse: `run` grows by `front`, the slice before it, whose record becomes spare
 * (the caller's to push). */
static inline void wr_page_absorb(wr_slice *run, const wr_slice *front)
{
    wr_slice_id previous = front->prev;
    run->address = front->address;
    run->extent_bytes += front->extent_bytes;
    run->prev = previous;
    if (previous != 0) {
        wr_slice_get(previous)->next = wr_slice_id_of(run);
    } else {
        wr_page_begin_span(run);
    }
}

/* Joins `slice` with the slice behind it, whose record becomes spare (the caller's to
 * push). */
static inline wr_slice *wr_page_join(wr_page *page, wr_slice *slice)
{
    wr_slice *rest = wr_slice_get(slice->next);
    slice->extent_bytes += rest->extent_bytes;
    slice->next = rest->next;
    if (rest->next != 0) {
        wr_slice_get(rest->next)->prev = wr_slice_id_of(slice);
    } else {
        page->granules[wr_page_granule(page, wr_slice_end(slice) - 1)].last =
            wr_slice_id_of(slice);
    }
    return rest;
}

/* Puts `fresh`, a spare, in the place of `slice`, whose record is not used again. */
void wr_page_replace(wr_page *page, wr_slice *slice, wr_slice *fresh);

/* Takes a slice of whole granules out of its span: its neighbours' spans end beside it.
 */
void wr_page_unlink(wr_page *page, wr_slice *slice);

/* Puts a slice of whole granules into the spans of `owner`, linked with what lies beside
 * it. */
void wr_page_link(wr_page *page, wr_slice *slice, struct wr_pool *owner);

/* Walks the spans of all granules that `owner` owns and checks tiling and free bytes;
 * adds to `totals` what it finds by state. NULL when all is well, else what is wrong
 * (static text). */
const char *wr_page_walk(const wr_page *page, const struct wr_pool *owner,
                         const wr_moment *moment, wr_totals *totals);

#endif
