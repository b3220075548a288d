/* SPDX-License-Identifier: MIT */
/* Pages, ranges and granules of the sim driver: addresses and sums, no memory. A call
 * that would bring the sum of what Weir holds, what the driver has not let go of, the
 * context, what the process takes otherwise and what other processes take above the
 * capacity fails.
 *
 * No address is handed out twice, so that a stale one is always noticed, and regions do
 * not touch, so that one byte too many is too. */
#include "sim.h"

#include "base/result.h"
#include "cost.h"

#include <inttypes.h>
#include <string.h>

#define REGION_ALIGNMENT ((uint64_t)2 << 20)
#define LAST_ADDRESS ((uint64_t)1 << 62)

/* ---- sums ---- */

static uint64_t footprint_of(const weir_sim_ledger *ledger)
{
    return ledger->handed_out_bytes - ledger->handed_back_bytes + ledger->pending_bytes +
           ledger->context_bytes + ledger->outside_bytes;
}

/* Hands bytes out if the device has room for them. */
static weir_result hand_out(wr_sim *sim, const char *call, uint64_t bytes)
{
    weir_sim_ledger *ledger = &sim->ledger;
    uint64_t capacity = sim->desc.capacity_bytes;
    uint64_t taken = footprint_of(ledger) + ledger->others_bytes;
    if (taken > capacity || bytes > capacity - taken) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "sim: %s of %" PRIu64 " bytes: %" PRIu64
                        " of the capacity of %" PRIu64 " bytes are taken, %" PRIu64
                        " of them handed back and not let go",
                        call, bytes, taken, capacity, ledger->pending_bytes);
    }
    ledger->handed_out_bytes += bytes;
    return WEIR_OK;
}

/* What is not let go at once goes on counting against the capacity. */
static void hand_back(wr_sim *sim, uint64_t bytes)
{
    sim->ledger.handed_back_bytes += bytes;
    if (sim->desc.lets_go != WEIR_SIM_LETS_GO_AT_ONCE) {
        sim->ledger.pending_bytes += bytes;
    }
}

/* Gives a region addresses that none had before, and enters it. */
static weir_result place(wr_sim *sim, const char *call, wr_region *region)
{
    uint64_t unit = sim->desc.granule_bytes > REGION_ALIGNMENT ? sim->desc.granule_bytes
                                                               : REGION_ALIGNMENT;
    uint64_t left = LAST_ADDRESS - sim->next_address;
    if (left < 2 * unit || region->bytes > left - 2 * unit) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "sim: %s of %" PRIu64 " bytes: no addresses left", call,
                        region->bytes);
    }
    region->address = sim->next_address;
    sim->next_address += (region->bytes / unit + 2) * unit;
    wr_regions_add(&sim->book, region);
    return WEIR_OK;
}

/* ---- pages ---- */

static weir_result alloc_page(wr_sim *sim, uint64_t bytes, wr_region *page)
{
    WR_TRY(wr_sim_enter(sim, WEIR_SIM_OP_page_alloc));
    if (bytes == 0) {
        return wr_error(WEIR_INVALID, "sim: page_alloc of 0 bytes");
    }
    if (page == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "sim: no memory to keep a page's record");
    }
    WR_TRY(hand_out(sim, "page_alloc", bytes));
    weir_result result = place(sim, "page_alloc", page);
    if (result != WEIR_OK) {
        sim->ledger.handed_out_bytes -= bytes;
        return result;
    }
    sim->ledger.modelled_seconds += wr_sim_cost_page_alloc(bytes);
    return WEIR_OK;
}

weir_result wr_sim_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_region *page = wr_region_create_page(bytes);
    wr_lock_take(&sim->lock);
    weir_result result = alloc_page(sim, bytes, page);
    wr_lock_leave(&sim->lock);
    if (result != WEIR_OK) {
        wr_region_destroy(page);
        return result;
    }
    *address = page->address;
    return WEIR_OK;
}

/* Like cuMemFree this would wait for the whole device; it is counted, the work stays
 * queued. */
