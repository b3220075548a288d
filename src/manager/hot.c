/* SPDX-License-Identifier: MIT */
/* The two paths that nearly every call takes. Each is one function that calls nothing: it
 * does the common case from top to bottom, and whatever else turns up leaves it for good,
 * by a call that is its last act and does all that is left to do. So compilers keep
 * everything in registers that nobody has to save.
 *
 *      create    lock - route - first bin - a slice alone in it? - cut its front off -
 *                books - the run into the bin of what is left of it - unlock
 *      release   lock - books - marks - merge with free neighbours that lie in no tree's
 *                depths - the run into its bin - unlock
 *
 * The run that is cut, or grows, keeps its record. Runs that come to a bin with a tree,
 * or leave one where subtrees must be merged, are for the functions of index.c.
 *
 * A request is hot when nothing waits to be looked at, and its pool just cuts. Guard: the
 * manager's lock, which is taken here; sequences as in manager.h. */
#include "hot.h"

#include "grow.h"
#include "handle.h"
#include "range.h"
#include "waits.h"

/* The last act of a path: never inlined. */
#define AWAY __attribute__((noinline))

static inline bool is_of_interest(const wr_manager *manager, uint64_t in_use)
{
    return in_use > manager->heed_above || in_use < manager->publish_below;
}

WR_INLINE void leave(wr_manager *manager)
{
    wr_sequence_end(&manager->sequence);
    wr_manager_unlock(manager);
}

/* The same when in_use may be of interest. */
static AWAY void leave_heeding(wr_manager *manager)
{
    if (is_of_interest(manager, WR_OWN(manager->in_use))) {
        wr_manager_heed(manager);
    }
    leave(manager);
}

/* ---- create ---- */

/* A record whose generations have run out makes way for a fresh one. */
static WR_COLD wr_slice *retire_record(wr_manager *manager, wr_slice *slice)
{
    while (wr_word_generation(atomic_load(&slice->word)) == 0 &&
           manager->cache.count > 0) {
        wr_slice *fresh = wr_slab_pop(&manager->cache);
        wr_page_replace(wr_page_get(slice->page), slice, fresh);
        slice = fresh;
    }
    return slice;
}

static inline uint64_t word_of(const wr_slice *slice)
{
    return atomic_load_explicit(&slice->word, memory_order_relaxed);
}

/* What every slice goes through that comes to be held. */
WR_INLINE void enter(wr_pool *pool, wr_slice *slice, uint64_t bytes, uint64_t tag)
{
    slice->state = WR_SLICE_STATE_HELD;
    slice->alignment_shift = 0;
    slice->tag = (uint16_t)tag;
    slice->held.requested_bytes = bytes;
    slice->held.uses = 0;
    WR_ADD(pool->books.in_use, bytes);
    WR_ADD(pool->books.entered, 1);
}

wr_slice *wr_hot_enter(wr_manager *manager, wr_pool *pool, wr_slice *slice,
                       uint64_t bytes, uint64_t tag, uint64_t charged_bytes)
{
    if (WR_UNLIKELY(wr_word_generation(word_of(slice)) == 0)) {
        slice = retire_record(manager, slice);
    }
    enter(pool, slice, bytes, tag);
    WR_ADD(manager->in_use, bytes);
    if (WR_LIKELY(tag != 0)) { /* as below */
        wr_tags_enter(wr_tags_get(manager->bank, tag),
                      slice->extent_bytes - charged_bytes, bytes);
    }
    if (bytes > WR_OWN(pool->books.largest)) {
        WR_PUT(pool->books.largest, bytes);
        wr_pool_heed(pool);
    }
    if (is_of_interest(manager, WR_OWN(manager->in_use))) {
        wr_manager_heed(manager);
    }
    return slice;
}

static inline uint64_t round_up(uint64_t bytes)
{
    return (bytes + WR_UNIT_BYTES - 1) & ~(WR_UNIT_BYTES - 1);
}

