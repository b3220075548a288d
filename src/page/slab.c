/* SPDX-License-Identifier: MIT */
/* The slab of slice records: one reservation of addresses for the whole process, backed
 * chunk by chunk and never given back, since stale handles may point anywhere into it.
 * Spare records wait in caches of their users and, by batches, in a process-wide list
 * (guard: `lock`): a batch changes hands as a whole, whatever it holds, as the magazines
 * of Bonwick and Adams do (USENIX 2001). */
#include "slice.h"

#include "base/lock.h"
#include "base/memory.h"

#define SLAB_BYTES ((size_t)1 << 32) /* so many addresses; ids have 32 bits */
#define CHUNK_BYTES ((size_t)1 << 15)
/* An OS page's worth, as processors fetch ahead within one, out of others' hands. */
#define BATCH_RECORDS UINT32_C(64)

wr_slice *wr_slab_base;

static struct {
    wr_lock lock;
    uint32_t end;          /* what wr_wiped.slab_end is, or was before a fork */
    size_t capacity_bytes; /* what the reservation has room for */
    wr_slice_id batches;   /* first records of batches, linked by batch.next */
} slab;

bool wr_slab_open(void)
{
    wr_lock_take(&slab.lock);
    for (size_t bytes = SLAB_BYTES; wr_slab_base == NULL && bytes >= CHUNK_BYTES;
         bytes /= 2) {
        wr_slab_base = wr_host_reserve(bytes);
        slab.capacity_bytes = bytes;
    }
    bool opened = wr_slab_base != NULL;
    atomic_store_explicit(&wr_wiped.slab_end, slab.end, memory_order_release);
    wr_lock_leave(&slab.lock);
    return opened;
}

static void list_batch(wr_slice *first, const wr_slice *last, uint32_t count)
{
    first->batch.last = wr_slice_id_of(last);
    first->batch.count = count;
    first->batch.next = slab.batches;
    slab.batches = wr_slice_id_of(first);
}

static void take_batch(wr_slab_cache *cache)
{
    const wr_slice *first = wr_slice_get(slab.batches);
    wr_slice_get(first->batch.last)->next = cache->first;
    cache->first = slab.batches;
    cache->count += first->batch.count;
    slab.batches = first->batch.next;
}

/* Lists the records from `begin` up to `end`, which were never used, as one batch. */
static void list_fresh(size_t begin, size_t end)
{
    for (size_t id = begin; id < end; id += sizeof(wr_slice)) {
        wr_slice *slice = wr_slice_get((wr_slice_id)id);
        atomic_init(&slice->word, UINT64_C(1) << 32);
        slice->next = (wr_slice_id)(id + sizeof(wr_slice));
    }
    list_batch(wr_slice_get((wr_slice_id)begin),
               wr_slice_get((wr_slice_id)(end - sizeof(wr_slice))),
               (uint32_t)((end - begin) / sizeof(wr_slice)));
}

/* Backs one more chunk and lists its batches, lowest first. Record 0 is never handed out
 * (its generation 0 makes it a spare that is no good), nor the one beside it, as cache
 * lines are fetched by pairs; nor is the last chunk, so that the end has 32 bits too. */
static bool grow(void)
{
    size_t begin = slab.end;
    if (begin + CHUNK_BYTES >= slab.capacity_bytes ||
        !wr_host_commit((char *)wr_slab_base + begin, CHUNK_BYTES)) {
        return false;
    }
    size_t batch_bytes = BATCH_RECORDS * sizeof(wr_slice);
    for (size_t end = begin + CHUNK_BYTES; end > begin; end -= batch_bytes) {
        size_t first = end - batch_bytes;
        list_fresh(first == 0 ? 2 * sizeof(wr_slice) : first, end);
    }
    slab.end = (uint32_t)(begin + CHUNK_BYTES);
    atomic_store_explicit(&wr_wiped.slab_end, slab.end, memory_order_release);
    return true;
}

bool wr_slab_fill(wr_slab_cache *cache, uint32_t count)
{
    if (cache->count >= count) {
        return true;
    }
    wr_lock_take(&slab.lock);
    while (cache->count < count && (slab.batches != 0 || grow())) {
        take_batch(cache);
    }
    wr_lock_leave(&slab.lock);
    return cache->count >= count;
}

void wr_slab_trim(wr_slab_cache *cache, uint32_t keep)
{
    while (cache->count > keep) {
        uint32_t excess = cache->count - keep;
        uint32_t count = excess < BATCH_RECORDS ? excess : BATCH_RECORDS;
        wr_slice *first = wr_slice_get(cache->first);
        const wr_slice *last = first;
        for (uint32_t i = 1; i < count; i++) {
            last = wr_slice_get(last->next);
        }
        cache->first = last->next;
        cache->count -= count;
        wr_lock_take(&slab.lock);
        list_batch(first, last, count);
        wr_lock_leave(&slab.lock);
    }
}
