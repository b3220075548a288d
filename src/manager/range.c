/* SPDX-License-Identifier: MIT */
/* Growth in a range with granules. A growth goes through three steps: claim a window of
 * addresses (place.h; under the manager's and the bank's lock), back its bare parts
 * (backing.h; no lock, driver calls), settle (under both again). Meanwhile the pieces of
 * the window belong to the pool but are in no index, so that nobody uses them. */
#include "range.h"

#include "backing.h"
#include "grow.h"
#include "guard.h"
#include "promise.h"

#include "base/result.h"

#include <stddef.h>

/* Tight placement: not before the pool has served so many requests (a start is not worth
 * it), for so many after each growth, and with one granule moved for every so many. */
#define TIGHT_WARM_UP 10000u
#define TIGHT_REQUESTS 500u
#define TIGHT_REQUESTS_PER_CREDIT 64u
#define TIGHT_PAUSE 3u
#define TIGHT_PAUSE_MAX 31u
/* In chunks: after a growth by at least this share of what is reserved. A search after
 * each of the small ones, which a program that repeats itself may have now and then,
 * moves more than it saves. */
#define TIGHT_SHARE 64u
#define RANGE_FACTOR 4u /* addresses per byte of device memory */

typedef struct growth {
    wr_manager *manager;
    wr_bank *bank;
    wr_pool *pool;
    wr_class *class;
    wr_page *page;
    uint64_t run_bytes;
    bool tight;                          /* only for a better place: no new granules */
    wr_backing backing;                  /* the bare pieces of the window */
    wr_slice *hidden[WR_PLACE_SEGMENTS]; /* backed ones, in transit */
    uint32_t hidden_count;
    wr_slab_cache spares; /* for cutting pieces that could not be backed */
} growth;

static void lock_both(growth *g)
{
    wr_manager_lock(g->manager);
    wr_sequence_begin(&g->manager->sequence);
    wr_bank_lock(g->bank);
}

static void unlock_both(growth *g)
{
    wr_bank_unlock(g->bank);
    wr_sequence_end(&g->manager->sequence);
    wr_manager_unlock(g->manager);
}

/* ---- claiming ---- */

/* A backed slice of the pool's spans, in nobody's books. */
static void hide(growth *g, wr_slice *slice)
{
    WR_ADD(g->bank->transit, slice->extent_bytes);
    g->hidden[g->hidden_count++] = slice;
}

static void add_piece(growth *g, wr_slice *slice)
{
    wr_page_link(g->page, slice, g->pool);
    wr_backing *backing = &g->backing;
    backing->pieces[backing->piece_count++] = (wr_piece){.slice = slice};
    backing->bare_bytes += slice->extent_bytes;
}

static void claim_own(growth *g, const wr_segment *segment)
{
    wr_pool_detach(g->pool, segment->slice);
    hide(g, segment->slice);
}

/* Unheld memory of the bank becomes the pool's. */
static void claim_unheld(growth *g, const wr_segment *segment)
{
    wr_slice *slice =
        wr_pool_cut(&g->class->bank, segment->slice, segment->begin, segment->end);
    wr_guard_borrow(g->manager, slice);
    wr_pool_enter(g->pool, slice);
    hide(g, slice);
}

static void claim_top(growth *g, const wr_segment *segment)
{
    wr_slice *slice = wr_slab_pop(&g->bank->cache);
    slice->address = segment->begin;
    slice->extent_bytes = segment->end - segment->begin;
    slice->page = g->page->id;
    slice->state = WR_SLICE_STATE_BARE;
    g->page->touched += (uint32_t)(slice->extent_bytes / g->page->granule_bytes);
    add_piece(g, slice);
}

static void claim_bare(growth *g, const wr_segment *segment)
{
    wr_slice *slice = segment->slice;
    wr_index_remove(g->class->bare, slice);
    if (segment->end < wr_slice_end(slice)) {
        wr_slice *right = wr_slab_pop(&g->bank->cache);
        wr_page_split(g->page, slice, segment->end, right);
        wr_index_insert(g->class->bare, right);
    }
    if (segment->begin > slice->address) {
        wr_slice *left = slice;
        slice = wr_slab_pop(&g->bank->cache);
        wr_page_split(g->page, left, segment->begin, slice);
        wr_index_insert(g->class->bare, left);
    }
    wr_page_unlink(g->page, slice);
    add_piece(g, slice);
}

static void claim_segment(growth *g, const wr_segment *segment)
{
    if (segment->slice == NULL) {
        claim_top(g, segment);
    } else if (segment->slice->pool == g->pool) {
        claim_own(g, segment);
    } else if (segment->slice->state == WR_SLICE_STATE_BARE) {
        claim_bare(g, segment);
    } else {
        claim_unheld(g, segment);
    }
}