static weir_result free_page(wr_sim *sim, uint64_t address, uint64_t bytes)
{
    wr_region *page;
    WR_TRY(wr_sim_enter(sim, WEIR_SIM_OP_page_free));
    WR_TRY(wr_regions_get_page(&sim->book, "page_free", address, bytes, &page));
    wr_regions_remove(&sim->book, page);
    wr_region_destroy(page);
    hand_back(sim, bytes);
    sim->ledger.device_syncs += wr_sim_is_busy(sim);
    sim->ledger.modelled_seconds += wr_sim_cost_page_free(bytes);
    return WEIR_OK;
}

weir_result wr_sim_page_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = free_page(sim, address, bytes);
    wr_lock_leave(&sim->lock);
    return result;
}

/* ---- ranges ---- */

static weir_result reserve_range(wr_sim *sim, uint64_t bytes, uint64_t *address)
{
    WR_TRY(wr_sim_enter(sim, WEIR_SIM_OP_range_reserve));
    WR_TRY(wr_regions_check_size(&sim->book, "range_reserve", bytes));
    wr_region *range = wr_region_create_range(bytes, sim->desc.granule_bytes);
    if (range == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "sim: no memory to keep a range's record");
    }
    weir_result result = place(sim, "range_reserve", range);
    if (result != WEIR_OK) {
        wr_region_destroy(range);
        return result;
    }
    *address = range->address;
    return WEIR_OK;
}

weir_result wr_sim_range_reserve(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = reserve_range(sim, bytes, address);
    wr_lock_leave(&sim->lock);
    return result;
}

weir_result wr_sim_range_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_region *range = NULL;
    wr_lock_take(&sim->lock);
    weir_result result = wr_sim_check_alive(sim, "range_free");
    if (result == WEIR_OK) {
        result = wr_regions_get_range(&sim->book, "range_free", address, bytes, &range);
    }
    if (result == WEIR_OK) {
        wr_regions_remove(&sim->book, range);
        wr_region_destroy(range);
    }
    wr_lock_leave(&sim->lock);
    return result;
}

/* What a call on committed chunks costs, one after the other. */
static void charge(wr_sim *sim, const wr_region *range, uint64_t address, uint64_t bytes,
                   double (*cost)(uint64_t chunk_bytes))
{
    while (bytes > 0) {
        uint64_t chunk_bytes;
        uint64_t count =
            wr_regions_chunk_run(&sim->book, range, address, bytes, &chunk_bytes);
        sim->ledger.modelled_seconds += (double)count * cost(chunk_bytes);
        address += count * chunk_bytes;
        bytes -= count * chunk_bytes;
    }
}

static weir_result commit(wr_sim *sim, uint64_t address, uint64_t bytes,
                          uint64_t chunk_bytes)
{
    wr_region *range;
    WR_TRY(wr_sim_enter(sim, WEIR_SIM_OP_commit));
    WR_TRY(wr_regions_check_chunk(&sim->book, chunk_bytes));
    WR_TRY(wr_regions_get_bare(&sim->book, "commit", address, bytes, &range));
    WR_TRY(hand_out(sim, "commit", bytes));
    wr_regions_mark_chunks(&sim->book, range, address, bytes, chunk_bytes);
    charge(sim, range, address, bytes, wr_sim_cost_commit);
    return WEIR_OK;
}

weir_result wr_sim_commit_chunks(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 uint64_t chunk_bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = commit(sim, address, bytes, chunk_bytes);
    wr_lock_leave(&sim->lock);
    return result;
}

weir_result wr_sim_commit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    return wr_sim_commit_chunks(driver, address, bytes,
                                wr_sim_of(driver)->desc.granule_bytes);
}

static weir_result decommit(wr_sim *sim, uint64_t address, uint64_t bytes)
{
    wr_region *range;
    WR_TRY(wr_sim_enter(sim, WEIR_SIM_OP_decommit));
    WR_TRY(wr_regions_get_committed(&sim->book, "decommit", address, bytes, &range));
    charge(sim, range, address, bytes, wr_sim_cost_decommit);
    wr_regions_mark(&sim->book, range, address, bytes, false);
    hand_back(sim, bytes);
    return WEIR_OK;
}

weir_result wr_sim_decommit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = decommit(sim, address, bytes);
    wr_lock_leave(&sim->lock);
    return result;
}

