/* SPDX-License-Identifier: MIT */
/* Granules of the CUDA driver: ranges of addresses, and a chunk of memory of its own for
 * each committed granule, so that any of them can be moved or given back alone.
 *
 *   range    | granule | granule | granule | ...      cuMemAddressReserve
 *   table    | handle  |    0    | handle  | ...      cuMemCreate, cuMemMap
 *
 * None of these calls waits for running work. They cost by chunk, so access is set and
 * mappings are ended for the whole of a request at once.
 *
 * Invariant: a granule has a handle if the book says it is committed, and is mapped with
 * it, but for the granules of a call under way; those are the caller's, so that their
 * handles need no lock. The tables that hold handles come under the lock and go with
 * their range. */
#include "cuda.h"

#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

/* Handles lie in tables of so many granules (1 GiB), made when the first is committed. */
#define TABLE_GRANULES 512

typedef struct handle_tables {
    size_t count;
    wr_cu_handle *tables[];
} handle_tables;

/* Whole granules of one range. */
typedef struct span {
    handle_tables *handles;
    uint64_t address;
    uint64_t bytes;
    uint64_t first; /* granule of the range */
    uint64_t count;
} span;

static wr_cu_handle *handle_at(const span *part, uint64_t index)
{
    uint64_t granule = part->first + index;
    return &part->handles->tables[granule / TABLE_GRANULES][granule % TABLE_GRANULES];
}

static uint64_t address_at(const wr_cuda *cuda, const span *part, uint64_t index)
{
    return part->address + index * cuda->granule_bytes;
}

/* ---- ranges ---- */

static weir_result no_record(void)
{
    return wr_error(WEIR_OUT_OF_HOST_MEMORY, "cuda: no memory to keep a range's record");
}

static wr_region *create_region(const wr_cuda *cuda, uint64_t bytes)
{
    wr_region *range = wr_region_create_range(bytes, cuda->granule_bytes);
    size_t granules = bytes / cuda->granule_bytes;
    size_t count = (granules + TABLE_GRANULES - 1) / TABLE_GRANULES;
    handle_tables *handles =
        wr_host_alloc(sizeof *handles + count * sizeof handles->tables[0]);
    if (range == NULL || handles == NULL) {
        wr_host_free(handles);
        wr_region_destroy(range);
        return NULL;
    }
    handles->count = count;
    range->data = handles;
    return range;
}

static void destroy_region(wr_region *range)
{
    handle_tables *handles = range->data;
    for (size_t i = 0; i < handles->count; i++) {
        wr_host_free(handles->tables[i]);
    }
    wr_host_free(handles);
    wr_region_destroy(range);
}

static weir_result reserve(wr_cuda *cuda, wr_region *range)
{
    wr_cu_address made = 0;
    WR_TRY(wr_cuda_enter(cuda, "range_reserve"));
    wr_cu_result result =
        cuda->api.reserve(&made, range->bytes, cuda->granule_bytes, 0, 0);
    wr_cuda_leave(cuda);
    range->address = made;
    return wr_cuda_failed(cuda, result, "range_reserve", range->bytes,
                          "cuMemAddressReserve");
}

weir_result wr_cuda_range_reserve(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    WR_TRY(wr_regions_check_size(&cuda->book, "range_reserve", bytes));
    if (bytes > INT64_MAX) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "cuda: range_reserve of %" PRIu64
                        " bytes: more than there are addresses",
                        bytes);
    }
    wr_region *range = create_region(cuda, bytes);
    if (range == NULL) {
        return no_record();
    }
    weir_result result = reserve(cuda, range);
    if (result != WEIR_OK) {
        destroy_region(range);
        return result;
    }
    wr_lock_take(&cuda->lock);
    wr_regions_add(&cuda->book, range);
    wr_lock_leave(&cuda->lock);
    *address = range->address;
    return WEIR_OK;
}

static weir_result unreserve(wr_cuda *cuda, const wr_region *range)
{
    WR_TRY(wr_cuda_enter(cuda, "range_free"));
    wr_cu_result result = cuda->api.unreserve(range->address, range->bytes);
    wr_cuda_leave(cuda);
    return wr_cuda_failed(cuda, result, "range_free", range->bytes, "cuMemAddressFree");
}

weir_result wr_cuda_range_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    wr_region *range = NULL;
    wr_lock_take(&cuda->lock);
    weir_result result =
        wr_regions_get_range(&cuda->book, "range_free", address, bytes, &range);
    if (result == WEIR_OK) {
        wr_regions_remove(&cuda->book, range);
    }
    wr_lock_leave(&cuda->lock);
    if (result != WEIR_OK) {
        return result;
    }
    result = unreserve(cuda, range);
    if (result != WEIR_OK) {
        wr_lock_take(&cuda->lock);
        wr_regions_add(&cuda->book, range);
        wr_lock_leave(&cuda->lock);
        return result;
    }
    destroy_region(range);
    return WEIR_OK;
}

