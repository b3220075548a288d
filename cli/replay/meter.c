/* SPDX-License-Identifier: MIT */
/* The metered table is a copy of the driver's with some entries replaced. Drivers are
 * opened by their own open(), so that an entry gets the driver's own object and can hand
 * it on. The sums are atomic: Weir's own thread gives memory back, too. */
#define _POSIX_C_SOURCE 200809L
#include "meter.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

static const weir_driver_table *real; /* constant while a device is open */
static weir_driver_table metered;
static _Atomic uint64_t call_count;
static _Atomic uint64_t spent_ns;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static weir_result count(uint64_t start_ns, weir_result result)
{
    atomic_fetch_add(&spent_ns, now_ns() - start_ns);
    atomic_fetch_add(&call_count, 1);
    return result;
}

static weir_result page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    uint64_t start_ns = now_ns();
    return count(start_ns, real->page_alloc(driver, bytes, address));
}

static weir_result page_free(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    uint64_t start_ns = now_ns();
    return count(start_ns, real->page_free(driver, address, bytes));
}

static weir_result range_reserve(weir_driver *driver, uint64_t bytes, uint64_t *address)
{
    uint64_t start_ns = now_ns();
    return count(start_ns, real->range_reserve(driver, bytes, address));
}

static weir_result commit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    uint64_t start_ns = now_ns();
    return count(start_ns, real->commit(driver, address, bytes));
}

static weir_result commit_chunks(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 uint64_t chunk_bytes)
{
    uint64_t start_ns = now_ns();
    return count(start_ns, real->commit_chunks(driver, address, bytes, chunk_bytes));
}

static weir_result decommit(weir_driver *driver, uint64_t address, uint64_t bytes)
{
    uint64_t start_ns = now_ns();
    return count(start_ns, real->decommit(driver, address, bytes));
}

static weir_result move(weir_driver *driver, uint64_t to, uint64_t from, uint64_t bytes)
{
    uint64_t start_ns = now_ns();
    return count(start_ns, real->move(driver, to, from, bytes));
}

/* Optional entries that the driver lacks stay away. */
static void replace_entries(void)
{
    metered = *real;
    metered.page_alloc = page_alloc;
    metered.page_free = page_free;
    metered.range_reserve = real->range_reserve != NULL ? range_reserve : NULL;
    metered.commit = real->commit != NULL ? commit : NULL;
    metered.commit_chunks = real->commit_chunks != NULL ? commit_chunks : NULL;
    metered.decommit = real->decommit != NULL ? decommit : NULL;
    metered.move = real->move != NULL ? move : NULL;
}

const weir_driver_table *wr_meter_table(const char *device, const char **argument)
{
    size_t length = strcspn(device, ":");
    atomic_store(&call_count, 0);
    atomic_store(&spent_ns, 0);
    for (size_t i = 0; (real = weir_driver_at(i)) != NULL; i++) {
        if (strlen(real->name) == length && memcmp(real->name, device, length) == 0) {
            replace_entries();
            *argument = device[length] == ':' ? device + length + 1 : "";
            return &metered;
        }
    }
    return NULL;
}

wr_meter_reading wr_meter_read(void)
{
    return (wr_meter_reading){atomic_load(&call_count), (double)atomic_load(&spent_ns)};
}
