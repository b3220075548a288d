/* SPDX-License-Identifier: MIT */
/* Presets: named lists of layouts. */
#ifndef WR_MANAGER_PRESET_H
#define WR_MANAGER_PRESET_H

#include "manager.h"

/* The layouts of all pools of a device, in routing order. */
typedef struct wr_layouts {
    char name[WR_NAME_BYTES]; /* the preset's; "pools" for an explicit list */
    uint32_t count;
    wr_layout at[WR_POOL_MAX];
} wr_layouts;

/* Adds a pool that serves any size; it is called `name` and, if that is not 0, a size.
 * There is room. */
wr_layout *wr_layouts_add(wr_layouts *layouts, weir_pool_kind kind, const char *name,
                          uint64_t named_bytes);
/* Adds the persistent pool, of whole pages. */
wr_layout *wr_layouts_add_persistent(wr_layouts *layouts);

/* The layouts of a preset (NULL: "elastic") on the bank's driver. INVALID, with the names
 * there are, for an unknown one. */
weir_result wr_preset_get(const wr_bank *bank, const char *preset, wr_layouts *layouts);

/* The reference system's layouts for pages of up to `max_page_bytes` (reference.c); the
 * sizes in between are multiples of `alignment_bytes`. */
void wr_preset_exclusive(uint64_t max_page_bytes, uint64_t alignment_bytes,
                         wr_layouts *layouts);
void wr_preset_subslices(uint64_t max_page_bytes, uint64_t alignment_bytes,
                         wr_layouts *layouts);

/* Requests after which an exclusive pool's unheld page goes back, as the reference system
 * has it. */
uint64_t wr_preset_idle_count(uint64_t max_slice_bytes);

/* The least extent that is near a page: more than 80 % of it. */
uint64_t wr_preset_near_bytes(uint64_t page_bytes);

/* The layouts of a list of the caller's (list.c). INVALID names the entry that is wrong
 * and what it needs; `function` begins the text. */
weir_result wr_list_get(const wr_bank *bank, const weir_pool_desc *pools, size_t count,
                        const char *function, wr_layouts *layouts);

/* One or the other: a preset's, or a list's. */
weir_result wr_layouts_get(const wr_bank *bank, const char *preset,
                           const weir_pool_desc *pools, size_t pool_count,
                           const char *function, wr_layouts *layouts);

/* Makes the classes of `layouts` in zeroed memory; OUT_OF_HOST_MEMORY leaves nothing. */
weir_result wr_classes_open(wr_bank *bank, const wr_layouts *layouts, wr_class *classes);
/* Frees their indexes and ranges. All their memory has gone back. */
void wr_classes_close(const wr_bank *bank, wr_class *classes, uint32_t count);

#endif
