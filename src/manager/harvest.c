/* SPDX-License-Identifier: MIT */
/* Harvest: unheld granules and pages whose time has passed, longest unheld first. */
#include "harvest.h"

#include "guard.h"
#include "probe.h"
#include "waits.h"

#include "base/memory.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define FEW 64u
#define SLACK_SHARE 10u /* of what a stream has, this part must be free */

/* A stretch of chunks of one age in one free slice. */
typedef struct stretch {
    uint64_t age;
    uint64_t begin, end;
    uint64_t run_bytes; /* of the slice; 0 where there are chunks */
    wr_slice_id slice;
    uint32_t pool;
} stretch;

typedef struct gather {
    wr_bank *bank;
    wr_manager *manager; /* NULL: the bank's pools */
    const wr_harvest *want;
    uint64_t now; /* tick */
    stretch *few; /* room for a few, which mostly do... */
    stretch *at;  /* ...until the host's memory is needed */
    size_t count, capacity;
    uint64_t bytes;
    uint64_t age_max;        /* nothing here can be older... */
    uint64_t oldest_bytes;   /* ...and so many of `bytes` are of that age */
    uint64_t age_seen;       /* the greatest one in the pool that is looked at */
    uint64_t above, below;   /* marks that may be taken: from one to before the other */
    uint64_t withheld_bytes; /* have passed, but not their guards */
    bool counting;           /* only `bytes` is wanted */
} gather;

static wr_pool *pool_of(const gather *g, uint32_t number)
{
    return g->manager != NULL ? &g->manager->pools[number]
                              : &g->bank->classes[number].bank;
}

static bool wants_pool(const gather *g, const wr_layout *layout)
{
    if (g->want->worn) {
        return layout->kind == WEIR_POOL_KIND_EXCLUSIVE;
    }
    return layout->granular ? !g->want->pages_only && !g->want->outdated_only
                            : !g->want->granules_only;
}

static uint64_t age_of(const gather *g, uint64_t mark)
{
    return (g->now - mark) & WR_TICK_MASK;
}

/* Room for one more; false: no host memory, and the stretch is left where it is. */
static bool has_room(gather *g)
{
    if (g->count < g->capacity) {
        return true;
    }
    if (g->at != g->few) {
        return wr_host_grow((void **)&g->at, &g->capacity, g->count + 1, sizeof *g->at);
    }
    void *more = NULL;
    size_t capacity = 0;
    if (!wr_host_grow(&more, &capacity, 4 * FEW, sizeof *g->at)) {
        return false;
    }
    memcpy(more, g->few, g->count * sizeof *g->at);
    g->at = more;
    g->capacity = capacity;
    return true;
}

static inline void add_stretch(gather *g, const stretch *s)
{
    if (s->begin == s->end) {
        return;
    }
    g->bytes += s->end - s->begin;
    g->oldest_bytes += s->age >= g->age_max ? s->end - s->begin : 0;
    if (!g->counting && has_room(g)) {
        g->at[g->count++] = *s;
    }
}

/* Whether the whole page is one that is wanted; by the way it is noted that it was met.
 */
static bool wants_page(const gather *g, wr_page *page)
{
    if (page->lifeline != NULL && !g->want->keeps_mapping &&
        !wr_lifeline_has_ended(page->lifeline)) {
        return false; /* another process has it */
    }
    if (g->want->outdated_only && !page->outdated) {
        return false;
    }
    if (g->want->passed_over && !page->passed_over) {
        page->passed_over = true;
        return false;
    }
    return !g->want->worn || page->wear >= WR_PAGE_WORN || ++page->wear >= WR_PAGE_WORN;
}

/* Whether granules with that mark are wanted: it has passed and is old enough. */
static bool wants_mark(gather *g, const wr_pool *pool, uint64_t mark, uint64_t bytes)
{
    if (!wr_moment_has_passed(pool->moment, mark) || age_of(g, mark) < g->want->min_age) {
        return false;
    }
    bool guarded = mark < g->above || mark >= g->below;
    g->withheld_bytes += guarded ? bytes : 0;
    return !guarded;
}

