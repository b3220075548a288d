/* SPDX-License-Identifier: MIT */
/* See backing.h. The driver calls are made under no lock. */
#include "backing.h"

#include "promise.h"

#include "base/result.h"

#include <stddef.h>

/* A pool has earned one chunk more than need be for so many of its requests. */
#define REQUESTS_PER_CHUNK 64u
/* Chunks of runs that are too large for one: parts of them will serve others, and go back
 * when only a floor is to stay. The first one is smaller: what is small goes to the
 * lowest addresses, and when little is held, this is all that it pins. Runs of a GiB are
 * mostly one buffer's; moving them costs by chunk, so theirs are larger. */
#define PART_BYTES (UINT64_C(64) << 20)
#define LARGE_PART_BYTES (UINT64_C(101) << 20)
#define LARGE_RUN_BYTES (UINT64_C(1) << 30)
#define HEAD_BYTES (UINT64_C(16) << 20)

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

static weir_result move_chunks(wr_backing *b, uint64_t to, const wr_slice *slice)
{
    wr_bank *bank = b->bank;
    wr_page *page = wr_page_get(slice->page);
    uint64_t bytes = slice->extent_bytes;
    WR_COUNT(bank->events.moves);
    if (bank->table->move == NULL) {
        weir_result result = remake(bank, to, slice->address, bytes);
        wr_page_set_chunks(page, slice->address, bytes, 0);
        return result;
    }
    WR_TRY(bank->table->move(bank->driver, to, slice->address, bytes));
    wr_page_copy_chunks(b->page, to, page, slice->address, bytes);
    return WEIR_OK;
}

/* A later step failed: new granules go back, so that nothing more is reserved than
 * before. */
static void drop_new(wr_backing *b)
{
    if (!wr_barrier_enter(&b->bank->barrier)) {
        return; /* they stay, as free memory of the pool */
    }
    for (uint32_t i = 0; i < b->piece_count; i++) {
        wr_piece *p = &b->pieces[i];
        uint64_t address = wr_slice_end(p->slice) - p->new_bytes;
        if (p->new_bytes == 0) {
            continue;
        }
        weir_result result =
            b->bank->table->decommit(b->bank->driver, address, p->new_bytes);
        if (result == WEIR_OK || result == WEIR_DEVICE_LOST) {
            wr_page_set_chunks(b->page, address, p->new_bytes, 0);
            p->new_bytes = 0;
        }
    }
    wr_barrier_leave(&b->bank->barrier);
}

static uint64_t divide_up(uint64_t bytes, uint64_t by)
{
    return bytes / by + (bytes % by != 0);
}

static wr_pool *pool_of(const wr_backing *b)
{
    return &b->manager->pools[b->class - b->bank->classes];
}

/* The most that a chunk of such a run has. */
static uint64_t most_of_chunk(uint64_t most, uint64_t run_bytes)
{
    uint64_t part = run_bytes < LARGE_RUN_BYTES ? PART_BYTES : LARGE_PART_BYTES;
    return run_bytes > most && most > part ? part : most;
}

/* The size of the chunks in which so many bytes are made; 0: the driver knows none. A
 * request that gets a chunk of its own leaves it whole again. So there are as few as can
 * be, all of a size, as the driver's price goes by chunk; but where many requests share
 * that price there are more, because a chunk that is partly held stays whole. */
static uint64_t choose_chunk(const wr_backing *b, uint64_t bytes)
{
    uint64_t granule = b->bank->granule_bytes;
    uint64_t most = b->bank->properties.chunk_bytes;
    if (most == 0) {
        return 0;
    }
    wr_pool *pool = pool_of(b);
    uint64_t earned = WR_GET(pool->books.entered) / REQUESTS_PER_CHUNK;
    uint64_t spent = WR_GET(pool->chunks_made);
    uint64_t count = divide_up(bytes, most_of_chunk(most, bytes));
    count = spent + count < earned ? earned - spent : count;
    count = count < bytes / granule ? count : bytes / granule;
    uint64_t chunk = divide_up(divide_up(bytes, count), granule) * granule;
    atomic_fetch_add_explicit(&pool->chunks_made, divide_up(bytes, chunk),
                              memory_order_relaxed);
    return chunk;
}

