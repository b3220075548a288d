/* SPDX-License-Identifier: MIT */
/* Buffers: take one, release it, see where its bytes are, give them back. */
#include <weir/weir.h>

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    weir_device *device;
    weir_buffer cache; /* a value: index and generation */
    weir_buffer_desc desc = {.tag = "kv-cache"};
    weir_cleanup_outcome done = {0};

    if (weir_device_open("host", NULL, &device) != WEIR_OK ||
        weir_buffer_create(weir_device_default_stream(device), 64 << 20, &desc, &cache) !=
            WEIR_OK) {
        fprintf(stderr, "%s\n", weir_last_error());
        return 1;
    }
    weir_buffer_write(cache, 0, "weir", 5);
    weir_buffer_release(cache); /* any thread, never blocks */

    weir_device_explain(device, weir_write_file, stdout); /* where every byte is */
    weir_device_memory_cleanup(device, &(weir_cleanup_desc){.wait = true}, &done);
    printf("returned %" PRIu64 " bytes\n", done.returned_bytes);

    return weir_device_close(device) == WEIR_OK ? 0 : 1; /* BUSY while buffers live */
}
