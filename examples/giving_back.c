/* SPDX-License-Identifier: MIT */
/* Does a device's memory come back? Buffers of 64 MiB, written and dropped, a cleanup,
 * and then one survivor of 1 MiB among 256 MiB. Fails if more stays than must.
 *
 *   giving_back [DEVICE]      "host" if none is named */
#include <weir/weir.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)

static weir_device *device;
static weir_stream *stream;

static void check(weir_result result)
{
    if (result != WEIR_OK) {
        errx(1, "%s", weir_last_error());
    }
}

/* A buffer of which every byte has been written. */
static weir_buffer make(uint64_t bytes, const void *data)
{
    weir_buffer buffer;
    check(weir_buffer_create(stream, bytes, NULL, &buffer));
    check(weir_buffer_write(buffer, 0, data, bytes));
    return buffer;
}

static void print_bytes(uint64_t bytes)
{
    if (bytes == WEIR_UNKNOWN_BYTES) {
        printf(" %10s", "n/a");
    } else {
        printf(" %10.1f", (double)bytes / 0x1p20);
    }
}

static weir_device_report show(const char *step)
{
    weir_device_report now = {.size = sizeof now};
    check(weir_device_sync(device));
    check(weir_device_memory_report(device, &now));
    printf("%-32s", step);
    print_bytes(now.usage.in_use_bytes);
    print_bytes(now.usage.reserved_bytes);
    print_bytes(now.footprint_bytes);
    printf("\n");
    return now;
}

static void make_and_drop(const char *step, uint64_t bytes, const void *data)
{
    weir_buffer buffers[4];
    for (int i = 0; i < 4; i++) {
        buffers[i] = make(bytes, data);
    }
    show(step);
    for (int i = 0; i < 4; i++) {
        check(weir_buffer_release(buffers[i]));
    }
    show("dropped");
}

static weir_device_report clean_up(void)
{
    check(weir_device_memory_cleanup(device, NULL, NULL));
    return show("memory_cleanup");
}

/* 256 buffers of 1 MiB, of which all but one in the middle are dropped. */
static weir_device_report keep_one(const void *data)
{
    weir_buffer buffers[256];
    for (int i = 0; i < 256; i++) {
        buffers[i] = make(MIB, data);
    }
    show("256 x 1 MiB");
    for (int i = 0; i < 256; i++) {
        check(i == 128 ? WEIR_OK : weir_buffer_release(buffers[i]));
    }
    show("all dropped but one");
    weir_device_report after = clean_up();
    check(weir_buffer_release(buffers[128]));
    return after;
}

/* Whether the footprint is back, within 2 MiB, where it is known and has no other reasons
 * to grow, as on the host. */
static bool is_back(uint64_t before, uint64_t after)
{
    weir_driver_properties properties;
    check(weir_device_properties(device, &properties));
    return properties.host_visible || before == WEIR_UNKNOWN_BYTES ||
           after == WEIR_UNKNOWN_BYTES || after <= before + 2 * MIB;
}

int main(int argc, char **argv)
{
    void *data = calloc(64, MIB);
    weir_device_desc desc = {.no_idle = true};
    if (data == NULL) {
        errx(1, "no memory for 64 MiB of data");
    }
    check(weir_device_open(argc > 1 ? argv[1] : "host", &desc, &device));
    stream = weir_device_default_stream(device);
    printf("%-32s %10s %10s %10s   MiB\n", "step", "in_use", "reserved", "footprint");
    /* Drivers take staging memory at the first copy. */
    check(weir_buffer_release(make(64 * MIB, data)));
    weir_device_report start = clean_up();
    make_and_drop("4 x 64 MiB", 64 * MIB, data);
    make_and_drop("4 x 256 KiB", MIB / 4, data);
    weir_device_report cleaned = clean_up();
    weir_device_report survivor = keep_one(data);
    weir_device_report end = clean_up();
    bool is_good = cleaned.usage.reserved_bytes == 0 && end.usage.reserved_bytes == 0 &&
                   survivor.usage.reserved_bytes <= 4 * MIB &&
                   is_back(start.footprint_bytes, cleaned.footprint_bytes);
    check(weir_device_close(device));
    free(data);
    printf("%s\n", is_good ? "all of it came back" : "memory stayed that need not stay");
    return is_good ? 0 : 1;
}
