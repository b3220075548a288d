/* SPDX-License-Identifier: MIT */
/* Measured with the CUDA driver API on an H200 (driver 580, CUDA 13.0), medians. The
 * machine was shared, so ratios are to be trusted more than figures.
 *
 * Virtual memory is charged by chunk, hardly by byte: the figures are those of 1 GiB in
 * chunks of one size, divided by the number of chunks. Mapping a chunk takes 1 us at
 * every size. Plain pages grow with their size. Between two rows the model goes straight,
 * over the logarithm of the size for chunks and over the size for pages; chunks beyond
 * the rows cost what the nearest row says, pages beyond them go on with the last slope.
 */
#include "cost.h"

#include <stddef.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define MAP_US 1.0
#define SECONDS_PER_US 1e-6

/* Microseconds for each chunk: create (cuMemCreate), open (cuMemSetAccess), unmap
 * (cuMemUnmap), release (cuMemRelease). */
static const struct chunk_row {
    uint64_t bytes;
    double create, open, unmap, release;
} chunks[] = {
    {2 * MIB, 7.4, 26.0, 15.4, 9.6},
    {8 * MIB, 7.8, 21.9, 14.1, 10.9},
    {32 * MIB, 8.8, 22.2, 14.7, 20.0},
    {128 * MIB, 10.0, 25.0, 15.0, 47.5},
};

/* Microseconds for each page: cuMemAlloc and cuMemFree, the device idle. */
static const struct page_row {
    uint64_t bytes;
    double alloc, free;
} pages[] = {
    {256, 35, 30},       {1 * MIB, 46, 38},     {64 * MIB, 77, 80},
    {1 * GIB, 211, 652}, {8 * GIB, 1070, 5698},
};

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

static double between(double low, double high, double part)
{
    return low + (high - low) * part;
}

/* Doublings above `low` bytes, a power of two; straight between two doublings. */
static double doublings_above(uint64_t low, uint64_t bytes)
{
    int whole = 63 - __builtin_clzll(bytes);
    double part = (double)bytes / (double)((uint64_t)1 << whole) - 1;
    return whole - __builtin_ctzll(low) + part;
}

/* Rows lie two doublings apart. */
static struct chunk_row chunk_cost(uint64_t chunk_bytes)
{
    size_t row = 0;
    while (row + 1 < ROWS(chunks) && chunk_bytes > chunks[row + 1].bytes) {
        row++;
    }
    if (row + 1 == ROWS(chunks) || chunk_bytes <= chunks[row].bytes) {
        return chunks[row];
    }
    const struct chunk_row *low = &chunks[row];
    const struct chunk_row *high = &chunks[row + 1];
    double part = doublings_above(low->bytes, chunk_bytes) / 2.0;
    return (struct chunk_row){
        .bytes = chunk_bytes,
        .create = between(low->create, high->create, part),
        .open = between(low->open, high->open, part),
        .unmap = between(low->unmap, high->unmap, part),
        .release = between(low->release, high->release, part),
    };
}

static struct page_row page_cost(uint64_t bytes)
{
    size_t row = 0;
    while (row + 2 < ROWS(pages) && bytes > pages[row + 1].bytes) {
        row++;
    }
    const struct page_row *low = &pages[row];
    const struct page_row *high = &pages[row + 1];
    if (bytes <= low->bytes) {
        return *low;
    }
    double part = (double)(bytes - low->bytes) / (double)(high->bytes - low->bytes);
    return (struct page_row){
        .bytes = bytes,
        .alloc = between(low->alloc, high->alloc, part),
        .free = between(low->free, high->free, part),
    };
}

double wr_sim_cost_page_alloc(uint64_t bytes)
{
    return page_cost(bytes).alloc * SECONDS_PER_US;
}

double wr_sim_cost_page_free(uint64_t bytes)
{
    return page_cost(bytes).free * SECONDS_PER_US;
}

double wr_sim_cost_commit(uint64_t chunk_bytes)
{
    struct chunk_row cost = chunk_cost(chunk_bytes);
    return (cost.create + MAP_US + cost.open) * SECONDS_PER_US;
}

double wr_sim_cost_decommit(uint64_t chunk_bytes)
{
    struct chunk_row cost = chunk_cost(chunk_bytes);
    return (cost.unmap + cost.release) * SECONDS_PER_US;
}

double wr_sim_cost_move(uint64_t chunk_bytes)
{
    struct chunk_row cost = chunk_cost(chunk_bytes);
    return (cost.unmap + MAP_US + cost.open) * SECONDS_PER_US;
}
