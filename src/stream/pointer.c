/* SPDX-License-Identifier: MIT */
/* The pointer interface: buffers known by their addresses. Entries are made and marked
 * here, and are read against the slices' words, so that nothing else has to know of them:
 * a buffer that went another way (its handle released, its device abandoned) leaves an
 * entry that is stale. */
#include "device.h"

#include "base/fork.h"
#include "base/hot.h"
#include "base/memory.h"
#include "base/result.h"
#include "manager/handle.h"
#include "page/starts.h"

#include <weir/pointer.h>

/* Of all devices whose addresses are the process's; it stays until the process ends. */
static wr_starts process_starts;

/* ---- which tree ---- */

/* The device's own, made when it is first needed. NULL: no host memory. */
static WR_COLD wr_starts *make_own(weir_device *device)
{
    wr_starts *there = NULL, *fresh = wr_host_alloc(sizeof *fresh);
    if (fresh == NULL || atomic_compare_exchange_strong(&device->starts, &there, fresh)) {
        return fresh;
    }
    wr_host_free(fresh);
    return there;
}

/* NULL: the device has none yet. */
static inline wr_starts *starts_of(weir_device *device)
{
    return device == NULL || !device->bank.properties.own_addresses
               ? &process_starts
               : atomic_load_explicit(&device->starts, memory_order_acquire);
}

void wr_pointer_finish(weir_device *device)
{
    wr_starts *starts = atomic_load(&device->starts);
    if (starts != NULL) {
        wr_starts_finish(starts);
        wr_host_free(starts);
        atomic_store(&device->starts, NULL);
    }
}

/* ---- entries ---- */

static inline weir_buffer handle_of(uint64_t value)
{
    return (weir_buffer){.index = (uint32_t)value, .generation = (uint32_t)(value >> 32)};
}

static inline weir_device *device_of(const wr_slice *slice)
{
    return wr_stream_of(slice->pool->manager)->device;
}

/* The slice of an entry that is in force: its buffer lives and its pointer has not been
 * freed. */
static inline wr_slice *slice_of(const wr_start *start)
{
    uint64_t word;
    return (start->value & WR_START_FREED) != 0
               ? NULL
               : wr_handle_find(handle_of(start->value), &word);
}

/* The slice that begins at `address`, which lies in `block`, or NULL. */
static inline wr_slice *find_start(wr_starts_block *block, uint64_t address,
                                   wr_start *start)
{
    wr_slice *slice = NULL;
    if (wr_start_read_small(block, address, start)) {
        slice = slice_of(start);
    }
    if (slice == NULL && wr_start_read_large(block, start) && start->begin == address) {
        slice = slice_of(start);
    }
    return slice;
}

typedef struct search {
    uint64_t address;
    wr_start start;
} search;

/* Whether an entry is in force and holds the address. Its size is known by now. */
static bool holds(void *context, const wr_start *start)
{
    search *s = context;
    s->start = *start;
    return s->address - start->begin < start->bytes && slice_of(start) != NULL;
}

static bool find_holder(const wr_starts *starts, uint64_t address, wr_start *start)
{
    search s = {.address = address};
    bool found = wr_starts_search(starts, address, holds, &s);
    *start = s.start;
    return found;
}

/* ---- refusing ---- */

static WR_COLD weir_result refuse_inside(const wr_start *holder, uint64_t address,
                                         const char *function)
{
    return wr_error(
        WEIR_INVALID,
        "%s: 0x%llx lies inside a buffer of %llu bytes, %llu behind its begin; "
        "give the pointer that weir_malloc returned, 0x%llx",
        function, (unsigned long long)address, (unsigned long long)holder->bytes,
        (unsigned long long)(address - holder->begin), (unsigned long long)holder->begin);
}

/* Something began there once. */
static bool was_freed(const wr_starts *starts, uint64_t address)
{
    wr_start start = {0};
    wr_starts_block *block = wr_starts_find(starts, address);
    return block != NULL &&
           (wr_start_read_small(block, address, &start) ||
            (wr_start_read_large(block, &start) && start.begin == address));
}

/* No buffer begins at `address`: what is there instead. */
static WR_COLD weir_result refuse(const weir_device *device, const wr_starts *starts,
                                  uint64_t address, const char *function)
{
    wr_start holder;
    if (starts != NULL && find_holder(starts, address, &holder) &&
        holder.begin != address) {
        return refuse_inside(&holder, address, function);
    }
    if (starts != NULL && was_freed(starts, address)) {
        return wr_error(WEIR_STALE, "%s: 0x%llx has already been freed", function,
                        (unsigned long long)address);
    }
    return wr_error(WEIR_NOT_FOUND, "%s: weir_malloc has handed out nothing at 0x%llx%s",
                    function, (unsigned long long)address,
                    device != NULL ? ""
                                   : "; on a device with addresses of its own, such as "
                                     "sim, name the device");
}

/* The pointer is of the device that the caller named, if any. */
static weir_result check_device(weir_device *device, const wr_slice *slice,
                                uint64_t address, const char *function)
{
    return WR_LIKELY(device == NULL || device == device_of(slice))
               ? WEIR_OK
               : wr_error(WEIR_INVALID, "%s: 0x%llx is memory of device %s, not of %s",
                          function, (unsigned long long)address, device_of(slice)->name,
                          device->name);
}

