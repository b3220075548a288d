/* SPDX-License-Identifier: MIT */
/* The sanitizer's functions are weak references: there in a program that was built with
 * it, NULL elsewhere, however this library was built. Bytes are written one by one
 * through volatile pointers, since the sanitizer also watches memset() and memcmp(). */
#include "poison.h"

#include <stddef.h>

extern void __asan_poison_memory_region(const volatile void *address, size_t bytes)
    __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *address, size_t bytes)
    __attribute__((weak));

#define UNWATCHED __attribute__((no_sanitize("address", "thread"), noinline))

void wr_poison_close(uint64_t address, uint64_t bytes)
{
    if (__asan_poison_memory_region != NULL) {
        __asan_poison_memory_region((const void *)(uintptr_t)address, bytes);
    }
}

void wr_poison_open(uint64_t address, uint64_t bytes)
{
    if (__asan_unpoison_memory_region != NULL) {
        __asan_unpoison_memory_region((const void *)(uintptr_t)address, bytes);
    }
}

/* Words where they fit, or large buffers would take long. */
UNWATCHED void wr_poison_fill(uint64_t address, uint64_t bytes, uint8_t pattern)
{
    uint64_t end = address + bytes, word = pattern * UINT64_C(0x0101010101010101);
    for (; address < end && address % sizeof word != 0; address++) {
        *(volatile uint8_t *)(uintptr_t)address = pattern;
    }
    for (; address + sizeof word <= end; address += sizeof word) {
        *(volatile uint64_t *)(uintptr_t)address = word;
    }
    for (; address < end; address++) {
        *(volatile uint8_t *)(uintptr_t)address = pattern;
    }
}

UNWATCHED uint64_t wr_poison_find_damage(uint64_t address, uint64_t bytes,
                                         uint8_t pattern)
{
    uint64_t at = 0;
    while (at < bytes &&
           *(const volatile uint8_t *)(uintptr_t)(address + at) == pattern) {
        at++;
    }
    return at;
}
