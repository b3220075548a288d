/* SPDX-License-Identifier: MIT */
/* The page walker: what the books must say, worked out from the slices alone. */
#include "page.h"

#include <stddef.h>

typedef struct walk {
    const wr_page *page;
    const struct wr_pool *owner;
    const wr_moment *moment;
    wr_totals *totals;
    uint32_t granule;    /* where the chunk being added up begins */
    uint64_t free_bytes; /* free so far in it */
} walk;

/* The chunk being added up is complete. */
static void close_chunk(walk *w)
{
    uint32_t end = wr_page_chunk_end(w->page, w->granule);
    bool passed = wr_moment_has_passed(w->moment, w->page->marks[w->granule]) &&
                  !wr_page_is_abroad(w->page);
    if (w->free_bytes < (end - w->granule) * w->page->granule_bytes) {
        w->totals->pinned += w->free_bytes;
    } else if (passed) {
        w->totals->releasable += w->free_bytes;
    } else {
        w->totals->deferred += w->free_bytes;
    }
    w->free_bytes = 0;
}

/* Adds a free slice chunk by chunk. */
static void add_free(walk *w, const wr_slice *slice)
{
    for (uint64_t at = slice->address; at < wr_slice_end(slice);) {
        uint32_t granule = wr_page_chunk_begin(w->page, wr_page_granule(w->page, at));
        uint64_t end =
            wr_page_granule_address(w->page, wr_page_chunk_end(w->page, granule));
        end = end < wr_slice_end(slice) ? end : wr_slice_end(slice);
        if (granule != w->granule) {
            close_chunk(w);
            w->granule = granule;
        }
        w->free_bytes += end - at;
        at = end;
    }
}

static const char *walk_slice(walk *w, const wr_slice *slice)
{
    if (slice->pool != w->owner) {
        return "a slice in a span belongs to another pool";
    }
    if (slice->extent_bytes == 0 || slice->extent_bytes % WR_UNIT_BYTES != 0) {
        return "a slice's extent is not a multiple of the unit";
    }
    switch ((wr_slice_state)slice->state) {
    case WR_SLICE_STATE_HELD:
        if (slice->held.requested_bytes > slice->extent_bytes) {
            return "a slice is smaller than its request";
        }
        w->totals->in_use += slice->held.requested_bytes;
        w->totals->padding += slice->extent_bytes - slice->held.requested_bytes;
        w->totals->live++;
        return NULL;
    case WR_SLICE_STATE_LIMBO:
    case WR_SLICE_STATE_DROPPED:
        w->totals->deferred += slice->extent_bytes;
        return NULL;
    case WR_SLICE_STATE_FREE:
    case WR_SLICE_STATE_KEPT:
        add_free(w, slice);
        return NULL;
    case WR_SLICE_STATE_BARE:
    case WR_SLICE_STATE_TRANSIT: /* counted by whoever has it on the way */
        return NULL;
    case WR_SLICE_STATE_SPARE:
    case WR_SLICE_STATE_OTHER:
        break;
    }
    return "a slice in a span has a state that none may have";
}

/* Bare neighbours may be separate while one of them is being backed. */
static bool may_join(const wr_slice *left, const wr_slice *right)
{
    return left->state == right->state && left->state == WR_SLICE_STATE_FREE;
}

/* Walks one span from its first granule; `*end` is the granule behind it. */
static const char *walk_span(walk *w, uint32_t first, uint32_t *end)
{
    const wr_slice *slice = wr_slice_get(w->page->granules[first].first);
    if (slice->address != wr_page_granule_address(w->page, first) || slice->prev != 0) {
        return "a span does not begin with its first slice";
    }
    if (wr_page_chunk_before(w->page, first) != 0) {
        return "a chunk has two owners";
    }
    w->granule = first;
    for (;;) {
        const char *wrong = walk_slice(w, slice);
        if (wrong != NULL) {
            return wrong;
        }
        if (slice->next == 0) {
            break;
        }
        const wr_slice *next = wr_slice_get(slice->next);
        if (next->address != wr_slice_end(slice) || wr_slice_get(next->prev) != slice) {
            return "neighbouring slices do not touch";
        }
        if (may_join(slice, next)) {
            return "two free neighbours are not merged";
        }
        slice = next;
    }
    close_chunk(w);
    *end = wr_page_granule(w->page, wr_slice_end(slice) - 1) + 1;
    if (wr_slice_get(w->page->granules[*end - 1].last) != slice) {
        return "a span does not end with its last slice";
    }
    return NULL;
}

const char *wr_page_walk(const wr_page *page, const struct wr_pool *owner,
                         const wr_moment *moment, wr_totals *totals)
{
    walk w = {.page = page, .owner = owner, .moment = moment, .totals = totals};
    for (uint32_t g = 0; g < page->touched;) {
        if (page->granules[g].owner != owner) {
            g++;
            continue;
        }
        const char *wrong = walk_span(&w, g, &g);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}