static inline weir_result get(weir_device *device, const void *pointer, wr_start *start,
                              const char *function)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    const wr_starts *starts = starts_of(device);
    wr_starts_block *block = starts == NULL ? NULL : wr_starts_find(starts, address);
    wr_slice *slice = block == NULL ? NULL : find_start(block, address, start);
    return WR_UNLIKELY(slice == NULL) ? refuse(device, starts, address, function)
                                      : check_device(device, slice, address, function);
}

/* ---- malloc and free ---- */

/* Two devices that both say that their addresses are the process's. */
static WR_COLD weir_result refuse_taken(const weir_device *device, uint64_t address)
{
    return wr_error(
        WEIR_INVALID,
        "weir_malloc: two devices have memory at 0x%llx; the driver of %s, or "
        "of the other one, must say own_addresses in its properties",
        (unsigned long long)address, device->name);
}

static WR_COLD weir_result refuse_to_enter(uint64_t address)
{
    if (address >> WR_STARTS_ADDRESS_BITS != 0) {
        return wr_error(WEIR_UNSUPPORTED,
                        "weir_malloc: pointers have at most %d bits, and the driver's "
                        "address 0x%llx has more; use weir_buffer_create",
                        WR_STARTS_ADDRESS_BITS, (unsigned long long)address);
    }
    return wr_error(WEIR_OUT_OF_HOST_MEMORY,
                    "weir_malloc: no host memory to note the pointer 0x%llx",
                    (unsigned long long)address);
}

static inline weir_result enter(weir_device *device, weir_buffer buffer,
                                uint64_t *address_out)
{
    const wr_slice *slice = wr_slice_get(buffer.index); /* ours, so it is live */
    uint64_t address = wr_slice_begin(slice);
    wr_starts *starts = starts_of(device);
    starts = WR_LIKELY(starts != NULL) ? starts : make_own(device);
    wr_starts_block *block = starts == NULL ? NULL : wr_starts_get(starts, address);
    wr_start taken;
    if (WR_UNLIKELY(block != NULL && find_start(block, address, &taken) != NULL)) {
        return refuse_taken(device, address);
    }
    if (WR_UNLIKELY(block == NULL ||
                    !wr_starts_enter(starts, block, address,
                                     wr_slice_end(slice) - address,
                                     wr_start_value(buffer.index, buffer.generation)))) {
        return refuse_to_enter(address);
    }
    *address_out = address;
    return WEIR_OK;
}

weir_result weir_malloc(weir_stream *stream, uint64_t bytes, const weir_buffer_desc *desc,
                        void **pointer)
{
    weir_buffer buffer;
    uint64_t address = 0;
    if (pointer == NULL) {
        WR_TRY(wr_fork_check());
        return wr_error(WEIR_INVALID, "weir_malloc: the place for the pointer is NULL");
    }
    WR_TRY(weir_buffer_create(stream, bytes, desc, &buffer));
    weir_result result = enter(stream->device, buffer, &address);
    if (WR_UNLIKELY(result != WEIR_OK)) {
        weir_buffer_release(buffer);
        return result;
    }
    *pointer = (void *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
    return WEIR_OK;
}

weir_result weir_free(weir_device *device, void *pointer)
{
    WR_TRY(wr_fork_check());
    if (pointer == NULL) {
        return WEIR_OK;
    }
    wr_start start = {0};
    WR_TRY(get(device, pointer, &start, "weir_free"));
    /* Of two threads that free the same pointer one passes. */
    uint64_t seen = start.value;
    if (WR_UNLIKELY(!atomic_compare_exchange_strong_explicit(
            start.entry, &seen, seen | WR_START_FREED, memory_order_acq_rel,
            memory_order_relaxed))) {
        return refuse(device, starts_of(device), (uint64_t)(uintptr_t)pointer,
                      "weir_free");
    }
    return weir_buffer_release(handle_of(start.value));
}

/* ---- looking ---- */

weir_result weir_usable_bytes(weir_device *device, const void *pointer, uint64_t *bytes)
{
    WR_TRY(wr_fork_check());
    if (pointer == NULL || bytes == NULL) {
        return wr_error(WEIR_INVALID, "weir_usable_bytes: an argument is NULL");
    }
    wr_start start = {0};
    WR_TRY(get(device, pointer, &start, "weir_usable_bytes"));
    const wr_slice *slice = wr_slice_get(handle_of(start.value).index);
    bool checked = (atomic_load(&slice->word) & WR_WORD_CHECKED) != 0;
    *bytes = checked ? slice->held.requested_bytes : start.bytes;
    return WEIR_OK;
}

weir_result weir_buffer_find(weir_device *device, const void *pointer,
                             weir_buffer *buffer, uint64_t *offset_bytes)
{
    WR_TRY(wr_fork_check());
    if (pointer == NULL || buffer == NULL) {
        return wr_error(WEIR_INVALID, "weir_buffer_find: an argument is NULL");
    }
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    const wr_starts *starts = starts_of(device);
    wr_start start = {0};
    if (starts == NULL || !find_holder(starts, address, &start)) {
        return refuse(device, starts, address, "weir_buffer_find");
    }
    const wr_slice *slice = wr_slice_get(handle_of(start.value).index);
    WR_TRY(check_device(device, slice, address, "weir_buffer_find"));
    *buffer = handle_of(start.value);
    if (offset_bytes != NULL) {
        *offset_bytes = address - start.begin;
    }
    return WEIR_OK;
}