/* The granule behind the chunks from `first` on that have one mark. */
static uint32_t same_mark_end(const wr_page *page, uint32_t first, uint32_t end,
                              uint64_t *mark)
{
    uint32_t next = wr_page_chunk_end(page, first);
    *mark = page->marks[first];
    while (next < end && page->marks[next] == *mark) {
        next = wr_page_chunk_end(page, next);
    }
    return next;
}

/* Adds the whole chunks of a free slice; those of one age in a row are one stretch. */
static void gather_slice(gather *g, const wr_pool *pool, const wr_slice *slice)
{
    const wr_page *page = wr_page_get(slice->page);
    uint64_t at = slice->address;
    uint32_t first, end;
    wr_page_whole(page, at, slice->extent_bytes, &first, &end);
    if (page->granule_shift != 63) {
        at = wr_page_granule_address(page, first);
    }
    bool chunks = g->bank->properties.chunk_bytes != 0;
    stretch open = {.run_bytes = chunks ? 0 : slice->extent_bytes,
                    .slice = wr_slice_id_of(slice),
                    .pool = pool->number};
    while (first < end) {
        uint64_t mark, begin = at;
        uint32_t next = same_mark_end(page, first, end, &mark);
        at += (next - first) * page->granule_bytes;
        first = next;
        bool wanted = wants_mark(g, pool, mark, at - begin);
        uint64_t age = age_of(g, mark);
        g->age_seen = age > g->age_seen ? age : g->age_seen;
        if (!wanted || open.age != age || open.end != begin) {
            add_stretch(g, &open);
            open.begin = open.end = begin;
            open.age = age;
        }
        open.end = wanted ? at : begin;
    }
    add_stretch(g, &open);
}

/* Outdated pages are in no index; each is looked at through its page. */
static void gather_pages(gather *g, const wr_pool *pool)
{
    for (wr_page *page = pool->outdated; page != NULL; page = page->next_outdated) {
        const wr_slice *slice = wr_slice_get(page->granules[0].first);
        if (slice->state == WR_SLICE_STATE_FREE && slice->extent_bytes == page->bytes &&
            wants_page(g, page)) {
            gather_slice(g, pool, slice);
        }
    }
}

static uint64_t smallest_unit(const gather *g, const wr_layout *layout)
{
    return layout->granular ? g->bank->granule_bytes : WR_UNIT_BYTES;
}

static bool is_wanted(const gather *g, const wr_pool *pool)
{
    return wants_pool(g, pool->layout) && pool->index != &wr_index_none &&
           (g->want->only_class == 0 || g->want->only_class == pool->number + 1);
}

/* The greatest age that anything wanted can have. Whole pages are all looked at. */
static uint64_t greatest_age(const gather *g)
{
    uint64_t greatest = 0;
    for (uint32_t i = 0; i < g->bank->class_count; i++) {
        const wr_pool *pool = pool_of(g, i);
        if (is_wanted(g, pool)) {
            uint64_t age =
                pool->layout->granular ? age_of(g, pool->unheld_tick) : UINT64_MAX;
            greatest = age > greatest ? age : greatest;
        }
    }
    return greatest;
}

/* Whether looking further brings nothing that would be taken before what was found. Of
 * chunks nobody knows before which will fit. */
static bool has_enough(const gather *g)
{
    return !g->counting && g->bank->properties.chunk_bytes == 0 &&
           g->oldest_bytes >= g->want->at_most_bytes;
}

/* From the smallest free slice to the largest. */
static void gather_pool(gather *g, wr_pool *pool)
{
    g->age_seen = 0;
    gather_pages(g, pool);
    const wr_slice *slice = wr_index_find(pool->index, smallest_unit(g, pool->layout));
    for (; slice != NULL && !has_enough(g); slice = wr_index_next(pool->index, slice)) {
        wr_page *page = wr_page_get(slice->page);
        if (pool->layout->granular ||
            (slice->extent_bytes == page->bytes && wants_page(g, page))) {
            gather_slice(g, pool, slice);
        }
    }
    if (slice == NULL) {
        pool->unheld_tick = (g->now - g->age_seen) & WR_TICK_MASK;
    }
}

