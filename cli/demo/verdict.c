/* SPDX-License-Identifier: MIT */
#include "demo.h"

#include <stdio.h>
#include <string.h>

/* What a driver needs of its launches' arguments on the device is the tensor layer's own
 * and goes with every cleanup. */
static bool is_own(const weir_tag_usage *holder)
{
    return strcmp(holder->tag, "arguments") == 0;
}

static uint64_t held_bytes(const weir_device_report *dropped)
{
    uint64_t held = dropped->usage.in_use_bytes;
    for (size_t i = 0; i < sizeof dropped->holders / sizeof *dropped->holders; i++) {
        held -= is_own(&dropped->holders[i]) ? dropped->holders[i].in_use_bytes : 0;
    }
    return held;
}

/* "held: 64.0 MiB by weights, 1.0 MiB by activations" */
static void name_holders(const weir_device_report *dropped, char *text)
{
    size_t used = (size_t)snprintf(text, WR_DEMO_VERDICT_BYTES, "held");
    size_t most = sizeof dropped->holders / sizeof *dropped->holders;
    size_t named = 0;
    for (size_t i = 0; i < most && named < 3 && dropped->holders[i].live_count > 0; i++) {
        const weir_tag_usage *holder = &dropped->holders[i];
        char size[24];
        if (is_own(holder)) {
            continue;
        }
        used +=
            (size_t)snprintf(text + used, WR_DEMO_VERDICT_BYTES - used, "%s %s by %s",
                             named++ == 0 ? ":" : ",",
                             weir_format_bytes(holder->in_use_bytes, size),
                             holder->tag[0] != '\0' ? holder->tag : "untagged buffers");
    }
}

bool wr_demo_verdict(const weir_device_report *dropped, uint64_t returned_bytes,
                     bool is_idle, char text[WR_DEMO_VERDICT_BYTES])
{
    const weir_usage *usage = &dropped->usage;
    char size[24];
    char kept[24];
    if (held_bytes(dropped) > 0) {
        name_holders(dropped, text);
        return false;
    }
    if (usage->deferred_bytes > 0) {
        snprintf(text, WR_DEMO_VERDICT_BYTES,
                 "not finished: %s wait for queued work of %.47s",
                 weir_format_bytes(usage->deferred_bytes, size),
                 dropped->waiting[0].name);
        return false;
    }
    if (usage->reserved_bytes == 0) {
        snprintf(text, WR_DEMO_VERDICT_BYTES, "not leaked: nothing was kept");
        return true;
    }
    const char *giver = is_idle ? "idle time" : "cleanup";
    if (returned_bytes < usage->reserved_bytes) {
        snprintf(text, WR_DEMO_VERDICT_BYTES, "kept: %s returns %s of %s", giver,
                 weir_format_bytes(returned_bytes, size),
                 weir_format_bytes(usage->reserved_bytes, kept));
        return false;
    }
    snprintf(text, WR_DEMO_VERDICT_BYTES, "cached, not leaked: %s returns %s", giver,
             weir_format_bytes(returned_bytes, size));
    return true;
}
