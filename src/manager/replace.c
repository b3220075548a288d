/* SPDX-License-Identifier: MIT */
/* All that is new is made first. Then every lock is taken, so that readers of usage see
 * the old pools or the new ones, and the old ones are freed at the end. */
#include "replace.h"

#include "route.h"

#include "base/memory.h"
#include "base/result.h"

#include <sched.h>
#include <stddef.h>

typedef struct exchange {
    wr_bank *bank;
    uint32_t class_count;
    wr_class *classes;
    uint32_t manager_count;
    wr_pool **pools; /* by slot; NULL where there is no manager */
} exchange;

/* ---- making ---- */

static void free_all(const exchange *e)
{
    for (uint32_t i = 0; i < e->manager_count; i++) {
        wr_pool *pools = e->pools == NULL ? NULL : e->pools[i];
        for (uint32_t j = 0; pools != NULL && j < e->class_count; j++) {
            wr_pool_close(&pools[j]);
        }
        wr_host_free(pools);
    }
    wr_host_free(e->pools);
    wr_host_free(e->classes);
}

static bool make_pools(exchange *e)
{
    bool made = e->pools != NULL;
    for (uint32_t i = 0; i < e->manager_count && made; i++) {
        wr_manager *manager = e->bank->roster[i];
        if (manager != NULL) {
            e->pools[i] = wr_routes_make_pools(manager, e->classes, e->class_count);
            made = e->pools[i] != NULL;
        }
    }
    return made;
}

static weir_result make(exchange *e, const wr_layouts *layouts)
{
    e->class_count = layouts->count;
    e->manager_count = e->bank->roster_count;
    e->classes = wr_host_alloc(WR_POOL_MAX * sizeof *e->classes);
    e->pools = wr_host_alloc((e->manager_count + 1u) * sizeof(wr_pool *));
    weir_result result = WEIR_OUT_OF_HOST_MEMORY;
    if (e->classes != NULL) {
        result = wr_classes_open(e->bank, layouts, e->classes);
    }
    if (result == WEIR_OK && !make_pools(e)) {
        wr_classes_close(e->bank, e->classes, e->class_count);
        result = WEIR_OUT_OF_HOST_MEMORY;
    }
    if (result != WEIR_OK) {
        free_all(e);
        return wr_error(result, "no host memory for the device's pools");
    }
    return WEIR_OK;
}

/* ---- locks ---- */

static void leave(wr_bank *bank, uint32_t held)
{
    while (held-- > 0) {
        if (bank->roster[held] != NULL) {
            wr_lock_leave(&bank->roster[held]->lock);
        }
    }
    wr_lock_leave(&bank->roster_lock);
}

/* Takes them by try, so that the order does not matter. */
static bool try_all(wr_bank *bank)
{
    uint32_t held = 0;
    bool all = true;
    wr_lock_take(&bank->roster_lock);
    for (; held < bank->roster_count && all; held++) {
        all = bank->roster[held] == NULL || wr_lock_try(&bank->roster[held]->lock);
    }
    held -= !all;
    if (!all || !wr_lock_try(&bank->lock)) {
        leave(bank, held);
        return false;
    }
    return true;
}

static void leave_all(wr_bank *bank)
{
    wr_lock_leave(&bank->lock);
    leave(bank, bank->roster_count);
}

/* ---- exchanging ---- */

/* What the stream counted stays counted. */
static void carry_over(const wr_pool *before, uint32_t count, wr_pool *after)
{
    for (uint32_t i = 0; i < count; i++) {
        WR_ADD(after->books.entered, WR_OWN(before[i].books.entered));
        WR_ADD(after->books.left, WR_OWN(before[i].books.left));
    }
}

/* Under all locks: `e` has the old classes and pools afterwards. */
static void swap(exchange *e)
{
    wr_bank *bank = e->bank;
    uint32_t old_count = bank->class_count;
    for (uint32_t i = 0; i < WR_POOL_MAX; i++) {
        wr_class old = bank->classes[i];
        bank->classes[i] = e->classes[i];
        bank->classes[i].bank.layout = &bank->classes[i].layout;
        e->classes[i] = old;
    }
    bank->class_count = e->class_count;
    for (uint32_t i = 0; i < e->manager_count; i++) {
        wr_manager *manager = bank->roster[i];
        if (manager != NULL) {
            wr_pool *old = manager->pools;
            carry_over(old, old_count, &e->pools[i][0]);
            manager->pools = e->pools[i];
            wr_routes_fill(manager);
            e->pools[i] = old;
        }
    }
    e->class_count = old_count;
}

weir_result wr_replace_layouts(wr_bank *bank, const wr_layouts *layouts)
{
    exchange e = {.bank = bank};
    WR_TRY(make(&e, layouts));
    while (!try_all(bank)) {
        sched_yield();
    }
    swap(&e);
    leave_all(bank);
    wr_classes_close(bank, e.classes, e.class_count);
    free_all(&e);
    return WEIR_OK;
}