/* What may be spent on better places: each granule moved costs one. */
static uint64_t tight_credit(const wr_pool *pool)
{
    uint64_t entered = WR_OWN(pool->books.entered);
    uint64_t earned = entered < TIGHT_WARM_UP
                          ? 0
                          : (entered - TIGHT_WARM_UP) / TIGHT_REQUESTS_PER_CREDIT;
    return earned > pool->tight_spent ? earned - pool->tight_spent : 0;
}

/* Whether claiming a place that was found for tightness brings anything: it needs memory
 * from elsewhere, and no more of it than may be spent. */
static bool is_worth_it(const growth *g, const wr_place *place)
{
    return place->bare_bytes / g->bank->granule_bytes <= tight_credit(g->pool) &&
           (place->bare_bytes > 0 || place->count > 1);
}

/* Under both locks. False: no addresses, or no better ones. */
static bool find(const growth *g, wr_place *place)
{
    if (!g->tight) {
        wr_place_find(g->bank, g->pool, g->run_bytes, place);
        return place->count > 0;
    }
    wr_place_find_tight(g->bank, g->pool, g->run_bytes, place);
    return place->count > 0 && is_worth_it(g, place);
}

/* Under both locks: what claiming and settling so many segments need of host memory. */
static bool prepare(growth *g, uint32_t segments)
{
    wr_slab_cache *cache = &g->bank->cache;
    if (!wr_grow_prepare(g->manager, g->pool) || !wr_slab_fill(cache, 4 * segments)) {
        return false;
    }
    while (g->spares.count < 2 * segments) {
        wr_slab_push(&g->spares, wr_slab_pop(cache));
    }
    return true;
}

/* The first growth of a class reserves its range. */
static weir_result open_range(growth *g)
{
    wr_bank *bank = g->bank;
    wr_lock_take(&bank->lock);
    bool there = g->class->range != NULL;
    wr_lock_leave(&bank->lock);
    if (there) {
        return WEIR_OK;
    }
    uint64_t mask = bank->granule_bytes - 1;
    uint64_t bytes = ((bank->properties.capacity_bytes + mask) & ~mask) * RANGE_FACTOR;
    uint64_t address = 0;
    WR_TRY(bank->table->range_reserve(bank->driver, bytes, &address));
    wr_page *page = wr_page_create(address, bytes, bank->granule_bytes, NULL);
    if (page != NULL) {
        page->in_chunks = bank->properties.chunk_bytes != 0;
    }
    wr_lock_take(&bank->lock);
    if (page != NULL && g->class->range == NULL) {
        g->class->range = page;
        page = NULL;
        address = 0;
    }
    there = g->class->range != NULL;
    wr_lock_leave(&bank->lock);
    if (address != 0) {
        bank->table->range_free(bank->driver, address, bytes);
    }
    if (page != NULL) {
        wr_page_destroy(page);
    }
    return there
               ? WEIR_OK
               : wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a range's books");
}

static weir_result start(growth *g)
{
    WR_TRY(open_range(g));
    lock_both(g);
    g->page = g->backing.page = g->class->range;
    wr_pool_set_range(g->pool, g->page);
    wr_pool_set_range(&g->class->bank, g->page);
    wr_place place;
    bool found = find(g, &place);
    bool prepared = found && prepare(g, place.count);
    for (uint32_t i = 0; prepared && i < place.count; i++) {
        claim_segment(g, &place.segments[i]);
    }
    unlock_both(g);
    if (found && !prepared) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for slices' records");
    }
    if (!found && !g->tight) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "the device's address range has no stretch of %llu bytes",
                        (unsigned long long)g->run_bytes);
    }
    return found ? WEIR_OK : WEIR_NOT_FOUND; /* nobody reads why */
}

/* ---- settling ---- */

/* A bare slice of the pool that is backed now. */
static void enter_backed(growth *g, wr_slice *slice)
{
    uint64_t mark = WR_OWN(g->bank->tick) & WR_TICK_MASK;
    wr_page_mark(g->page, slice, mark);
    wr_pool_attach(g->pool, slice);
}

/* One that is not: its addresses go to the bank. */
static void return_bare(growth *g, wr_slice *slice)
{
    wr_page_unlink(g->page, slice);
    wr_page_link(g->page, slice, &g->class->bank);
    wr_pool_merge(g->class->bare, &g->bank->cache, g->page, slice);
}

static wr_slice *split_off(growth *g, wr_slice *slice, uint64_t end)
{
    wr_slice *rest = wr_slab_pop(&g->spares);
    wr_page_split(g->page, slice, end, rest);
    return rest;
}

