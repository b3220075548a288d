/* SPDX-License-Identifier: MIT */
/* Granules of the CUDA driver: ranges of addresses, and chunks of memory behind them.
 *
 *   range    | granule | granule | granule | granule | ...   cuMemAddressReserve
 *   table    |  chunk of two     |    0    |  chunk  | ...   cuMemCreate, cuMemMap
 *
 * None of these calls waits for running work. They cost by chunk and hardly by byte, so a
 * large commit is made of few chunks, and access is set and mappings are ended for the
 * whole of a request at once. CUDA maps, unmaps and releases a chunk only whole.
 *
 * Invariant: a chunk stands in the table at its first granule, where the book says that
 * it begins, and is mapped there, but for the granules of a call under way; those are the
 * caller's, so that their entries need no lock. The tables come under the lock and go
 * with their range. */
#include "cuda.h"

#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

/* Chunks lie in tables of so many granules (1 GiB), made when the first is committed. */
#define TABLE_GRANULES 512

/* Zeroed: no chunk begins here. */
typedef struct chunk {
    wr_cu_handle handle;
    uint64_t bytes;
} chunk;

typedef struct chunk_tables {
    size_t count;
    chunk *tables[];
} chunk_tables;

/* Whole granules of one range. */
typedef struct span {
    chunk_tables *chunks;
    uint64_t address;
    uint64_t bytes;
    uint64_t first; /* granule of the range */
    uint64_t count;
} span;

/* The entry of the granule `offset` bytes behind the start. */
static chunk *chunk_at(const wr_cuda *cuda, const span *part, uint64_t offset)
{
    uint64_t granule = part->first + offset / cuda->granule_bytes;
    return &part->chunks->tables[granule / TABLE_GRANULES][granule % TABLE_GRANULES];
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
    chunk_tables *chunks =
        wr_host_alloc(sizeof *chunks + count * sizeof chunks->tables[0]);
    if (range == NULL || chunks == NULL) {
        wr_host_free(chunks);
        wr_region_destroy(range);
        return NULL;
    }
    chunks->count = count;
    range->data = chunks;
    return range;
}

static void destroy_region(wr_region *range)
{
    chunk_tables *chunks = range->data;
    for (size_t i = 0; i < chunks->count; i++) {
        wr_host_free(chunks->tables[i]);
    }
    wr_host_free(chunks);
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
    const chunk_tables *chunks = range->data;
    for (size_t i = 0; i < chunks->count; i++) {
        for (size_t g = 0; chunks->tables[i] != NULL && g < TABLE_GRANULES; g++) {
            const chunk *made = &chunks->tables[i][g];
            uint64_t granule = i * TABLE_GRANULES + g;
            if (made->bytes != 0) {
                (void)cuda->api.unmap(range->address + granule * cuda->granule_bytes,
                                      made->bytes);
                (void)cuda->api.release(made->handle);
            }
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
        chunk **table = &part->chunks->tables[i];
        if (*table == NULL) {
            *table = wr_host_alloc(TABLE_GRANULES * sizeof(chunk));
        }
        if (*table == NULL) {
            return no_record();
        }
    }
    return WEIR_OK;
}

/* Marks bare granules as committed. */
static weir_result claim(wr_cuda *cuda, uint64_t address, uint64_t bytes,
                         uint64_t chunk_bytes, span *part)
{
    wr_region *range = NULL;
    WR_TRY(wr_regions_check_chunk(&cuda->book, chunk_bytes));
    wr_lock_take(&cuda->lock);
    weir_result result =
        wr_regions_get_bare(&cuda->book, "commit", address, bytes, &range);
    if (result == WEIR_OK) {
        *part = span_of(cuda, range, address, bytes);
        result = make_tables(part);
    }
    if (result == WEIR_OK) {
        wr_regions_mark_chunks(&cuda->book, range, address, bytes, chunk_bytes);
    }
    wr_lock_leave(&cuda->lock);
    return result;
}

/* Finds whole chunks that are committed. */
static weir_result find(wr_cuda *cuda, const char *call, uint64_t address, uint64_t bytes,
                        span *part)
{
    wr_region *range = NULL;
    wr_lock_take(&cuda->lock);
    weir_result result =
        wr_regions_get_committed(&cuda->book, call, address, bytes, &range);
    if (result == WEIR_OK) {
        *part = span_of(cuda, range, address, bytes);
    }
    wr_lock_leave(&cuda->lock);
    return result;
}

/* Marks committed granules as bare. */
static void disclaim(wr_cuda *cuda, const span *part)
{
    wr_lock_take(&cuda->lock);
    wr_regions_mark(&cuda->book, wr_regions_find(&cuda->book, part->address),
                    part->address, part->bytes, false);
    wr_lock_leave(&cuda->lock);
}

/* ---- CUDA calls, inside enter and leave ---- */

/* Ends the mappings of the first `bytes`, whole chunks, in one call. */
static wr_cu_result unmap_first(const wr_cuda *cuda, const span *part, uint64_t bytes)
{
    return bytes == 0 ? WR_CU_SUCCESS : cuda->api.unmap(part->address, bytes);
}

/* Maps the chunks of `chunks` at `part`; on failure the first `*done` bytes are mapped.
 */
static weir_result map_all(const wr_cuda *cuda, const char *call, const span *part,
                           const span *chunks, uint64_t *done)
{
    for (*done = 0; *done < part->bytes;) {
        const chunk *made = chunk_at(cuda, chunks, *done);
        wr_cu_result result =
            cuda->api.map(part->address + *done, made->bytes, 0, made->handle, 0);
        WR_TRY(wr_cuda_failed(cuda, result, call, part->bytes, "cuMemMap"));
        *done += made->bytes;
    }
    return WEIR_OK;
}

static weir_result open_access(const wr_cuda *cuda, const char *call, const span *part)
{
    wr_cu_access access = {{WR_CU_LOCATION_DEVICE, cuda->device}, WR_CU_ACCESS_READWRITE};
    wr_cu_result result = cuda->api.set_access(part->address, part->bytes, &access, 1);
    return wr_cuda_failed(cuda, result, call, part->bytes, "cuMemSetAccess");
}

/* Releases the chunks of the first `bytes`, all of them whatever happens; the first
 * failure. */
static wr_cu_result release_first(const wr_cuda *cuda, const span *part, uint64_t bytes)
{
    wr_cu_result first = WR_CU_SUCCESS;
    for (uint64_t done = 0; done < bytes;) {
        chunk *made = chunk_at(cuda, part, done);
        wr_cu_result result = cuda->api.release(made->handle);
        done += made->bytes;
        *made = (chunk){0};
        first = first == WR_CU_SUCCESS ? result : first;
    }
    return first;
}

/* On failure the first `*done` bytes have chunks. */
static weir_result create_all(const wr_cuda *cuda, const span *part, uint64_t chunk_bytes,
                              uint64_t *done)
{
    wr_cu_allocation what = {.type = WR_CU_ALLOCATION_PINNED,
                             .location = {WR_CU_LOCATION_DEVICE, cuda->device}};
    for (*done = 0; *done < part->bytes;) {
        uint64_t left = part->bytes - *done;
        chunk made = {.bytes = left < chunk_bytes ? left : chunk_bytes};
        wr_cu_result result = cuda->api.create(&made.handle, made.bytes, &what, 0);
        WR_TRY(wr_cuda_failed(cuda, result, "commit", part->bytes, "cuMemCreate"));
        *chunk_at(cuda, part, *done) = made;
        *done += made.bytes;
    }
    return WEIR_OK;
}

static weir_result fill(const wr_cuda *cuda, const span *part, uint64_t chunk_bytes)
{
    uint64_t created = 0;
    uint64_t mapped = 0;
    weir_result result = create_all(cuda, part, chunk_bytes, &created);
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
        result = wr_cuda_failed(cuda, unmap_first(cuda, from, from->bytes), "move",
                                from->bytes, "cuMemUnmap");
    }
    if (result != WEIR_OK) {
        (void)unmap_first(cuda, to, mapped);
        return result;
    }
    for (uint64_t done = 0; done < to->bytes;) {
        chunk *left = chunk_at(cuda, from, done);
        uint64_t bytes = left->bytes;
        *chunk_at(cuda, to, done) = *left;
        *left = (chunk){0};
        done += bytes;
    }
    return WEIR_OK;
}