/* The total stays as it is, so a full device can move too. */
static weir_result move(wr_sim *sim, uint64_t to, uint64_t from, uint64_t bytes)
{
    wr_region *source;
    wr_region *target;
    WR_TRY(wr_sim_enter(sim, WEIR_SIM_OP_move));
    WR_TRY(wr_regions_get_committed(&sim->book, "move", from, bytes, &source));
    WR_TRY(wr_regions_get_bare(&sim->book, "move", to, bytes, &target));
    charge(sim, source, from, bytes, wr_sim_cost_move);
    wr_regions_move(&sim->book, target, to, source, from, bytes);
    return WEIR_OK;
}

weir_result wr_sim_move(weir_driver *driver, uint64_t to, uint64_t from, uint64_t bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = move(sim, to, from, bytes);
    wr_lock_leave(&sim->lock);
    return result;
}

/* ---- accounting ---- */

weir_result wr_sim_memory_info(weir_driver *driver, weir_memory_info *info)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = wr_sim_enter(sim, WEIR_SIM_OP_memory_info);
    if (result == WEIR_OK) {
        *info = (weir_memory_info){
            .capacity_bytes = sim->desc.capacity_bytes,
            .footprint_bytes = footprint_of(&sim->ledger),
            .others_bytes = sim->ledger.others_bytes,
        };
    }
    wr_lock_leave(&sim->lock);
    return result;
}

uint64_t wr_sim_pending_bytes(weir_driver *driver)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    uint64_t bytes = sim->ledger.pending_bytes;
    wr_lock_leave(&sim->lock);
    return bytes;
}

static bool has_work(const wr_sim *sim)
{
    bool work = false;
    for (size_t i = 0; i < sim->stream_count; i++) {
        const wr_sim_stream *stream = &sim->streams[i];
        work |= stream->is_live && stream->done < stream->queued;
    }
    return work;
}

/* ON_PROGRESS only a caller who waits sees late bytes go, so that both states can be
 * looked at. */
weir_result wr_sim_progress(weir_driver *driver, bool wait)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = wr_sim_check_alive(sim, "progress");
    bool after_work = sim->desc.lets_go == WEIR_SIM_LETS_GO_AFTER_WORK;
    bool lets_go =
        after_work || (wait && sim->desc.lets_go == WEIR_SIM_LETS_GO_ON_PROGRESS);
    if (result == WEIR_OK && after_work && has_work(sim)) {
        result = WEIR_NOT_READY;
    } else if (result == WEIR_OK && lets_go) {
        sim->ledger.pending_bytes = 0;
    }
    wr_lock_leave(&sim->lock);
    return result;
}

/* ---- contents: there are none, but the addresses must have memory ---- */

static weir_result check_access(wr_sim *sim, const char *call, weir_driver_stream handle,
                                uint64_t address, uint64_t bytes)
{
    wr_sim_stream *stream;
    WR_TRY(wr_sim_check_alive(sim, call));
    WR_TRY(wr_sim_get_stream(sim, call, handle, &stream));
    return wr_regions_check_backed(&sim->book, call, address, bytes);
}

weir_result wr_sim_write(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                         const void *data, uint64_t bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    (void)data;
    wr_lock_take(&sim->lock);
    weir_result result = check_access(sim, "write", stream, address, bytes);
    wr_lock_leave(&sim->lock);
    return result;
}

weir_result wr_sim_copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                        uint64_t from, uint64_t bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = check_access(sim, "copy", stream, from, bytes);
    if (result == WEIR_OK) {
        result = check_access(sim, "copy", stream, to, bytes);
    }
    wr_lock_leave(&sim->lock);
    return result;
}

static weir_result wait_to_read(wr_sim *sim, weir_driver_stream handle, uint64_t address,
                                uint64_t bytes)
{
    WR_TRY(check_access(sim, "read", handle, address, bytes));
    wr_sim_stream *stream = wr_sim_stream_at(sim, handle);
    WR_TRY(wr_sim_refuse_capture(stream, "read"));
    wr_sim_complete(sim, stream, stream->queued);
    return WEIR_OK;
}

weir_result wr_sim_read(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                        void *data, uint64_t bytes)
{
    wr_sim *sim = wr_sim_of(driver);
    wr_lock_take(&sim->lock);
    weir_result result = wait_to_read(sim, stream, address, bytes);
    wr_lock_leave(&sim->lock);
    if (result == WEIR_OK && bytes > 0) {
        memset(data, 0, bytes);
    }
    return result;
}
