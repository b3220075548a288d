/* SPDX-License-Identifier: MIT */
/* Pages of the WebGPU driver, and when they are really gone. See webgpu.h. */
#include "webgpu.h"

#include "base/memory.h"
#include "base/result.h"

#include <inttypes.h>

#define FIRST_ADDRESS (UINT64_C(1) << 40)
#define GAP_BYTES 4096    /* between pages, so that none begins where another ends */
#define CONFIRM_ROUNDS 3u /* of progress beyond what should do, see confirm() */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- taking ---- */

static weir_result check_size(const wr_webgpu *webgpu, uint64_t bytes)
{
    if (bytes == 0) {
        return wr_error(WEIR_INVALID, "webgpu: page_alloc of 0 bytes");
    }
    uint64_t most = webgpu->limits.buffer_bytes / WR_WEBGPU_ALIGNMENT_BYTES *
                    WR_WEBGPU_ALIGNMENT_BYTES;
    if (bytes > most) {
        return wr_error(WEIR_OUT_OF_MEMORY,
                        "webgpu: page_alloc of %" PRIu64
                        " bytes: a buffer of this device has at most %" PRIu64
                        "; split the data",
                        bytes, most);
    }
    return WEIR_OK;
}

/* Inside the lock. What was handed back and is still there takes room too. */
static weir_result check_room(const wr_webgpu *webgpu, uint64_t bytes)
{
    uint64_t taken = webgpu->live_bytes + webgpu->leaving_buffer_bytes;
    if (bytes <= webgpu->capacity_bytes && taken <= webgpu->capacity_bytes - bytes) {
        return WEIR_OK;
    }
    return wr_error(WEIR_OUT_OF_MEMORY,
                    "webgpu: page_alloc of %" PRIu64 " bytes: of the device's %" PRIu64
                    " are %" PRIu64 " in use, and %" PRIu64 " on their way back",
                    bytes, webgpu->capacity_bytes, webgpu->live_bytes,
                    webgpu->leaving_buffer_bytes);
}

/* Inside the lock. A buffer that failed is an object all the same. */
static weir_result create_buffer(wr_webgpu *webgpu, uint64_t bytes, wr_wg_buffer *buffer)
{
    wr_wg_buffer_desc desc = {.usage = WR_WG_USE_STORAGE | WR_WG_USE_COPY_SRC |
                                       WR_WG_USE_COPY_DST,
                              .bytes = bytes};
    wr_webgpu_scope_enter(webgpu);
    wr_wg_buffer made = webgpu->api.buffer_create(webgpu->device, &desc);
    weir_result result = wr_webgpu_scope_leave(webgpu, "page_alloc");
    if (result != WEIR_OK) {
        if (made != NULL) {
            webgpu->api.buffer_release(made);
        }
        return result;
    }
    *buffer = made;
    return WEIR_OK;
}

/* Inside the lock. */
static weir_result take(wr_webgpu *webgpu, wr_region *region)
{
    wr_webgpu_page *page = wr_webgpu_page_of(region);
    WR_TRY(check_room(webgpu, page->buffer_bytes));
    WR_TRY(create_buffer(webgpu, page->buffer_bytes, &page->buffer));
    if (webgpu->next_address == 0) {
        webgpu->next_address = FIRST_ADDRESS;
    }
    region->address = webgpu->next_address;
    webgpu->next_address += round_up(page->buffer_bytes, GAP_BYTES) + GAP_BYTES;
    webgpu->live_bytes += page->buffer_bytes;
    wr_regions_add(&webgpu->book, region);
    return WEIR_OK;
}

static void destroy_record(wr_region *region)
{
    if (region != NULL) {
        wr_host_free(region->data);
        wr_region_destroy(region);
    }
}

static wr_region *create_record(uint64_t bytes)
{
    wr_region *region = wr_region_create_page(bytes);
    wr_webgpu_page *page = region != NULL ? wr_host_alloc(sizeof *page) : NULL;
    if (page == NULL) {
        wr_region_destroy(region);
        return NULL;
    }
    uint64_t buffer_bytes = round_up(bytes, WR_WEBGPU_ALIGNMENT_BYTES);
    page->buffer_bytes = buffer_bytes > WR_WEBGPU_BUFFER_BYTES_MIN
                             ? buffer_bytes
                             : WR_WEBGPU_BUFFER_BYTES_MIN;
    region->data = page;
    return region;
}

weir_result wr_webgpu_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    WR_TRY(check_size(webgpu, bytes));
    wr_region *region = create_record(bytes);
    if (region == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                        "webgpu: no memory to keep a page's record");
    }
    wr_lock_take(&webgpu->lock);
    weir_result result = take(webgpu, region);
    uint64_t made = region->address;
    wr_lock_leave(&webgpu->lock);
    if (result != WEIR_OK) {
        destroy_record(region);
        return result;
    }
    *address = made;
    return WEIR_OK;
}

/* ---- handing back ---- */

/* Destroyed, not only released: a bind group or an encoder that still names the buffer
 * would keep its memory for good. */
static void destroy_buffer(const wr_webgpu *webgpu, const wr_webgpu_page *page)
{
    webgpu->api.buffer_destroy(page->buffer);
    webgpu->api.buffer_release(page->buffer);
}

static void hand_back(wr_webgpu *webgpu, wr_region *region)
{
    wr_webgpu_page *page = wr_webgpu_page_of(region);
    wr_webgpu_flush(webgpu);
    destroy_buffer(webgpu, page);
    page->after = webgpu->submitted + 1;
    webgpu->live_bytes -= page->buffer_bytes;
    webgpu->leaving_buffer_bytes += page->buffer_bytes;
    atomic_fetch_add(&webgpu->pending_bytes, region->bytes);
    if (webgpu->leaving == NULL) {
        webgpu->leaving = region;
    } else {
        wr_webgpu_page_of(webgpu->leaving_last)->next = region;
    }
    webgpu->leaving_last = region;
}

