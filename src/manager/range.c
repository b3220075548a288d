/* SPDX-License-Identifier: MIT */
/* Growth in a range with granules. A growth goes through three steps: claim a window of
 * addresses (place.h; under the manager's and the bank's lock), back its bare parts (no
 * lock, driver calls), settle (under both again). Meanwhile the pieces of the window
 * belong to the pool but are in no index, so that nobody uses them. */
#include "range.h"

#include "cleanup.h"
#include "grow.h"
#include "guard.h"
#include "harvest.h"
#include "place.h"
#include "shortage.h"

#include "base/result.h"

#include <stddef.h>

/* Tight placement: not before the pool has served so many requests (a start is not worth
 * it), for so many after each growth, and with one granule moved for every so many. */
#define TIGHT_WARM_UP 10000u
#define TIGHT_REQUESTS 500u
#define TIGHT_REQUESTS_PER_CREDIT 64u
#define TIGHT_PAUSE 3u
#define TIGHT_PAUSE_MAX 31u
#define CHUNKS_PER_PIECE 2u    /* at least, where pieces have so many granules... */
#define CHUNKS_PER_DEVICE 128u /* ...and in all, where reserved memory has */
#define RANGE_FACTOR 4u        /* addresses per byte of device memory */

/* A bare piece of the window: backed from its start by moves, at its end by new granules.
 */
typedef struct piece {
    wr_slice *slice;
    wr_loot loot; /* chunks to move there; they fit */
    uint64_t moved_bytes, new_bytes;
} piece;

typedef struct growth {
    wr_manager *manager;
    wr_bank *bank;
    wr_pool *pool;
    wr_class *class;
    wr_page *page;
    uint64_t run_bytes;
    bool tight; /* only for a better place: no new granules */
    uint64_t bare_bytes;
    uint64_t promised_bytes;         /* counted in the class... */
    uint64_t new_bytes;              /* ...and in the bank */
    bool full;                       /* its cap has refused */
    piece pieces[WR_PLACE_SEGMENTS]; /* bare ones */
    uint32_t piece_count;
    wr_slice *hidden[WR_PLACE_SEGMENTS]; /* backed ones, in transit */
    uint32_t hidden_count;
    wr_loot loot;           /* taken to be moved, but in no piece's loot */
    uint64_t planned_bytes; /* in the pieces' loot */
    wr_slice_id moved;      /* slices whose memory has been moved, by held.link */
    wr_slab_cache spares;   /* for cutting pieces that could not be backed */
} growth;

/* ---- books ---- */

weir_result wr_bank_promise(wr_bank *bank, uint64_t bytes)
{
    weir_result result = WEIR_OK;
    wr_shortage_note_wanted(bytes);
    wr_lock_take(&bank->lock);
    uint64_t limit = WR_OWN(bank->limit_bytes);
    uint64_t taken = WR_OWN(bank->reserved) + bank->promised;
    if (limit != 0 && (taken > limit || bytes > limit - taken)) {
        result =
            wr_error(WEIR_LIMIT,
                     "the device limit of %llu bytes leaves %llu, and %llu are needed",
                     (unsigned long long)limit,
                     (unsigned long long)(taken > limit ? 0 : limit - taken),
                     (unsigned long long)bytes);
    } else {
        bank->promised += bytes;
    }
    wr_lock_leave(&bank->lock);
    return result;
}

weir_result wr_class_promise(wr_bank *bank, wr_class *class, uint64_t bytes, bool *full)
{
    weir_result result = WEIR_OK;
    wr_shortage_note_wanted(bytes);
    wr_lock_take(&bank->lock);
    uint64_t cap = WR_OWN(class->cap_bytes);
    uint64_t taken = WR_OWN(class->reserved) + class->promised;
    *full = cap != 0 && (taken > cap || bytes > cap - taken);
    if (*full) {
        result = wr_error(WEIR_LIMIT,
                          "the limit of %llu bytes of pool \"%s\" leaves %llu, and %llu "
                          "are needed",
                          (unsigned long long)cap, class->layout.name,
                          (unsigned long long)(taken > cap ? 0 : cap - taken),
                          (unsigned long long)bytes);
    } else {
        class->promised += bytes;
    }
    wr_lock_leave(&bank->lock);
    return result;
}

void wr_bank_add_reserved(wr_bank *bank, wr_class *class, uint64_t bytes, uint64_t pages)
{
    WR_ADD(bank->reserved, bytes);
    WR_ADD(class->reserved, bytes);
    wr_idle_note_demand(bank, class, bytes);
    wr_counter_raise(&bank->peak_reserved, WR_OWN(bank->reserved));
    WR_ADD(class->pages, pages);
    wr_counter_raise(&class->pages_peak, WR_OWN(class->pages));
}

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
    g->pieces[g->piece_count++] = (piece){.slice = slice};
    g->bare_bytes += slice->extent_bytes;
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

