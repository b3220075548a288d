/* SPDX-License-Identifier: MIT */
/* No state, no lock. */
#include "report.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *wr_report_kind_name(weir_pool_kind kind)
{
    switch (kind) {
    case WEIR_POOL_KIND_ARENA:
        return "arena";
    case WEIR_POOL_KIND_SLICED:
        return "sliced";
    case WEIR_POOL_KIND_EXCLUSIVE:
        return "exclusive";
    case WEIR_POOL_KIND_PERSISTENT:
        return "persistent";
    case WEIR_POOL_KIND_ADAPTIVE:
        return "adaptive";
    case WEIR_POOL_KIND_SHARED:
        return "shared";
    }
    return "unknown";
}

const char *wr_report_tag_name(const char *tag)
{
    return tag[0] == '\0' ? "untagged" : tag;
}

size_t wr_report_pool_count(const weir_device_report *report)
{
    return report->pool_count < COUNT(report->pools) ? report->pool_count
                                                     : COUNT(report->pools);
}

size_t wr_report_holder_count(const weir_device_report *report)
{
    size_t count = 0;
    while (count < COUNT(report->holders) && report->holders[count].live_count > 0) {
        count++;
    }
    return count;
}

size_t wr_report_waiting_count(const weir_device_report *report)
{
    size_t count = 0;
    while (count < COUNT(report->waiting) && report->waiting[count].bytes > 0) {
        count++;
    }
    return count;
}

size_t wr_report_pinning_count(const weir_device_report *report)
{
    size_t count = 0;
    while (count < COUNT(report->pinning) && report->pinning[count].pinned_bytes > 0) {
        count++;
    }
    return count;
}