static void flush_kept(gather *g, wr_pool *pool)
{
    if (pool->kept != NULL && !g->counting && !g->want->outdated_only && !g->want->worn) {
        wr_sequence_begin(&g->manager->sequence);
        wr_pool_flush_kept(pool, WR_GET(g->bank->tick), g->want->min_age);
        wr_sequence_end(&g->manager->sequence);
    }
}

static void gather_all(gather *g)
{
    for (uint32_t i = 0; i < g->bank->class_count; i++) {
        flush_kept(g, pool_of(g, i));
    }
    g->age_max = greatest_age(g);
    for (uint32_t i = 0; i < g->bank->class_count && !has_enough(g); i++) {
        if (is_wanted(g, pool_of(g, i))) {
            gather_pool(g, pool_of(g, i));
        }
    }
}

/* Longest unheld first, then from the smallest run, which serves the fewest requests
 * (with chunks it says little, as they go whole), and from the top of the addresses. */
static int by_age(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    if (x->age != y->age) {
        return x->age > y->age ? -1 : 1;
    }
    if (x->run_bytes != y->run_bytes) {
        return x->run_bytes < y->run_bytes ? -1 : 1;
    }
    return x->begin > y->begin ? -1 : x->begin < y->begin;
}

/* High addresses first, so that what is left of a slice keeps its record. */
static int by_address(const void *a, const void *b)
{
    const stretch *x = a, *y = b;
    return x->begin > y->begin ? -1 : x->begin < y->begin;
}

static void swap(stretch *a, stretch *b)
{
    stretch c = *a;
    *a = *b;
    *b = c;
}

/* Moves what comes before the middle element to the front; returns how many and their
 * bytes. The middle element comes right behind them. */
static size_t partition(stretch *at, size_t count, uint64_t *bytes)
{
    size_t front = 0;
    *bytes = 0;
    swap(&at[count / 2], &at[count - 1]);
    for (size_t i = 0; i + 1 < count; i++) {
        if (by_age(&at[i], &at[count - 1]) < 0) {
            *bytes += at[i].end - at[i].begin;
            swap(&at[i], &at[front++]);
        }
    }
    swap(&at[front], &at[count - 1]);
    return front;
}

/* Brings the first stretches by age that hold `bytes` to the front (Hoare, "Find", 1961);
 * a sort would order the many that stay, too. */
static void select_first(stretch *at, size_t count, uint64_t bytes)
{
    while (count > 1) {
        uint64_t front_bytes;
        size_t front = partition(at, count, &front_bytes);
        uint64_t with_middle = front_bytes + at[front].end - at[front].begin;
        if (front_bytes >= bytes) {
            count = front;
        } else if (with_middle >= bytes) {
            return;
        } else {
            bytes -= with_middle;
            at += front + 1;
            count -= front + 1;
        }
    }
}

/* The bytes at the end of a stretch that come closest to `bytes` in whole chunks: not
 * more, or, to cover them, not less. */
static uint64_t cut_to(const gather *g, const stretch *s, uint64_t bytes)
{
    const wr_page *page = wr_page_get(wr_slice_get(s->slice)->page);
    uint64_t begin = s->end - bytes;
    uint32_t granule = wr_page_granule(page, begin);
    uint32_t first = wr_page_chunk_begin(page, granule);
    if (wr_page_granule_address(page, first) != begin && !g->want->cover) {
        first = wr_page_chunk_end(page, granule);
    }
    return s->end - wr_page_granule_address(page, first);
}

/* Keeps as many stretches as at_most_bytes allows; the last one may be cut short. Whole
 * pages that do not fit are passed over. */
static void limit_stretches(gather *g)
{
    if (g->bank->granule_bytes != 0) {
        select_first(g->at, g->count, g->want->at_most_bytes);
    } else {
        qsort(g->at, g->count, sizeof *g->at, by_age);
    }
    uint64_t left = g->want->at_most_bytes;
    size_t kept = 0;
    for (size_t i = 0; i < g->count && left > 0; i++) {
        stretch s = g->at[i];
        uint64_t bytes = s.end - s.begin;
        if (bytes > left && pool_of(g, s.pool)->layout->granular) {
            bytes = cut_to(g, &s, left);
            s.begin = s.end - bytes;
        }
        if (bytes > 0 && (bytes <= left || g->want->cover)) {
            left -= bytes < left ? bytes : left;
            g->at[kept++] = s;
        }
    }
    g->count = kept;
}

