/* SPDX-License-Identifier: MIT */
/* The layouts of each preset, in routing order. A preset that wants granules takes whole
 * pages where the driver has none. */
#include "preset.h"

#include "base/result.h"

#include <stdio.h>
#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define SMALL_BYTES (64 * KIB)
#define LARGE_BYTES (8 * MIB)

/* Granules: one range per size group. */
static const wr_layout elastic[] = {
    {.kind = WEIR_POOL_KIND_ARENA,
     .name = "arena small",
     .max_bytes = SMALL_BYTES,
     .granular = true},
    {.kind = WEIR_POOL_KIND_ARENA,
     .name = "arena",
     .max_bytes = UINT64_MAX,
     .granular = true},
    {.kind = WEIR_POOL_KIND_PERSISTENT,
     .name = "persistent",
     .max_bytes = UINT64_MAX,
     .granular = true,
     .exact = true},
};

/* Whole pages: small ones apart, large ones in pages of their own that small ones never
 * cut. */
static const wr_layout elastic_pages[] = {
    {.kind = WEIR_POOL_KIND_SLICED,
     .name = "small",
     .max_bytes = SMALL_BYTES,
     .page_bytes = 8 * MIB},
    {.kind = WEIR_POOL_KIND_ARENA,
     .name = "arena",
     .max_bytes = LARGE_BYTES - WR_UNIT_BYTES},
    {.kind = WEIR_POOL_KIND_ARENA,
     .name = "arena large",
     .min_bytes = LARGE_BYTES,
     .max_bytes = UINT64_MAX,
     .whole = true,
     .slack_shift = 3},
    {.kind = WEIR_POOL_KIND_PERSISTENT,
     .name = "persistent",
     .max_bytes = UINT64_MAX,
     .whole = true,
     .exact = true},
};

/* The reference system's adaptive layout: 8 MiB pages for slices to 64 KiB, and an arena
 * whose page size follows the largest request. */
static const wr_layout adaptive[] = {
    {.kind = WEIR_POOL_KIND_SLICED,
     .name = "small",
     .max_bytes = SMALL_BYTES,
     .page_bytes = 8 * MIB},
    {.kind = WEIR_POOL_KIND_ADAPTIVE, .name = "adaptive", .max_bytes = UINT64_MAX},
    {.kind = WEIR_POOL_KIND_PERSISTENT,
     .name = "persistent",
     .max_bytes = UINT64_MAX,
     .whole = true,
     .exact = true},
};

static const struct preset {
    const char *name;
    const wr_layout *layouts;
    size_t count;
    bool granular;
} presets[] = {
    {"elastic", elastic, sizeof elastic / sizeof *elastic, true},
    {"elastic", elastic_pages, sizeof elastic_pages / sizeof *elastic_pages, false},
    {"adaptive", adaptive, sizeof adaptive / sizeof *adaptive, false},
};

wr_layout *wr_layouts_add(wr_layouts *layouts, weir_pool_kind kind, const char *name,
                          uint64_t named_bytes)
{
    char bytes[24];
    wr_layout *layout = &layouts->at[layouts->count++];
    *layout = (wr_layout){.kind = kind, .max_bytes = UINT64_MAX};
    snprintf(layout->name, sizeof layout->name, "%s%s%s", name,
             named_bytes == 0 ? "" : " ",
             named_bytes == 0 ? "" : weir_format_bytes(named_bytes, bytes));
    return layout;
}

wr_layout *wr_layouts_add_persistent(wr_layouts *layouts)
{
    wr_layout *layout =
        wr_layouts_add(layouts, WEIR_POOL_KIND_PERSISTENT, "persistent", 0);
    layout->whole = layout->exact = true;
    return layout;
}

/* The largest page to plan with: what the driver allows, else a quarter of the device. */
static uint64_t max_page_bytes(const wr_bank *bank)
{
    uint64_t most = bank->properties.max_page_bytes;
    return most != 0 ? most : bank->properties.capacity_bytes / 4;
}

static uint64_t alignment_bytes(const wr_bank *bank)
{
    uint64_t alignment = bank->properties.alignment_bytes;
    return alignment > WR_UNIT_BYTES ? alignment : WR_UNIT_BYTES;
}

/* Those that depend on the size of the device. */
static bool get_computed(const wr_bank *bank, const char *name, wr_layouts *layouts)
{
    if (strcmp(name, "subslices") == 0) {
        wr_preset_subslices(max_page_bytes(bank), alignment_bytes(bank), layouts);
        return true;
    }
    if (strcmp(name, "exclusive") == 0) {
        wr_preset_exclusive(max_page_bytes(bank), alignment_bytes(bank), layouts);
        return true;
    }
    return false;
}

static bool get_fixed(const wr_bank *bank, const char *name, wr_layouts *layouts)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const struct preset *preset = &presets[i];
        if (strcmp(preset->name, name) == 0 &&
            (!preset->granular || bank->granule_bytes != 0)) {
            layouts->count = (uint32_t)preset->count;
            memcpy(layouts->at, preset->layouts, preset->count * sizeof *layouts->at);
            return true;
        }
    }
    return false;
}

weir_result wr_preset_get(const wr_bank *bank, const char *preset, wr_layouts *layouts)
{
    const char *name = preset == NULL ? "elastic" : preset;
    memset(layouts, 0, sizeof *layouts);
    if (!get_fixed(bank, name, layouts) && !get_computed(bank, name, layouts)) {
        return wr_error(WEIR_INVALID,
                        "there is no preset \"%s\"; use elastic, adaptive, subslices or "
                        "exclusive",
                        name);
    }
    snprintf(layouts->name, sizeof layouts->name, "%s", name);
    return WEIR_OK;
}

/* Pages for other processes, where the driver has them: a pool that no request comes to
 * by its size. */
static void add_shared(const wr_bank *bank, wr_layouts *layouts)
{
    if (bank->table->share_alloc != NULL) {
        wr_layout *layout = wr_layouts_add(layouts, WEIR_POOL_KIND_SHARED, "shared", 0);
        layout->whole = layout->shared = true;
    }
}

static weir_result get_asked(const wr_bank *bank, const char *preset,
                             const weir_pool_desc *pools, size_t pool_count,
                             const char *function, wr_layouts *layouts)
{
    if (pools == NULL && pool_count == 0) {
        return wr_preset_get(bank, preset, layouts);
    }
    if (preset != NULL) {
        return wr_error(WEIR_INVALID,
                        "%s: a preset and a list of pools; give one of them", function);
    }
    return wr_list_get(bank, pools, pool_count, function, layouts);
}

weir_result wr_layouts_get(const wr_bank *bank, const char *preset,
                           const weir_pool_desc *pools, size_t pool_count,
                           const char *function, wr_layouts *layouts)
{
    WR_TRY(get_asked(bank, preset, pools, pool_count, function, layouts));
    add_shared(bank, layouts);
    return WEIR_OK;
}
