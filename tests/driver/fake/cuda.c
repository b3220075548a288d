/* SPDX-License-Identifier: MIT */
/* A libcuda.so.1 (and a libnvidia-ml.so.1 in the same file) over host memory: two small
 * GPUs whose calls are counted and fail on demand, so that the CUDA driver is tested
 * where there is no GPU. It is as strict as the documentation of CUDA: calls need the
 * current context, mappings end whole, memory is reachable only after access has been
 * set.
 *
 * Chunks are pieces of one memory file, so that a chunk keeps its contents when it is
 * mapped elsewhere. The file has more room than the device, so that pieces of all sizes
 * fit; only chunks take memory of it. One lock guards all state; the control block is
 * atomic. */
#define _GNU_SOURCE
#include "state.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNIT ((uint64_t)2 << 20)
#define MOST_CHUNKS (8 * FAKE_CAPACITY_BYTES / UNIT)
#define MOST_MAPPINGS (2 * FAKE_CAPACITY_BYTES / UNIT)
#define MOST_PAGES 4096
#define MOST_EXPORTS 64

struct wr_cu_stream_opaque {
    int device;
    bool is_busy; /* work was queued while held */
    bool is_capturing;
    bool is_spoiled;
};

struct wr_cu_event_opaque {
    int device;
    bool is_pending; /* recorded behind such work */
};

/* It stands where its piece of the file begins. */
typedef struct chunk {
    size_t unit_count;     /* 0: there is none */
    uint32_t handle_count; /* its own, and one for each import */
    uint32_t mapping_count;
    uint32_t export_count; /* descriptors that are open somewhere */
    int device;
} chunk;

/* An exported descriptor: one end of a pair of sockets, in which the chunk's number waits
 * to be looked at; the other end hangs up when it has been closed everywhere. */
typedef struct export
{
    int watch; /* 0: a free entry */
    size_t chunk;
}
export;

typedef struct mapping {
    uint64_t address; /* 0: a free entry */
    size_t chunk;
} mapping;

typedef struct page {
    void *memory;
    size_t bytes;
    int device;
} page;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int file = -1; /* constant after cuInit, as all below is guarded by the mutex */
static chunk chunks[MOST_CHUNKS];
static mapping mappings[MOST_MAPPINGS];
static page pages[MOST_PAGES];
static export exports[MOST_EXPORTS];
static uint64_t used_bytes[FAKE_DEVICES];
static bool has_worked;

/* WEIR_FAKE_DRIFT: bytes that the context takes more once there is other memory. */
static uint64_t drift_bytes(void)
{
    const char *given = has_worked ? getenv("WEIR_FAKE_DRIFT") : NULL;
    return given != NULL ? strtoull(given, NULL, 10) : 0;
}

uint64_t fake_used_bytes(int device)
{
    pthread_mutex_lock(&mutex);
    uint64_t bytes = FAKE_CONTEXT_BYTES + drift_bytes() + used_bytes[device];
    pthread_mutex_unlock(&mutex);
    return bytes;
}

/* ---- devices ---- */