void wr_cuda_range_destroy(wr_cuda *cuda, wr_region *range)
{
    span all = {range->data, range->address, range->bytes, 0,
                range->bytes / cuda->granule_bytes};
    for (uint64_t i = 0; i < all.count; i++) {
        if (all.handles->tables[i / TABLE_GRANULES] == NULL) {
            i += TABLE_GRANULES - 1;
        } else if (*handle_at(&all, i) != 0) {
            (void)cuda->api.unmap(address_at(cuda, &all, i), cuda->granule_bytes);
            (void)cuda->api.release(*handle_at(&all, i));
        }
    }
    (void)cuda->api.unreserve(range->address, range->bytes);
    destroy_region(range);
}

/* ---- the book ---- */

static span span_of(const wr_cuda *cuda, const wr_region *range, uint64_t address,
                    uint64_t bytes)
{
    return (span){range->data, address, bytes,
                  (address - range->address) / cuda->granule_bytes,
                  bytes / cuda->granule_bytes};
}

/* Makes the tables that the span needs; under the lock. */
static weir_result make_tables(const span *part)
{
    uint64_t last = (part->first + part->count - 1) / TABLE_GRANULES;
    for (uint64_t i = part->first / TABLE_GRANULES; i <= last; i++) {
        wr_cu_handle **table = &part->handles->tables[i];
        if (*table == NULL) {
            *table = wr_host_alloc(TABLE_GRANULES * sizeof(wr_cu_handle));
        }
        if (*table == NULL) {
            return no_record();
        }
    }
    return WEIR_OK;
}

/* Marks bare granules as committed. */
static weir_result claim(wr_cuda *cuda, const char *call, uint64_t address,
                         uint64_t bytes, span *part)
{
    wr_region *range = NULL;
    wr_lock_take(&cuda->lock);
    weir_result result = wr_regions_get_bare(&cuda->book, call, address, bytes, &range);
    if (result == WEIR_OK) {
        *part = span_of(cuda, range, address, bytes);
        result = make_tables(part);
    }
    if (result == WEIR_OK) {
        wr_regions_mark(&cuda->book, range, address, bytes, true);
    }
    wr_lock_leave(&cuda->lock);
    return result;
}

/* Marks committed granules as bare. */
static weir_result disclaim(wr_cuda *cuda, const char *call, uint64_t address,
                            uint64_t bytes, span *part)
{
    wr_region *range = NULL;
    wr_lock_take(&cuda->lock);
    weir_result result =
        wr_regions_get_committed(&cuda->book, call, address, bytes, &range);
    if (result == WEIR_OK) {
        *part = span_of(cuda, range, address, bytes);
        wr_regions_mark(&cuda->book, range, address, bytes, false);
    }
    wr_lock_leave(&cuda->lock);
    return result;
}

/* ---- CUDA calls, inside enter and leave ---- */

/* Ends the mappings of the first `count` granules, which are neighbours, in one call. */
static wr_cu_result unmap_first(const wr_cuda *cuda, const span *part, uint64_t count)
{
    return count == 0 ? WR_CU_SUCCESS
                      : cuda->api.unmap(part->address, count * cuda->granule_bytes);
}

/* Maps the handles of `handles` at `part`; on failure the first `*done` are mapped. */
static weir_result map_all(const wr_cuda *cuda, const char *call, const span *part,
                           const span *handles, uint64_t *done)
{
    for (*done = 0; *done < part->count; (*done)++) {
        wr_cu_result result =
            cuda->api.map(address_at(cuda, part, *done), cuda->granule_bytes, 0,
                          *handle_at(handles, *done), 0);
        WR_TRY(wr_cuda_failed(cuda, result, call, part->bytes, "cuMemMap"));
    }
    return WEIR_OK;
}

static weir_result open_access(const wr_cuda *cuda, const char *call, const span *part)
{
    wr_cu_access access = {{WR_CU_LOCATION_DEVICE, cuda->device}, WR_CU_ACCESS_READWRITE};
    wr_cu_result result = cuda->api.set_access(part->address, part->bytes, &access, 1);
    return wr_cuda_failed(cuda, result, call, part->bytes, "cuMemSetAccess");
}

/* Releases the first `count` handles, all of them whatever happens; the first failure. */
static wr_cu_result release_first(const wr_cuda *cuda, const span *part, uint64_t count)
{
    wr_cu_result first = WR_CU_SUCCESS;
    for (uint64_t i = 0; i < count; i++) {
        wr_cu_result result = cuda->api.release(*handle_at(part, i));
        *handle_at(part, i) = 0;
        first = first == WR_CU_SUCCESS ? result : first;
    }
    return first;
}

