/* SPDX-License-Identifier: MIT */
/* Drop all tensors: where does the memory stay, and when does the process get it back? */
#include <err.h>
#include <stdio.h>
#include <threads.h>
#include <weir/tensor.h>
#include <weir/weir.h>

static const struct {
    const char *label;
    uint64_t side; /* of four new square tensors */
    bool drop, clean;
    struct timespec wait;
} steps[] = {
    {"start", .side = 1, .drop = true},
    {"4 x [4096,4096] f32", .side = 4096},
    {"dropped", .drop = true},
    {"4 x [256,256] f32", .side = 256},
    {"dropped", .drop = true},
    {"memory_cleanup", .clean = true},
    {"+500 ms", .wait = {.tv_nsec = 500000000}},
    {"+1 small op", .side = 1, .drop = true},
    {"memory_cleanup again", .clean = true},
    {"+2 s", .wait = {.tv_sec = 2}},
};

static void check(weir_result result)
{
    if (result != WEIR_OK) {
        errx(1, "%s", weir_last_error());
    }
}

int main(void)
{
    weir_device *device;
    weir_tensor *tensors[4];
    check(weir_device_open("host", &(weir_device_desc){.no_idle = true}, &device));
    weir_stream *stream = weir_device_default_stream(device);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        weir_shape shape = WEIR_SHAPE(steps[s].side, steps[s].side);
        for (uint64_t i = 0; i < 4 && steps[s].side > 0; i++) {
            check(weir_tensor_uniform(stream, shape, 0, 1, i, &tensors[i]));
        }
        for (uint64_t i = 0; i < 4 && steps[s].drop; i++) {
            weir_tensor_drop(tensors[i]);
        }
        check(steps[s].clean ? weir_device_memory_cleanup(device, NULL, NULL) : WEIR_OK);
        thrd_sleep(&steps[s].wait, NULL);
        weir_device_report now = {0};
        check(weir_device_sync(device));
        check(weir_device_memory_report(device, &now));
        printf("%-20s %6.1f %6.1f %6.1f MiB\n", steps[s].label,
               (double)now.usage.in_use_bytes / 0x1p20,
               (double)now.usage.reserved_bytes / 0x1p20,
               (double)now.footprint_bytes / 0x1p20);
    }
    check(weir_device_close(device));
}
