/* SPDX-License-Identifier: MIT */
/* Explicit lists of pools: each entry is checked by its kind's rules and becomes a
 * layout. Sizes are rounded up to whole units. A list without a persistent pool gets one.
 */
#include "preset.h"

#include "base/result.h"

#include <stdio.h>
#include <string.h>

/* What an entry is, for its texts. */
typedef struct entry {
    const wr_bank *bank;
    const weir_pool_desc *pool;
    const char *kind;
    char where[96]; /* "weir_device_open: pools[2] (sliced)" */
} entry;

static const char *const kinds[] = {
    [WEIR_POOL_KIND_ARENA] = "arena",         [WEIR_POOL_KIND_SLICED] = "sliced",
    [WEIR_POOL_KIND_EXCLUSIVE] = "exclusive", [WEIR_POOL_KIND_PERSISTENT] = "persistent",
    [WEIR_POOL_KIND_ADAPTIVE] = "adaptive",
};

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- checks ---- */

static weir_result check_count(const weir_pool_desc *pools, size_t count,
                               const char *function)
{
    if (pools == NULL || count == 0) {
        return wr_error(WEIR_INVALID,
                        "%s: the list of pools is empty; name at least one, or a preset",
                        function);
    }
    size_t persistent = 0;
    for (size_t i = 0; i < count && i < WR_LIST_MAX; i++) {
        persistent += pools[i].kind == WEIR_POOL_KIND_PERSISTENT;
    }
    if (count + (persistent == 0) > WR_LIST_MAX) {
        return wr_error(WEIR_INVALID,
                        "%s: a list of %zu pools; there can be %u, and one of them is "
                        "the persistent one",
                        function, count, WR_LIST_MAX);
    }
    if (persistent > 1 || persistent == count) {
        return wr_error(WEIR_INVALID,
                        "%s: %zu of the %zu pools are persistent; there is at most one, "
                        "beside at least one other",
                        function, persistent, count);
    }
    return WEIR_OK;
}

static weir_result check_page(const entry *e)
{
    const weir_driver_properties *device = &e->bank->properties;
    uint64_t most =
        device->max_page_bytes != 0 ? device->max_page_bytes : device->capacity_bytes;
    uint64_t page = e->pool->page_bytes, slice = e->pool->max_slice_bytes;
    uint64_t cap = e->pool->cap_bytes;
    if (page == 0) {
        return wr_error(WEIR_INVALID, "%s: page_bytes is 0; say how large its pages are",
                        e->where);
    }
    if (page > most) {
        return wr_error(WEIR_INVALID,
                        "%s: pages of %llu bytes; the device has pages of up to %llu",
                        e->where, (unsigned long long)page, (unsigned long long)most);
    }
    if (slice > page) {
        return wr_error(WEIR_INVALID,
                        "%s: slices of up to %llu bytes do not fit pages of %llu",
                        e->where, (unsigned long long)slice, (unsigned long long)page);
    }
    if (cap != 0 && cap < page) {
        return wr_error(WEIR_INVALID,
                        "%s: a cap of %llu bytes is less than one page of %llu", e->where,
                        (unsigned long long)cap, (unsigned long long)page);
    }
    return WEIR_OK;
}

static weir_result check_entry(const entry *e)
{
    const weir_pool_desc *pool = e->pool;
    if (pool->kind == WEIR_POOL_KIND_SLICED) {
        WR_TRY(check_page(e));
    } else if (pool->page_bytes != 0) {
        return wr_error(WEIR_INVALID,
                        "%s: page_bytes is %llu; only sliced pools have pages of a fixed "
                        "size",
                        e->where, (unsigned long long)pool->page_bytes);
    }
    if (pool->kind == WEIR_POOL_KIND_PERSISTENT && pool->max_slice_bytes != 0) {
        return wr_error(WEIR_INVALID,
                        "%s: max_slice_bytes is %llu; a persistent pool serves any size",
                        e->where, (unsigned long long)pool->max_slice_bytes);
    }
    if (pool->kind != WEIR_POOL_KIND_EXCLUSIVE && pool->idle_count != 0) {
        return wr_error(WEIR_INVALID,
                        "%s: idle_count is %llu; only exclusive pools count requests",
                        e->where, (unsigned long long)pool->idle_count);
    }
    return WEIR_OK;
}

/* ---- layouts ---- */

static void fill_sliced(const entry *e, wr_layout *layout)
{
    uint64_t alignment = e->bank->properties.alignment_bytes;
    alignment = alignment > WR_UNIT_BYTES ? alignment : WR_UNIT_BYTES;
    layout->page_bytes = round_up(e->pool->page_bytes, alignment);
    if (e->pool->max_slice_bytes == 0) {
        layout->max_bytes = layout->page_bytes;
    } else if (e->pool->cap_bytes == 0) {
        layout->near_bytes = wr_preset_near_bytes(layout->page_bytes);
    }
}

static void fill_exclusive(const entry *e, wr_layout *layout)
{
    uint64_t most = e->pool->max_slice_bytes;
    if (most == 0 || most > e->bank->properties.capacity_bytes) {
        most = e->bank->properties.capacity_bytes / 4;
    }
    layout->whole = true;
    layout->idle_count =
        e->pool->idle_count != 0 ? e->pool->idle_count : wr_preset_idle_count(most);
}

static void add_entry(const entry *e, wr_layouts *layouts)
{
    const weir_pool_desc *pool = e->pool;
    uint64_t most = pool->max_slice_bytes;
    wr_layout *layout = wr_layouts_add(layouts, pool->kind, e->kind,
                                       pool->page_bytes != 0 ? pool->page_bytes : most);
    layout->cap_bytes = pool->cap_bytes;
    if (most != 0 && most < UINT64_MAX - WR_UNIT_BYTES) {
        layout->max_bytes = round_up(most, WR_UNIT_BYTES);
    }
    switch (pool->kind) {
    case WEIR_POOL_KIND_SLICED:
        fill_sliced(e, layout);
        break;
    case WEIR_POOL_KIND_EXCLUSIVE:
        fill_exclusive(e, layout);
        break;
    case WEIR_POOL_KIND_PERSISTENT:
        layout->whole = layout->exact = true;
        break;
    case WEIR_POOL_KIND_ARENA:
        layout->granular = e->bank->granule_bytes != 0;
        break;
    case WEIR_POOL_KIND_ADAPTIVE:
    case WEIR_POOL_KIND_SHARED: /* refused before */
        break;
    }
}

weir_result wr_list_get(const wr_bank *bank, const weir_pool_desc *pools, size_t count,
                        const char *function, wr_layouts *layouts)
{
    memset(layouts, 0, sizeof *layouts);
    snprintf(layouts->name, sizeof layouts->name, "pools");
    WR_TRY(check_count(pools, count, function));
    bool persistent = false;
    for (size_t i = 0; i < count; i++) {
        entry e = {.bank = bank, .pool = &pools[i]};
        if ((unsigned)pools[i].kind >= sizeof kinds / sizeof *kinds) {
            return wr_error(WEIR_INVALID, "%s: pools[%zu]: there is no kind %d", function,
                            i, (int)pools[i].kind);
        }
        e.kind = kinds[pools[i].kind];
        snprintf(e.where, sizeof e.where, "%s: pools[%zu] (%s)", function, i, e.kind);
        WR_TRY(check_entry(&e));
        add_entry(&e, layouts);
        persistent |= pools[i].kind == WEIR_POOL_KIND_PERSISTENT;
    }
    if (!persistent) {
        wr_layouts_add_persistent(layouts);
    }
    return WEIR_OK;
}
