/* SPDX-License-Identifier: MIT */
/* All open devices of the process, in the order in which they were opened, for cleanup
 * over all of them. The mutex guards the list and the pins; it is not held while a device
 * is cleaned up, whose hooks may open and close others. A device that is being looked at
 * is pinned, and its closing waits. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"

#include <string.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t unpinned;
    weir_device *first;
    uint64_t last_number;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .unpinned = PTHREAD_COND_INITIALIZER};

/* What this thread is cleaning up: the innermost, in whose hook another may have begun.
 */
typedef struct cleaning {
    const weir_device *device;
    const struct cleaning *outer;
} cleaning;
static _Thread_local const cleaning *innermost;

void wr_devices_add(weir_device *device)
{
    pthread_mutex_lock(&all.mutex);
    device->number = ++all.last_number;
    weir_device **link = &all.first;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = device;
    pthread_mutex_unlock(&all.mutex);
}

void wr_devices_remove(weir_device *device)
{
    pthread_mutex_lock(&all.mutex);
    weir_device **link = &all.first;
    while (*link != device) {
        link = &(*link)->next;
    }
    *link = device->next;
    while (device->pins > 0) {
        pthread_cond_wait(&all.unpinned, &all.mutex);
    }
    pthread_mutex_unlock(&all.mutex);
}

bool wr_devices_is_inside(const weir_device *device)
{
    const cleaning *at = innermost;
    while (at != NULL && at->device != device) {
        at = at->outer;
    }
    return at != NULL;
}

/* The first device behind that number, pinned; NULL: there is none. */
static weir_device *pin_next(uint64_t number)
{
    pthread_mutex_lock(&all.mutex);
    weir_device *device = all.first;
    while (device != NULL && device->number <= number) {
        device = device->next;
    }
    if (device != NULL) {
        device->pins++;
    }
    pthread_mutex_unlock(&all.mutex);
    return device;
}

static void unpin(weir_device *device)
{
    pthread_mutex_lock(&all.mutex);
    if (--device->pins == 0) {
        pthread_cond_broadcast(&all.unpinned);
    }
    pthread_mutex_unlock(&all.mutex);
}

static void add_outcome(weir_cleanup_outcome *sum, const weir_cleanup_outcome *one,
                        uint64_t most[2])
{
    sum->returned_bytes += one->returned_bytes;
    sum->deferred_bytes += one->deferred_bytes;
    sum->pinned_bytes += one->pinned_bytes;
    sum->kept_bytes += one->kept_bytes;
    sum->driver_deferred_bytes += one->driver_deferred_bytes;
    if (one->deferred_bytes > most[0]) {
        most[0] = one->deferred_bytes;
        memcpy(sum->deferred_stream, one->deferred_stream, sizeof sum->deferred_stream);
    }
    if (one->pinned_bytes > most[1]) {
        most[1] = one->pinned_bytes;
        sum->pinned_by = one->pinned_by;
        sum->pinned_by_bytes = one->pinned_by_bytes;
        memcpy(sum->pinned_by_tag, one->pinned_by_tag, sizeof sum->pinned_by_tag);
    }
}

/* A device that is being cleaned up by this thread already, in one of whose hooks we are,
 * is passed over. */
static weir_result clean_pinned(weir_device *device, const weir_cleanup_desc *desc,
                                weir_cleanup_outcome *done)
{
    if (wr_devices_is_inside(device)) {
        return WEIR_OK;
    }
    const cleaning here = {.device = device, .outer = innermost};
    innermost = &here;
    weir_result result = weir_device_memory_cleanup(device, desc, done);
    innermost = here.outer;
    return result;
}

weir_result weir_devices_memory_cleanup(const weir_cleanup_desc *desc,
                                        weir_cleanup_outcome *outcome)
{
    WR_TRY(wr_fork_check());
    if ((desc != NULL && desc->size != 0 && desc->size != sizeof *desc) ||
        (outcome != NULL && outcome->size != 0 && outcome->size != sizeof *outcome)) {
        return wr_error(WEIR_INVALID, "weir_devices_memory_cleanup: options or outcome "
                                      "are of another size");
    }
    weir_cleanup_outcome sum = {.size = outcome == NULL ? 0 : outcome->size};
    uint64_t most[2] = {0, 0}, number = 0;
    weir_result first = WEIR_OK;
    weir_device *device;
    while ((device = pin_next(number)) != NULL) {
        weir_cleanup_outcome done = {.size = 0};
        weir_result result = clean_pinned(device, desc, &done);
        WR_TRY(wr_fork_check()); /* a hook may have forked */
        number = device->number;
        unpin(device);
        add_outcome(&sum, &done, most);
        first = first == WEIR_OK ? result : first;
    }
    if (first == WEIR_OK && outcome != NULL) {
        *outcome = sum;
    }
    return first;
}