/* With no lock held: by all means there are. */
static AWAY weir_result create_slowly(wr_manager *manager, uint64_t bytes, uint64_t tag,
                                      weir_buffer *buffer)
{
    wr_slice *slice = NULL;
    wr_request request = {
        .requested_bytes = bytes, .extent_bytes = round_up(bytes), .tag = (uint16_t)tag};
    weir_result result = wr_manager_reserve(manager, &request, &slice);
    if (result == WEIR_OK) {
        *buffer = wr_handle_hand_out(slice, 1);
    }
    return result;
}

/* Under the lock, in a step of its sequence, and both end here. */
WR_INLINE weir_result end_create(wr_manager *manager, wr_pool *pool, wr_slice *slice,
                                 uint64_t bytes, uint64_t tag, weir_buffer *buffer)
{
    slice = wr_hot_enter(manager, pool, slice, bytes, tag, 0);
    *buffer = wr_handle_hand_out(slice, 1);
    wr_sequence_end(&manager->sequence);
    wr_manager_unlock(manager);
    return WEIR_OK;
}

/* Under the lock, which it leaves: the pool has nothing. Another stream may. */
static AWAY weir_result create_by_borrowing(wr_manager *manager, uint64_t bytes,
                                            uint64_t tag, weir_buffer *buffer,
                                            wr_pool *pool)
{
    uint64_t extent_bytes = round_up(bytes);
    if (!wr_grow_from_others(manager, pool, extent_bytes)) {
        wr_manager_unlock(manager);
        return create_slowly(manager, bytes, tag, buffer);
    }
    wr_sequence_begin(&manager->sequence);
    wr_slice *slice = wr_pool_try_reserve(pool, extent_bytes);
    WR_ASSERT(slice != NULL);
    return end_create(manager, pool, slice, bytes, tag, buffer);
}

/* Under the lock, which it leaves: from what the pool has, whatever it looks like. `bin`
 * is the first one from the extent's on that is not empty. */
static AWAY WR_FLAT weir_result create_from(wr_manager *manager, uint64_t bytes,
                                            uint64_t tag, weir_buffer *buffer,
                                            wr_pool *pool, uint64_t bin)
{
    if (WR_UNLIKELY(manager->cache.count < WR_POOL_SPARES)) {
        wr_manager_unlock(manager);
        return create_slowly(manager, bytes, tag, buffer);
    }
    wr_sequence_begin(&manager->sequence);
    wr_slice *slice = wr_pool_try_reserve_plain(pool, round_up(bytes), bin);
    wr_pool_heed(pool);
    if (WR_UNLIKELY(slice == NULL)) {
        wr_sequence_end(&manager->sequence);
        return create_by_borrowing(manager, bytes, tag, buffer, pool);
    }
    return end_create(manager, pool, slice, bytes, tag, buffer);
}

/* The same where whole chunks are to be kept. */
static AWAY WR_FLAT weir_result create_carefully(wr_manager *manager, uint64_t bytes,
                                                 uint64_t tag, weir_buffer *buffer,
                                                 wr_pool *pool)
{
    if (WR_UNLIKELY(manager->cache.count < WR_POOL_SPARES)) {
        wr_manager_unlock(manager);
        return create_slowly(manager, bytes, tag, buffer);
    }
    wr_sequence_begin(&manager->sequence);
    wr_slice *slice = wr_pool_try_reserve_careful(pool, round_up(bytes));
    if (WR_UNLIKELY(slice == NULL)) {
        wr_sequence_end(&manager->sequence);
        return create_by_borrowing(manager, bytes, tag, buffer, pool);
    }
    return end_create(manager, pool, slice, bytes, tag, buffer);
}

static inline wr_pool *route(const wr_manager *manager, uint64_t extent_bytes)
{
    const wr_route *route = manager->routes;
    while (extent_bytes > route->bytes) {
        route++;
    }
    return route->pool;
}

static inline bool has_waiting(const wr_manager *manager)
{
    return (WR_OWN(manager->waiting[0]) | WR_OWN(manager->waiting[1])) != 0;
}