/* Under both locks: what claiming and settling need of host memory. */
static bool prepare(growth *g)
{
    return wr_grow_prepare(g->manager, g->pool) &&
           wr_slab_fill(&g->spares, 2 * WR_PLACE_SEGMENTS) &&
           wr_slab_fill(&g->bank->cache, 2 * WR_PLACE_SEGMENTS);
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
    g->page = g->pool->range = g->class->bank.range = g->class->range;
    wr_place place;
    bool found = find(g, &place);
    bool prepared = found && prepare(g);
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

/* ---- backing ---- */

static weir_result remake(wr_bank *bank, uint64_t to, uint64_t from, uint64_t bytes)
{
    const weir_driver_table *table = bank->table;
    WR_TRY(table->decommit(bank->driver, from, bytes));
    weir_result result = table->commit(bank->driver, to, bytes);
    if (result != WEIR_OK) {
        /* The old place gets its memory back, or the device has lost some. */
        weir_result restored = table->commit(bank->driver, from, bytes);
        return restored == WEIR_OK ? result : WEIR_DEVICE_LOST;
    }
    return WEIR_OK;
}

static weir_result move_chunks(growth *g, uint64_t to, const wr_slice *slice)
{
    wr_bank *bank = g->bank;
    wr_page *page = wr_page_get(slice->page);
    uint64_t bytes = slice->extent_bytes;
    WR_COUNT(bank->events.moves);
    if (bank->table->move == NULL) {
        weir_result result = remake(bank, to, slice->address, bytes);
        wr_page_set_chunks(page, slice->address, bytes, 0);
        return result;
    }
    WR_TRY(bank->table->move(bank->driver, to, slice->address, bytes));
    wr_page_copy_chunks(g->page, to, page, slice->address, bytes);
    return WEIR_OK;
}

/* A later step failed: new granules go back, so that nothing more is reserved than
 * before. */
static void drop_new(growth *g)
{
    if (!wr_barrier_enter(&g->bank->barrier)) {
        return; /* they stay, as free memory of the pool */
    }
    for (uint32_t i = 0; i < g->piece_count; i++) {
        piece *p = &g->pieces[i];
        uint64_t address = wr_slice_end(p->slice) - p->new_bytes;
        if (p->new_bytes == 0) {
            continue;
        }
        weir_result result =
            g->bank->table->decommit(g->bank->driver, address, p->new_bytes);
        if (result == WEIR_OK || result == WEIR_DEVICE_LOST) {
            wr_page_set_chunks(g->page, address, p->new_bytes, 0);
            p->new_bytes = 0;
        }
    }
    wr_barrier_leave(&g->bank->barrier);
}

/* The size of the chunks in which so many bytes are made: large enough that the driver's
 * price, which goes by chunk, does not matter, small beside the piece and beside all that
 * is reserved, because a chunk that is partly held stays whole. 0: the driver knows none.
 */
static uint64_t choose_chunk(const growth *g, uint64_t bytes)
{
    uint64_t granule = g->bank->granule_bytes;
    uint64_t most = g->bank->properties.chunk_bytes;
    uint64_t reserved = WR_GET(g->bank->reserved) + bytes;
    uint64_t chunk = bytes / CHUNKS_PER_PIECE;
    chunk = chunk < reserved / CHUNKS_PER_DEVICE ? chunk : reserved / CHUNKS_PER_DEVICE;
    chunk = chunk < most ? chunk : most;
    chunk = chunk / granule * granule;
    return chunk >= granule || most == 0 ? chunk : granule;
}

static weir_result commit_piece(growth *g, uint64_t address, uint64_t bytes)
{
    const wr_bank *bank = g->bank;
    uint64_t chunk_bytes = choose_chunk(g, bytes);
    WR_COUNT(g->bank->events.commits);
    WR_TRY(chunk_bytes == 0
               ? bank->table->commit(bank->driver, address, bytes)
               : bank->table->commit_chunks(bank->driver, address, bytes, chunk_bytes));
    wr_page_set_chunks(g->page, address, bytes, chunk_bytes);
    return WEIR_OK;
}

/* New granules first, from the window's end: a refusal then has changed nothing. Goes on
 * where an earlier call was refused. */
static weir_result commit_new(growth *g)
{
    for (uint32_t i = g->piece_count; i-- > 0;) {
        piece *p = &g->pieces[i];
        uint64_t bytes = p->slice->extent_bytes - p->loot.bytes - p->new_bytes;
        if (bytes > 0) {
            WR_TRY(commit_piece(g, wr_slice_end(p->slice) - bytes, bytes));
            p->new_bytes = bytes;
        }
    }
    return WEIR_OK;
}

/* Counts the new granules against the limit; what is promised stays so until it is in the
 * books. */
static weir_result promise_new(growth *g)
{
    uint64_t bytes = g->bare_bytes - g->planned_bytes;
    if (bytes > g->new_bytes) {
        WR_TRY(wr_bank_promise(g->bank, bytes - g->new_bytes));
    } else if (bytes < g->new_bytes) {
        wr_lock_take(&g->bank->lock);
        g->bank->promised -= g->new_bytes - bytes;
        wr_lock_leave(&g->bank->lock);
    }
    g->new_bytes = bytes;
    return WEIR_OK;
}

static void push_loot(wr_loot *loot, wr_slice *slice)
{
    slice->held.link = loot->first;
    loot->first = wr_slice_id_of(slice);
    loot->bytes += slice->extent_bytes;
}

static wr_slice *pop_loot(wr_loot *loot)
{
    wr_slice *slice = wr_slice_get(loot->first);
    loot->first = slice->held.link;
    loot->bytes -= slice->extent_bytes;
    return slice;
}

/* Where a slice of loot is cut to have at most `room` bytes; its start: not even one
 * chunk fits. */
static uint64_t cut_for(const wr_slice *slice, uint64_t room)
{
    const wr_page *page = wr_page_get(slice->page);
    uint32_t first, end;
    wr_page_whole(page, slice->address, room, &first, &end);
    return wr_page_granule_address(page, end);
}

/* Cuts a slice of loot in two; the second one, or NULL: no host memory. */
static wr_slice *cut_loot(growth *g, wr_slice *slice, uint64_t end)
{
    wr_bank_lock(g->bank);
    wr_slice *rest = NULL;
    if (wr_slab_fill(&g->bank->cache, WR_POOL_SPARES)) {
        rest = wr_slab_pop(&g->bank->cache);
        wr_page_split(wr_page_get(slice->page), slice, end, rest);
        rest->held = slice->held;
    }
    wr_bank_unlock(g->bank);
    return rest;
}

/* Puts what fits of a slice into the piece, the rest into `left`. */
static weir_result plan_slice(growth *g, piece *p, wr_slice *slice, wr_loot *left)
{
    uint64_t room = p->slice->extent_bytes - p->loot.bytes - p->new_bytes;
    if (slice->extent_bytes <= room) {
        push_loot(&p->loot, slice);
        return WEIR_OK;
    }
    uint64_t end = cut_for(slice, room);
    wr_slice *rest = end == slice->address ? slice : cut_loot(g, slice, end);
    push_loot(left, rest != NULL ? rest : slice);
    if (rest == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a slice's record");
    }
    if (rest != slice) {
        push_loot(&p->loot, slice);
    }
    return WEIR_OK;
}

/* Gives the piece what fits of the loot; what does not is left. */
static weir_result plan_piece(growth *g, piece *p)
{
    wr_loot left = {0};
    uint64_t before = p->loot.bytes;
    weir_result result = WEIR_OK;
    while (g->loot.first != 0 && result == WEIR_OK) {
        result = plan_slice(g, p, pop_loot(&g->loot), &left);
    }
    while (left.first != 0) {
        push_loot(&g->loot, pop_loot(&left));
    }
    g->planned_bytes += p->loot.bytes - before;
    return result;
}

static weir_result plan(growth *g)
{
    for (uint32_t i = 0; i < g->piece_count && g->loot.first != 0; i++) {
        WR_TRY(plan_piece(g, &g->pieces[i]));
    }
    return WEIR_OK;
}

/* What was not moved is no piece's any more. */
static void unplan(growth *g)
{
    for (uint32_t i = 0; i < g->piece_count; i++) {
        while (g->pieces[i].loot.first != 0) {
            push_loot(&g->loot, pop_loot(&g->pieces[i].loot));
        }
    }
}

static weir_result move_to_piece(growth *g, piece *p)
{
    while (p->loot.first != 0) {
        wr_slice *slice = wr_slice_get(p->loot.first);
        WR_TRY(move_chunks(g, p->slice->address + p->moved_bytes, slice));
        pop_loot(&p->loot);
        p->moved_bytes += slice->extent_bytes;
        slice->held.link = g->moved;
        g->moved = wr_slice_id_of(slice);
    }
    return WEIR_OK;
}

static weir_result move_loot(growth *g)
{
    for (uint32_t i = 0; i < g->piece_count; i++) {
        WR_TRY(move_to_piece(g, &g->pieces[i]));
    }
    return WEIR_OK;
}

static uint64_t made_bytes(const growth *g)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->piece_count; i++) {
        bytes += g->pieces[i].new_bytes;
    }
    return bytes;
}