static weir_result commit_run(wr_backing *b, wr_piece *p, uint64_t bytes,
                              uint64_t chunk_bytes)
{
    const wr_bank *bank = b->bank;
    uint64_t address = wr_slice_end(p->slice) - p->new_bytes - bytes;
    WR_COUNT(b->bank->events.commits);
    WR_TRY(chunk_bytes == 0
               ? bank->table->commit(bank->driver, address, bytes)
               : bank->table->commit_chunks(bank->driver, address, bytes, chunk_bytes));
    wr_page_set_chunks(b->page, address, bytes, chunk_bytes);
    p->new_bytes += bytes;
    return WEIR_OK;
}

/* From the end. Of several chunks the first is made in two parts. */
static weir_result commit_piece(wr_backing *b, wr_piece *p, uint64_t bytes)
{
    bool has_several = bytes > b->bank->properties.chunk_bytes;
    uint64_t chunk_bytes = choose_chunk(b, bytes);
    if (!has_several || chunk_bytes <= HEAD_BYTES) {
        return commit_run(b, p, bytes, chunk_bytes);
    }
    WR_TRY(commit_run(b, p, bytes - chunk_bytes, chunk_bytes));
    WR_TRY(commit_run(b, p, chunk_bytes - HEAD_BYTES, chunk_bytes - HEAD_BYTES));
    return commit_run(b, p, HEAD_BYTES, HEAD_BYTES);
}

/* New granules first, from the window's end: a refusal then has changed nothing. Goes on
 * where an earlier call was refused. */
static weir_result commit_new(wr_backing *b)
{
    for (uint32_t i = b->piece_count; i-- > 0;) {
        wr_piece *p = &b->pieces[i];
        uint64_t bytes = p->slice->extent_bytes - p->loot.bytes - p->new_bytes;
        if (bytes > 0) {
            WR_TRY(commit_piece(b, p, bytes));
        }
    }
    return WEIR_OK;
}

/* Counts the new granules against the limit; what is promised stays so until it is in the
 * books. */
static weir_result promise_new(wr_backing *b)
{
    uint64_t bytes = b->bare_bytes - b->planned_bytes;
    if (bytes > b->new_bytes) {
        WR_TRY(wr_bank_promise(b->bank, bytes - b->new_bytes));
    } else if (bytes < b->new_bytes) {
        wr_lock_take(&b->bank->lock);
        b->bank->promised -= b->new_bytes - bytes;
        wr_lock_leave(&b->bank->lock);
    }
    b->new_bytes = bytes;
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
static wr_slice *cut_loot(wr_backing *b, wr_slice *slice, uint64_t end)
{
    wr_bank_lock(b->bank);
    wr_slice *rest = NULL;
    if (wr_slab_fill(&b->bank->cache, WR_POOL_SPARES)) {
        rest = wr_slab_pop(&b->bank->cache);
        wr_page_split(wr_page_get(slice->page), slice, end, rest);
        rest->held = slice->held;
    }
    wr_bank_unlock(b->bank);
    return rest;
}

/* Puts what fits of a slice into the piece, the rest into `left`. */
static weir_result plan_slice(wr_backing *b, wr_piece *p, wr_slice *slice, wr_loot *left)
{
    uint64_t room = p->slice->extent_bytes - p->loot.bytes - p->new_bytes;
    if (slice->extent_bytes <= room) {
        push_loot(&p->loot, slice);
        return WEIR_OK;
    }
    uint64_t end = cut_for(slice, room);
    wr_slice *rest = end == slice->address ? slice : cut_loot(b, slice, end);
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
static weir_result plan_piece(wr_backing *b, wr_piece *p)
{
    wr_loot left = {0};
    uint64_t before = p->loot.bytes;
    weir_result result = WEIR_OK;
    while (b->loot.first != 0 && result == WEIR_OK) {
        result = plan_slice(b, p, pop_loot(&b->loot), &left);
    }
    while (left.first != 0) {
        push_loot(&b->loot, pop_loot(&left));
    }
    b->planned_bytes += p->loot.bytes - before;
    return result;
}

static weir_result plan(wr_backing *b)
{
    for (uint32_t i = 0; i < b->piece_count && b->loot.first != 0; i++) {
        WR_TRY(plan_piece(b, &b->pieces[i]));
    }
    return WEIR_OK;
}

/* What was not moved is no piece's any more. */
static void unplan(wr_backing *b)
{
    for (uint32_t i = 0; i < b->piece_count; i++) {
        while (b->pieces[i].loot.first != 0) {
            push_loot(&b->loot, pop_loot(&b->pieces[i].loot));
        }
    }
}

static weir_result move_to_piece(wr_backing *b, wr_piece *p)
{
    while (p->loot.first != 0) {
        wr_slice *slice = wr_slice_get(p->loot.first);
        WR_TRY(move_chunks(b, p->slice->address + p->moved_bytes, slice));
        pop_loot(&p->loot);
        p->moved_bytes += slice->extent_bytes;
        slice->held.link = b->moved;
        b->moved = wr_slice_id_of(slice);
    }
    return WEIR_OK;
}

static weir_result move_loot(wr_backing *b)
{
    for (uint32_t i = 0; i < b->piece_count; i++) {
        WR_TRY(move_to_piece(b, &b->pieces[i]));
    }
    return WEIR_OK;
}

uint64_t wr_backing_made(const wr_backing *b)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < b->piece_count; i++) {
        bytes += b->pieces[i].new_bytes;
    }
    return bytes;
}

