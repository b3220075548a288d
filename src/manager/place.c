/* SPDX-License-Identifier: MIT */
/* See place.h. Nothing is changed here. */
#include "place.h"

#include <stddef.h>

/* Promising segments of each sort, and how far the chain goes on both sides of one; and
 * the same when it is only for a better place, which is often. */
#define SEEDS 4u
#define REACH 2u
#define SEEDS_TIGHT 1u
#define REACH_TIGHT 1u
_Static_assert(WR_PLACE_SEGMENTS == 2 * REACH + 1, "a chain has room in a place");

/* A segment of a chain, and what the sums over windows need. */
typedef struct chain_link {
    wr_segment segment;
    bool own, bare;
    uint64_t bare_before; /* bare bytes of the chain up to here... */
    uint64_t whole_end;   /* ...bytes of whole granules up to its end (tight only)... */
    uint32_t whole_first, whole_last; /* ...and which these are: [first, last) */
} chain_link;

typedef struct search {
    wr_bank *bank;
    wr_pool *pool;
    wr_class *class;
    wr_page *page;
    uint64_t run_bytes;
    chain_link links[WR_PLACE_SEGMENTS]; /* the seed's in the middle, at REACH... */
    chain_link *chain, *end;             /* ...and the chain is these: [chain, end) */
    wr_place *best;
    bool tight; /* whole granules count, not only bare ones */
    uint32_t seeds, reach;
} search;

static uint64_t top_of(const search *s)
{
    return wr_page_granule_address(s->page, s->page->touched);
}

/* Whether the pool may use the slice; then it is a link. */
static bool as_link(const search *s, wr_slice *slice, chain_link *link)
{
    bool free_slice = slice->state == WR_SLICE_STATE_FREE;
    link->segment = (wr_segment){slice, slice->address, wr_slice_end(slice)};
    link->own = slice->pool == s->pool;
    link->bare = slice->state == WR_SLICE_STATE_BARE;
    return link->own ? free_slice
                     : slice->pool == &s->class->bank && (free_slice || link->bare);
}

/* The untouched addresses; false: there are none left. */
static bool top_link(const search *s, chain_link *link)
{
    uint64_t end = s->page->address + s->page->bytes;
    link->segment = (wr_segment){NULL, top_of(s), end};
    link->own = false;
    link->bare = true;
    return link->segment.begin < end;
}

static bool is_ours(const search *s, uint32_t granule)
{
    const wr_pool *owner = s->page->granules[granule].owner;
    return owner == s->pool || owner == &s->class->bank;
}

/* The link before `at`, if the chain goes on there. */
static bool link_before(const search *s, const wr_segment *at, chain_link *before)
{
    wr_slice_id id = at->slice == NULL ? 0 : at->slice->prev;
    if (id == 0) {
        if (at->begin == s->page->address) {
            return false;
        }
        uint32_t granule = wr_page_granule(s->page, at->begin - 1);
        if (!is_ours(s, granule)) {
            return false;
        }
        id = s->page->granules[granule].last;
    }
    return as_link(s, wr_slice_get(id), before);
}

static bool link_after(const search *s, const wr_segment *at, chain_link *after)
{
    if (at->slice == NULL) {
        return false;
    }
    wr_slice_id id = at->slice->next;
    if (id == 0) {
        if (at->end == top_of(s)) {
            return top_link(s, after);
        }
        uint32_t granule = wr_page_granule(s->page, at->end);
        if (!is_ours(s, granule)) {
            return false;
        }
        id = s->page->granules[granule].first;
    }
    return as_link(s, wr_slice_get(id), after);
}

/* Sums along the chain, so that a window's measures are differences. */
static void sum_chain(search *s)
{
    uint64_t bare = 0, whole = 0;
    for (chain_link *l = s->chain; l < s->end; l++) {
        uint64_t bytes = l->segment.end - l->segment.begin;
        l->bare_before = bare;
        bare += l->bare ? bytes : 0;
        if (s->tight) {
            wr_page_whole(s->page, l->segment.begin, bytes, &l->whole_first,
                          &l->whole_last);
            whole += (l->whole_last - l->whole_first) * s->page->granule_bytes;
            l->whole_end = whole;
        }
    }
}