/* Unheld chunks, from this stream, the bank, and others. */
static void find_loot(growth *g, bool from_slack)
{
    uint64_t covered = made_bytes(g) + g->planned_bytes + g->loot.bytes;
    wr_harvest want = {.at_most_bytes = g->bare_bytes - covered,
                       .granules_only = true,
                       .from_slack = from_slack};
    wr_harvest_take_all(g->bank, g->manager, &want, g->bank->roster_count > 1, &g->loot);
}

/* What the loot does not cover is asked of the driver. */
static weir_result cover(growth *g)
{
    WR_TRY(plan(g));
    if (g->tight && g->planned_bytes < g->bare_bytes) {
        return WEIR_BUSY;
    }
    WR_TRY(promise_new(g));
    return commit_new(g);
}

/* Moves chunks there; where nothing may be moved all of them are new. */
static weir_result fill(growth *g, bool may_move)
{
    bool alone = g->bank->roster_count == 1;
    if (may_move) {
        find_loot(g, !alone);
    }
    weir_result result = cover(g);
    if ((result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT) && may_move && !alone) {
        /* Better the holes of streams at work than none. */
        uint64_t before = g->loot.bytes;
        find_loot(g, false);
        result = g->loot.bytes > before ? cover(g) : result;
    }
    if (result == WEIR_OK) {
        result = move_loot(g);
    }
    unplan(g);
    return result;
}

