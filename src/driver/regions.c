/* SPDX-License-Identifier: MIT */
#include "regions.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

#define WORD_BITS 64

wr_region *wr_region_create_page(uint64_t bytes)
{
    wr_region *region = wr_host_alloc(sizeof *region);
    if (region != NULL) {
        region->bytes = bytes;
    }
    return region;
}

static size_t range_bytes(size_t words)
{
    return sizeof(wr_region) + 2 * words * sizeof(uint64_t);
}

/* Granules are many, and most are never touched: their bits take no memory then. */
wr_region *wr_region_create_range(uint64_t bytes, uint64_t granule_bytes)
{
    uint64_t words = (bytes / granule_bytes + WORD_BITS - 1) / WORD_BITS;
    wr_region *region = wr_host_map(range_bytes(words));
    if (region != NULL) {
        region->bytes = bytes;
        region->word_count = words;
        region->is_range = true;
    }
    return region;
}

void wr_region_destroy(wr_region *region)
{
    if (region != NULL && region->is_range) {
        wr_host_unreserve(region, range_bytes(region->word_count));
    } else {
        wr_host_free(region);
    }
}

/* ---- the tree ----
 *
 * A treap after Seidel and Aragon, "Randomized Search Trees" (1996): ordered by address,
 * and no node has a higher priority than its parent. */

/* The finalizer of splitmix64: every bit of the address reaches every bit of the result.
 */
