/* SPDX-License-Identifier: MIT */
/* Growth in a range with granules. A growth goes through three steps: choose and claim bare
 * addresses (under the manager's and the bank's lock), fill them (no lock, driver calls), settle
 * or undo (under both again). Meanwhile the claimed slice is bare but owned by the pool, and the
 * free runs beside it are in transit, so that nobody uses either.
 *
 *        own free run    bare           own free run
 *     ...[   left   ][ claimed |      ][   right  ]...
 *        <------- run_bytes ----->
 */
#include "range.h"

#include "cleanup.h"
#include "grow.h"
#include "harvest.h"

#include "base/result.h"

#include <stddef.h>

#define RANGE_FACTOR 4u /* addresses per byte of device memory */
#define PLACES 32       /* candidates looked at */

/* Where to grow: bare addresses [begin, end) and the free runs of the pool beside them. */
typedef struct place {
    wr_slice *bare; /* NULL: the top of the range */
    wr_slice *left, *right;
    uint64_t begin, end;
    uint64_t spare_bytes; /* what is left of the bare slice */
} place;

typedef struct growth {
    wr_manager *manager;
    wr_bank *bank;
    wr_pool *pool;
    wr_class *class;
    wr_page *page;
    uint64_t run_bytes;
    place place;
    wr_slice *claimed;
    wr_loot loot;         /* granules to move there */
    wr_slice_id moved;    /* slices whose memory has been moved, by held.link */
    uint64_t moved_bytes; /* backed at the start of the claimed slice */
    uint64_t new_bytes;   /* backed at its end */
} growth;

/* ---- books ---- */