/* On failure the first `*done` have handles. */
static weir_result create_all(const wr_cuda *cuda, const span *part, uint64_t *done)
{
    wr_cu_allocation what = {.type = WR_CU_ALLOCATION_PINNED,
                             .location = {WR_CU_LOCATION_DEVICE, cuda->device}};
    for (*done = 0; *done < part->count; (*done)++) {
        wr_cu_result result =
            cuda->api.create(handle_at(part, *done), cuda->granule_bytes, &what, 0);
        if (result != WR_CU_SUCCESS) {
            *handle_at(part, *done) = 0;
        }
        WR_TRY(wr_cuda_failed(cuda, result, "commit", part->bytes, "cuMemCreate"));
    }
    return WEIR_OK;
}

static weir_result fill(const wr_cuda *cuda, const span *part)
{
    uint64_t created = 0;
    uint64_t mapped = 0;
    weir_result result = create_all(cuda, part, &created);
    if (result == WEIR_OK) {
        result = map_all(cuda, "commit", part, part, &mapped);
    }
    if (result == WEIR_OK) {
        result = open_access(cuda, "commit", part);
    }
    if (result != WEIR_OK) {
        (void)unmap_first(cuda, part, mapped);
        (void)release_first(cuda, part, created);
    }
    return result;
}

/* Maps first and unmaps then, so that at every failure the memory still has a place; a
 * chunk may have two. */
static weir_result transfer(const wr_cuda *cuda, const span *to, const span *from)
{
    uint64_t mapped = 0;
    weir_result result = map_all(cuda, "move", to, from, &mapped);
    if (result == WEIR_OK) {
        result = open_access(cuda, "move", to);
    }
    if (result == WEIR_OK) {
        result = wr_cuda_failed(cuda, unmap_first(cuda, from, from->count), "move",
                                from->bytes, "cuMemUnmap");
    }
    if (result != WEIR_OK) {
        (void)unmap_first(cuda, to, mapped);
        return result;
    }
    for (uint64_t i = 0; i < to->count; i++) {
        *handle_at(to, i) = *handle_at(from, i);
        *handle_at(from, i) = 0;
    }
    return WEIR_OK;
}

/* ---- entries of the table ---- */

weir_result wr_cuda_commit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    span part;
    WR_TRY(claim(cuda, "commit", address, bytes, &part));
    weir_result result = wr_cuda_enter(cuda, "commit");
    if (result == WEIR_OK) {
        result = fill(cuda, &part);
        wr_cuda_leave(cuda);
    }
    if (result != WEIR_OK) {
        (void)disclaim(cuda, "commit", address, bytes, &part);
        return result;
    }
    atomic_fetch_add(&cuda->charged_bytes, bytes);
    return WEIR_OK;
}

/* A handle that cannot be released, which only a lost device does, leaves its granule
 * unmapped and, in the books, committed. */
static weir_result drop(const wr_cuda *cuda, const span *part)
{
    WR_TRY(wr_cuda_failed(cuda, unmap_first(cuda, part, part->count), "decommit",
                          part->bytes, "cuMemUnmap"));
    return wr_cuda_failed(cuda, release_first(cuda, part, part->count), "decommit",
                          part->bytes, "cuMemRelease");
}

weir_result wr_cuda_decommit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    span part;
    WR_TRY(disclaim(cuda, "decommit", address, bytes, &part));
    weir_result result = wr_cuda_enter(cuda, "decommit");
    if (result == WEIR_OK) {
        result = drop(cuda, &part);
        wr_cuda_leave(cuda);
    }
    if (result != WEIR_OK) {
        (void)claim(cuda, "decommit", address, bytes, &part);
        return result;
    }
    atomic_fetch_sub(&cuda->charged_bytes, bytes);
    return WEIR_OK;
}

/* Marks bare granules as committed and as many committed ones as bare. */
static weir_result trade(wr_cuda *cuda, uint64_t to, uint64_t from, uint64_t bytes,
                         span parts[2])
{
    wr_region *target = NULL;
    wr_region *source = NULL;
    wr_lock_take(&cuda->lock);
    weir_result result = wr_regions_get_bare(&cuda->book, "move", to, bytes, &target);
    if (result == WEIR_OK) {
        result = wr_regions_get_committed(&cuda->book, "move", from, bytes, &source);
    }
    if (result == WEIR_OK) {
        parts[0] = span_of(cuda, target, to, bytes);
        parts[1] = span_of(cuda, source, from, bytes);
        result = make_tables(&parts[0]);
    }
    if (result == WEIR_OK) {
        wr_regions_mark(&cuda->book, target, to, bytes, true);
        wr_regions_mark(&cuda->book, source, from, bytes, false);
    }
    wr_lock_leave(&cuda->lock);
    return result;
}

weir_result wr_cuda_move(weir_driver *driver, uint64_t to, uint64_t from, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    span parts[2];
    WR_TRY(trade(cuda, to, from, bytes, parts));
    weir_result result = wr_cuda_enter(cuda, "move");
    if (result == WEIR_OK) {
        result = transfer(cuda, &parts[0], &parts[1]);
        wr_cuda_leave(cuda);
    }
    if (result != WEIR_OK) {
        (void)trade(cuda, from, to, bytes, parts);
    }
    return result;
}