/* A few by insertion, as a library call for each of many harvests costs more. */
static void sort_by_address(stretch *at, size_t count)
{
    if (count > FEW / 4) {
        qsort(at, count, sizeof *at, by_address);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        stretch s = at[i];
        size_t to = i;
        for (; to > 0 && by_address(&s, &at[to - 1]) < 0; to--) {
            at[to] = at[to - 1];
        }
        at[to] = s;
    }
}

static void join_stretches(gather *g)
{
    sort_by_address(g->at, g->count);
    size_t kept = 0;
    for (size_t i = 0; i < g->count; i++) {
        if (kept > 0 && g->at[kept - 1].slice == g->at[i].slice &&
            g->at[kept - 1].begin == g->at[i].end) {
            g->at[kept - 1].begin = g->at[i].begin;
        } else {
            g->at[kept++] = g->at[i];
        }
    }
    g->count = kept;
}

/* Cuts one stretch out of its pool into transit; under the owner's lock and the bank's.
 * Only whole pages are outdated: a range is other owners' too, and not written. */
static void cut_stretch(gather *g, const stretch *s, wr_loot *loot)
{
    wr_pool *pool = pool_of(g, s->pool);
    wr_slice *free_slice = wr_slice_get(s->slice);
    wr_page *page = wr_page_get(free_slice->page);
    bool outdated = page->outdated;
    if (outdated) {
        wr_pool_forget_outdated(pool, page);
    }
    wr_slice *slice = wr_pool_cut(pool, free_slice, s->begin, s->end);
    if (outdated) {
        page->outdated = false;
    }
    wr_page_link(page, slice, &g->bank->classes[s->pool].bank);
    WR_ADD(g->bank->transit, slice->extent_bytes);
    slice->held.requested_bytes = g->manager != NULL ? wr_guard_settled_event(g->manager)
                                                     : wr_guard_bank_event(slice);
    slice->held.link = loot->first;
    loot->first = wr_slice_id_of(slice);
    loot->bytes += slice->extent_bytes;
}

static void cut_all(gather *g, wr_loot *loot)
{
    wr_slab_cache *cache = g->manager != NULL ? &g->manager->cache : &g->bank->cache;
    if (g->manager != NULL) {
        wr_sequence_begin(&g->manager->sequence);
        wr_bank_lock(g->bank);
    }
    for (size_t i = 0; i < g->count && wr_slab_fill(cache, WR_POOL_SPARES); i++) {
        cut_stretch(g, &g->at[i], loot);
    }
    if (g->manager != NULL) {
        wr_bank_unlock(g->bank);
        wr_sequence_end(&g->manager->sequence);
    }
}

/* The last few epochs' events are known; older epochs ended before any of them. What came
 * from the bank and was not touched has no epoch, and marks without one. */
static void limit_epochs(gather *g, uint64_t floor)
{
    const wr_manager *manager = g->manager;
    uint64_t epoch = manager->passed;
    for (uint32_t i = 0; i + 1 < WR_EPOCH_SLOTS && epoch > 0 &&
                         manager->epoch_event[epoch % WR_EPOCH_SLOTS] > floor;
         i++) {
        epoch--;
    }
    g->below = manager->epoch_event[epoch % WR_EPOCH_SLOTS] > floor
                   ? 0
                   : (epoch + 1) << WR_TICK_BITS;
    g->above = manager->borrowed_event > floor ? UINT64_C(1) << WR_TICK_BITS : 0;
}

/* Which marks may be taken: those that have passed and, if the memory is to be unmapped,
 * those that no stream of the device can still be at work on. */