/* Under the lock, which it leaves: something is to be looked at before. */
static AWAY weir_result create_with_a_look(wr_manager *manager, uint64_t bytes,
                                           uint64_t tag, weir_buffer *buffer,
                                           wr_pool *pool)
{
    uint64_t extent_bytes = round_up(bytes);
    if (atomic_load_explicit(&manager->remote, memory_order_relaxed) != 0) {
        wr_manager_drain(manager);
    }
    if (has_waiting(manager) || !pool->plain || wr_pool_wants_search(pool, bytes)) {
        wr_manager_unlock(manager);
        return create_slowly(manager, bytes, tag, buffer);
    }
    if (wr_pool_wants_care(pool, extent_bytes)) {
        return create_carefully(manager, bytes, tag, buffer, pool);
    }
    uint64_t bin = wr_index_find_bin(pool->index, wr_index_bin(extent_bytes));
    return create_from(manager, bytes, tag, buffer, pool, bin);
}

static WR_COLD weir_result create_in_turn(wr_manager *manager, uint64_t bytes,
                                          uint64_t tag, weir_buffer *buffer)
{
    wr_manager_lock(manager);
    return create_with_a_look(manager, bytes, tag, buffer,
                              route(manager, round_up(bytes)));
}

/* All is done, but that a free run is to go into the index. */
static AWAY weir_result insert(wr_manager *manager, wr_pool *pool, wr_slice *run)
{
    wr_index_insert(pool->index, run);
    leave_heeding(manager);
    return WEIR_OK;
}

/* The same where in_use is of no interest and the bin, `bin`, has a tree. */
static AWAY WR_FLAT weir_result insert_in_tree(wr_manager *manager, wr_index *index,
                                               wr_slice *run, uint64_t bin)
{
    run->bin = (uint16_t)bin;
    wr_index_tree_insert(index, run);
    leave(manager);
    return WEIR_OK;
}

/* Makes a slice, whose word and pool are as said, a buffer of a hot request. */
WR_INLINE void hand_out(wr_manager *manager, wr_pool *pool, wr_slice_id id, uint64_t word,
                        uint64_t bytes, uint64_t tag, weir_buffer *buffer)
{
    wr_slice *slice = wr_slice_get(id);
    atomic_store_explicit(&slice->word, word | 1, memory_order_release);
    *buffer = wr_handle_make(id, word);
    enter(pool, slice, bytes, tag);
    WR_ADD(manager->in_use, bytes);
    WR_SUB(pool->books.free, round_up(bytes));
    if (WR_LIKELY(tag != 0)) { /* as below */
        wr_tags_enter(wr_tags_get(manager->bank, tag), round_up(bytes), bytes);
    }
}

/* Under the lock, which it leaves: from a bin whose root is of the very size. */
static AWAY weir_result create_equal(wr_manager *manager, uint64_t bytes, uint64_t tag,
                                     weir_buffer *buffer, wr_pool *pool, uint64_t bin)
{
    wr_index *index = pool->index;
    wr_slice_id id = *wr_index_root(index, bin);
    const wr_slice *node = wr_slice_get(id);
    bool has_twin = node->free.next_twin != 0;
    id = has_twin ? node->free.next_twin : id;
    wr_slice *slice = wr_slice_get(id);
    uint64_t word = word_of(slice);
    if (WR_UNLIKELY(word == 0) || (!has_twin && node->free.subtrees != 0)) {
        return create_from(manager, bytes, tag, buffer, pool, bin);
    }
    wr_sequence_begin(&manager->sequence);
    if (has_twin) {
        wr_index_unhang(slice);
    } else {
        wr_index_clear(index, bin);
    }
    hand_out(manager, pool, id, word, bytes, tag, buffer);
    if (WR_UNLIKELY(WR_OWN_PLAIN(manager->in_use) > manager->heed_above)) {
        leave_heeding(manager);
        return WEIR_OK;
    }
    leave(manager);
    return WEIR_OK;
}

/* Cuts the request off the front of a run that is out of the index; the first spare
 * record has generations left. */
WR_INLINE weir_result cut(wr_manager *manager, uint64_t bytes, uint64_t tag,
                          weir_buffer *buffer, wr_pool *pool, wr_slice *run)
{
    wr_slice_id id = manager->cache.first;
    uint64_t word = word_of(wr_slice_get(id));
    (void)wr_slab_pop(&manager->cache);
    hand_out(manager, pool, id, word, bytes, tag, buffer);
    wr_page_cut(run, wr_slice_id_of(run), round_up(bytes), id);
    if (WR_UNLIKELY(WR_OWN_PLAIN(manager->in_use) > manager->heed_above)) {
        return insert(manager, pool, run);
    }
    uint64_t bin = wr_index_bin(run->extent_bytes);
    if (WR_UNLIKELY(!wr_index_try_insert(pool->index, run, bin))) {
        return insert_in_tree(manager, pool->index, run, bin);
    }
    leave(manager);
    return WEIR_OK;
}

