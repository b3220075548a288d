/* SPDX-License-Identifier: MIT */
/* The reference system's layouts that depend on the largest page. Both take whole pages.
 *
 * subslices: pages of a quarter, a sixteenth... of the largest one, down to the first
 * below 32 MiB; each is cut into slices of up to a half, a quarter... of it, counted from
 * the largest. What is near a page in size gets one, too. A tail serves the rest, a page
 * for each buffer.
 *
 *      2 GiB:   8M (512K)  32M (4M)  128M (32M)  512M (256M)  any
 *
 * exclusive: 24 such tails, their limits in equal ratios from 32 KiB to the largest page.
 *
 * A tail takes the tightest page there is and makes new ones of the exact size, where the
 * reference system takes the one used most and makes new ones of the mean size. */
#include "preset.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define BUCKETS 24u
#define BUCKET_BYTES_MIN (32 * KIB)
#define LADDER_BYTES_MIN (32 * MIB)
#define IDLE_COUNT 5000u

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

uint64_t wr_preset_idle_count(uint64_t max_slice_bytes)
{
    return IDLE_COUNT * (1 + (max_slice_bytes + GIB / 2) / GIB);
}

uint64_t wr_preset_near_bytes(uint64_t page_bytes)
{
    return (4 * page_bytes / 5 / WR_UNIT_BYTES + 1) * WR_UNIT_BYTES;
}

/* ---- entries ---- */

static wr_layout *add_exclusive(wr_layouts *layouts, const char *name,
                                uint64_t limit_bytes)
{
    wr_layout *layout =
        wr_layouts_add(layouts, WEIR_POOL_KIND_EXCLUSIVE, name, limit_bytes);
    layout->whole = true;
    return layout;
}

/* ---- subslices ---- */

static void add_sliced(wr_layouts *layouts, uint64_t page_bytes, uint32_t shift)
{
    wr_layout *layout =
        wr_layouts_add(layouts, WEIR_POOL_KIND_SLICED, "sliced", page_bytes);
    layout->page_bytes = page_bytes;
    layout->max_bytes = (page_bytes >> shift) / WR_UNIT_BYTES * WR_UNIT_BYTES;
    layout->near_bytes = wr_preset_near_bytes(page_bytes);
}

void wr_preset_subslices(uint64_t max_page_bytes, uint64_t alignment_bytes,
                         wr_layouts *layouts)
{
    uint64_t pages[WR_POOL_MAX], page_bytes = max_page_bytes;
    uint32_t count = 0;
    while (page_bytes >= LADDER_BYTES_MIN) {
        page_bytes = pages[count++] = round_up(page_bytes / 4, alignment_bytes);
    }
    for (uint32_t shift = count; shift > 0; shift--) {
        add_sliced(layouts, pages[shift - 1], shift);
    }
    add_exclusive(layouts, "tail", 0)->idle_count = wr_preset_idle_count(max_page_bytes);
    wr_layouts_add_persistent(layouts);
}

/* ---- exclusive ---- */

static double power(double base, uint32_t exponent)
{
    double result = 1;
    while (exponent-- > 0) {
        result *= base;
    }
    return result;
}

/* The root of the ratio of the ends: what each limit is larger than the one before. */
static double step_between(double low, double high)
{
    double least = 1, most = high / low;
    for (int i = 0; i < 100; i++) {
        double middle = least + (most - least) / 2;
        *(power(middle, BUCKETS - 1) < high / low ? &least : &most) = middle;
    }
    return most;
}

void wr_preset_exclusive(uint64_t max_page_bytes, uint64_t alignment_bytes,
                         wr_layouts *layouts)
{
    double step = step_between(BUCKET_BYTES_MIN, (double)max_page_bytes);
    uint64_t before = 0;
    for (uint32_t i = 0; i + 1 < BUCKETS && max_page_bytes > BUCKET_BYTES_MIN; i++) {
        uint64_t limit = round_up((uint64_t)((double)BUCKET_BYTES_MIN * power(step, i)),
                                  alignment_bytes);
        if (limit > before) {
            wr_layout *layout = add_exclusive(layouts, "exclusive", limit);
            layout->max_bytes = before = limit;
            layout->idle_count = wr_preset_idle_count(limit);
        }
    }
    add_exclusive(layouts, "exclusive", 0)->idle_count =
        wr_preset_idle_count(max_page_bytes);
    wr_layouts_add_persistent(layouts);
}
