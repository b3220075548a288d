/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <string.h>

#define MIB UINT64_C(1048576)

weir_result capture_write(void *context, const char *text, size_t text_bytes)
{
    capture *captured = context;
    captured->call_count++;
    if (captured->call_count == captured->fail_call ||
        text_bytes >= sizeof captured->text - captured->used_bytes) {
        return WEIR_IO;
    }
    memcpy(captured->text + captured->used_bytes, text, text_bytes);
    captured->used_bytes += text_bytes;
    captured->text[captured->used_bytes] = '\0';
    return WEIR_OK;
}

static const weir_usage sample_usage = {
    .size = sizeof(weir_usage),
    .in_use_bytes = 256 * MIB + 100,
    .padding_bytes = 412,
    .deferred_bytes = 4096 * MIB,
    .releasable_bytes = 8 * MIB,
    .pinned_bytes = 2 * MIB - 512,
    .reserved_bytes = 4362 * MIB,
    .driver_deferred_bytes = 64 * MIB,
    .peak_in_use_bytes = 5120 * MIB,
    .peak_reserved_bytes = 6144 * MIB,
    .allocations = 12,
    .releases = 7,
    .commits = 3,
    .decommits = 1,
    .fences = 2,
    .explicit_bytes = 64 * MIB,
    .live_count = 5,
};

static const weir_pool_report sample_pools[] = {
    {.kind = WEIR_POOL_KIND_ARENA,
     .name = "arena small",
     .min_slice_bytes = 1,
     .max_slice_bytes = 65536,
     .granule_bytes = 2 * MIB,
     .pages = 1,
     .pages_peak = 2,
     .largest_alloc_bytes = 1536,
     .live_count = 1,
     .in_use_bytes = 100,
     .padding_bytes = 412,
     .pinned_bytes = 2 * MIB - 512,
     .reserved_bytes = 2 * MIB},
    {.kind = WEIR_POOL_KIND_ARENA,
     .name = "arena large",
     .min_slice_bytes = 65537,
     .max_slice_bytes = UINT64_MAX,
     .granule_bytes = 2 * MIB,
     .pages = 2180,
     .pages_peak = 3070,
     .largest_alloc_bytes = 3072 * MIB,
     .live_count = 4,
     .in_use_bytes = 256 * MIB,
     .deferred_bytes = 4096 * MIB,
     .releasable_bytes = 8 * MIB,
     .reserved_bytes = 4360 * MIB},
    {.kind = WEIR_POOL_KIND_PERSISTENT,
     .name = "persistent",
     .max_slice_bytes = UINT64_MAX},
};

void sample_report(weir_device_report *report)
{
    *report = (weir_device_report){
        .size = sizeof *report,
        .usage = sample_usage,
        .footprint_bytes = 4828 * MIB,
        .untouched_bytes = 1 * MIB,
        .overhead_bytes = 403 * MIB,
        .context_bytes = 400 * MIB,
        .unattributed_bytes = 3 * MIB,
        .others_bytes = 1024 * MIB,
        .capacity_bytes = 24576 * MIB,
        .largest_hole_bytes = 8 * MIB,
        .pool_count = sizeof sample_pools / sizeof sample_pools[0],
        .holders = {{.tag = "weights",
                     .in_use_bytes = 256 * MIB,
                     .peak_in_use_bytes = 512 * MIB,
                     .live_count = 4},
                    {.in_use_bytes = 100, .peak_in_use_bytes = 300, .live_count = 1}},
        .waiting = {{.name = "stream sidework", .bytes = 3072 * MIB},
                    {.name = "graph decode", .bytes = 1024 * MIB}},
        .pinning = {{.buffer = {.index = 7, .generation = 3},
                     .buffer_bytes = 100,
                     .pinned_bytes = 2 * MIB - 512}},
    };
    memcpy(report->pools, sample_pools, sizeof sample_pools);
}