/* Under the lock, which it leaves: from a bin with several runs, or the next one. */
static AWAY weir_result create_larger(wr_manager *manager, uint64_t bytes, uint64_t tag,
                                      weir_buffer *buffer, wr_pool *pool, uint64_t bin)
{
    bool has_spare = word_of(wr_slice_get(manager->cache.first)) != 0;
    wr_slice *run =
        has_spare ? wr_index_try_take_larger(pool->index, round_up(bytes), bin) : NULL;
    if (WR_UNLIKELY(run == NULL)) {
        return create_from(manager, bytes, tag, buffer, pool, bin);
    }
    wr_sequence_begin(&manager->sequence);
    return cut(manager, bytes, tag, buffer, pool, run);
}

weir_result wr_manager_create(wr_manager *manager, uint64_t bytes, uint64_t tag,
                              weir_buffer *buffer)
{
    if (WR_UNLIKELY(!wr_lock_try(&manager->lock))) {
        return create_in_turn(manager, bytes, tag, buffer);
    }
    wr_manager_check(manager);
    uint64_t extent_bytes = round_up(bytes);
    wr_pool *pool = route(manager, extent_bytes);
    if (WR_UNLIKELY(bytes > pool->hot_bytes) || WR_UNLIKELY(has_waiting(manager))) {
        return create_with_a_look(manager, bytes, tag, buffer, pool);
    }
    wr_index *index = pool->index;
    uint64_t bin = wr_index_find_bin(index, wr_index_bin(extent_bytes));
    wr_slice_id run_id = *wr_index_root(index, bin);
    wr_slice *run = wr_slice_get(run_id);
    if (run->extent_bytes == extent_bytes) {
        return create_equal(manager, bytes, tag, buffer, pool, bin);
    }
    /* That of record 0, where there are no spares, is 0 too. */
    wr_slice_id id = manager->cache.first;
    uint64_t word = word_of(wr_slice_get(id));
    if (WR_UNLIKELY((run->free.subtrees | run->free.twins) != 0) ||
        WR_UNLIKELY(run->extent_bytes < extent_bytes) || WR_UNLIKELY(word == 0)) {
        return create_larger(manager, bytes, tag, buffer, pool, bin);
    }
    wr_sequence_begin(&manager->sequence);
    wr_index_clear(index, bin);
    return cut(manager, bytes, tag, buffer, pool, run);
}

/* ---- release ---- */

WR_INLINE void uncount(wr_manager *manager, wr_pool *pool, const wr_slice *slice)
{
    uint64_t change = 0 - slice->held.requested_bytes;
    WR_ADD(pool->books.in_use, change);
    WR_ADD(pool->books.left, 1);
    WR_ADD(manager->in_use, change);
    uint64_t tag = slice->tag;
    if (WR_LIKELY(tag != 0)) { /* either way; tagged ones in line */
        wr_tags_leave(wr_tags_get(manager->bank, tag), slice->extent_bytes, change);
    }
}

static void release_locked(wr_manager *manager, wr_slice *slice)
{
    wr_bank *bank = manager->bank;
    wr_pool *pool = slice->pool;
    if (WR_OWN(bank->parked) != 0) {
        bank->wake(bank);
    }
    wr_sequence_begin(&manager->sequence);
    uncount(manager, pool, slice);
    if (is_of_interest(manager, WR_OWN(manager->in_use))) {
        wr_manager_heed(manager);
    }
    if (slice->held.uses == 0) {
        manager->dirty = true;
        wr_pool_release(pool, slice, wr_manager_mark(manager));
    } else {
        WR_ADD(pool->books.limbo, slice->extent_bytes);
        wr_waits_defer(manager, slice);
    }
    wr_sequence_end(&manager->sequence);
}

