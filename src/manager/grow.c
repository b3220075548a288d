/* SPDX-License-Identifier: MIT */
/* Growth by the bank, by lending, and by whole pages; ranges with granules are in
 * range.c. */
#include "grow.h"

#include "guard.h"
#include "harvest.h"
#include "probe.h"
#include "promise.h"
#include "range.h"
#include "shared.h"
#include "waits.h"

#include "base/result.h"

#include <stddef.h>

#define MIB (UINT64_C(1) << 20)
#define LEND_CANDIDATES 16
#define LEND_REQUESTS 32u /* granules for so many such requests at once, if there */
/* New memory before lending: once for so many borrowings of a pool in so many requests,
 * while reserved is less than so many twelfths above the peak of in_use, in chunks so
 * many. A chunk goes from stream to stream as a whole, and only when nobody holds any of
 * it; and where chunks are, asking a stream how far it has come may cost a microsecond.
 * So streams need more of their own. */
#define SPEND_BORROWINGS 16u
#define SPEND_REQUESTS 1024u
#define SPEND_TWELFTHS 1u
#define SPEND_TWELFTHS_IN_CHUNKS 8u
#define SHARING_ALLOCATIONS 256u

uint64_t wr_request_run_bytes(const wr_request *request)
{
    uint64_t slack = request->alignment_bytes > WR_UNIT_BYTES
                         ? request->alignment_bytes - WR_UNIT_BYTES
                         : 0;
    return request->extent_bytes + slack;
}