/* Lays the chain around the seed, which is in the middle. False: it is too short for any
 * window. */
static bool build_chain(search *s)
{
    chain_link *seed = s->links + REACH;
    s->chain = seed;
    while (seed - s->chain < s->reach &&
           link_before(s, &s->chain->segment, s->chain - 1)) {
        s->chain--;
    }
    s->end = seed + 1;
    while (s->end - seed <= s->reach && link_after(s, &s->end[-1].segment, s->end)) {
        s->end++;
    }
    return s->end[-1].segment.end - s->chain->segment.begin >= s->run_bytes;
}

/* Own runs can be cut anywhere, what comes from the bank only between chunks; bare
 * granules are chunks of their own. */
static uint64_t cut_up(const search *s, const chain_link *l, uint64_t address)
{
    uint32_t last = wr_page_granule(s->page, address - 1);
    return l->own ? address
                  : wr_page_granule_address(s->page, wr_page_chunk_end(s->page, last));
}

static uint64_t cut_down(const search *s, const chain_link *l, uint64_t address)
{
    uint32_t first = wr_page_granule(s->page, address);
    return l->own ? address
                  : wr_page_granule_address(s->page, wr_page_chunk_begin(s->page, first));
}

/* A window of the chain: [begin, end), from the link `first` to the link `last`. */
typedef struct window {
    const chain_link *first, *last;
    uint64_t begin, end;
} window;

/* Bytes of a link's whole chunks that [begin, end) touches. */
static uint64_t whole_within(const search *s, const chain_link *l, uint64_t begin,
                             uint64_t end)
{
    uint32_t first = wr_page_chunk_begin(s->page, wr_page_granule(s->page, begin));
    uint32_t last = wr_page_chunk_end(s->page, wr_page_granule(s->page, end - 1));
    first = first > l->whole_first ? first : l->whole_first;
    last = last < l->whole_last ? last : l->whole_last;
    return first < last ? (last - first) * s->page->granule_bytes : 0;
}

static uint64_t whole_of(const search *s, const window *w)
{
    if (w->first == w->last) {
        return whole_within(s, w->first, w->begin, w->end);
    }
    return whole_within(s, w->first, w->begin, w->first->segment.end) +
           (w->last[-1].whole_end - w->first->whole_end) +
           whole_within(s, w->last, w->last->segment.begin, w->end);
}

static bool is_better(const search *s, const wr_place *a, const wr_place *b)
{
    if (s->tight && b->count != 0 && a->whole_bytes != b->whole_bytes) {
        return a->whole_bytes < b->whole_bytes;
    }
    if (b->count == 0 || a->bare_bytes != b->bare_bytes) {
        return b->count == 0 || a->bare_bytes < b->bare_bytes;
    }
    if (a->taken_bytes != b->taken_bytes) {
        return a->taken_bytes < b->taken_bytes;
    }
    return a->begin < b->begin;
}

/* The window is the best one so far. */
static void choose(wr_place *place, const window *w)
{
    place->count = 0;
    for (const chain_link *l = w->first; l <= w->last; l++) {
        place->segments[place->count++] = l->segment;
    }
    place->segments[0].begin = w->begin;
    place->segments[place->count - 1].end = w->end;
}

static void offer(search *s, const window *w)
{
    uint64_t left = w->begin - w->first->segment.begin; /* cut off at both ends */
    uint64_t right = w->last->segment.end - w->end;
    uint64_t bare_end =
        w->last->bare_before + (w->last->bare ? w->end - w->last->segment.begin : 0);
    wr_place place;
    place.begin = w->begin;
    place.bare_bytes = bare_end - w->first->bare_before - (w->first->bare ? left : 0);
    place.taken_bytes = w->last->segment.end - w->first->segment.begin -
                        (w->first->own ? 0 : left) - (w->last->own ? 0 : right);
    place.whole_bytes = s->tight ? whole_of(s, w) : 0;
    if (is_better(s, &place, s->best)) {
        choose(&place, w);
        *s->best = place;
    }
}

