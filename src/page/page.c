/* SPDX-License-Identifier: MIT */
/* Pages: creation, residency of larger slices, spans. Guards as in page.h. */
#include "page.h"

#include "base/lock.h"
#include "base/memory.h"

#include <string.h>

#define PAGE_RECORDS (UINT32_C(1) << 22)
#define PAGE_CHUNK UINT32_C(512) /* whole OS pages, whatever the size of a record */

wr_page *wr_page_base;

static struct {
    wr_lock lock;
    uint32_t limit; /* records below are backed */
    uint32_t first; /* spares, by next_spare; 0 none */
} records;

static bool grow_records(void)
{
    if (wr_page_base == NULL) {
        wr_page_base = wr_host_reserve(PAGE_RECORDS * sizeof(wr_page));
    }
    if (wr_page_base == NULL || records.limit + PAGE_CHUNK > PAGE_RECORDS ||
        !wr_host_commit(wr_page_base + records.limit, PAGE_CHUNK * sizeof(wr_page))) {
        return false;
    }
    for (uint32_t id = records.limit + PAGE_CHUNK; id-- > records.limit && id > 0;) {
        wr_page_base[id].next_spare = records.first;
        records.first = id;
    }
    records.limit += PAGE_CHUNK;
    return true;
}

static wr_page *take_record(void)
{
    wr_page *page = NULL;
    wr_lock_take(&records.lock);
    if (records.first != 0 || grow_records()) {
        page = wr_page_base + records.first;
        uint32_t id = records.first;
        records.first = page->next_spare;
        memset(page, 0, sizeof *page);
        page->id = id;
    }
    wr_lock_leave(&records.lock);
    return page;
}

static void leave_record(wr_page *page)
{
    wr_lock_take(&records.lock);
    page->next_spare = records.first;
    records.first = page->id;
    wr_lock_leave(&records.lock);
}

/* The arrays of a page with granules: addresses for all, memory for what gets touched. */
static bool create_arrays(wr_page *page)
{
    size_t count = page->granule_count;
    page->storage_bytes =
        count * (sizeof(wr_granule) + 2 * sizeof(uint64_t)) + sizeof(uint64_t);
    page->storage = wr_host_map(page->storage_bytes);
    if (page->storage == NULL) {
        return false;
    }
    page->granules = page->storage;
    page->marks = (uint64_t *)(page->granules + count);
    page->chunks = (_Atomic uint64_t *)(page->marks + count);
    return true;
}

wr_page *wr_page_create(uint64_t address, uint64_t bytes, uint64_t granule_bytes,
                        struct wr_pool *owner)
{
    wr_page *page = take_record();
    if (page == NULL) {
        return NULL;
    }
    page->address = address;
    page->bytes = bytes;
    page->granule_bytes = granule_bytes == 0 ? bytes : granule_bytes;
    page->granule_shift =
        granule_bytes == 0 ? 63 : (uint32_t)__builtin_ctzll(granule_bytes);
    page->granule_count = granule_bytes == 0 ? 1 : (uint32_t)(bytes / granule_bytes);
    page->wear = WR_PAGE_WORN;
    if (granule_bytes == 0) {
        page->granules = &page->single;
        page->marks = &page->single_mark;
        page->chunks = page->single_chunks;
        page->touched = 1;
        atomic_init(&page->single.owner, owner);
    } else if (!create_arrays(page)) {
        leave_record(page);
        return NULL;
    }
    return page;
}

void wr_page_destroy(wr_page *page)
{
    wr_host_unreserve(page->storage, page->storage_bytes);
    page->storage = NULL;
    wr_lifeline_destroy(page->lifeline);
    leave_record(page);
}

/* ---- chunks ---- */

static void set_chunk(wr_page *page, uint32_t granule, uint64_t chunk)
{
    atomic_store_explicit(&page->chunks[granule], chunk, memory_order_relaxed);
}

void wr_page_set_chunks(wr_page *page, uint64_t address, uint64_t bytes,
                        uint64_t chunk_bytes)
{
    uint32_t first = wr_page_granule(page, address);
    uint32_t count = (uint32_t)(bytes / page->granule_bytes);
    uint64_t step = chunk_bytes / page->granule_bytes;
    step = step == 0 ? 1 : step;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t before = i % step, behind = step - 1 - before;
        uint64_t most = count - 1 - i;
        set_chunk(page, first + i, before | (behind < most ? behind : most) << 32);
    }
}

void wr_page_copy_chunks(wr_page *page, uint64_t to, const wr_page *source, uint64_t from,
                         uint64_t bytes)
{
    uint32_t target = wr_page_granule(page, to);
    uint32_t origin = wr_page_granule(source, from);
    uint32_t count = (uint32_t)(bytes / page->granule_bytes);
    for (uint32_t i = 0; i < count; i++) {
        set_chunk(page, target + i,
                  atomic_load_explicit(&source->chunks[origin + i],
                                       memory_order_relaxed));
    }
}

/* ---- spans ---- */

static struct wr_pool *owner_of(const wr_page *page, uint32_t granule)
{
    return atomic_load_explicit(&page->granules[granule].owner, memory_order_acquire);
}

void wr_page_replace(wr_page *page, wr_slice *slice, wr_slice *fresh)
{
    wr_slice_id id = wr_slice_id_of(fresh);
    fresh->address = slice->address;
    fresh->extent_bytes = slice->extent_bytes;
    fresh->pool = slice->pool;
    fresh->page = slice->page;
    fresh->state = slice->state;
    fresh->prev = slice->prev;
    fresh->next = slice->next;
    slice->state = WR_SLICE_STATE_OTHER;
    if (slice->prev != 0) {
        wr_slice_get(slice->prev)->next = id;
    } else {
        page->granules[wr_page_granule(page, slice->address)].first = id;
    }
    if (slice->next != 0) {
        wr_slice_get(slice->next)->prev = id;
    } else {
        page->granules[wr_page_granule(page, wr_slice_end(slice) - 1)].last = id;
    }
}

void wr_page_unlink(wr_page *page, wr_slice *slice)
{
    uint32_t first = wr_page_granule(page, slice->address);
    uint32_t last = wr_page_granule(page, wr_slice_end(slice) - 1);
    if (slice->prev != 0) {
        wr_slice_get(slice->prev)->next = 0;
        page->granules[first - 1].last = slice->prev;
    }
    if (slice->next != 0) {
        wr_slice_get(slice->next)->prev = 0;
        page->granules[last + 1].first = slice->next;
    }
    slice->prev = slice->next = 0;
    page->granules[first].first = page->granules[last].last = wr_slice_id_of(slice);
}

void wr_page_link(wr_page *page, wr_slice *slice, struct wr_pool *owner)
{
    uint32_t first = wr_page_granule(page, slice->address);
    uint32_t last = wr_page_granule(page, wr_slice_end(slice) - 1);
    wr_slice_id id = wr_slice_id_of(slice);
    wr_granule *end = &page->granules[last] + 1;
    for (wr_granule *granule = &page->granules[first]; granule < end; granule++) {
        atomic_store_explicit(&granule->owner, owner, memory_order_release);
    }
    slice->pool = owner;
    slice->prev = slice->next = 0;
    page->granules[first].first = page->granules[last].last = id;
    if (first > 0 && owner_of(page, first - 1) == owner) {
        slice->prev = page->granules[first - 1].last;
        wr_slice_get(slice->prev)->next = id;
    }
    if (last + 1 < page->granule_count && owner_of(page, last + 1) == owner) {
        slice->next = page->granules[last + 1].first;
        wr_slice_get(slice->next)->prev = id;
    }
}