static uint64_t hash(uint64_t address)
{
    uint64_t x = address;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void split(wr_region *tree, uint64_t address, wr_region **lower,
                  wr_region **higher)
{
    while (tree != NULL) {
        if (tree->address < address) {
            *lower = tree;
            lower = &tree->right;
            tree = tree->right;
        } else {
            *higher = tree;
            higher = &tree->left;
            tree = tree->left;
        }
    }
    *lower = NULL;
    *higher = NULL;
}

static wr_region *join(wr_region *lower, wr_region *higher)
{
    wr_region *root = NULL;
    wr_region **link = &root;
    while (lower != NULL && higher != NULL) {
        if (lower->priority > higher->priority) {
            *link = lower;
            link = &lower->right;
            lower = lower->right;
        } else {
            *link = higher;
            link = &higher->left;
            higher = higher->left;
        }
    }
    *link = lower != NULL ? lower : higher;
    return root;
}

void wr_regions_add(wr_regions *book, wr_region *region)
{
    WR_ASSERT(wr_regions_find(book, region->address) == NULL);
    region->priority = hash(region->address);
    wr_region **link = &book->root;
    while (*link != NULL && (*link)->priority >= region->priority) {
        link = region->address < (*link)->address ? &(*link)->left : &(*link)->right;
    }
    split(*link, region->address, &region->left, &region->right);
    *link = region;
}

void wr_regions_remove(wr_regions *book, wr_region *region)
{
    wr_region **link = &book->root;
    while (*link != region) {
        WR_ASSERT(*link != NULL);
        link = region->address < (*link)->address ? &(*link)->left : &(*link)->right;
    }
    *link = join(region->left, region->right);
    region->left = NULL;
    region->right = NULL;
}

wr_region *wr_regions_remove_any(wr_regions *book)
{
    wr_region *region = book->root;
    if (region != NULL) {
        wr_regions_remove(book, region);
    }
    return region;
}

wr_region *wr_regions_find(const wr_regions *book, uint64_t address)
{
    wr_region *found = NULL;
    for (wr_region *node = book->root; node != NULL;) {
        if (node->address <= address) {
            found = node;
            node = node->right;
        } else {
            node = node->left;
        }
    }
    return found != NULL && address - found->address < found->bytes ? found : NULL;
}

/* ---- granules ---- */

static bool read_bit(const uint64_t *bits, uint64_t at)
{
    return bits[at / WORD_BITS] >> at % WORD_BITS & 1;
}

/* The end of the bits from `at` on, before `end`, that are all set, or all not. */
static uint64_t find_run_end(const uint64_t *bits, uint64_t at, uint64_t end, bool set)
{
    uint64_t flip = set ? UINT64_MAX : 0;
    while (at < end) {
        uint64_t others = (bits[at / WORD_BITS] ^ flip) >> at % WORD_BITS;
        if (others != 0) {
            at += (uint64_t)__builtin_ctzll(others);
            return at < end ? at : end;
        }
        at += WORD_BITS - at % WORD_BITS;
    }
    return end;
}

static void fill_bits(uint64_t *bits, uint64_t at, uint64_t end, bool set)
{
    while (at < end) {
        uint64_t next = at + WORD_BITS - at % WORD_BITS;
        uint64_t mask = UINT64_MAX << at % WORD_BITS;
        mask &= next > end ? UINT64_MAX >> (next - end) : UINT64_MAX;
        uint64_t *word = &bits[at / WORD_BITS];
        *word = set ? *word | mask : *word & ~mask;
        at = next;
    }
}

static const uint64_t *joined_of(const wr_region *region)
{
    return region->granules + region->word_count;
}

static bool is_committed(const wr_region *region, uint64_t granule)
{
    return read_bit(region->granules, granule);
}

static uint64_t granule_of(const wr_regions *book, const wr_region *region,
                           uint64_t address)
{
    return (address - region->address) / book->granule_bytes;
}

/* A bare granule is joined to none. */
static bool is_joined(const wr_regions *book, const wr_region *region, uint64_t granule)
{
    return granule < region->bytes / book->granule_bytes &&
           read_bit(joined_of(region), granule);
}

/* Granules that all have the other state; none is joined. */
static void set_granules(wr_region *region, uint64_t first, uint64_t end, bool committed)
{
    WR_ASSERT(find_run_end(region->granules, first, end, !committed) == end);
    fill_bits(region->granules, first, end, committed);
    fill_bits(region->granules + region->word_count, first, end, false);
    region->committed_count += committed ? end - first : first - end;
}

uint64_t wr_regions_run_end(const wr_regions *book, const wr_region *region,
                            uint64_t address, uint64_t limit, bool *backed)
{
    *backed = true;
    if (!region->is_range) {
        return region->address + region->bytes;
    }
    uint64_t count = region->bytes / book->granule_bytes;
    uint64_t wanted = granule_of(book, region, limit + book->granule_bytes - 1);
    count = wanted < count ? wanted : count;
    uint64_t granule = granule_of(book, region, address);
    *backed = is_committed(region, granule);
    granule = find_run_end(region->granules, granule + 1, count, *backed);
    return region->address + granule * book->granule_bytes;
}

void wr_regions_mark_chunks(const wr_regions *book, wr_region *region, uint64_t address,
                            uint64_t bytes, uint64_t chunk_bytes)
{
    uint64_t *joined = region->granules + region->word_count;
    uint64_t first = granule_of(book, region, address);
    uint64_t end = first + bytes / book->granule_bytes;
    uint64_t step = chunk_bytes / book->granule_bytes;
    set_granules(region, first, end, true);
    for (uint64_t chunk = first; step > 1 && chunk < end; chunk += step) {
        fill_bits(joined, chunk + 1, chunk + step < end ? chunk + step : end, true);
    }
}

void wr_regions_mark(const wr_regions *book, wr_region *region, uint64_t address,
                     uint64_t bytes, bool committed)
{
    uint64_t first = granule_of(book, region, address);
    set_granules(region, first, first + bytes / book->granule_bytes, committed);
}

void wr_regions_move(const wr_regions *book, wr_region *target, uint64_t to,
                     wr_region *source, uint64_t from, uint64_t bytes)
{
    uint64_t *joined = target->granules + target->word_count;
    uint64_t first = granule_of(book, target, to);
    uint64_t origin = granule_of(book, source, from);
    uint64_t count = bytes / book->granule_bytes, end = origin + count;
    set_granules(target, first, first + count, true);
    uint64_t at = origin;
    while ((at = find_run_end(joined_of(source), at, end, false)) < end) {
        uint64_t run_end = find_run_end(joined_of(source), at, end, true);
        fill_bits(joined, first + (at - origin), first + (run_end - origin), true);
        at = run_end;
    }
    set_granules(source, origin, end, false);
}

uint64_t wr_regions_chunk_run(const wr_regions *book, const wr_region *region,
                              uint64_t address, uint64_t bytes, uint64_t *chunk_bytes)
{
    const uint64_t *joined = joined_of(region);
    uint64_t first = granule_of(book, region, address);
    uint64_t end = first + bytes / book->granule_bytes;
    uint64_t chunk_end = find_run_end(joined, first + 1, end, true);
    *chunk_bytes = (chunk_end - first) * book->granule_bytes;
    if (chunk_end > first + 1 || chunk_end == end) {
        return 1;
    }
    uint64_t next = find_run_end(joined, first + 1, end, false);
    return next == end ? end - first : next - 1 - first;
}

/* ---- checks ---- */

weir_result wr_regions_check_size(const wr_regions *book, const char *call,
                                  uint64_t bytes)
{
    if (book->granule_bytes == 0) {
        return wr_error(WEIR_UNSUPPORTED, "%s: %s: this device has no granules",
                        book->driver, call);
    }
    if (bytes == 0 || bytes % book->granule_bytes != 0) {
        return wr_error(WEIR_INVALID,
                        "%s: %s of %" PRIu64
                        " bytes: not a positive multiple of the granule,"
                        " %" PRIu64 " bytes",
                        book->driver, call, bytes, book->granule_bytes);
    }
    return WEIR_OK;
}

weir_result wr_regions_check_chunk(const wr_regions *book, uint64_t chunk_bytes)
{
    return wr_regions_check_size(book, "commit_chunks", chunk_bytes);
}

static weir_result misuse(const wr_regions *book, const char *call, uint64_t address,
                          uint64_t bytes, const char *what)
{
    return wr_error(WEIR_INVALID, "%s: %s of %" PRIu64 " bytes at 0x%" PRIx64 ": %s",
                    book->driver, call, bytes, address, what);
}

static wr_region *find_exact(const wr_regions *book, uint64_t address, uint64_t bytes,
                             bool is_range)
{
    wr_region *region = wr_regions_find(book, address);
    bool exact = region != NULL && region->address == address && region->bytes == bytes &&
                 region->is_range == is_range;
    return exact ? region : NULL;
}

weir_result wr_regions_get_page(const wr_regions *book, const char *call,
                                uint64_t address, uint64_t bytes, wr_region **region)
{
    wr_region *found = find_exact(book, address, bytes, false);
    if (found == NULL) {
        return misuse(book, call, address, bytes, "no page has this address and size");
    }
    *region = found;
    return WEIR_OK;
}

weir_result wr_regions_get_range(const wr_regions *book, const char *call,
                                 uint64_t address, uint64_t bytes, wr_region **region)
{
    wr_region *found = find_exact(book, address, bytes, true);
    if (found == NULL) {
        return misuse(book, call, address, bytes, "no range has this address and size");
    }
    if (found->committed_count != 0) {
        return misuse(book, call, address, bytes, "granules of it are still committed");
    }
    *region = found;
    return WEIR_OK;
}

/* The range that has these whole granules. */
static weir_result get_granules(const wr_regions *book, const char *call,
                                uint64_t address, uint64_t bytes, wr_region **region)
{
    WR_TRY(wr_regions_check_size(book, call, bytes));
    wr_region *found = wr_regions_find(book, address);
    if (found == NULL || !found->is_range ||
        bytes > found->bytes - (address - found->address)) {
        return misuse(book, call, address, bytes, "not inside a range");
    }
    if ((address - found->address) % book->granule_bytes != 0) {
        return misuse(book, call, address, bytes, "not at the start of a granule");
    }
    *region = found;
    return WEIR_OK;
}

/* Whether all bytes from `address` on have memory, or none of them. */
static bool are_all(const wr_regions *book, const wr_region *region, uint64_t address,
                    uint64_t bytes, bool backed)
{
    bool found;
    if (bytes > region->bytes - (address - region->address)) {
        return false;
    }
    uint64_t end = wr_regions_run_end(book, region, address, address + bytes, &found);
    return found == backed && end - address >= bytes;
}

weir_result wr_regions_get_committed(const wr_regions *book, const char *call,
                                     uint64_t address, uint64_t bytes, wr_region **region)
{
    wr_region *found;
    WR_TRY(get_granules(book, call, address, bytes, &found));
    if (!are_all(book, found, address, bytes, true)) {
        return misuse(book, call, address, bytes, "granules of it are not committed");
    }
    uint64_t first = granule_of(book, found, address);
    if (is_joined(book, found, first) ||
        is_joined(book, found, first + bytes / book->granule_bytes)) {
        return misuse(book, call, address, bytes, "it cuts a chunk");
    }
    *region = found;
    return WEIR_OK;
}

weir_result wr_regions_get_bare(const wr_regions *book, const char *call,
                                uint64_t address, uint64_t bytes, wr_region **region)
{
    wr_region *found;
    WR_TRY(get_granules(book, call, address, bytes, &found));
    if (!are_all(book, found, address, bytes, false)) {
        return misuse(book, call, address, bytes, "granules of it are committed already");
    }
    *region = found;
    return WEIR_OK;
}

weir_result wr_regions_check_backed(const wr_regions *book, const char *call,
                                    uint64_t address, uint64_t bytes)
{
    if (bytes == 0) {
        return WEIR_OK;
    }
    const wr_region *region = wr_regions_find(book, address);
    if (region == NULL) {
        return misuse(book, call, address, bytes, "in no page and no range");
    }
    if (!are_all(book, region, address, bytes, true)) {
        return misuse(book, call, address, bytes, "not all of it has memory");
    }
    return WEIR_OK;
}