static void limit_marks(gather *g, wr_loot *loot)
{
    const wr_manager *manager = g->manager;
    g->below = manager != NULL ? manager->moment.settled_below : UINT64_MAX;
    if (g->want->keeps_mapping || g->bank->options.trust_uses) {
        return;
    }
    uint64_t event =
        manager != NULL ? wr_guard_settled_event(manager) : g->bank->newest_event;
    uint64_t floor = wr_guard_floor(g->bank, manager, event, loot->withheld_by);
    if (floor >= event) {
        return;
    }
    if (manager == NULL) {
        g->below = (floor + 1) << WR_TICK_BITS;
    } else {
        limit_epochs(g, floor);
    }
}

/* A look without the lock: mostly streams have it all. */
static bool is_bank_empty(const wr_bank *bank)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < bank->class_count; i++) {
        bytes |= WR_GET(bank->classes[i].bank.books.free);
    }
    return bytes == 0;
}

void wr_harvest_take(wr_bank *bank, wr_manager *manager, const wr_harvest *want,
                     wr_loot *loot)
{
    if (want->at_most_bytes == 0 || (manager == NULL && is_bank_empty(bank))) {
        return;
    }
    stretch few[FEW];
    gather g = {.bank = bank,
                .manager = manager,
                .want = want,
                .now = WR_GET(bank->tick),
                .few = few,
                .at = few,
                .capacity = FEW};
    if (manager == NULL) {
        wr_bank_lock(bank);
    }
    limit_marks(&g, loot);
    gather_all(&g);
    loot->withheld_bytes += g.withheld_bytes;
    if (g.count > 0 && g.bytes > want->at_most_bytes) {
        limit_stretches(&g);
    }
    if (g.count > 0) {
        join_stretches(&g);
        cut_all(&g, loot);
    }
    if (manager == NULL) {
        wr_bank_unlock(bank);
    }
    if (g.at != few) {
        wr_host_free(g.at);
    }
}

uint64_t wr_harvest_count(wr_bank *bank, wr_manager *manager, const wr_harvest *want)
{
    gather g = {.bank = bank,
                .manager = manager,
                .want = want,
                .now = WR_GET(bank->tick),
                .below = UINT64_MAX,
                .counting = true};
    gather_all(&g);
    return g.bytes;
}

static bool books_have_slack(const wr_books *books)
{
    uint64_t unheld = WR_GET(books->free) + WR_GET(books->limbo);
    return unheld > 0 && unheld >= WR_GET(books->reserved) / SLACK_SHARE;
}

bool wr_manager_has_slack(const wr_manager *manager, uint32_t number)
{
    if (number != UINT32_MAX) {
        return books_have_slack(&manager->pools[number].books);
    }
    bool slack = false;
    for (uint32_t i = 0; i < manager->bank->class_count && !slack; i++) {
        const wr_pool *pool = &manager->pools[i];
        slack = pool->layout->granular && books_have_slack(&pool->books);
    }
    return slack;
}

/* Whether a stream other than the one that asks is to be looked at. */
static bool wants_manager(const wr_harvest *want, const wr_manager *manager)
{
    return !want->from_slack || wr_manager_has_slack(manager, want->only_class - 1);
}

/* From one manager, after finding out how far its work has come. */
static void take_settled(wr_bank *bank, wr_manager *manager, const wr_harvest *want,
                         bool fence, wr_loot *loot)
{
    wr_harvest left = *want;
    left.at_most_bytes = want->at_most_bytes - loot->bytes;
    wr_manager_lock(manager);
    wr_waits_catch_up(manager, fence);
    if (!manager->capturing) {
        wr_harvest_take(bank, manager, &left, loot);
    }
    wr_manager_unlock(manager);
}

void wr_harvest_take_all(wr_bank *bank, wr_manager *first, const wr_harvest *want,
                         bool fence, wr_loot *loot)
{
    wr_harvest left = *want;
    left.at_most_bytes = want->at_most_bytes - loot->bytes;
    if (!want->keeps_mapping) { /* else it is where it shall go */
        wr_harvest_take(bank, NULL, &left, loot);
    }
    if (first != NULL && loot->bytes < want->at_most_bytes) {
        take_settled(bank, first, want, fence, loot);
    }
    uint32_t slot = 0;
    wr_manager *manager;
    while (loot->bytes < want->at_most_bytes &&
           (manager = wr_manager_next(bank, &slot)) != NULL) {
        if (manager != first && wants_manager(want, manager)) {
            take_settled(bank, manager, want, fence, loot);
        }
        wr_manager_unpin(manager);
    }
}

