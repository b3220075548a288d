/* SPDX-License-Identifier: MIT */
/* The bank's life: classes of a preset, and what is left at the end. */
#include "manager.h"

#include "harvest.h"
#include "preset.h"
#include "tags.h"

#include "base/memory.h"
#include "base/result.h"

#include <stddef.h>

void wr_bank_lock(wr_bank *bank)
{
    wr_lock_take(&bank->lock);
    wr_sequence_begin(&bank->sequence);
}

void wr_bank_unlock(wr_bank *bank)
{
    wr_sequence_end(&bank->sequence);
    wr_slab_trim_above(&bank->cache);
    wr_lock_leave(&bank->lock);
}

static void close_class(const wr_bank *bank, wr_class *class)
{
    if (class->range != NULL) {
        bank->table->range_free(bank->driver, class->range->address, class->range->bytes);
        wr_page_destroy(class->range);
        class->range = NULL;
    }
    wr_pool_close(&class->bank);
    wr_host_free(class->bare);
    class->bare = NULL;
}

static bool open_class(wr_bank *bank, wr_class *class, uint32_t number)
{
    class->bank =
        (wr_pool){.layout = &class->layout,
                  .index = &wr_index_none,
                  .moment = &bank->moment,
                  .cache = &bank->cache,
                  .number = number,
                  .granule_bytes = class->layout.granular ? bank->granule_bytes : 0};
    atomic_init(&class->cap_bytes, class->layout.cap_bytes);
    wr_index *index = wr_index_create(1);
    if (index == NULL) {
        return false;
    }
    class->bank.index = index; /* without a kept one: what the bank has, anyone may cut */
    class->bare = class->layout.granular ? wr_index_create(1) : NULL;
    return !class->layout.granular || class->bare != NULL;
}

weir_result wr_classes_open(wr_bank *bank, const wr_layouts *layouts, wr_class *classes)
{
    for (uint32_t i = 0; i < layouts->count; i++) {
        classes[i].layout = layouts->at[i];
        if (!open_class(bank, &classes[i], i)) {
            wr_classes_close(bank, classes, i + 1);
            return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                            "no host memory for the device's pools");
        }
    }
    wr_barrier_init(&bank->barrier);
    return WEIR_OK;
}

void wr_classes_close(const wr_bank *bank, wr_class *classes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        close_class(bank, &classes[i]);
    }
}

weir_result wr_bank_init(wr_bank *bank, const wr_layouts *layouts)
{
    if (!wr_slab_open()) {
        return wr_error(WEIR_OUT_OF_HOST_MEMORY, "no host addresses for slice records");
    }
    bank->moment = (wr_moment){.mark = 0, .settled_below = UINT64_MAX};
    wr_tags_open(bank);
    WR_TRY(wr_classes_open(bank, layouts, bank->classes));
    bank->class_count = layouts->count;
    return WEIR_OK;
}

void wr_bank_finish(wr_bank *bank)
{
    wr_harvest all = {.at_most_bytes = UINT64_MAX,
                      .keeps_mapping = true}; /* no stream is left */
    wr_loot loot = {0};
    wr_harvest_take(bank, NULL, &all, &loot);
    wr_loot_give_back(bank, &loot);
    wr_classes_close(bank, bank->classes, bank->class_count);
    wr_slab_trim(&bank->cache, 0);
    wr_host_free(bank->graphs);
    wr_barrier_finish(&bank->barrier);
    wr_host_free(bank->roster);
    bank->roster = NULL;
}

void wr_bank_recount(wr_bank *bank)
{
    wr_bank_lock(bank);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_pool_recount(&bank->classes[i].bank);
    }
    wr_bank_unlock(bank);
}

bool wr_bank_read(wr_bank *bank, wr_totals totals[WR_POOL_MAX], uint64_t *reserved)
{
    uint64_t before = WR_GET(bank->sequence);
    for (uint32_t i = 0; i < bank->class_count; i++) {
        wr_books_sum(&bank->classes[i].bank.books, &totals[i]);
    }
    totals[0].releasable += WR_GET(bank->transit);
    *reserved = WR_GET(bank->reserved);
    return before % 2 == 0 && WR_GET(bank->sequence) == before;
}