/* A piece falls into a moved part, a bare part and a new part, each maybe empty. */
static void settle_piece(growth *g, const wr_piece *p)
{
    wr_slice *slice = p->slice;
    uint64_t bare_end = wr_slice_end(slice) - p->new_bytes;
    uint64_t bare_begin = slice->address + p->moved_bytes;
    if (bare_begin == bare_end) {
        enter_backed(g, slice);
        return;
    }
    wr_slice *bare = slice, *front = NULL, *end = NULL;
    if (p->moved_bytes > 0) {
        front = slice;
        bare = split_off(g, slice, bare_begin);
    }
    if (p->new_bytes > 0) {
        end = split_off(g, bare, bare_end);
    }
    return_bare(g, bare);
    if (front != NULL) {
        enter_backed(g, front);
    }
    if (end != NULL) {
        enter_backed(g, end);
    }
}

/* New granules were made: the pool is to be tight for a while, or this was too little to
 * change anything. */
static void begin_tight(const growth *g, uint64_t made)
{
    uint64_t entered = WR_OWN(g->pool->books.entered);
    if (!g->pool->in_chunks || made >= WR_GET(g->bank->reserved) / TIGHT_SHARE) {
        wr_pool_begin_tight(g->pool,
                            entered >= TIGHT_WARM_UP ? entered + TIGHT_REQUESTS : 0);
    }
}

static void settle_books(growth *g)
{
    uint64_t granule = g->bank->granule_bytes, moved = 0,
             made = wr_backing_made(&g->backing);
    for (uint32_t i = 0; i < g->backing.piece_count; i++) {
        moved += g->backing.pieces[i].moved_bytes;
    }
    for (wr_slice_id id = g->backing.moved; id != 0;) {
        wr_slice *slice = wr_slice_get(id);
        id = slice->held.link;
        WR_SUB(g->bank->transit, slice->extent_bytes);
        wr_bank_make_bare(g->bank, slice);
    }
    WR_ADD(g->class->pages, moved / granule);
    WR_ADD(g->class->reserved, moved);
    g->class->promised -= g->backing.promised_bytes;
    g->bank->promised -= g->backing.new_bytes;
    if (g->tight) {
        g->pool->tight_spent += moved / granule;
    }
    if (made > 0) {
        begin_tight(g, made);
        wr_bank_add_reserved(g->bank, g->class, made, made / granule);
    }
}

static void settle(growth *g)
{
    wr_loot_keep(g->bank, &g->backing.loot);
    lock_both(g);
    for (uint32_t i = 0; i < g->hidden_count; i++) {
        WR_SUB(g->bank->transit, g->hidden[i]->extent_bytes);
        wr_pool_attach(g->pool, g->hidden[i]);
    }
    for (uint32_t i = 0; i < g->backing.piece_count; i++) {
        settle_piece(g, &g->backing.pieces[i]);
    }
    settle_books(g);
    while (g->spares.count > 0) {
        wr_slab_push(&g->bank->cache, wr_slab_pop(&g->spares));
    }
    unlock_both(g);
}

static weir_result grow(growth *g)
{
    weir_result result = start(g);
    if (result != WEIR_OK) {
        return result;
    }
    result = wr_backing_fill(&g->backing);
    settle(g);
    return result;
}

static growth growth_of(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                        bool tight)
{
    wr_bank *bank = manager->bank;
    wr_class *class = &bank->classes[pool->number];
    return (growth){
        .manager = manager,
        .bank = bank,
        .pool = pool,
        .class = class,
        .run_bytes = run_bytes,
        .tight = tight,
        .backing = {.bank = bank, .manager = manager, .class = class, .tight = tight}};
}

weir_result wr_range_grow(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                          bool *full)
{
    growth g = growth_of(manager, pool, run_bytes, false);
    weir_result result = grow(&g);
    *full = g.backing.full;
    return result;
}

bool wr_range_grow_new(wr_manager *manager, wr_pool *pool, uint64_t run_bytes)
{
    growth g = growth_of(manager, pool, run_bytes, false);
    g.backing.only_new = true;
    return grow(&g) == WEIR_OK;
}

void wr_range_make_tight(wr_manager *manager, wr_pool *pool, uint64_t run_bytes)
{
    growth g = growth_of(manager, pool, run_bytes, true);
    bool found = tight_credit(pool) > 0 && grow(&g) == WEIR_OK && g.backing.moved != 0;
    /* Searches that find nothing better come ever less often. */
    pool->tight_pause = found ? 0 : pool->tight_pause * 2 + TIGHT_PAUSE;
    if (pool->tight_pause > TIGHT_PAUSE_MAX) {
        pool->tight_pause = TIGHT_PAUSE_MAX;
    }
    pool->tight_skips = pool->tight_pause;
}