/* Unheld chunks, from this stream, the bank, and others. */
static void find_loot(wr_backing *b, bool from_slack)
{
    uint64_t covered = wr_backing_made(b) + b->planned_bytes + b->loot.bytes;
    wr_harvest want = {.at_most_bytes = b->bare_bytes - covered,
                       .granules_only = true,
                       .from_slack = from_slack};
    wr_harvest_take_all(b->bank, b->manager, &want, b->bank->roster_count > 1, &b->loot);
}

/* Chunks that are too large for any piece are of no use here. Before more is reserved
 * than ever before they go back, and what is needed is made instead. */
static weir_result trade_in(wr_backing *b, bool from_slack)
{
    WR_TRY(plan(b));
    uint64_t needed = b->bare_bytes - b->planned_bytes;
    if (needed == 0 ||
        WR_GET(b->bank->reserved) + needed <= WR_GET(b->bank->peak_reserved)) {
        return WEIR_OK;
    }
    wr_loot_keep(b->bank, &b->loot);
    wr_harvest want = {.at_most_bytes = needed,
                       .cover = true,
                       .granules_only = true,
                       .from_slack = from_slack};
    wr_loot loot = {0};
    wr_harvest_take_all(b->bank, b->manager, &want, b->bank->roster_count > 1, &loot);
    atomic_fetch_add_explicit(&b->bank->events.pressure_bytes,
                              wr_loot_give_back(b->bank, &loot), memory_order_relaxed);
    return WEIR_OK;
}

/* What the loot does not cover is asked of the driver. */
static weir_result cover(wr_backing *b)
{
    WR_TRY(plan(b));
    if (b->tight && b->planned_bytes < b->bare_bytes) {
        return WEIR_BUSY;
    }
    WR_TRY(promise_new(b));
    return commit_new(b);
}

/* Moves chunks there; where nothing may be moved all of them are new. */
static weir_result fill(wr_backing *b, bool may_move)
{
    bool alone = b->bank->roster_count == 1;
    if (may_move) {
        find_loot(b, !alone);
    }
    weir_result result = WEIR_OK;
    if (may_move && pool_of(b)->in_chunks && !b->tight) {
        result = trade_in(b, !alone);
    }
    if (result == WEIR_OK) {
        result = cover(b);
    }
    if ((result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT) && may_move && !alone) {
        /* Better the holes of streams at work than none. */
        uint64_t before = b->loot.bytes;
        find_loot(b, false);
        result = b->loot.bytes > before ? cover(b) : result;
    }
    if (result == WEIR_OK) {
        result = move_loot(b);
    }
    unplan(b);
    return result;
}

weir_result wr_backing_fill(wr_backing *b)
{
    if (b->bare_bytes == 0) {
        return WEIR_OK;
    }
    WR_TRY(wr_class_promise(b->bank, b->class, b->bare_bytes, &b->full));
    b->promised_bytes = b->bare_bytes;
    bool may_move = !b->only_new && wr_barrier_enter(&b->bank->barrier);
    weir_result result = fill(b, may_move);
    if (may_move) {
        wr_barrier_leave(&b->bank->barrier);
    }
    if (result != WEIR_OK) {
        drop_new(b);
    }
    return result;
}