static WR_COLD void push_remote(wr_manager *manager, wr_slice *slice)
{
    wr_slice_id id = wr_slice_id_of(slice);
    /* Requested first, and read last: a reader in between takes the rest for padding,
     * and never an extent without what was requested of it. */
    atomic_fetch_add_explicit(&manager->remote_requested, slice->held.requested_bytes,
                              memory_order_acq_rel);
    atomic_fetch_add_explicit(&manager->remote_extent, slice->extent_bytes,
                              memory_order_acq_rel);
    wr_slice_id head = atomic_load_explicit(&manager->remote, memory_order_relaxed);
    do {
        slice->held.link = head;
    } while (!atomic_compare_exchange_weak_explicit(
        &manager->remote, &head, id, memory_order_release, memory_order_relaxed));
}

WR_COLD void wr_manager_drain(wr_manager *manager)
{
    wr_slice_id id = atomic_exchange_explicit(&manager->remote, 0, memory_order_acquire);
    while (id != 0) {
        wr_slice *slice = wr_slice_get(id);
        id = slice->held.link;
        uint64_t requested = slice->held.requested_bytes, extent = slice->extent_bytes;
        wr_sequence_begin(&manager->sequence);
        atomic_fetch_sub_explicit(&manager->remote_requested, requested,
                                  memory_order_acq_rel);
        atomic_fetch_sub_explicit(&manager->remote_extent, extent, memory_order_acq_rel);
        wr_sequence_end(&manager->sequence);
        release_locked(manager, slice);
    }
}

/* Under the lock, which it leaves. */
static AWAY void release_with_a_look(wr_manager *manager, wr_slice *slice)
{
    release_locked(manager, slice);
    if (manager->batch_count >= WR_BATCH_MAX) {
        wr_waits_close_batch(manager);
    }
    wr_manager_unlock(manager);
}

/* All is done, but that a free slice is to be merged with what is free beside it still,
 * and to go into the index. */
static AWAY WR_FLAT void merge(wr_manager *manager, wr_pool *pool, wr_slice *run)
{
    wr_pool_merge_free(pool, pool->plain_range, run);
    leave_heeding(manager);
}

void wr_manager_release(wr_slice *slice)
{
    wr_pool *pool = slice->pool;
    wr_manager *manager = pool->manager;
    if (WR_UNLIKELY(!wr_lock_try(&manager->lock))) {
        push_remote(manager, slice);
        return;
    }
    wr_page *page = pool->plain_range;
    if (WR_UNLIKELY(page == NULL) || WR_UNLIKELY(slice->held.uses != 0) ||
        WR_UNLIKELY(WR_OWN(manager->bank->parked) != 0)) {
        release_with_a_look(manager, slice);
        return;
    }
    wr_sequence_begin(&manager->sequence);
    uncount(manager, pool, slice);
    WR_ADD(pool->books.free, slice->extent_bytes);
    manager->dirty = true;
    wr_page_mark(page, slice, wr_manager_mark(manager));
    slice->state = WR_SLICE_STATE_FREE;
    wr_index *index = pool->index;
    wr_slice *run = wr_slice_get(slice->next);
    if (run->state == WR_SLICE_STATE_FREE) {
        if (WR_UNLIKELY(!wr_index_try_remove(index, run))) {
            merge(manager, pool, slice);
            return;
        }
        wr_page_absorb(run, slice);
        wr_slab_push(&manager->cache, slice);
    } else {
        run = slice;
        run->free.subtrees = run->free.twins = 0;
    }
    wr_slice *front = wr_slice_get(run->prev);
    if (front->state == WR_SLICE_STATE_FREE) {
        if (WR_UNLIKELY(!wr_index_try_remove(index, front))) {
            merge(manager, pool, run);
            return;
        }
        wr_page_absorb(run, front);
        wr_slab_push(&manager->cache, front);
    }
    if (WR_UNLIKELY(WR_OWN_PLAIN(manager->in_use) < manager->publish_below)) {
        (void)insert(manager, pool, run);
        return;
    }
    uint64_t bin = wr_index_bin(run->extent_bytes);
    if (WR_UNLIKELY(!wr_index_try_insert(index, run, bin))) {
        (void)insert_in_tree(manager, index, run, bin);
        return;
    }
    leave(manager);
}