wr_cu_result cuInit(unsigned flags)
{
    ENTER(init);
    pthread_mutex_lock(&mutex);
    if (file < 0) {
        file = memfd_create("fake-gpu", MFD_CLOEXEC);
        if (file >= 0 && ftruncate(file, (off_t)(MOST_CHUNKS * UNIT)) != 0) {
            abort();
        }
    }
    pthread_mutex_unlock(&mutex);
    return flags == 0 && file >= 0 ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

wr_cu_result cuCtxSynchronize(void)
{
    ENTER_CURRENT(context_sync);
    atomic_store(&fake_control_block.hold, false);
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    ENTER_CURRENT(memory_info);
    pthread_mutex_lock(&mutex);
    *free_bytes = FAKE_CAPACITY_BYTES - used_bytes[fake_device()];
    pthread_mutex_unlock(&mutex);
    *total_bytes = FAKE_CAPACITY_BYTES + FAKE_CONTEXT_BYTES;
    return WR_CU_SUCCESS;
}

/* ---- pages; the mutex is held in the functions without a symbol of CUDA ---- */

static bool take(int device, uint64_t bytes)
{
    bool fits = bytes <= FAKE_CAPACITY_BYTES - used_bytes[device];
    used_bytes[device] += fits ? bytes : 0;
    has_worked = has_worked || fits;
    return fits;
}

static page *find_page(const void *memory)
{
    for (size_t i = 0; i < MOST_PAGES; i++) {
        if (pages[i].memory == memory) {
            return &pages[i];
        }
    }
    return NULL;
}

static wr_cu_result make_page(wr_cu_address *address, size_t bytes)
{
    page *made = find_page(NULL);
    if (made == NULL || !take(fake_device(), bytes)) {
        return WR_CU_OUT_OF_MEMORY;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        used_bytes[fake_device()] -= bytes;
        return WR_CU_OUT_OF_MEMORY;
    }
    *made = (page){memory, bytes, fake_device()};
    *address = (uintptr_t)memory;
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemAlloc_v2(wr_cu_address *address, size_t bytes)
{
    ENTER_CURRENT(page_alloc);
    pthread_mutex_lock(&mutex);
    wr_cu_result result = bytes == 0 ? WR_CU_INVALID_VALUE : make_page(address, bytes);
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add(&fake_control_block.pages, result == WR_CU_SUCCESS);
    return result;
}

wr_cu_result cuMemFree_v2(wr_cu_address address)
{
    ENTER_CURRENT(page_free);
    pthread_mutex_lock(&mutex);
    page *found = find_page((void *)(uintptr_t)address);
    if (found != NULL && address != 0) {
        munmap(found->memory, found->bytes);
        used_bytes[found->device] -= found->bytes;
        *found = (page){0};
        atomic_fetch_sub(&fake_control_block.pages, 1);
    }
    pthread_mutex_unlock(&mutex);
    return found != NULL ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

/* ---- virtual memory ---- */

static mapping *find_mapping(uint64_t address)
{
    for (size_t i = 0; i < MOST_MAPPINGS; i++) {
        if (mappings[i].address == address) {
            return &mappings[i];
        }
    }
    return NULL;
}

static void free_unused(chunk *one)
{
    if (one->handle_count == 0 && one->mapping_count == 0 && one->export_count == 0) {
        used_bytes[one->device] -= one->unit_count * UNIT;
        one->unit_count = 0;
        atomic_fetch_sub(&fake_control_block.chunks, 1);
    }
}

/* Chunks whose last descriptor has been closed may go. */
static void sweep_exports(void)
{
    for (size_t i = 0; i < MOST_EXPORTS; i++) {
        struct pollfd watch = {.fd = exports[i].watch};
        if (watch.fd > 0 && poll(&watch, 1, 0) == 1 && (watch.revents & POLLHUP) != 0) {
            close(watch.fd);
            chunks[exports[i].chunk].export_count--;
            free_unused(&chunks[exports[i].chunk]);
            exports[i] = (export){0};
        }
    }
}

void fake_sweep_exports(void)
{
    pthread_mutex_lock(&mutex);
    sweep_exports();
    pthread_mutex_unlock(&mutex);
}

/* The lowest free piece of the file with so many units, or MOST_CHUNKS. */
static size_t find_piece(size_t unit_count)
{
    size_t begin = 0;
    for (size_t at = 0; at < MOST_CHUNKS && at - begin < unit_count;) {
        if (chunks[at].unit_count > 0) {
            at += chunks[at].unit_count;
            begin = at;
        } else {
            at++;
        }
    }
    return begin + unit_count <= MOST_CHUNKS ? begin : MOST_CHUNKS;
}

/* Closes addresses, so that stale use faults. */
static bool close_addresses(uint64_t address, uint64_t bytes)
{
    return mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

wr_cu_result cuMemGetAllocationGranularity(size_t *bytes, const wr_cu_allocation *what,
                                           int option)
{
    ENTER(granularity);
    *bytes = UNIT;
    return what->type == WR_CU_ALLOCATION_PINNED &&
                   option == WR_CU_GRANULARITY_RECOMMENDED
               ? WR_CU_SUCCESS
               : WR_CU_INVALID_VALUE;
}

wr_cu_result cuMemAddressReserve(wr_cu_address *address, size_t bytes, size_t alignment,
                                 wr_cu_address wanted, unsigned long long flags)
{
    ENTER_CURRENT(reserve);
    if (bytes % UNIT != 0 || alignment != UNIT || wanted != 0 || flags != 0) {
        return WR_CU_INVALID_VALUE;
    }
    char *memory = mmap(NULL, bytes + UNIT, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return WR_CU_OUT_OF_MEMORY;
    }
    size_t head = (UNIT - (uintptr_t)memory % UNIT) % UNIT;
    if (head > 0) {
        munmap(memory, head);
    }
    munmap(memory + head + bytes, UNIT - head);
    *address = (uintptr_t)memory + head;
    atomic_fetch_add(&fake_control_block.ranges, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemAddressFree(wr_cu_address address, size_t bytes)
{
    ENTER_CURRENT(unreserve);
    munmap((void *)(uintptr_t)address, bytes);
    atomic_fetch_sub(&fake_control_block.ranges, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemCreate(wr_cu_handle *handle, size_t bytes, const wr_cu_allocation *what,
                         unsigned long long flags)
{
    ENTER_CURRENT(create);
    if (bytes == 0 || bytes % UNIT != 0 || what->type != WR_CU_ALLOCATION_PINNED ||
        (what->handle_types & ~WR_CU_HANDLE_FILE) != 0 || flags != 0 ||
        what->location.type != WR_CU_LOCATION_DEVICE || what->location.id < 0 ||
        what->location.id >= FAKE_DEVICES) {
        return WR_CU_INVALID_VALUE;
    }
    wr_cu_result result = WR_CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&mutex);
    sweep_exports();
    size_t at = find_piece(bytes / UNIT);
    if (at < MOST_CHUNKS && take(what->location.id, bytes)) {
        chunks[at] = (chunk){
            .unit_count = bytes / UNIT, .handle_count = 1, .device = what->location.id};
        *handle = at + 1;
        result = WR_CU_SUCCESS;
    }
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add(&fake_control_block.chunks, result == WR_CU_SUCCESS);
    return result;
}

static chunk *find_chunk(wr_cu_handle handle)
{
    chunk *found = handle > 0 && handle <= MOST_CHUNKS ? &chunks[handle - 1] : NULL;
    return found != NULL && found->handle_count > 0 ? found : NULL;
}

wr_cu_result cuMemRelease(wr_cu_handle handle)
{
    ENTER_CURRENT(release);
    pthread_mutex_lock(&mutex);
    sweep_exports();
    chunk *found = find_chunk(handle);
    if (found != NULL) {
        found->handle_count--;
        free_unused(found);
    }
    pthread_mutex_unlock(&mutex);
    return found != NULL ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

/* A descriptor for a chunk, or -1. */
static int make_export(size_t number)
{
    int ends[2];
    size_t at = 0;
    while (at < MOST_EXPORTS && exports[at].watch != 0) {
        at++;
    }
    if (at == MOST_EXPORTS ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    if (send(ends[0], &number, sizeof number, 0) != (ssize_t)sizeof number) {
        abort();
    }
    exports[at] = (export){ends[0], number};
    chunks[number].export_count++;
    return ends[1];
}

wr_cu_result cuMemExportToShareableHandle(void *shareable, wr_cu_handle handle, int type,
                                          unsigned long long flags)
{
    ENTER_CURRENT(export_handle);
    pthread_mutex_lock(&mutex);
    sweep_exports();
    bool valid = type == WR_CU_HANDLE_FILE && flags == 0 && find_chunk(handle) != NULL;
    int made = valid ? make_export((size_t)handle - 1) : -1;
    pthread_mutex_unlock(&mutex);
    if (made >= 0) {
        memcpy(shareable, &made, sizeof made);
    }
    return made >= 0 ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

wr_cu_result cuMemImportFromShareableHandle(wr_cu_handle *handle, void *shareable,
                                            int type)
{
    ENTER_CURRENT(import_handle);
    size_t at = MOST_CHUNKS;
    int shared = (int)(uintptr_t)shareable;
    bool valid =
        type == WR_CU_HANDLE_FILE &&
        recv(shared, &at, sizeof at, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof at &&
        at < MOST_CHUNKS;
    pthread_mutex_lock(&mutex);
    valid = valid && chunks[at].unit_count > 0;
    if (valid) {
        chunks[at].handle_count++;
        *handle = at + 1;
    }
    pthread_mutex_unlock(&mutex);
    return valid ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

static bool overlaps_a_mapping(uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < MOST_MAPPINGS; i++) {
        const mapping *other = &mappings[i];
        uint64_t end = other->address + chunks[other->chunk].unit_count * UNIT;
        if (other->address != 0 && other->address < address + bytes && address < end) {
            return true;
        }
    }
    return false;
}

static wr_cu_result map_chunk(uint64_t address, uint64_t bytes, wr_cu_handle handle)
{
    chunk *found = find_chunk(handle);
    mapping *made = find_mapping(0);
    if (found == NULL || made == NULL || bytes != found->unit_count * UNIT ||
        overlaps_a_mapping(address, bytes)) {
        return WR_CU_INVALID_VALUE;
    }
    if (mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file,
             (off_t)((handle - 1) * UNIT)) == MAP_FAILED) {
        return WR_CU_OUT_OF_MEMORY;
    }
    found->mapping_count++;
    *made = (mapping){address, (size_t)handle - 1};
    atomic_fetch_add(&fake_control_block.mappings, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemMap(wr_cu_address address, size_t bytes, size_t offset,
                      wr_cu_handle handle, unsigned long long flags)
{
    ENTER_CURRENT(map);
    if (offset != 0 || flags != 0 || address % UNIT != 0) {
        return WR_CU_INVALID_VALUE;
    }
    pthread_mutex_lock(&mutex);
    wr_cu_result result = map_chunk(address, bytes, handle);
    pthread_mutex_unlock(&mutex);
    return result;
}

/* Whether all of it is mapped, in whole chunks, of one device unless that is -1. */
static bool is_mapped(uint64_t address, uint64_t bytes, int device)
{
    uint64_t at = address;
    while (at < address + bytes) {
        const mapping *found = find_mapping(at);
        if (found == NULL || (device >= 0 && chunks[found->chunk].device != device)) {
            return false;
        }
        at += chunks[found->chunk].unit_count * UNIT;
    }
    return bytes > 0 && at == address + bytes;
}

wr_cu_result cuMemUnmap(wr_cu_address address, size_t bytes)
{
    ENTER_CURRENT(unmap);
    pthread_mutex_lock(&mutex);
    bool is_whole = is_mapped(address, bytes, -1) && close_addresses(address, bytes);
    for (uint64_t at = 0; at < bytes && is_whole;) {
        mapping *found = find_mapping(address + at);
        at += chunks[found->chunk].unit_count * UNIT;
        chunks[found->chunk].mapping_count--;
        free_unused(&chunks[found->chunk]);
        *found = (mapping){0};
        atomic_fetch_sub(&fake_control_block.mappings, 1);
    }
    pthread_mutex_unlock(&mutex);
    return is_whole ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

wr_cu_result cuMemSetAccess(wr_cu_address address, size_t bytes,
                            const wr_cu_access *access, size_t count)
{
    ENTER_CURRENT(set_access);
    pthread_mutex_lock(&mutex);
    bool ok = count == 1 && access->flags == WR_CU_ACCESS_READWRITE &&
              is_mapped(address, bytes, access->location.id) &&
              mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE) == 0;
    pthread_mutex_unlock(&mutex);
    return ok ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

/* Streams and events belong to the context in which they were made. */
#define CHECK_DEVICE(object)                                                             \
    do {                                                                                 \
        if ((object)->device != fake_device()) {                                         \
            return WR_CU_INVALID_CONTEXT;                                                \
        }                                                                                \
    } while (0)

/* ---- streams, events and copies: done when the call returns, but for what is held ----
 */

void fake_queue(wr_cu_stream stream)
{
    pthread_mutex_lock(&mutex);
    stream->is_busy = atomic_load(&fake_control_block.hold);
    pthread_mutex_unlock(&mutex);
}

wr_cu_result cuMemcpyHtoDAsync_v2(wr_cu_address to, const void *from, size_t bytes,
                                  wr_cu_stream stream)
{
    ENTER_CURRENT(write);
    CHECK_DEVICE(stream);
    memcpy((void *)(uintptr_t)to, from, bytes);
    fake_queue(stream);
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemcpyDtoHAsync_v2(void *to, wr_cu_address from, size_t bytes,
                                  wr_cu_stream stream)
{
    ENTER_CURRENT(read);
    CHECK_DEVICE(stream);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    fake_queue(stream);
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemcpyDtoDAsync_v2(wr_cu_address to, wr_cu_address from, size_t bytes,
                                  wr_cu_stream stream)
{
    ENTER_CURRENT(copy);
    CHECK_DEVICE(stream);
    if (to < from + bytes && from < to + bytes) {
        return WR_CU_INVALID_VALUE; /* undefined on a GPU */
    }
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    fake_queue(stream);
    return WR_CU_SUCCESS;
}

wr_cu_result cuStreamCreate(wr_cu_stream *stream, unsigned flags)
{
    ENTER_CURRENT(stream_create);
    *stream = calloc(1, sizeof **stream);
    if (*stream != NULL) {
        (*stream)->device = fake_device();
    }
    atomic_fetch_add(&fake_control_block.streams, 1);
    return *stream != NULL && flags == WR_CU_STREAM_NON_BLOCKING ? WR_CU_SUCCESS
                                                                 : WR_CU_INVALID_VALUE;
}

wr_cu_result cuStreamDestroy_v2(wr_cu_stream stream)
{
    ENTER_CURRENT(stream_destroy);
    CHECK_DEVICE(stream);
    free(stream);
    atomic_fetch_sub(&fake_control_block.streams, 1);
    return WR_CU_SUCCESS;
}

static wr_cu_result ready_unless(const bool *is_busy)
{
    pthread_mutex_lock(&mutex);
    bool busy = *is_busy && atomic_load(&fake_control_block.hold);
    pthread_mutex_unlock(&mutex);
    return busy ? WR_CU_NOT_READY : WR_CU_SUCCESS;
}

/* Whatever tests or waits for a capturing stream spoils the capture. */
static bool spoils(wr_cu_stream stream)
{
    pthread_mutex_lock(&mutex);
    bool is_capturing = stream->is_capturing;
    stream->is_spoiled = stream->is_spoiled || is_capturing;
    pthread_mutex_unlock(&mutex);
    return is_capturing;
}

wr_cu_result cuStreamQuery(wr_cu_stream stream)
{
    ENTER_CURRENT(stream_query);
    CHECK_DEVICE(stream);
    if (spoils(stream)) {
        return WR_CU_CAPTURE_UNSUPPORTED;
    }
    return ready_unless(&stream->is_busy);
}

wr_cu_result cuStreamSynchronize(wr_cu_stream stream)
{
    ENTER_CURRENT(stream_sync);
    CHECK_DEVICE(stream);
    if (spoils(stream)) {
        return WR_CU_CAPTURE_UNSUPPORTED;
    }
    atomic_store(&fake_control_block.hold, false);
    return WR_CU_SUCCESS;
}

wr_cu_result cuStreamWaitEvent(wr_cu_stream stream, wr_cu_event event, unsigned flags)
{
    ENTER_CURRENT(stream_wait);
    CHECK_DEVICE(stream);
    pthread_mutex_lock(&mutex);
    stream->is_busy = stream->is_busy || event->is_pending;
    pthread_mutex_unlock(&mutex);
    return flags == 0 ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

wr_cu_result cuEventCreate(wr_cu_event *event, unsigned flags)
{
    ENTER_CURRENT(event_create);
    *event = calloc(1, sizeof **event);
    if (*event != NULL) {
        (*event)->device = fake_device();
    }
    atomic_fetch_add(&fake_control_block.events, 1);
    return *event != NULL && flags == WR_CU_EVENT_DISABLE_TIMING ? WR_CU_SUCCESS
                                                                 : WR_CU_INVALID_VALUE;
}

wr_cu_result cuEventDestroy_v2(wr_cu_event event)
{
    ENTER_CURRENT(event_destroy);
    free(event);
    atomic_fetch_sub(&fake_control_block.events, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuEventRecord(wr_cu_event event, wr_cu_stream stream)
{
    ENTER_CURRENT(event_record);
    CHECK_DEVICE(stream);
    CHECK_DEVICE(event);
    if (spoils(stream)) { /* CUDA would record it, but nobody could test it */
        return WR_CU_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_lock(&mutex);
    event->is_pending = atomic_load(&fake_control_block.hold);
    pthread_mutex_unlock(&mutex);
    return WR_CU_SUCCESS;
}

wr_cu_result cuEventQuery(wr_cu_event event)
{
    ENTER_CURRENT(event_query);
    return ready_unless(&event->is_pending);
}

wr_cu_result cuEventSynchronize(wr_cu_event event)
{
    (void)event;
    ENTER_CURRENT(event_sync);
    atomic_store(&fake_control_block.hold, false);
    return WR_CU_SUCCESS;
}

/* ---- captures and graphs ---- */

wr_cu_result cuStreamBeginCapture_v2(wr_cu_stream stream, int mode)
{
    ENTER_CURRENT(capture_begin);
    CHECK_DEVICE(stream);
    if (mode != WR_CU_CAPTURE_RELAXED || stream->is_capturing) {
        return WR_CU_INVALID_VALUE;
    }
    pthread_mutex_lock(&mutex);
    stream->is_capturing = true;
    stream->is_spoiled = false;
    pthread_mutex_unlock(&mutex);
    return WR_CU_SUCCESS;
}

wr_cu_result cuStreamEndCapture(wr_cu_stream stream, wr_cu_graph *graph)
{
    ENTER_CURRENT(capture_end);
    CHECK_DEVICE(stream);
    pthread_mutex_lock(&mutex);
    bool was_capturing = stream->is_capturing, was_spoiled = stream->is_spoiled;
    stream->is_capturing = false;
    pthread_mutex_unlock(&mutex);
    if (!was_capturing || was_spoiled) {
        return was_spoiled ? WR_CU_CAPTURE_UNSUPPORTED + 1 : WR_CU_INVALID_VALUE;
    }
    *graph = fake_graph_create(false);
    return WR_CU_SUCCESS;
}

wr_cu_result cuGraphLaunch(wr_cu_exec exec, wr_cu_stream stream)
{
    ENTER_CURRENT(graph_launch);
    CHECK_DEVICE(stream);
    if (!((wr_cu_graph)(void *)exec)->is_exec || stream->is_capturing) {
        return WR_CU_INVALID_VALUE;
    }
    fake_queue(stream);
    return WR_CU_SUCCESS;
}