weir_result wr_webgpu_page_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_region *region = NULL;
    wr_lock_take(&webgpu->lock);
    weir_result result =
        wr_regions_get_page(&webgpu->book, "page_free", address, bytes, &region);
    if (result == WEIR_OK) {
        wr_regions_remove(&webgpu->book, region);
        hand_back(webgpu, region);
        result = atomic_load(&webgpu->is_lost) ? wr_webgpu_check(webgpu, "page_free")
                                               : WEIR_OK;
    }
    wr_lock_leave(&webgpu->lock);
    return result;
}

/* ---- letting go ---- */

static void strike_first(wr_webgpu *webgpu)
{
    wr_region *region = webgpu->leaving;
    const wr_webgpu_page *page = wr_webgpu_page_of(region);
    webgpu->leaving = page->next;
    webgpu->leaving_buffer_bytes -= page->buffer_bytes;
    atomic_fetch_sub(&webgpu->pending_bytes, region->bytes);
    destroy_record(region);
}

void wr_webgpu_let_go(wr_webgpu *webgpu, uint64_t seen)
{
    while (webgpu->leaving != NULL && wr_webgpu_page_of(webgpu->leaving)->after <= seen) {
        strike_first(webgpu);
    }
}

bool wr_webgpu_is_ripe(const wr_webgpu *webgpu)
{
    return webgpu->leaving != NULL &&
           wr_webgpu_page_of(webgpu->leaving)->after <= atomic_load(&webgpu->completed);
}

uint64_t wr_webgpu_pending_bytes(weir_driver *driver)
{
    return atomic_load(&wr_webgpu_of(driver)->pending_bytes);
}

/* One step of the way to `after`, without waiting: the submission that the library waits
 * for is made, or it is seen to have completed. */
static void step(wr_webgpu *webgpu, uint64_t after)
{
    if (after > webgpu->submitted) {
        wr_webgpu_submit(webgpu);
    }
    wr_webgpu_watch(webgpu);
    wr_webgpu_poll(webgpu);
}

/* By the rule all is gone. Where the process's memory shows that it is not, the rule is
 * applied again: to what a library keeps for other reasons a few rounds do no harm. */
static weir_result confirm(wr_webgpu *webgpu, uint64_t before, uint64_t freed_bytes)
{
    for (uint32_t round = 0; round < CONFIRM_ROUNDS; round++) {
        uint64_t now = wr_webgpu_footprint(webgpu);
        if (now == WEIR_UNKNOWN_BYTES || now + freed_bytes / 2 < before) {
            break;
        }
        wr_webgpu_submit(webgpu);
        WR_TRY(wr_webgpu_await(webgpu, "progress", webgpu->submitted));
        wr_webgpu_submit(webgpu);
    }
    return WEIR_OK;
}

static weir_result wait_for_all(wr_webgpu *webgpu)
{
    uint64_t before = wr_webgpu_footprint(webgpu);
    uint64_t freed_bytes = atomic_load(&webgpu->pending_bytes);
    while (webgpu->leaving != NULL) {
        uint64_t after = wr_webgpu_page_of(webgpu->leaving_last)->after;
        step(webgpu, after);
        WR_TRY(wr_webgpu_await(webgpu, "progress", after));
    }
    return freed_bytes > 0 ? confirm(webgpu, before, freed_bytes) : WEIR_OK;
}

weir_result wr_webgpu_progress(weir_driver *driver, bool wait)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    wr_webgpu_stages_trim(webgpu);
    weir_result result = WEIR_OK;
    if (wait) {
        result = wait_for_all(webgpu);
    } else if (webgpu->leaving != NULL) {
        step(webgpu, wr_webgpu_page_of(webgpu->leaving)->after);
        result = wr_webgpu_check(webgpu, "progress");
        bool waits = webgpu->leaving != NULL && !wr_webgpu_is_ripe(webgpu);
        result = result == WEIR_OK && waits ? WEIR_NOT_READY : result;
    }
    wr_lock_leave(&webgpu->lock);
    return result;
}

/* The device is about to be destroyed, and the buffers with it. */
void wr_webgpu_free_all(wr_webgpu *webgpu)
{
    for (wr_region *region; (region = wr_regions_remove_any(&webgpu->book)) != NULL;) {
        destroy_buffer(webgpu, wr_webgpu_page_of(region));
        destroy_record(region);
    }
    wr_webgpu_let_go(webgpu, UINT64_MAX);
}

/* ---- accounting ---- */

weir_result wr_webgpu_memory_info(weir_driver *driver, weir_memory_info *info)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    *info = (weir_memory_info){
        .capacity_bytes = webgpu->capacity_bytes,
        .footprint_bytes = wr_webgpu_footprint(webgpu),
        .others_bytes = WEIR_UNKNOWN_BYTES,
    };
    return WEIR_OK;
}

/* Devices in software back memory when it is written. The library clears a buffer as a
 * whole before its first use, so a page is untouched whole or not at all. */
weir_result wr_webgpu_untouched(weir_driver *driver, uint64_t address, uint64_t bytes,
                                uint64_t *untouched_bytes)
{
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    weir_result result =
        wr_regions_check_backed(&webgpu->book, "untouched", address, bytes);
    if (result == WEIR_OK) {
        const wr_region *region = wr_regions_find(&webgpu->book, address);
        bool is_touched = region == NULL || wr_webgpu_page_of(region)->is_touched;
        *untouched_bytes = webgpu->is_cpu && !is_touched ? bytes : 0;
    }
    wr_lock_leave(&webgpu->lock);
    return result;
}
