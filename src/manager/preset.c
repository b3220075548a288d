/* SPDX-License-Identifier: MIT */
/* The layouts of each preset, in routing order. A preset that wants granules takes whole
 * pages where the driver has none. */
#include "preset.h"

#include "base/result.h"

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

weir_result wr_preset_fill(wr_bank *bank, const char *name)
{
    const char *wanted = name == NULL ? "elastic" : name;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const struct preset *preset = &presets[i];
        if (strcmp(preset->name, wanted) != 0 ||
            (preset->granular && bank->granule_bytes == 0)) {
            continue;
        }
        bank->granule_bytes = preset->granular ? bank->granule_bytes : 0;
        bank->class_count = (uint32_t)preset->count;
        for (size_t j = 0; j < preset->count; j++) {
            bank->classes[j].layout = preset->layouts[j];
        }
        return WEIR_OK;
    }
    return wr_error(WEIR_INVALID, "there is no preset \"%s\"; use elastic or adaptive",
                    wanted);
}
