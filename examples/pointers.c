/* SPDX-License-Identifier: MIT */
/* The pointer interface: memory for code that knows addresses only. */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, weir_last_error());
    return 1;
}

int main(void)
{
    weir_device *device = NULL;
    if (weir_device_open("host", NULL, &device) != WEIR_OK) {
        return fail("open");
    }
    void *pointer = NULL;
    weir_buffer_desc desc = {.tag = "example"};
    if (weir_malloc(weir_device_default_stream(device), 1000, &desc, &pointer) !=
        WEIR_OK) {
        return fail("malloc");
    }
    memset(pointer, 1, 1000); /* on the host an address is a pointer */

    uint64_t usable = 0, offset = 0;
    weir_buffer buffer;
    if (weir_usable_bytes(NULL, pointer, &usable) != WEIR_OK ||
        weir_buffer_find(NULL, (char *)pointer + 500, &buffer, &offset) != WEIR_OK) {
        return fail("look");
    }
    printf("%llu bytes asked, %llu usable, found from offset %llu\n",
           (unsigned long long)weir_buffer_bytes(buffer), (unsigned long long)usable,
           (unsigned long long)offset);

    weir_free(NULL, pointer);
    printf("again: %s\n", weir_result_name(weir_free(NULL, pointer)));
    return weir_device_close(device) == WEIR_OK ? 0 : fail("close");
}
