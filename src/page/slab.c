/* SPDX-License-Identifier: MIT */
/* The slab of slice records: one reservation of addresses for the whole process, backed
 * chunk by chunk and never given back, since stale handles may point anywhere into it.
 * Spare records wait in a process-wide list (guard: `lock`) and in caches of their users.
 */
#include "slice.h"

#include "base/lock.h"
#include "base/memory.h"

#define SLAB_BYTES ((size_t)1 << 32) /* so many addresses; ids have 32 bits */
#define CHUNK_BYTES ((size_t)1 << 15)
/* An OS page's worth, as processors fetch ahead within one, out of the hands of others;
 * but no more, since all of them are touched at once. */
#define REFILL_RECORDS UINT32_C(64)
#define RECORD_PAIR UINT32_C(2) /* records go in pairs, as cache lines are fetched */

wr_slice *wr_slab_base;

static struct {
    wr_lock lock;
    uint32_t end;          /* what wr_wiped.slab_end is, or was before a fork */
    size_t capacity_bytes; /* what the reservation has room for */
    wr_slice_id first;     /* spares, linked by next */
    uint32_t count;
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

/* Backs one more chunk and lists its records, lowest first. Record 0 is never handed out
 * (its generation 0 makes it a spare that is no good), nor the one beside it; nor is the
 * last chunk, so that the end has 32 bits too. */
static bool grow(void)
{
    size_t begin = slab.end;
    if (begin + CHUNK_BYTES >= slab.capacity_bytes ||
        !wr_host_commit((char *)wr_slab_base + begin, CHUNK_BYTES)) {
        return false;
    }
    size_t id = begin + CHUNK_BYTES;
    while (id > begin) {
        id -= sizeof(wr_slice);
        wr_slice *slice = wr_slice_get((wr_slice_id)id);
        if (id >= RECORD_PAIR * sizeof(wr_slice)) {
            atomic_init(&slice->word, UINT64_C(1) << 32);
            slice->next = slab.first;
            slab.first = (wr_slice_id)id;
            slab.count++;
        }
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
    uint32_t wanted = count + REFILL_RECORDS;
    while (cache->count < wanted || slab.count % RECORD_PAIR != 0) {
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
