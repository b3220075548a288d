/* SPDX-License-Identifier: MIT */
/* See place.h. Nothing is changed here. */
#include "place.h"

#include <stddef.h>

#define SEEDS 8u       /* promising segments of each sort... */
#define REACH 3u       /* ...and how far the chain goes on both sides of one */
#define SEEDS_TIGHT 4u /* the same when it is only for a better place */
#define REACH_TIGHT 2u

typedef struct search {
    wr_bank *bank;
    wr_pool *pool;
    wr_class *class;
    wr_page *page;
    uint64_t run_bytes;
    wr_segment chain[WR_PLACE_SEGMENTS];
    uint32_t count;
    wr_place *best;
    bool tight; /* whole granules count, not only bare ones */
    uint32_t seeds, reach;
} search;

static uint64_t top_of(const search *s)
{
    return wr_page_granule_address(s->page, s->page->touched);
}

static bool is_own(const search *s, const wr_segment *segment)
{
    return segment->slice != NULL && segment->slice->pool == s->pool;
}

static bool is_bare(const wr_segment *segment)
{
    return segment->slice == NULL || segment->slice->state == WR_SLICE_STATE_BARE;
}

/* Whether the pool may use the slice; then it is a segment. */
static bool as_segment(const search *s, wr_slice *slice, wr_segment *segment)
{
    bool own = slice->pool == s->pool && slice->state == WR_SLICE_STATE_FREE;
    bool bank = slice->pool == &s->class->bank && (slice->state == WR_SLICE_STATE_FREE ||
                                                   slice->state == WR_SLICE_STATE_BARE);
    *segment = (wr_segment){slice, slice->address, wr_slice_end(slice)};
    return own || bank;
}

static bool is_ours(const search *s, uint32_t granule)
{
    const wr_pool *owner = s->page->granules[granule].owner;
    return owner == s->pool || owner == &s->class->bank;
}

/* The segment before `segment`, if the chain goes on there. */
static bool segment_before(const search *s, const wr_segment *segment, wr_segment *before)
{
    wr_slice_id id = segment->slice == NULL ? 0 : segment->slice->prev;
    if (id == 0) {
        if (segment->begin == s->page->address) {
            return false;
        }
        uint32_t granule = wr_page_granule(s->page, segment->begin - 1);
        if (!is_ours(s, granule)) {
            return false;
        }
        id = s->page->granules[granule].last;
    }
    return as_segment(s, wr_slice_get(id), before);
}

static bool segment_after(const search *s, const wr_segment *segment, wr_segment *after)
{
    if (segment->slice == NULL) {
        return false;
    }
    wr_slice_id id = segment->slice->next;
    if (id == 0) {
        if (segment->end == top_of(s)) {
            *after = (wr_segment){NULL, segment->end, s->page->address + s->page->bytes};
            return after->begin < after->end;
        }
        uint32_t granule = wr_page_granule(s->page, segment->end);
        if (!is_ours(s, granule)) {
            return false;
        }
        id = s->page->granules[granule].first;
    }
    return as_segment(s, wr_slice_get(id), after);
}

static void build_chain(search *s, const wr_segment *seed)
{
    wr_segment before[REACH];
    uint32_t count = 0;
    wr_segment at = *seed;
    while (count < s->reach && segment_before(s, &at, &before[count])) {
        at = before[count++];
    }
    s->count = 0;
    while (count > 0) {
        s->chain[s->count++] = before[--count];
    }
    s->chain[s->count++] = at = *seed;
    uint32_t most = s->count + s->reach;
    while (s->count < most && segment_after(s, &at, &s->chain[s->count])) {
        at = s->chain[s->count++];
    }
}

/* Own runs can be cut anywhere, what comes from the bank only between granules. */
static uint64_t cut_up(const search *s, const wr_segment *segment, uint64_t address)
{
    uint64_t mask = s->page->granule_bytes - 1;
    return is_own(s, segment)
               ? address
               : s->page->address + ((address - s->page->address + mask) & ~mask);
}

static uint64_t cut_down(const search *s, const wr_segment *segment, uint64_t address)
{
    uint64_t mask = s->page->granule_bytes - 1;
    return is_own(s, segment) ? address
                              : s->page->address + ((address - s->page->address) & ~mask);
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
    return a->segments[0].begin < b->segments[0].begin;
}

/* Bytes of the whole granules of a free run that [begin, end) touches. */
static uint64_t whole_bytes(const search *s, const wr_segment *run, uint64_t begin,
                            uint64_t end)
{
    uint32_t run_first, run_end;
    wr_page_whole(s->page, run->begin, run->end - run->begin, &run_first, &run_end);
    uint32_t first = wr_page_granule(s->page, begin);
    uint32_t last = wr_page_granule(s->page, end - 1) + 1;
    first = first > run_first ? first : run_first;
    last = last < run_end ? last : run_end;
    return first < last ? (last - first) * s->page->granule_bytes : 0;
}

