/* SPDX-License-Identifier: MIT */
/* Limits of pools and tags; the device's is in device.c. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"
#include "manager/limits.h"
#include "manager/tags.h"

weir_result weir_device_pool_limit(weir_device *device, const char *pool,
                                   uint64_t limit_bytes)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || pool == NULL) {
        return wr_error(WEIR_INVALID,
                        "weir_device_pool_limit: the device or the pool's name is NULL");
    }
    return wr_limits_set_pool(&device->bank, pool, limit_bytes);
}

weir_result weir_device_tag_limit(weir_device *device, const char *tag,
                                  uint64_t limit_bytes)
{
    WR_TRY(wr_fork_check());
    if (device == NULL || tag == NULL || tag[0] == 0) {
        return wr_error(
            WEIR_INVALID,
            "weir_device_tag_limit: the device or the tag is NULL, or the tag "
            "is empty; untagged buffers have only the device's limit");
    }
    if (!wr_tags_set_limit(&device->bank, tag, limit_bytes)) {
        return wr_error(
            WEIR_LIMIT,
            "weir_device_tag_limit: the device knows %u tags already, so that "
            "\"%.31s\" counts as \"other\"; limit that, or set limits early",
            WR_TAG_MAX - 1, tag);
    }
    return WEIR_OK;
}
