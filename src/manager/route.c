/* SPDX-License-Identifier: MIT */
/* Routes are the pools' sizes turned round: the sizes where the answer may change, in
 * order, each with the first pool that serves what lies below it. Constant while the
 * preset is. */
#include "route.h"

#include "base/memory.h"
#include "base/result.h"

#include <stddef.h>
#include <stdlib.h>

wr_pool wr_pool_none;

/* ---- pools ---- */

wr_pool *wr_routes_make_pools(wr_manager *manager, const wr_class *classes,
                              uint32_t count)
{
    wr_bank *bank = manager->bank;
    wr_pool *pools = wr_host_alloc_apart(count * sizeof *pools);
    for (uint32_t i = 0; i < count && pools != NULL; i++) {
        const wr_layout *layout = &classes[i].layout;
        pools[i] =
            (wr_pool){.layout = &bank->classes[i].layout,
                      .index = &wr_index_none,
                      .plain = !layout->exact && !layout->whole,
                      .in_chunks = layout->granular && bank->properties.chunk_bytes != 0,
                      .moment = &manager->moment,
                      .cache = &manager->cache,
                      .manager = manager,
                      .number = i,
                      .granule_bytes = layout->granular ? bank->granule_bytes : 0};
    }
    return pools;
}

weir_result wr_routes_open(wr_manager *manager)
{
    wr_bank *bank = manager->bank;
    manager->pools = wr_routes_make_pools(manager, bank->classes, bank->class_count);
    if (manager->pools == NULL) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host memory for a stream's pools");
    }
    wr_routes_fill(manager);
    return WEIR_OK;
}

void wr_routes_close(wr_manager *manager)
{
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        wr_pool_close(&manager->pools[i]);
    }
    wr_host_free(manager->pools);
    manager->pools = NULL;
}

/* ---- routes ---- */

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* The largest extents before which, or behind which, a pool stops or starts serving. */
static uint32_t list_bounds(const wr_bank *bank, uint64_t bounds[4 * WR_POOL_MAX + 1])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bank->class_count; i++) {
        const wr_layout *layout = &bank->classes[i].layout;
        if (layout->exact || layout->shared) {
            continue;
        }
        bounds[count++] = layout->max_bytes;
        if (layout->min_bytes != 0) {
            bounds[count++] = layout->min_bytes - WR_UNIT_BYTES;
        }
        if (layout->near_bytes != 0) {
            bounds[count++] = layout->near_bytes - WR_UNIT_BYTES;
            bounds[count++] = layout->page_bytes;
        }
    }
    bounds[count++] = UINT64_MAX;
    qsort(bounds, count, sizeof *bounds, by_size);
    return count;
}

static wr_pool *first_serving(wr_manager *manager, uint64_t extent_bytes)
{
    for (uint32_t i = 0; i < manager->bank->class_count; i++) {
        const wr_layout *layout = &manager->bank->classes[i].layout;
        if (!layout->exact && !layout->shared &&
            wr_layout_accepts(layout, extent_bytes)) {
            return &manager->pools[i];
        }
    }
    return &wr_pool_none;
}

void wr_routes_fill(wr_manager *manager)
{
    uint64_t bounds[4 * WR_POOL_MAX + 1];
    uint32_t bound_count = list_bounds(manager->bank, bounds), count = 0;
    for (uint32_t i = 0; i < bound_count; i++) {
        wr_pool *pool = first_serving(manager, bounds[i]);
        if (count == 0 || manager->routes[count - 1].pool != pool) {
            count++;
        }
        manager->routes[count - 1] = (wr_route){.bytes = bounds[i], .pool = pool};
    }
}

wr_pool *wr_manager_route(wr_manager *manager, uint64_t extent_bytes, bool persistent)
{
    uint32_t i = 0, count = manager->bank->class_count;
    if (persistent) {
        while (i < count && !manager->pools[i].layout->exact) {
            i++;
        }
        return i < count ? &manager->pools[i] : NULL;
    }
    const wr_route *route = manager->routes;
    while (extent_bytes > route->bytes) {
        route++;
    }
    return route->pool == &wr_pool_none ? NULL : route->pool;
}

wr_pool *wr_route_find(wr_manager *manager, uint32_t first, const wr_request *request,
                       uint64_t run_bytes)
{
    for (uint32_t i = first; i < manager->bank->class_count; i++) {
        const wr_layout *layout = manager->pools[i].layout;
        bool persistent = request->persistent && !request->shared;
        if (layout->shared == request->shared && layout->exact == persistent &&
            (layout->exact || wr_layout_accepts(layout, request->extent_bytes)) &&
            (layout->page_bytes == 0 || run_bytes <= layout->page_bytes)) {
            return &manager->pools[i];
        }
    }
    return NULL;
}