static weir_result back(growth *g)
{
    if (g->bare_bytes == 0) {
        return WEIR_OK;
    }
    WR_TRY(wr_class_promise(g->bank, g->class, g->bare_bytes, &g->full));
    g->promised_bytes = g->bare_bytes;
    bool may_move = wr_barrier_enter(&g->bank->barrier);
    weir_result result = fill(g, may_move);
    if (may_move) {
        wr_barrier_leave(&g->bank->barrier);
    }
    if (result != WEIR_OK) {
        drop_new(g);
    }
    return result;
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
static void settle_piece(growth *g, const piece *p)
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

static void settle_books(growth *g)
{
    uint64_t granule = g->bank->granule_bytes, moved = 0, made = made_bytes(g);
    for (uint32_t i = 0; i < g->piece_count; i++) {
        moved += g->pieces[i].moved_bytes;
    }
    for (wr_slice_id id = g->moved; id != 0;) {
        wr_slice *slice = wr_slice_get(id);
        id = slice->held.link;
        WR_SUB(g->bank->transit, slice->extent_bytes);
        wr_bank_make_bare(g->bank, slice);
    }
    WR_ADD(g->class->pages, moved / granule);
    WR_ADD(g->class->reserved, moved);
    g->class->promised -= g->promised_bytes;
    g->bank->promised -= g->new_bytes;
    if (g->tight) {
        g->pool->tight_spent += moved / granule;
    }
    if (made > 0) {
        uint64_t entered = WR_OWN(g->pool->books.entered);
        g->pool->tight_until = entered >= TIGHT_WARM_UP ? entered + TIGHT_REQUESTS : 0;
        wr_bank_add_reserved(g->bank, g->class, made, made / granule);
    }
}

static void settle(growth *g)
{
    wr_loot_keep(g->bank, &g->loot);
    lock_both(g);
    for (uint32_t i = 0; i < g->hidden_count; i++) {
        WR_SUB(g->bank->transit, g->hidden[i]->extent_bytes);
        wr_pool_attach(g->pool, g->hidden[i]);
    }
    for (uint32_t i = 0; i < g->piece_count; i++) {
        settle_piece(g, &g->pieces[i]);
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
        wr_slab_trim(&g->spares, 0);
        return result;
    }
    result = back(g);
    settle(g);
    return result;
}

weir_result wr_range_grow(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                          bool *full)
{
    growth g = {.manager = manager,
                .bank = manager->bank,
                .pool = pool,
                .class = &manager->bank->classes[pool->number],
                .run_bytes = run_bytes};
    weir_result result = grow(&g);
    *full = g.full;
    return result;
}

void wr_range_make_tight(wr_manager *manager, wr_pool *pool, uint64_t run_bytes)
{
    if (pool->tight_skips > 0) {
        pool->tight_skips--;
        return;
    }
    if (tight_credit(pool) == 0) {
        return;
    }
    growth g = {.manager = manager,
                .bank = manager->bank,
                .pool = pool,
                .class = &manager->bank->classes[pool->number],
                .run_bytes = run_bytes,
                .tight = true};
    grow(&g);
    /* Searches that find nothing better come ever less often. */
    bool found = g.moved != 0;
    pool->tight_pause = found ? 0 : pool->tight_pause * 2 + TIGHT_PAUSE;
    if (pool->tight_pause > TIGHT_PAUSE_MAX) {
        pool->tight_pause = TIGHT_PAUSE_MAX;
    }
    pool->tight_skips = pool->tight_pause;
}
