/* SPDX-License-Identifier: MIT */
/* The page walker: what the books must say, worked out from the slices alone. */
#include "page.h"

#include <stddef.h>

typedef struct walk {
    const wr_page *page;
    const struct wr_pool *owner;
    const wr_moment *moment;
    wr_totals *totals;
    uint32_t granule;    /* the granule whose free bytes are being added up */
    uint64_t free_bytes; /* of that granule, so far */
    bool all_one;        /* one held slice covers it all */
} walk;

static bool is_free(const wr_slice *slice)
{
    return slice->state == WR_SLICE_STATE_FREE || slice->state == WR_SLICE_STATE_KEPT ||
           slice->state == WR_SLICE_STATE_TRANSIT;
}

/* The granule is complete: compare and add its free bytes to the totals. */
static const char *close_granule(walk *w)
{
    const wr_granule *granule = &w->page->granules[w->granule];
    uint64_t free_bytes = w->free_bytes;
    w->free_bytes = 0;
    if (w->all_one) {
        return NULL;
    }
    if (granule->free_bytes != free_bytes) {
        return "a granule's free bytes are not those of its slices";
    }
    if (wr_moment_slot(w->moment, w->page->marks[w->granule]) != 0) {
        w->totals->deferred += free_bytes;
    } else if (free_bytes == w->page->granule_bytes) {
        w->totals->releasable += free_bytes;
    } else {
        w->totals->pinned += free_bytes;
    }
    return NULL;
}

/* Adds the part of each granule that the slice covers. */
static const char *walk_granules(walk *w, const wr_slice *slice)
{
    uint64_t at = slice->address;
    while (at < wr_slice_end(slice)) {
        w->granule = wr_page_granule(w->page, at);
        uint64_t granule_end =
            wr_page_granule_address(w->page, w->granule) + w->page->granule_bytes;
        uint64_t end = wr_slice_end(slice) < granule_end ? wr_slice_end(slice) : granule_end;
        w->free_bytes += is_free(slice) ? end - at : 0;
        w->all_one = !is_free(slice) && end - at == w->page->granule_bytes;
        if (end == granule_end) {
            const char *wrong = close_granule(w);
            if (wrong != NULL) {
                return wrong;
            }
        }
        at = end;
    }
    return NULL;
}

static const char *walk_slice(walk *w, const wr_slice *slice)
{
    if (slice->pool != w->owner) {
        return "a slice in a span belongs to another pool";
    }
    if (slice->extent_bytes == 0 || slice->extent_bytes % WR_UNIT_BYTES != 0) {
        return "a slice's extent is not a multiple of the unit";
    }
    if (slice->state == WR_SLICE_STATE_BARE) {
        return NULL;
    }
    if (slice->state == WR_SLICE_STATE_HELD) {
        if (slice->held.requested_bytes > slice->extent_bytes) {
            return "a slice is smaller than its request";
        }
        w->totals->in_use += slice->held.requested_bytes;
        w->totals->padding += slice->extent_bytes - slice->held.requested_bytes;
        w->totals->live++;
    } else if (slice->state == WR_SLICE_STATE_LIMBO) {
        w->totals->deferred += slice->extent_bytes;
    } else if (!is_free(slice)) {
        return "a slice in a span has a state that none may have";
    }
    return walk_granules(w, slice);
}

static bool may_join(const wr_slice *left, const wr_slice *right)
{
    return left->state == right->state &&
           (left->state == WR_SLICE_STATE_FREE || left->state == WR_SLICE_STATE_BARE);
}

/* Walks one span from its first granule; `*end` is the granule behind it. */
static const char *walk_span(walk *w, uint32_t first, uint32_t *end)
{
    const wr_slice *slice = wr_slice_get(w->page->granules[first].first);
    if (slice->address != wr_page_granule_address(w->page, first) || slice->prev != 0) {
        return "a span does not begin with its first slice";
    }
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