/* The windows that begin where a link begins and go into the seed. */
static void try_begins(search *s)
{
    const chain_link *seed = s->links + REACH;
    const chain_link *last = s->chain;
    for (const chain_link *at = s->chain; at <= seed; at++) {
        uint64_t begin = at->segment.begin;
        while (last < s->end && last->segment.end - begin < s->run_bytes) {
            last++;
        }
        if (last == s->end) {
            return;
        }
        if (last >= seed) {
            offer(s, &(window){at, last, begin, cut_up(s, last, begin + s->run_bytes)});
        }
    }
}

/* The windows that end where a link ends and go into the seed. */
static void try_ends(search *s)
{
    const chain_link *seed = s->links + REACH;
    const chain_link *first = s->chain;
    for (const chain_link *at = seed; at < s->end && at->segment.slice != NULL; at++) {
        uint64_t at_end = at->segment.end;
        if (at_end - first->segment.begin < s->run_bytes) {
            continue;
        }
        while (first < at && at_end - first[1].segment.begin >= s->run_bytes) {
            first++;
        }
        if (first > seed) {
            return;
        }
        uint64_t begin = cut_down(s, first, at_end - s->run_bytes);
        offer(s, &(window){first, at, begin, at_end});
    }
}

/* The seed is in the middle. */
static void try_seed(search *s)
{
    if (build_chain(s)) {
        sum_chain(s);
        try_begins(s);
        try_ends(s);
    }
}

/* An own run between two neighbours, which are not free, else they were merged with it.
 */
static bool is_closed_in(const search *s, const wr_slice *slice)
{
    return slice->prev != 0 && slice->next != 0 && slice->pool == s->pool;
}

static void try_slice(search *s, wr_slice *slice)
{
    if (slice->extent_bytes < s->run_bytes && is_closed_in(s, slice)) {
        return;
    }
    if (as_link(s, slice, s->links + REACH)) {
        try_seed(s);
    }
}

/* The largest segments below the wanted size: most of the window is there already. */
static void try_below(search *s, const wr_index *index)
{
    wr_slice *slice = wr_index_find_below(index, s->run_bytes);
    for (uint32_t i = 0; i < s->seeds && slice != NULL; i++) {
        try_slice(s, slice);
        slice = wr_index_next_below(index, slice);
    }
}

/* The smallest segments of at least `bytes`. */
static void try_above(search *s, const wr_index *index, uint64_t bytes)
{
    wr_slice *slice = wr_index_find(index, bytes);
    for (uint32_t i = 0; i < s->seeds && slice != NULL; i++) {
        try_slice(s, slice);
        slice = wr_index_next(index, slice);
    }
}

static void try_all(search *s)
{
    uint64_t granule_bytes = s->bank->granule_bytes;
    s->best->count = 0;
    s->best->bare_bytes = 0;
    try_below(s, s->pool->index);
    if (s->tight) {
        try_above(s, s->pool->index, s->run_bytes);
    }
    try_below(s, s->class->bank.index);
    try_above(s, s->pool->index, s->run_bytes & (granule_bytes - 1));
    try_above(s, s->class->bank.index, s->run_bytes);
    try_below(s, s->class->bare);
    try_above(s, s->class->bare, s->run_bytes);
    if (top_link(s, s->links + REACH)) {
        try_seed(s);
    }
}

static void find(wr_bank *bank, wr_pool *pool, uint64_t run_bytes, bool tight,
                 wr_place *place)
{
    search s; /* the links are written when they are needed */
    s.bank = bank;
    s.pool = pool;
    s.class = &bank->classes[pool->number];
    s.page = s.class->range;
    s.run_bytes = run_bytes;
    s.best = place;
    s.tight = tight;
    s.seeds = tight ? SEEDS_TIGHT : SEEDS;
    s.reach = tight ? REACH_TIGHT : REACH;
    try_all(&s);
}

void wr_place_find(wr_bank *bank, wr_pool *pool, uint64_t run_bytes, wr_place *place)
{
    find(bank, pool, run_bytes, false, place);
}

void wr_place_find_tight(wr_bank *bank, wr_pool *pool, uint64_t run_bytes,
                         wr_place *place)
{
    find(bank, pool, run_bytes, true, place);
}