bool wr_grow_prepare(wr_manager *manager, wr_pool *pool)
{
    return wr_pool_open(pool) && wr_slab_fill(&manager->cache, 2 * WR_POOL_SPARES);
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- unheld runs ---- */

/* Whether all that the owner of a pool has unheld has passed. */
static bool has_all_passed(const wr_pool *pool)
{
    const wr_manager *manager = pool->manager;
    return manager == NULL || (!manager->dirty && manager->passed + 1 == manager->epoch);
}

/* The granule behind the chunks from `at` on that hold `enough` bytes, at most `end`. */
static uint32_t end_of_enough(const wr_page *page, uint32_t at, uint32_t end,
                              uint64_t enough)
{
    uint64_t count = (enough + page->granule_bytes - 1) / page->granule_bytes;
    return count < end - at ? wr_page_chunk_end(page, at + (uint32_t)count - 1) : end;
}

/* The longest stretch of chunks that has passed in a free slice, or one that has `enough`
 * bytes; 0 if none. */
static uint64_t passed_stretch(const wr_pool *pool, const wr_slice *slice,
                               uint64_t enough, uint64_t *begin_out)
{
    const wr_page *page = wr_page_get(slice->page);
    uint32_t at, end, next;
    uint64_t best = 0;
    wr_page_whole(page, slice->address, slice->extent_bytes, &at, &end);
    if (at < end && has_all_passed(pool)) {
        *begin_out = wr_page_granule_address(page, at);
        return (end_of_enough(page, at, end, enough) - at) * page->granule_bytes;
    }
    for (uint32_t begin = at; at < end && best < enough; at = next) {
        next = wr_page_chunk_end(page, at);
        if (!wr_moment_has_passed(pool->moment, page->marks[at])) {
            begin = next;
        } else if ((next - begin) * page->granule_bytes > best) {
            best = (next - begin) * page->granule_bytes;
            *begin_out = wr_page_granule_address(page, begin);
        }
    }
    return best;
}

/* Whether a page of the lender is one that this pool would use. */
static bool fits_layout(const wr_pool *pool, const wr_slice *slice, uint64_t run_bytes,
                        bool loose)
{
    const wr_layout *layout = pool->layout;
    const wr_page *page = wr_page_get(slice->page);
    if (layout->shared || slice->extent_bytes != page->bytes || page->outdated) {
        return false;
    }
    if (layout->exact) {
        return page->bytes == run_bytes;
    }
    if (layout->kind == WEIR_POOL_KIND_ADAPTIVE) {
        return page->bytes == pool->demand_bytes;
    }
    return loose || layout->slack_shift == 0 ||
           page->bytes <= run_bytes + (run_bytes >> layout->slack_shift);
}

/* The tightest page of `lender` that fits and has passed, all of it. */
static wr_slice *find_page(const wr_pool *lender, const wr_pool *pool, uint64_t run_bytes,
                           bool loose, uint64_t *begin, uint64_t *end)
{
    wr_slice *slice = wr_index_find(lender->index, run_bytes);
    for (int i = 0; i < LEND_CANDIDATES && slice != NULL; i++) {
        if (fits_layout(pool, slice, run_bytes, loose) &&
            passed_stretch(lender, slice, slice->extent_bytes, begin) != 0) {
            *end = *begin + slice->extent_bytes;
            return slice;
        }
        slice = wr_index_next(lender->index, slice);
    }
    return NULL;
}

/* The largest run of `lender` that has passed, which serves the next requests, too: a
 * slice and the part of it to take. */
static wr_slice *find_run(const wr_pool *lender, const wr_pool *pool, uint64_t run_bytes,
                          bool loose, uint64_t *begin, uint64_t *end)
{
    if (!pool->layout->granular) {
        return find_page(lender, pool, run_bytes, loose, begin, end);
    }
    uint64_t wanted = round_up(run_bytes, pool->granule_bytes);
    wr_slice *slice =
        wr_index_find_below(lender->index, WR_GET(lender->books.free) + WR_UNIT_BYTES);
    for (int i = 0; i < LEND_CANDIDATES && slice != NULL && slice->extent_bytes >= wanted;
         i++) {
        uint64_t passed = passed_stretch(lender, slice, LEND_REQUESTS * wanted, begin);
        if (passed >= wanted) {
            *end = *begin + passed;
            return slice;
        }
        slice = wr_index_next_below(lender->index, slice);
    }
    return NULL;
}

/* Under both locks: moves a run from the bank into the pool. */
static bool take_from_bank(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                           bool loose)
{
    wr_bank *bank = manager->bank;
    wr_pool *lender = &bank->classes[pool->number].bank;
    uint64_t begin = 0, end = 0;
    wr_slice *slice = find_run(lender, pool, run_bytes, loose, &begin, &end);
    if (slice == NULL || !wr_slab_fill(&bank->cache, WR_POOL_SPARES)) {
        return false;
    }
    wr_pool_set_range(pool, lender->range);
    slice = wr_pool_cut(lender, slice, begin, end);
    wr_guard_borrow(manager, slice);
    wr_pool_adopt(pool, slice);
    return true;
}

/* A look without its lock. */
static bool bank_has(const wr_bank *bank, uint32_t number, uint64_t run_bytes)
{
    return WR_GET(bank->classes[number].bank.books.free) >= run_bytes;
}

bool wr_grow_from_bank(wr_manager *manager, wr_pool *pool, uint64_t run_bytes, bool loose)
{
    wr_bank *bank = manager->bank;
    wr_manager_lock(manager);
    bool taken = false;
    if (wr_grow_prepare(manager, pool)) {
        wr_sequence_begin(&manager->sequence);
        wr_bank_lock(bank);
        taken = take_from_bank(manager, pool, run_bytes, loose);
        wr_bank_unlock(bank);
        wr_sequence_end(&manager->sequence);
    }
    wr_manager_unlock(manager);
    return taken;
}

/* Under the lender's lock: a run of its that fits `pool`, with spares to cut it. */
static wr_slice *find_to_lend(wr_manager *lender, const wr_pool *pool, uint64_t run_bytes,
                              bool loose, uint64_t *begin, uint64_t *end)
{
    const wr_pool *from = &lender->pools[pool->number];
    wr_slice *slice = find_run(from, pool, run_bytes, loose, begin, end);
    if (slice == NULL && lender->has_queued) {
        /* What it has free may not have passed: for a while, let it pass sooner. */
        lender->sharing = SHARING_ALLOCATIONS;
    }
    return slice != NULL && wr_slab_fill(&lender->cache, WR_POOL_SPARES) ? slice : NULL;
}

/* Under the lender's lock: moves one fitting run into the bank. */
static bool lend(wr_manager *lender, const wr_pool *pool, uint64_t run_bytes, bool loose)
{
    wr_bank *bank = lender->bank;
    wr_pool *from = &lender->pools[pool->number];
    uint64_t begin = 0, end = 0;
    wr_slice *slice = find_to_lend(lender, pool, run_bytes, loose, &begin, &end);
    if (slice == NULL) {
        return false;
    }
    wr_sequence_begin(&lender->sequence);
    wr_bank_lock(bank);
    wr_guard_stamp_bank(bank, wr_guard_settled_event(lender));
    wr_pool_adopt(&bank->classes[pool->number].bank,
                  wr_pool_cut(from, slice, begin, end));
    wr_bank_unlock(bank);
    wr_sequence_end(&lender->sequence);
    WR_COUNT(bank->events.lends);
    return true;
}

/* Whether the manager has unheld memory of that class that may have passed, and slack. */
static bool may_lend(const wr_manager *manager, uint32_t number, uint64_t run_bytes,
                     bool loose)
{
    const wr_books *books = &manager->pools[number].books;
    return (WR_GET(books->free) >= run_bytes || WR_GET(books->limbo) >= run_bytes) &&
           (loose || wr_manager_has_slack(manager, number));
}

/* Under both managers' locks: moves a run of the lender into the pool. */
static bool hand_over(wr_manager *lender, wr_pool *pool, uint64_t run_bytes, bool loose)
{
    wr_manager *manager = pool->manager;
    wr_bank *bank = lender->bank;
    wr_pool *from = &lender->pools[pool->number];
    uint64_t begin = 0, end = 0;
    wr_slice *slice = find_to_lend(lender, pool, run_bytes, loose, &begin, &end);
    if (slice == NULL) {
        return false;
    }
    uint64_t event = wr_guard_settled_event(lender);
    wr_sequence_begin(&lender->sequence);
    wr_sequence_begin(&manager->sequence);
    wr_bank_lock(bank);
    wr_pool_set_range(pool, from->range);
    wr_pool_adopt(pool, wr_pool_cut(from, slice, begin, end));
    wr_guard_borrow_until(manager, event);
    wr_bank_unlock(bank);
    wr_sequence_end(&manager->sequence);
    wr_sequence_end(&lender->sequence);
    WR_COUNT(bank->events.lends);
    return true;
}

/* Under the roster's lock: the stream that has most unheld, which will miss it least;
 * where all have little of their own that is the one that was just at work, and it will.
 */
static wr_manager *richest(const wr_manager *manager, const wr_pool *pool)
{
    const wr_bank *bank = manager->bank;
    wr_manager *found = NULL;
    uint64_t most = 0;
    for (uint32_t i = 0; i < bank->roster_count && pool->in_chunks; i++) {
        wr_manager *other = bank->roster[i];
        uint64_t free = other == NULL ? 0 : WR_GET(other->pools[pool->number].books.free);
        if (free > most && other != manager) {
            most = free;
            found = other;
        }
    }
    return found;
}

/* The next stream that may have something to lend, pinned: in chunks the richest, then
 * the others in their turn. `*step` counts them round from the manager's own place. */
static wr_manager *next_lender(const wr_manager *manager, const wr_pool *pool,
                               uint64_t run_bytes, bool loose, uint32_t *step)
{
    wr_bank *bank = manager->bank;
    wr_manager *found = NULL;
    wr_lock_take(&bank->roster_lock);
    uint32_t count = bank->roster_count;
    while (found == NULL && *step < count) {
        uint32_t slot = manager->slot + *step;
        wr_manager *lender = *step == 0
                                 ? richest(manager, pool)
                                 : bank->roster[slot < count ? slot : slot - count];
        ++*step;
        if (lender != NULL && may_lend(lender, pool->number, run_bytes, loose)) {
            found = lender;
            found->pins++;
        }
    }
    wr_lock_leave(&bank->roster_lock);
    return found;
}

/* Borrowings count together while the first of them is at most SPEND_REQUESTS requests
 * ago. Any thread. */
static bool counts_borrowings(const wr_pool *pool)
{
    return WR_GET(pool->books.entered) - WR_GET(pool->borrowings_from) <= SPEND_REQUESTS;
}

static void note_borrowing(wr_pool *pool)
{
    if (!counts_borrowings(pool)) {
        WR_PUT(pool->borrowings_from, WR_OWN(pool->books.entered));
        WR_PUT(pool->borrowings, 0);
    }
    WR_ADD(pool->borrowings, 1);
}

bool wr_grow_by_borrowing(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                          bool loose, bool *busy)
{
    wr_bank *bank = manager->bank;
    bool taken = false;
    uint32_t step = 0;
    wr_manager *lender;
    if (bank_has(bank, pool->number, run_bytes)) {
        wr_sequence_begin(&manager->sequence);
        wr_bank_lock(bank);
        taken = take_from_bank(manager, pool, run_bytes, loose);
        wr_bank_unlock(bank);
        wr_sequence_end(&manager->sequence);
    }
    while (!taken &&
           (lender = next_lender(manager, pool, run_bytes, loose, &step)) != NULL) {
        if (wr_manager_try_lock(lender)) {
            wr_waits_catch_up(lender, true);
            taken = !lender->capturing && hand_over(lender, pool, run_bytes, loose);
            wr_manager_unlock(lender);
        } else {
            *busy = true;
        }
        wr_manager_unpin(lender);
    }
    if (taken) {
        note_borrowing(pool);
    }
    return taken;
}

bool wr_grow_spends(const wr_manager *manager, const wr_pool *pool, uint64_t run_bytes)
{
    const wr_bank *bank = manager->bank;
    if (WR_GET(pool->borrowings) < SPEND_BORROWINGS || !counts_borrowings(pool) ||
        !pool->layout->granular) {
        return false;
    }
    uint64_t peak = WR_GET(bank->peak_in_use);
    uint64_t twelfths = pool->in_chunks ? SPEND_TWELFTHS_IN_CHUNKS : SPEND_TWELFTHS;
    return WR_GET(bank->reserved) + round_up(run_bytes, pool->granule_bytes) <=
           peak + peak / 12 * twelfths;
}

bool wr_grow_from_others(wr_manager *manager, wr_pool *pool, uint64_t run_bytes)
{
    bool busy = false;
    bool taken = manager->bank->roster_count > 1 && pool->layout->granular &&
                 !wr_grow_spends(manager, pool, run_bytes) &&
                 wr_grow_prepare(manager, pool) &&
                 wr_grow_by_borrowing(manager, pool, run_bytes, false, &busy);
    wr_slab_trim_above(&manager->cache);
    return taken;
}

bool wr_grow_by_lending(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                        bool loose)
{
    uint32_t step = 0;
    bool lent = false;
    wr_manager *lender;
    while (!lent &&
           (lender = next_lender(manager, pool, run_bytes, loose, &step)) != NULL) {
        wr_manager_lock(lender);
        wr_waits_catch_up(lender, true);
        lent = !lender->capturing && lend(lender, pool, run_bytes, loose);
        wr_manager_unlock(lender);
        wr_manager_unpin(lender);
    }
    return lent && wr_grow_from_bank(manager, pool, run_bytes, loose);
}

/* Whether any other stream has memory of that class worth pooling. */
static bool others_have_slack(const wr_manager *manager, uint32_t number)
{
    wr_bank *bank = manager->bank;
    bool slack = false;
    wr_lock_take(&bank->roster_lock);
    for (uint32_t i = 0; i < bank->roster_count && !slack; i++) {
        const wr_manager *other = bank->roster[i];
        slack = other != NULL && other != manager && wr_manager_has_slack(other, number);
    }
    wr_lock_leave(&bank->roster_lock);
    return slack;
}

bool wr_grow_by_pooling(wr_manager *manager, wr_pool *pool, uint64_t run_bytes)
{
    wr_bank *bank = manager->bank;
    if (!pool->layout->granular || bank->roster_count < 2 ||
        !others_have_slack(manager, pool->number)) {
        return false;
    }
    wr_harvest want = {.at_most_bytes = UINT64_MAX,
                       .only_class = pool->number + 1,
                       .from_slack = true,
                       .keeps_mapping = true};
    wr_loot loot = {0};
    wr_harvest_take_all(bank, manager, &want, false, &loot);
    wr_loot_keep(bank, &loot);
    return wr_grow_from_bank(manager, pool, run_bytes, false);
}

/* ---- whole pages ---- */

/* The size of the next page; adaptive pools grow with the largest request, arenas follow
 * a decaying measure of what is asked. */
static uint64_t page_bytes_for(const wr_pool *pool, uint64_t run_bytes)
{
    const wr_layout *layout = pool->layout;
    if (layout->page_bytes != 0) {
        return layout->page_bytes;
    }
    if (layout->shared) {
        return wr_shared_page_bytes(pool->manager->bank, run_bytes);
    }
    if (layout->whole || layout->exact) {
        return round_up(run_bytes, WR_UNIT_BYTES);
    }
    if (layout->kind == WEIR_POOL_KIND_ADAPTIVE) {
        uint64_t floor = pool->demand_bytes != 0 ? pool->demand_bytes : 2 * MIB;
        return run_bytes <= floor ? floor : round_up(run_bytes + MIB, MIB);
    }
    uint64_t page = 4 * MIB;
    while (page < 4 * pool->demand_bytes && page < 64 * MIB) {
        page *= 2;
    }
    return page < run_bytes ? round_up(run_bytes, WR_UNIT_BYTES) : page;
}

uint64_t wr_grow_least_bytes(const wr_pool *pool, const wr_request *request)
{
    uint64_t run_bytes = wr_request_run_bytes(request);
    if (pool->layout->whole) {
        return page_bytes_for(pool, run_bytes);
    }
    return pool->layout->exact ? run_bytes : request->extent_bytes;
}

/* Under the lock, before a page is asked for. */
static uint64_t plan_page(wr_pool *pool, uint64_t run_bytes)
{
    if (pool->layout->kind == WEIR_POOL_KIND_ARENA) {
        uint64_t decayed = pool->demand_bytes - pool->demand_bytes / 8;
        pool->demand_bytes = run_bytes > decayed ? run_bytes : decayed;
    }
    return page_bytes_for(pool, run_bytes);
}

/* Adaptive: pages of the old size serve no new requests once there is one of a new size.
 */
static void outdate_pages(wr_pool *pool, wr_page *pages, uint64_t page_bytes)
{
    for (wr_page *page = pages; page != NULL; page = page->next) {
        if (page->granules[0].owner == pool && page->bytes != page_bytes &&
            !page->outdated) {
            wr_pool_outdate(pool, page);
        }
    }
}

void wr_grow_enter_page(wr_manager *manager, wr_pool *pool, wr_page *page,
                        wr_slice *slice)
{
    wr_bank *bank = manager->bank;
    wr_class *class = &bank->classes[pool->number];
    slice->address = page->address;
    slice->extent_bytes = page->bytes;
    slice->page = page->id;
    page->single_mark = WR_OWN(bank->tick) & WR_TICK_MASK;
    if (pool->layout->kind == WEIR_POOL_KIND_ADAPTIVE &&
        pool->demand_bytes != page->bytes) {
        outdate_pages(pool, class->whole_pages, page->bytes);
        pool->demand_bytes = page->bytes;
    }
    page->next = class->whole_pages;
    page->previous = NULL;
    if (page->next != NULL) {
        page->next->previous = page;
    }
    class->whole_pages = page;
    wr_pool_adopt(pool, slice);
    wr_bank_add_reserved(bank, class, page->bytes, 1);
}

/* Before the driver is asked: unheld pages of at least the same bytes go back first, if
 * they did not serve the last such request either, so that sizes that no longer come do
 * not add up. */
static void make_room(wr_manager *manager, const wr_pool *pool, uint64_t page_bytes)
{
    if (pool->layout->kind != WEIR_POOL_KIND_ARENA) {
        return;
    }
    wr_harvest want = {.at_most_bytes = page_bytes,
                       .cover = true,
                       .pages_only = true,
                       .passed_over = true};
    wr_loot loot = {0};
    wr_harvest_take_all(manager->bank, manager, &want, false, &loot);
    atomic_fetch_add_explicit(&manager->bank->events.periodic_bytes,
                              wr_loot_give_back(manager->bank, &loot),
                              memory_order_relaxed);
}

weir_result wr_grow_promise(wr_bank *bank, wr_class *class, uint64_t bytes, bool *full)
{
    WR_TRY(wr_class_promise(bank, class, bytes, full));
    weir_result result = wr_bank_promise(bank, bytes);
    if (result != WEIR_OK) {
        wr_lock_take(&bank->lock);
        class->promised -= bytes;
        wr_lock_leave(&bank->lock);
    }
    return result;
}

/* A page of the driver, and the record of its slice. The books come first, so that
 * nothing has to be given back. */
static weir_result take_page(wr_bank *bank, uint64_t page_bytes, bool shared,
                             wr_page **page_out, wr_slab_cache *spares)
{
    wr_page *page =
        wr_slab_fill(spares, 1) ? wr_page_create(0, page_bytes, 0, NULL) : NULL;
    if (page == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a page's books");
    }
    WR_COUNT(bank->events.page_allocs);
    weir_result result =
        shared ? bank->table->share_alloc(bank->driver, page_bytes, &page->address)
               : bank->table->page_alloc(bank->driver, page_bytes, &page->address);
    if (result != WEIR_OK) {
        wr_page_destroy(page);
        return result;
    }
    *page_out = page;
    return WEIR_OK;
}

static weir_result grow_page(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                             bool tidy, bool *full)
{
    wr_bank *bank = manager->bank;
    wr_class *class = &bank->classes[pool->number];
    wr_manager_lock(manager);
    bool prepared = wr_grow_prepare(manager, pool);
    uint64_t page_bytes = prepared ? plan_page(pool, run_bytes) : 0;
    wr_manager_unlock(manager);
    if (!prepared) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a page's books");
    }
    if (tidy) {
        make_room(manager, pool, page_bytes);
    }
    WR_TRY(wr_grow_promise(bank, class, page_bytes, full));
    wr_slab_cache spares = {0};
    wr_page *page = NULL;
    weir_result result =
        take_page(bank, page_bytes, pool->layout->shared, &page, &spares);
    wr_manager_lock(manager);
    wr_sequence_begin(&manager->sequence);
    wr_bank_lock(bank);
    bank->promised -= page_bytes;
    class->promised -= page_bytes;
    if (result == WEIR_OK) {
        wr_grow_enter_page(manager, pool, page, wr_slab_pop(&spares));
    }
    wr_bank_unlock(bank);
    wr_sequence_end(&manager->sequence);
    wr_manager_unlock(manager);
    wr_slab_trim(&spares, 0);
    return result;
}

weir_result wr_grow_from_driver(wr_manager *manager, wr_pool *pool, uint64_t run_bytes,
                                bool tidy, bool *full)
{
    *full = false;
    wr_probe_driver(manager->bank);
    return pool->layout->granular ? wr_range_grow(manager, pool, run_bytes, full)
                                  : grow_page(manager, pool, run_bytes, tidy, full);
}

bool wr_grow_by_spending(wr_manager *manager, wr_pool *pool, uint64_t run_bytes)
{
    wr_probe_driver(manager->bank);
    WR_PUT(pool->borrowings, 0);
    return wr_range_grow_new(manager, pool, run_bytes);
}
