/* SPDX-License-Identifier: MIT */
/* The slab of slice records: one reservation of addresses for the whole process, backed
 * chunk by chunk and never given back, since stale handles may point anywhere into it.
 * Spare records wait in a process-wide list (guard: `lock`) and in caches of their users.
 */
#include "slice.h"

#include "base/lock.h"
#include "base/memory.h"

#define SLAB_RECORDS (UINT32_C(1) << 26) /* 4 GiB of addresses */
#define CHUNK_RECORDS UINT32_C(1024)
#define REFILL_RECORDS UINT32_C(64)

wr_slice *wr_slab_base;

static struct {
    wr_lock lock;
    _Atomic uint32_t limit; /* records below are backed */
    uint32_t capacity;      /* records that the reservation has room for */
    wr_slice_id first;      /* spares, linked by next */
    uint32_t count;
} slab;

bool wr_slab_open(void)
{
    wr_lock_take(&slab.lock);
    for (uint32_t records = SLAB_RECORDS;
         wr_slab_base == NULL && records >= CHUNK_RECORDS; records /= 2) {
        wr_slab_base = wr_host_reserve((size_t)records * sizeof(wr_slice));
        slab.capacity = wr_slab_base == NULL ? 0 : records;
    }
    bool opened = wr_slab_base != NULL;
    wr_lock_leave(&slab.lock);
    return opened;
}

uint32_t wr_slab_limit(void)
{
    return atomic_load_explicit(&slab.limit, memory_order_acquire);
}

/* Backs one more chunk and lists its records, lowest first. Record 0 is never handed out.
 */
static bool grow(void)
{
    uint32_t begin = atomic_load_explicit(&slab.limit, memory_order_relaxed);
    if (begin + CHUNK_RECORDS > slab.capacity ||
        !wr_host_commit(wr_slab_base + begin, CHUNK_RECORDS * sizeof(wr_slice))) {
        return false;
    }
    for (uint32_t id = begin + CHUNK_RECORDS; id-- > begin;) {
        if (id == 0) {
            break;
        }
        wr_slice *slice = wr_slice_get(id);
        atomic_init(&slice->word, UINT64_C(1) << 32);
        slice->next = slab.first;
        slab.first = id;
        slab.count++;
    }
    atomic_store_explicit(&slab.limit, begin + CHUNK_RECORDS, memory_order_release);
    return true;
}

bool wr_slab_fill(wr_slab_cache *cache, uint32_t count)
{
    if (cache->count >= count) {
        return true;
    }
    wr_lock_take(&slab.lock);
    uint32_t wanted = count + REFILL_RECORDS;
    while (cache->count < wanted) {
        if (slab.count == 0 && (cache->count >= count || !grow())) {
            break;
        }
        wr_slice *slice = wr_slice_get(slab.first);
        slab.first = slice->next;
        slab.count--;
        wr_slab_push(cache, slice);
    }
    wr_lock_leave(&slab.lock);
    return cache->count >= count;
}

void wr_slab_trim(wr_slab_cache *cache, uint32_t keep)
{
    if (cache->count <= keep) {
        return;
    }
    wr_lock_take(&slab.lock);
    while (cache->count > keep) {
        wr_slice *slice = wr_slab_pop(cache);
        slice->next = slab.first;
        slab.first = wr_slice_id_of(slice);
        slab.count++;
    }
    wr_lock_leave(&slab.lock);
}
