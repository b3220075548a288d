/* SPDX-License-Identifier: MIT */
/* Which bytes of a mapping the system has backed. A page that was only read shows the
 * system's shared page of zeros and is not backed; only the page map scan (Linux 6.7)
 * tells it from a written one, at some 2 ms for each GiB in pages of 4 KiB. No state, no
 * lock. */
#define _GNU_SOURCE
#include "system.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLICE_PAGES 4096
#define SCAN_REGIONS 64

/* As in <linux/fs.h> since 6.7; older headers lack them. */
struct scan_region {
    uint64_t start;
    uint64_t end;
    uint64_t categories;
};

struct scan {
    uint64_t size;
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end; /* where the scan stopped */
    uint64_t regions;  /* address of the array to fill */
    uint64_t region_count;
    uint64_t most_pages;
    uint64_t inverted; /* categories that are to be absent */
    uint64_t all_of;
    uint64_t any_of;
    uint64_t returned;
};

#define SCAN_REQUEST _IOWR('f', 16, struct scan)
#define PAGE_IS_PRESENT (1u << 3)
#define PAGE_IS_SWAPPED (1u << 4)
#define PAGE_IS_ZERO (1u << 5)

static uint64_t system_page(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Bytes of [start, end) within [low, high). */
static uint64_t overlap(uint64_t start, uint64_t end, uint64_t low, uint64_t high)
{
    uint64_t from = start > low ? start : low;
    uint64_t to = end < high ? end : high;
    return to > from ? to - from : 0;
}

uint64_t wr_system_resident(uint64_t address, uint64_t bytes)
{
    uint64_t page = system_page();
    uint64_t end = address + bytes;
    uint64_t resident = 0;
    unsigned char pages[SLICE_PAGES];
    for (uint64_t at = address & ~(page - 1); at < end; at += SLICE_PAGES * page) {
        uint64_t count = (end - at + page - 1) / page;
        count = count < SLICE_PAGES ? count : SLICE_PAGES;
        if (mincore((void *)(uintptr_t)at, count * page, pages) != 0) {
            continue;
        }
        for (uint64_t i = 0; i < count; i++) {
            uint64_t start = at + i * page;
            resident += pages[i] & 1 ? overlap(start, start + page, address, end) : 0;
        }
    }
    return resident;
}

/* False if the kernel cannot scan. */
static bool scan_backed(int file, uint64_t address, uint64_t end, uint64_t *backed)
{
    uint64_t page = system_page();
    struct scan_region regions[SCAN_REGIONS];
    struct scan scan = {
        .size = sizeof scan,
        .start = address & ~(page - 1),
        .end = (end + page - 1) & ~(page - 1),
        .regions = (uint64_t)(uintptr_t)regions,
        .region_count = SCAN_REGIONS,
        .inverted = PAGE_IS_ZERO,
        .all_of = PAGE_IS_ZERO,
        .any_of = PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
        .returned = PAGE_IS_PRESENT,
    };
    for (*backed = 0; scan.start < scan.end; scan.start = scan.walk_end) {
        int found = ioctl(file, SCAN_REQUEST, &scan);
        if (found < 0 || scan.walk_end <= scan.start) {
            return false;
        }
        for (int i = 0; i < found; i++) {
            *backed += overlap(regions[i].start, regions[i].end, address, end);
        }
    }
    return true;
}

uint64_t wr_system_backed(uint64_t address, uint64_t bytes)
{
    uint64_t backed = 0;
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    bool scanned = file >= 0 && scan_backed(file, address, address + bytes, &backed);
    if (file >= 0) {
        close(file);
    }
    return scanned ? backed : wr_system_resident(address, bytes);
}