/* ---- entries of the table ---- */

weir_result wr_cuda_commit_chunks(weir_driver *driver, uint64_t address, uint64_t bytes,
                                  uint64_t chunk_bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    span part;
    WR_TRY(claim(cuda, address, bytes, chunk_bytes, &part));
    weir_result result = wr_cuda_enter(cuda, "commit");
    if (result == WEIR_OK) {
        result = fill(cuda, &part, chunk_bytes);
        wr_cuda_leave(cuda);
    }
    if (result != WEIR_OK) {
        disclaim(cuda, &part);
        return result;
    }
    atomic_fetch_add(&cuda->charged_bytes, bytes);
    return WEIR_OK;
}

weir_result wr_cuda_commit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    return wr_cuda_commit_chunks(driver, address, bytes,
                                 wr_cuda_of(driver)->granule_bytes);
}

/* A chunk that cannot be released, which only a lost device does, is lost; the books go
 * on saying that its granules are committed. */
static weir_result drop(const wr_cuda *cuda, const span *part)
{
    WR_TRY(wr_cuda_failed(cuda, unmap_first(cuda, part, part->bytes), "decommit",
                          part->bytes, "cuMemUnmap"));
    return wr_cuda_failed(cuda, release_first(cuda, part, part->bytes), "decommit",
                          part->bytes, "cuMemRelease");
}

/* The granules are the caller's until this returns; they become bare in the book last, so
 * that a failure leaves it as it was. */
weir_result wr_cuda_decommit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_cuda *cuda = wr_cuda_of(driver);
    span part;
    WR_TRY(find(cuda, "decommit", address, bytes, &part));
    WR_TRY(wr_cuda_enter(cuda, "decommit"));
    weir_result result = drop(cuda, &part);
    wr_cuda_leave(cuda);
    if (result == WEIR_OK) {
        disclaim(cuda, &part);
        atomic_fetch_sub(&cuda->charged_bytes, bytes);
    }
    return result;
}

/* Marks bare granules as committed and chunks of as many committed ones as bare. */
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
        wr_regions_move(&cuda->book, target, to, source, from, bytes);
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