/* ---- loot ---- */

wr_class *wr_bank_class_of(wr_bank *bank, const wr_slice *slice)
{
    return &bank->classes[slice->pool->number];
}

void wr_bank_make_bare(wr_bank *bank, wr_slice *slice)
{
    wr_class *class = wr_bank_class_of(bank, slice);
    wr_page *page = wr_page_get(slice->page);
    if (!class->layout.granular) {
        wr_page **link =
            page->previous == NULL ? &class->whole_pages : &page->previous->next;
        *link = page->next;
        if (page->next != NULL) {
            page->next->previous = page->previous;
        }
        wr_slab_push(&bank->cache, slice);
        WR_SUB(class->reserved, page->bytes);
        wr_page_destroy(page);
        WR_SUB(class->pages, 1);
        return;
    }
    wr_page_set_chunks(page, slice->address, slice->extent_bytes, 0);
    WR_SUB(class->reserved, slice->extent_bytes);
    WR_SUB(class->pages, slice->extent_bytes / bank->granule_bytes);
    slice->state = WR_SLICE_STATE_BARE;
    wr_pool_merge(class->bare, &bank->cache, page, slice);
}

/* Takes a slice of loot out of its place in the bank's spans, for adoption elsewhere. */
static void keep_slice(wr_bank *bank, wr_slice *slice)
{
    wr_class *class = wr_bank_class_of(bank, slice);
    wr_page_unlink(wr_page_get(slice->page), slice);
    WR_SUB(bank->transit, slice->extent_bytes);
    wr_guard_stamp_bank(bank, slice->held.requested_bytes);
    wr_pool_adopt(&class->bank, slice);
}

static weir_result give_back_slice(wr_bank *bank, const wr_slice *slice)
{
    const wr_class *class = wr_bank_class_of(bank, slice);
    const weir_driver_table *table = bank->table;
    if (class->layout.granular) {
        WR_COUNT(bank->events.decommits);
        return table->decommit(bank->driver, slice->address, slice->extent_bytes);
    }
    WR_COUNT(bank->events.page_frees);
    return table->page_free(bank->driver, slice->address, slice->extent_bytes);
}

uint64_t wr_loot_give_back(wr_bank *bank, wr_loot *loot)
{
    uint64_t returned = 0;
    if (loot->first == 0 || !wr_barrier_enter(&bank->barrier)) {
        wr_loot_keep(bank, loot);
        return 0;
    }
    wr_slice_id id = loot->first;
    if (id != 0) {
        wr_probe_driver(bank);
    }
    while (id != 0) {
        wr_slice *slice = wr_slice_get(id);
        uint64_t bytes = slice->extent_bytes;
        id = slice->held.link;
        weir_result result = give_back_slice(bank, slice);
        wr_bank_lock(bank);
        if (result == WEIR_OK || result == WEIR_DEVICE_LOST) {
            WR_SUB(bank->transit, bytes);
            WR_SUB(bank->reserved, bytes);
            wr_bank_class_of(bank, slice)->returned_idle += loot->by_time ? bytes : 0;
            wr_bank_make_bare(bank, slice);
            returned += bytes;
        } else {
            keep_slice(bank, slice);
        }
        wr_bank_unlock(bank);
    }
    wr_barrier_leave(&bank->barrier);
    loot->first = 0;
    loot->bytes = 0;
    if (WR_GET(bank->parked) != 0 && wr_bank_pending(bank) > 0) {
        bank->wake(bank); /* the driver may need time, and nobody else calls */
    }
    return returned;
}

void wr_loot_keep(wr_bank *bank, wr_loot *loot)
{
    wr_bank_lock(bank);
    for (wr_slice_id id = loot->first; id != 0;) {
        wr_slice *slice = wr_slice_get(id);
        id = slice->held.link;
        keep_slice(bank, slice);
    }
    wr_bank_unlock(bank);
    loot->first = 0;
    loot->bytes = 0;
}