static void add_segment(const search *s, wr_place *place, const wr_segment *whole,
                        uint64_t begin, uint64_t end)
{
    bool own = is_own(s, whole);
    place->segments[place->count++] = (wr_segment){whole->slice, begin, end};
    place->whole_bytes += whole_bytes(s, whole, begin, end);
    place->bare_bytes += is_bare(whole) ? end - begin : 0;
    place->taken_bytes += own ? whole->end - whole->begin : end - begin;
}

static void offer(search *s, const wr_place *place)
{
    if (is_better(s, place, s->best)) {
        *s->best = *place;
    }
}

/* The window that begins where chain[first] begins. */
static void try_from_left(search *s, uint32_t first)
{
    wr_place place = {.count = 0};
    uint64_t begin = s->chain[first].begin;
    for (uint32_t i = first; i < s->count; i++) {
        const wr_segment *segment = &s->chain[i];
        if (segment->end - begin >= s->run_bytes) {
            add_segment(s, &place, segment, segment->begin,
                        cut_up(s, segment, begin + s->run_bytes));
            offer(s, &place);
            return;
        }
        add_segment(s, &place, segment, segment->begin, segment->end);
    }
}

/* The window that ends where chain[last] ends. */
static void try_from_right(search *s, uint32_t last)
{
    uint64_t end = s->chain[last].end;
    uint32_t first = last;
    while (first > 0 && end - s->chain[first].begin < s->run_bytes) {
        first--;
    }
    if (s->chain[last].slice == NULL || end - s->chain[first].begin < s->run_bytes) {
        return;
    }
    wr_place place = {.count = 0};
    add_segment(s, &place, &s->chain[first],
                cut_down(s, &s->chain[first], end - s->run_bytes), s->chain[first].end);
    for (uint32_t i = first + 1; i <= last; i++) {
        add_segment(s, &place, &s->chain[i], s->chain[i].begin, s->chain[i].end);
    }
    offer(s, &place);
}

static void try_seed(search *s, const wr_segment *seed)
{
    build_chain(s, seed);
    for (uint32_t i = 0; i < s->count; i++) {
        try_from_left(s, i);
        try_from_right(s, i);
    }
}

static void try_slice(search *s, wr_slice *slice)
{
    wr_segment seed;
    if (as_segment(s, slice, &seed)) {
        try_seed(s, &seed);
    }
}

/* The largest segments below the wanted size: most of the window is there already. */
static void try_below(search *s, const wr_index *index)
{
    wr_slice *slice = wr_index_find_before(index, s->run_bytes, 0);
    for (uint32_t i = 0; i < s->seeds && slice != NULL; i++) {
        try_slice(s, slice);
        slice = wr_index_find_before(index, slice->extent_bytes, slice->address);
    }
}

/* The smallest segments of at least `bytes`. */
static void try_above(search *s, const wr_index *index, uint64_t bytes)
{
    wr_slice *slice = wr_index_find(index, bytes);
    for (uint32_t i = 0; i < s->seeds && slice != NULL; i++) {
        try_slice(s, slice);
        slice = wr_index_find_after(index, slice->extent_bytes, slice->address + 1);
    }
}

static void try_all(search *s)
{
    uint64_t granule_bytes = s->bank->granule_bytes;
    *s->best = (wr_place){.count = 0};
    try_below(s, s->pool->index);
    if (s->tight) {
        try_above(s, s->pool->index, s->run_bytes);
    }
    try_below(s, s->class->bank.index);
    try_above(s, s->pool->index, s->run_bytes & (granule_bytes - 1));
    try_above(s, s->class->bank.index, s->run_bytes);
    try_below(s, s->class->bare);
    try_above(s, s->class->bare, s->run_bytes);
    wr_segment top = {NULL, top_of(s), s->page->address + s->page->bytes};
    if (top.begin < top.end) {
        try_seed(s, &top);
    }
}

static void find(wr_bank *bank, wr_pool *pool, uint64_t run_bytes, bool tight,
                 wr_place *place)
{
    wr_class *class = &bank->classes[pool->number];
    search s = {.bank = bank,
                .pool = pool,
                .class = class,
                .page = class->range,
                .run_bytes = run_bytes,
                .best = place,
                .tight = tight,
                .seeds = tight ? SEEDS_TIGHT : SEEDS,
                .reach = tight ? REACH_TIGHT : REACH};
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
