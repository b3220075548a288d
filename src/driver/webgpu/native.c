/* SPDX-License-Identifier: MIT */
/* The driver's own objects, for programs; see weir/webgpu.h. */
#include "webgpu.h"

#include "base/result.h"

#include <weir/webgpu.h>

static weir_result check_driver(const weir_driver *driver, const char *call)
{
    return driver != NULL && driver->table == &wr_driver_webgpu
               ? WEIR_OK
               : wr_error(WEIR_INVALID, "%s: not a driver of \"webgpu\"", call);
}

weir_result weir_webgpu_enter(weir_driver *driver, weir_webgpu_handles *handles)
{
    WR_TRY(check_driver(driver, "weir_webgpu_enter"));
    if (handles == NULL) {
        return wr_error(WEIR_INVALID, "weir_webgpu_enter: `handles` is NULL");
    }
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    wr_lock_take(&webgpu->lock);
    weir_result result = wr_webgpu_check(webgpu, "weir_webgpu_enter");
    if (result != WEIR_OK) {
        wr_lock_leave(&webgpu->lock);
        return result;
    }
    wr_webgpu_flush(webgpu);
    *handles = (weir_webgpu_handles){webgpu->instance, webgpu->device, webgpu->queue};
    return WEIR_OK;
}

void weir_webgpu_leave(weir_driver *driver)
{
    if (check_driver(driver, "weir_webgpu_leave") == WEIR_OK) {
        wr_lock_leave(&wr_webgpu_of(driver)->lock);
    }
}

weir_result weir_webgpu_place(weir_driver *driver, uint64_t address, uint64_t bytes,
                              void **buffer, uint64_t *offset)
{
    WR_TRY(check_driver(driver, "weir_webgpu_place"));
    if (buffer == NULL || offset == NULL || bytes == 0) {
        return wr_error(WEIR_INVALID,
                        "weir_webgpu_place: an output is NULL, or there are no bytes");
    }
    wr_webgpu *webgpu = wr_webgpu_of(driver);
    WR_TRY(wr_regions_check_backed(&webgpu->book, "weir_webgpu_place", address, bytes));
    const wr_region *region = wr_regions_find(&webgpu->book, address);
    wr_webgpu_page *page = wr_webgpu_page_of(region);
    page->is_touched = true;
    *buffer = page->buffer;
    *offset = address - region->address;
    return WEIR_OK;
}
