/* SPDX-License-Identifier: MIT */
#include "shared.h"

#include "grow.h"
#include "ladder.h"
#include "probe.h"

#include "base/result.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define SHARE_BYTES (UINT64_C(2) << 20)

uint64_t wr_shared_page_bytes(const wr_bank *bank, uint64_t bytes)
{
    uint64_t granule = bank->properties.granule_bytes;
    uint64_t unit = granule > SHARE_BYTES ? granule : SHARE_BYTES;
    return (bytes + unit - 1) / unit * unit;
}

/* The pool that is shared; NULL: the driver has no such memory. */
static wr_pool *pool_of(wr_manager *manager)
{
    uint32_t last = manager->bank->class_count - 1;
    return manager->pools[last].layout->shared ? &manager->pools[last] : NULL;
}

static weir_result refuse(const wr_bank *bank)
{
    return wr_error(WEIR_UNSUPPORTED,
                    "driver %s has no memory that other processes can map; create the "
                    "buffer without `exportable`",
                    bank->table->name);
}

/* ---- new pages ---- */

/* From now on the page serves no other request. */
static void set_apart(wr_manager *manager, wr_pool *pool, const wr_slice *slice)
{
    wr_manager_lock(manager);
    wr_pool_outdate(pool, wr_page_get(slice->page));
    wr_manager_unlock(manager);
}

static weir_result reserve_new(wr_manager *manager, wr_pool *pool,
                               const wr_request *request, wr_slice **slice)
{
    WR_TRY(wr_ladder_reserve(manager, request, slice));
    set_apart(manager, pool, *slice);
    return WEIR_OK;
}

/* ---- other processes' pages ---- */

/* The record of a page that is mapped and nobody's yet. */
static weir_result map_page(wr_bank *bank, const wr_request *request, uint64_t bytes,
                            wr_page **page_out)
{
    wr_page *page = wr_page_create(0, bytes, 0, NULL);
    if (page == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a page's books");
    }
    page->lifeline = wr_lifeline_join(request->imported->lives_file);
    weir_result result = WEIR_OUT_OF_HOST_MEMORY;
    if (page->lifeline != NULL) {
        WR_COUNT(bank->events.page_allocs);
        result = bank->table->share_import(bank->driver, request->imported->memory_file,
                                           bytes, &page->address);
    }
    if (result != WEIR_OK) {
        wr_page_destroy(page);
        return wr_probe_heed(bank, result);
    }
    *page_out = page;
    return WEIR_OK;
}

/* Under the lock, with spares and an open pool: enters the page and hands it out. */
static wr_slice *hand_out(wr_manager *manager, wr_pool *pool, wr_page *page,
                          const wr_request *request)
{
    wr_bank *bank = manager->bank;
    wr_request given = *request;
    wr_slice *slice = wr_slab_pop(&manager->cache);
    wr_sequence_begin(&manager->sequence);
    wr_bank_lock(bank);
    wr_grow_enter_page(manager, pool, page, slice);
    wr_bank_unlock(bank);
    wr_sequence_end(&manager->sequence);
    given.pool = pool;
    given.given = slice;
    slice = wr_manager_try_reserve(manager, &given);
    wr_pool_outdate(pool, page);
    return slice;
}

static wr_slice *settle_import(wr_manager *manager, wr_pool *pool, wr_page *page,
                               const wr_request *request)
{
    wr_slice *slice = NULL;
    wr_manager_lock(manager);
    if (wr_grow_prepare(manager, pool)) {
        slice = hand_out(manager, pool, page, request);
    }
    wr_manager_unlock(manager);
    return slice;
}

static void end_promise(wr_bank *bank, uint32_t number, uint64_t bytes)
{
    wr_lock_take(&bank->lock);
    bank->promised -= bytes;
    bank->classes[number].promised -= bytes;
    wr_lock_leave(&bank->lock);
}

static weir_result import(wr_manager *manager, wr_pool *pool, const wr_request *request,
                          wr_slice **slice_out)
{
    wr_bank *bank = manager->bank;
    uint64_t bytes = wr_shared_page_bytes(bank, request->requested_bytes);
    wr_page *page = NULL;
    bool full;
    WR_TRY(wr_grow_promise(bank, &bank->classes[pool->number], bytes, &full));
    weir_result result = map_page(bank, request, bytes, &page);
    wr_slice *slice = NULL;
    if (result == WEIR_OK) {
        slice = settle_import(manager, pool, page, request);
    }
    end_promise(bank, pool->number, bytes);
    if (result == WEIR_OK && slice == NULL) {
        bank->table->page_free(bank->driver, page->address, bytes);
        wr_page_destroy(page);
        result = wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a slice's record");
    }
    *slice_out = result == WEIR_OK ? slice : *slice_out;
    return result;
}

weir_result wr_shared_reserve(wr_manager *manager, const wr_request *request,
                              wr_slice **slice)
{
    wr_pool *pool = pool_of(manager);
    if (pool == NULL) {
        return refuse(manager->bank);
    }
    return request->imported != NULL ? import(manager, pool, request, slice)
                                     : reserve_new(manager, pool, request, slice);
}

/* ---- handing over ---- */

/* The page's lifeline, made with its first export, and a copy of its end. */
static weir_result share_lifeline(wr_page *page, int *lives)
{
    if (page->lifeline == NULL) {
        page->lifeline = wr_lifeline_create();
    }
    if (page->lifeline == NULL) {
        return WEIR_OUT_OF_HOST_MEMORY;
    }
    if (page->lifeline->watch < 0) {
        return wr_error(WEIR_INVALID,
                        "weir_buffer_export: the buffer is another process's; let the "
                        "process that made it export it again");
    }
    *lives = wr_lifeline_share(page->lifeline);
    return *lives >= 0
               ? WEIR_OK
               : wr_error(WEIR_OUT_OF_HOST_MEMORY,
                          "weir_buffer_export: no file descriptor: %s", strerror(errno));
}

weir_result wr_shared_export(wr_slice *slice, int *memory, int *lives)
{
    wr_manager *manager = slice->pool->manager;
    wr_bank *bank = manager->bank;
    wr_page *page = wr_page_get(slice->page);
    if (!slice->pool->layout->shared) {
        return wr_error(WEIR_INVALID,
                        "weir_buffer_export: the buffer shares its page with others; "
                        "create it with `exportable`");
    }
    int end = -1;
    wr_manager_lock(manager);
    weir_result result = share_lifeline(page, &end);
    wr_manager_unlock(manager);
    WR_TRY(result);
    result = bank->table->share_export(bank->driver, page->address, page->bytes, memory);
    if (result != WEIR_OK) {
        close(end);
        return wr_probe_heed(bank, result);
    }
    *lives = end;
    return WEIR_OK;
}

/* ---- counting ---- */

uint64_t wr_shared_count_abroad(wr_bank *bank)
{
    uint64_t bytes = 0;
    uint32_t slot = 0, last = bank->class_count - 1;
    wr_manager *manager;
    while ((manager = wr_manager_next(bank, &slot)) != NULL) {
        wr_manager_lock(manager);
        bytes += wr_pool_count_abroad(&manager->pools[last]);
        wr_manager_unlock(manager);
        wr_manager_unpin(manager);
    }
    wr_lock_take(&bank->lock);
    bytes += wr_pool_count_abroad(&bank->classes[last].bank);
    wr_lock_leave(&bank->lock);
    return bytes;
}
