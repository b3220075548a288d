/* SPDX-License-Identifier: MIT */
/* A plug-in that carries the library, as programs load them: tests/core/test_unload.c
 * unloads it while its reclaimer runs. */
#include "plugin.h"

#include <weir/weir.h>

static weir_device *device;

int plugin_start(void)
{
    weir_device_desc desc = {.idle_ms = 20};
    weir_buffer buffer;
    if (weir_device_open("host", &desc, &device) != WEIR_OK) {
        return -1;
    }
    weir_stream *stream = weir_device_default_stream(device);
    return weir_buffer_create(stream, 1 << 20, NULL, &buffer) == WEIR_OK &&
                   weir_buffer_release(buffer) == WEIR_OK
               ? 0
               : -1;
}

int plugin_stop(void)
{
    weir_usage usage = {0};
    weir_result result = weir_device_memory_usage(device, &usage);
    return result == WEIR_OK && usage.reserved_bytes == 0 &&
                   weir_device_close(device) == WEIR_OK
               ? 0
               : -1;
}