weir_result wr_bank_promise(wr_bank *bank, uint64_t bytes)
{
    weir_result result = WEIR_OK;
    wr_lock_take(&bank->lock);
    uint64_t limit = WR_OWN(bank->limit_bytes);
    uint64_t taken = WR_OWN(bank->reserved) + bank->promised;
    if (limit != 0 && (taken > limit || bytes > limit - taken)) {
        result = wr_error(WEIR_LIMIT,
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

void wr_bank_add_reserved(wr_bank *bank, wr_class *class, uint64_t bytes, uint64_t pages)
{
    WR_ADD(bank->reserved, bytes);
    wr_idle_note_demand(bank, bytes);
    wr_counter_raise(&bank->peak_reserved, WR_OWN(bank->reserved));
    WR_ADD(class->pages, pages);
    wr_counter_raise(&class->pages_peak, WR_OWN(class->pages));
}

/* ---- choosing ---- */

static uint64_t in_granules(const growth *g, uint64_t bytes)
{
    uint64_t mask = g->bank->granule_bytes - 1;
    return (bytes + mask) & ~mask;
}

static wr_pool *owner_at(const growth *g, uint64_t address)
{
    return atomic_load_explicit(&g->page->granules[wr_page_granule(g->page, address)].owner,
                                memory_order_acquire);
}

/* The pool's free run that ends at `address`, or NULL. */
static wr_slice *run_before(const growth *g, uint64_t address)
{
    if (address == g->page->address || owner_at(g, address - 1) != g->pool) {
        return NULL;
    }
    wr_slice *slice =
        wr_slice_get(g->page->granules[wr_page_granule(g->page, address - 1)].last);
    return slice->state == WR_SLICE_STATE_FREE ? slice : NULL;
}

static wr_slice *run_after(const growth *g, uint64_t address)
{
    if (address == g->page->address + g->page->touched * g->page->granule_bytes ||
        owner_at(g, address) != g->pool) {
        return NULL;
    }
    wr_slice *slice = wr_slice_get(g->page->granules[wr_page_granule(g->page, address)].first);
    return slice->state == WR_SLICE_STATE_FREE ? slice : NULL;
}

static bool is_better(const place *a, const place *b)
{
    uint64_t x = a->end - a->begin, y = b->end - b->begin;
    if (b->end == 0 || x != y) {
        return b->end == 0 || x < y;
    }
    if (a->spare_bytes != b->spare_bytes) {
        return a->spare_bytes < b->spare_bytes;
    }
    return a->begin < b->begin;
}

static void consider(growth *g, const place *candidate)
{
    if (is_better(candidate, &g->place)) {
        g->place = *candidate;
    }
}

/* Looks at both ends of the bare addresses [begin, end). */
static void consider_bare(growth *g, wr_slice *bare, uint64_t begin, uint64_t end)
{
    wr_slice *left = run_before(g, begin);
    wr_slice *right = bare == NULL ? NULL : run_after(g, end);
    uint64_t left_bytes = left == NULL ? 0 : left->extent_bytes;
    uint64_t right_bytes = right == NULL ? 0 : right->extent_bytes;
    uint64_t room = end - begin;
    if (left_bytes + room + right_bytes < g->run_bytes) {
        return;
    }
    uint64_t from_left =
        left_bytes >= g->run_bytes ? 0 : in_granules(g, g->run_bytes - left_bytes);
    uint64_t from_right =
        right_bytes >= g->run_bytes ? 0 : in_granules(g, g->run_bytes - right_bytes);
    if (from_left > room && from_right > room) {
        from_left = room; /* both neighbours are needed, and all between */
    }
    if (from_left > 0 && from_left <= room) {
        consider(g, &(place){.bare = bare, .left = left, .begin = begin,
                             .right = from_left == room ? right : NULL,
                             .end = begin + from_left, .spare_bytes = room - from_left});
    }
    if (bare != NULL && from_right > 0 && from_right <= room) {
        consider(g, &(place){.bare = bare, .right = right, .begin = end - from_right,
                             .left = from_right == room ? left : NULL,
                             .end = end, .spare_bytes = room - from_right});
    }
}

static void consider_top(growth *g)
{
    uint64_t begin = wr_page_granule_address(g->page, g->page->touched);
    uint64_t end = g->page->address + g->page->bytes;
    if (begin < end) {
        consider_bare(g, NULL, begin, end);
    }
}

static void consider_slice(growth *g, wr_slice *bare)
{
    consider_bare(g, bare, bare->address, wr_slice_end(bare));
}

/* Bare stretches that hold the run by themselves, tightest first. */
static void consider_stretches(growth *g)
{
    wr_slice *bare = wr_index_find(g->class->bare, in_granules(g, g->run_bytes));
    for (int i = 0; i < PLACES && bare != NULL; i++) {
        consider_slice(g, bare);
        bare = wr_index_find_after(g->class->bare, bare->extent_bytes, bare->address + 1);
    }
}

static wr_slice *bare_at(const growth *g, uint64_t address, bool before)
{
    uint32_t granule = wr_page_granule(g->page, before ? address - 1 : address);
    if (g->page->granules[granule].owner != &g->class->bank) {
        return NULL;
    }
    wr_slice_id id =
        before ? g->page->granules[granule].last : g->page->granules[granule].first;
    return wr_slice_get(id)->state == WR_SLICE_STATE_BARE ? wr_slice_get(id) : NULL;
}

/* Bare stretches beside the largest free runs of the pool. */
static void consider_neighbours(growth *g)
{
    uint64_t top = wr_page_granule_address(g->page, g->page->touched);
    wr_slice *run = wr_index_find_before(g->pool->index, g->run_bytes, 0);
    for (int i = 0; i < PLACES && run != NULL; i++) {
        if (run->prev == 0 && run->address > g->page->address) {
            wr_slice *bare = bare_at(g, run->address, true);
            if (bare != NULL) {
                consider_slice(g, bare);
            }
        }
        if (run->next == 0 && wr_slice_end(run) < top) {
            wr_slice *bare = bare_at(g, wr_slice_end(run), false);
            if (bare != NULL) {
                consider_slice(g, bare);
            }
        }
        run = wr_index_find_before(g->pool->index, run->extent_bytes, run->address);
    }
}

/* ---- claiming ---- */

static void hide_run(growth *g, wr_slice *run)
{
    if (run != NULL) {
        wr_index_remove(g->pool->index, run);
        run->state = WR_SLICE_STATE_TRANSIT;
    }
}

static wr_slice *claim_top(growth *g)
{
    wr_slice *slice = wr_slab_pop(&g->bank->cache);
    slice->address = g->place.begin;
    slice->extent_bytes = g->place.end - g->place.begin;
    slice->page = g->page->id;
    slice->state = WR_SLICE_STATE_BARE;
    slice->prev = slice->next = 0;
    g->page->touched += (uint32_t)(slice->extent_bytes / g->page->granule_bytes);
    return slice;
}

static wr_slice *claim_bare(growth *g)
{
    wr_slice *slice = g->place.bare;
    wr_index_remove(g->class->bare, slice);
    if (g->place.end < wr_slice_end(slice)) {
        wr_slice *right = wr_slab_pop(&g->bank->cache);
        wr_page_split(g->page, slice, g->place.end, right);
        wr_index_insert(g->class->bare, right);
    }
    if (g->place.begin > slice->address) {
        wr_slice *left = slice;
        slice = wr_slab_pop(&g->bank->cache);
        wr_page_split(g->page, left, g->place.begin, slice);
        wr_index_insert(g->class->bare, left);
    }
    wr_page_unlink(g->page, slice);
    return slice;
}

/* Under both locks. False: no addresses, or no host memory. */
static bool claim(growth *g)
{
    if (!wr_slab_fill(&g->bank->cache, WR_POOL_SPARES)) {
        return false;
    }
    consider_stretches(g);
    consider_neighbours(g);
    consider_top(g);
    if (g->place.end == 0) {
        return false;
    }
    hide_run(g, g->place.left);
    hide_run(g, g->place.right);
    g->claimed = g->place.bare != NULL ? claim_bare(g) : claim_top(g);
    wr_page_link(g->page, g->claimed, g->pool);
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
    uint64_t bytes = in_granules(g, bank->properties.capacity_bytes) * RANGE_FACTOR;
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
    return there ? WEIR_OK
                 : wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a range's books");
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

static weir_result start(growth *g)
{
    WR_TRY(open_range(g));
    lock_both(g);
    g->page = g->class->range;
    bool claimed = wr_grow_prepare(g->manager, g->pool) && claim(g);
    unlock_both(g);
    return claimed ? WEIR_OK
                   : wr_error(WEIR_OUT_OF_MEMORY,
                              "the device's address range has no stretch of %llu bytes",
                              (unsigned long long)g->run_bytes);
}

/* ---- filling ---- */

static weir_result move_granules(wr_bank *bank, uint64_t to, uint64_t from, uint64_t bytes)
{
    const weir_driver_table *table = bank->table;
    WR_COUNT(bank->events.moves);
    if (table->move != NULL) {
        return table->move(bank->driver, to, from, bytes);
    }
    WR_TRY(table->decommit(bank->driver, from, bytes));
    weir_result result = table->commit(bank->driver, to, bytes);
    if (result != WEIR_OK) {
        /* The old place gets its memory back, or it is gone from both. */
        weir_result restored = table->commit(bank->driver, from, bytes);
        return restored == WEIR_OK ? result : WEIR_DEVICE_LOST;
    }
    return WEIR_OK;
}

/* New granules first, at the end, all or none: a refusal then has changed nothing. */
static weir_result fill_by_commit(growth *g)
{
    uint64_t bytes = g->claimed->extent_bytes - g->loot.bytes;
    if (bytes == 0) {
        return WEIR_OK;
    }
    WR_TRY(wr_bank_promise(g->bank, bytes));
    WR_COUNT(g->bank->events.commits);
    weir_result result =
        g->bank->table->commit(g->bank->driver, g->claimed->address + g->loot.bytes, bytes);
    wr_lock_take(&g->bank->lock);
    g->bank->promised -= bytes;
    wr_lock_leave(&g->bank->lock);
    g->new_bytes = result == WEIR_OK ? bytes : 0;
    return result;
}

/* Moves loot to the start of the claimed slice; what was moved is listed in `moved`. */
static weir_result fill_by_moves(growth *g)
{
    while (g->loot.first != 0) {
        wr_slice *slice = wr_slice_get(g->loot.first);
        uint64_t bytes = slice->extent_bytes;
        WR_TRY(move_granules(g->bank, g->claimed->address + g->moved_bytes, slice->address,
                             bytes));
        g->loot.first = slice->held.link;
        g->loot.bytes -= bytes;
        slice->held.link = g->moved;
        g->moved = wr_slice_id_of(slice);
        g->moved_bytes += bytes;
    }
    return WEIR_OK;
}

/* A move failed after the commit: the new granules go back, so that nothing more is reserved. */
static void drop_new(growth *g)
{
    uint64_t address = wr_slice_end(g->claimed) - g->new_bytes;
    if (g->new_bytes > 0 &&
        g->bank->table->decommit(g->bank->driver, address, g->new_bytes) == WEIR_OK) {
        g->new_bytes = 0;
    }
}

static weir_result fill(growth *g)
{
    uint64_t need = g->place.end - g->place.begin;
    wr_harvest want = {.at_most_bytes = need, .granules_only = true};
    bool several = g->bank->roster_count > 1;
    wr_harvest_take_all(g->bank, g->manager, &want, several, &g->loot);
    WR_TRY(fill_by_commit(g));
    weir_result result = fill_by_moves(g);
    if (result != WEIR_OK) {
        drop_new(g);
    }
    return result;
}

/* ---- settling ---- */

/* A part of the claimed slice that is backed now. */
static void enter_backed(growth *g, wr_slice *slice)
{
    uint64_t mark = WR_OWN(g->bank->tick) & WR_TICK_MASK;
    uint32_t first = wr_page_granule(g->page, slice->address);
    uint32_t last = wr_page_granule(g->page, wr_slice_end(slice) - 1);
    for (uint32_t i = first; i <= last; i++) {
        g->page->marks[i] = mark;
        g->page->granules[i].free_bytes = g->page->granule_bytes;
    }
    WR_ADD(g->pool->books.age[0].whole, slice->extent_bytes);
    wr_pool_settle(g->pool, g->page, slice);
}

/* A part that is not: its addresses go to the bank. */
static void return_bare(growth *g, wr_slice *slice)
{
    wr_page_unlink(g->page, slice);
    wr_page_link(g->page, slice, &g->class->bank);
    wr_pool_merge(g->class->bare, &g->bank->cache, g->page, slice);
}

static wr_slice *split_off(growth *g, wr_slice *slice, uint64_t end)
{
    wr_slice *rest = wr_slab_pop(&g->bank->cache);
    wr_page_split(g->page, slice, end, rest);
    return rest;
}

/* The claimed slice falls into a moved part, a bare part and a new part, each maybe empty. */
static void settle_claimed(growth *g)
{
    wr_slice *slice = g->claimed;
    uint64_t bare_end = wr_slice_end(slice) - g->new_bytes;
    uint64_t bare_begin = slice->address + g->moved_bytes;
    if (bare_begin == bare_end) {
        enter_backed(g, slice);
        return;
    }
    wr_slice *bare = slice, *front = NULL, *back = NULL;
    if (g->moved_bytes > 0) {
        front = slice;
        bare = split_off(g, slice, bare_begin);
    }
    if (g->new_bytes > 0) {
        back = split_off(g, bare, bare_end);
    }
    return_bare(g, bare);
    if (front != NULL) {
        enter_backed(g, front);
    }
    if (back != NULL) {
        enter_backed(g, back);
    }
}

static void settle_books(growth *g)
{
    uint64_t granule = g->bank->granule_bytes;
    for (wr_slice_id id = g->moved; id != 0;) {
        wr_slice *slice = wr_slice_get(id);
        id = slice->held.link;
        WR_SUB(g->bank->transit, slice->extent_bytes);
        wr_bank_make_bare(g->bank, slice);
    }
    WR_ADD(g->class->pages, g->moved_bytes / granule);
    wr_bank_add_reserved(g->bank, g->class, g->new_bytes, g->new_bytes / granule);
}

static void settle(growth *g)
{
    wr_loot_keep(g->bank, &g->loot);
    lock_both(g);
    if (g->place.left != NULL) {
        wr_pool_settle(g->pool, g->page, g->place.left);
    }
    if (g->place.right != NULL) {
        wr_pool_settle(g->pool, g->page, g->place.right);
    }
    settle_claimed(g);
    settle_books(g);
    unlock_both(g);
}

weir_result wr_range_grow(wr_manager *manager, wr_pool *pool, uint64_t run_bytes)
{
    growth g = {.manager = manager,
                .bank = manager->bank,
                .pool = pool,
                .class = &manager->bank->classes[pool->number],
                .run_bytes = run_bytes};
    WR_TRY(start(&g));
    weir_result result = fill(&g);
    settle(&g);
    return result;
}
