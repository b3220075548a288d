/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include "sim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MALLOC_CAP_BYTES (UINT64_C(1) << 20)

/* ---- weir ---- */

static weir_device *device;
static weir_driver *driver;
static weir_stream **streams;

#define CAPACITY_BYTES (UINT64_C(192) << 30)

static bool open_on(weir_device *opened, uint32_t stream_count)
{
    device = opened;
    driver = weir_device_driver(device);
    streams = wr_bench_streams(device, stream_count);
    return true;
}

static bool open_weir(uint32_t stream_count)
{
    return open_on(wr_bench_sim_open(CAPACITY_BYTES, false), stream_count);
}

/* In chunks, as on cuda. */
static bool chunks_open(uint32_t stream_count)
{
    return open_on(wr_bench_sim_open_in_chunks(CAPACITY_BYTES, UINT64_C(120) << 20),
                   stream_count);
}

static bool buffer_alloc(wr_bench_slot *slot, uint64_t bytes, uint32_t stream)
{
    return weir_buffer_create(streams[stream], bytes, NULL, &slot->buffer) == WEIR_OK;
}

/* ---- weir, with what is beside ---- */

static bool limited_open(uint32_t stream_count)
{
    open_weir(stream_count);
    wr_bench_must(weir_device_limit(device, UINT64_C(160) << 30), "device limit");
    wr_bench_must(weir_device_pool_limit(device, "arena", UINT64_C(150) << 30),
                  "pool limit");
    return true;
}

static bool scope_open(uint32_t stream_count)
{
    limited_open(stream_count);
    wr_bench_must(weir_tag_push("activations"), "scope");
    return true;
}

static bool call_alloc(wr_bench_slot *slot, uint64_t bytes, uint32_t stream)
{
    return weir_buffer_create(streams[stream], bytes,
                              &(weir_buffer_desc){.tag = "activations"},
                              &slot->buffer) == WEIR_OK;
}

static bool calls_alloc(wr_bench_slot *slot, uint64_t bytes, uint32_t stream)
{
    static const char *const tags[4] = {"activations", "weights", "gradients", "cache"};
    return weir_buffer_create(streams[stream], bytes,
                              &(weir_buffer_desc){.tag = tags[bytes / 256 % 4]},
                              &slot->buffer) == WEIR_OK;
}

static weir_tag known_tag;

static bool tag_open(uint32_t stream_count)
{
    limited_open(stream_count);
    wr_bench_must(weir_device_tag(device, "activations", &known_tag), "tag");
    return true;
}

static bool tag_alloc(wr_bench_slot *slot, uint64_t bytes, uint32_t stream)
{
    return weir_buffer_create_tagged(streams[stream], bytes, known_tag, &slot->buffer) ==
           WEIR_OK;
}

static void buffer_free(wr_bench_slot *slot)
{
    weir_buffer_release(slot->buffer);
}

static bool pointer_alloc(wr_bench_slot *slot, uint64_t bytes, uint32_t stream)
{
    return weir_malloc(streams[stream], bytes, NULL, &slot->pointer) == WEIR_OK;
}

static void pointer_free(wr_bench_slot *slot)
{
    weir_free(device, slot->pointer);
}

static uint64_t driver_calls(void)
{
    weir_sim_ledger ledger;
    uint64_t sum = 0;
    weir_sim_read_ledger(driver, &ledger);
    for (int op = 0; op < WEIR_SIM_OP_COUNT; op++) {
        sum += ledger.calls[op];
    }
    return sum;
}

/* ---- ordinary memory ---- */

static void *(*malloc_function)(size_t bytes);
static void (*free_function)(void *memory);

/* Loaded beside the program's own malloc, which stays what it is. */
static bool load(const char *library, const char *malloc_name, const char *free_name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "bench: %s\n", dlerror());
        return false;
    }
    void *found = dlsym(handle, malloc_name);
    memcpy(&malloc_function, &found, sizeof found);
    found = dlsym(handle, free_name);
    memcpy(&free_function, &found, sizeof found);
    return malloc_function != NULL && free_function != NULL;
}

static bool jemalloc_open(uint32_t stream_count)
{
    (void)stream_count;
    return load("libjemalloc.so.2", "malloc", "free");
}

static bool mimalloc_open(uint32_t stream_count)
{
    (void)stream_count;
    return load("libmimalloc.so.2", "mi_malloc", "mi_free") ||
           load("libmimalloc.so.2.0", "mi_malloc", "mi_free");
}

static bool malloc_alloc(wr_bench_slot *slot, uint64_t bytes, uint32_t stream)
{
    (void)stream;
    slot->pointer =
        malloc_function((size_t)(bytes < MALLOC_CAP_BYTES ? bytes : MALLOC_CAP_BYTES));
    return slot->pointer != NULL;
}

static void malloc_free(wr_bench_slot *slot)
{
    free_function(slot->pointer);
}

/* ---- nothing ---- */

static bool null_open(uint32_t stream_count)
{
    (void)stream_count;
    return true;
}

static bool null_alloc(wr_bench_slot *slot, uint64_t bytes, uint32_t stream)
{
    slot->buffer = (weir_buffer){(uint32_t)bytes, stream};
    return true;
}

static void null_free(wr_bench_slot *slot)
{
    slot->buffer = WEIR_NO_BUFFER;
}

static const wr_bench_peer peers[] = {
    {"weir", open_weir, buffer_alloc, buffer_free, driver_calls},
    {"chunks", chunks_open, buffer_alloc, buffer_free, driver_calls},
    {"limits", limited_open, buffer_alloc, buffer_free, driver_calls},
    {"scope", scope_open, buffer_alloc, buffer_free, driver_calls},
    {"tag", tag_open, tag_alloc, buffer_free, driver_calls},
    {"call", limited_open, call_alloc, buffer_free, driver_calls},
    {"calls", limited_open, calls_alloc, buffer_free, driver_calls},
    {"pointer", open_weir, pointer_alloc, pointer_free, driver_calls},
    {"jemalloc", jemalloc_open, malloc_alloc, malloc_free, NULL},
    {"mimalloc", mimalloc_open, malloc_alloc, malloc_free, NULL},
    {"null", null_open, null_alloc, null_free, NULL},
};

const wr_bench_peer *wr_bench_peer_find(const char *name)
{
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        if (strcmp(peers[i].name, name) == 0) {
            return &peers[i];
        }
    }
    return NULL;
}
