/* SPDX-License-Identifier: MIT */
/* The CUDA driver: memory of an NVIDIA GPU, through the driver API.
 *
 * Everything lives in the device's primary context, which the program's other CUDA code
 * shares. Each call pushes it and pops it again, so that the calling thread's current
 * context stays what it was.
 *
 * Locks: `lock` guards the books, `fence_lock` the fences. Neither is held across a call
 * to CUDA, any of which may wait. */
#ifndef WR_DRIVER_CUDA_CUDA_H
#define WR_DRIVER_CUDA_CUDA_H

#include "api.h"
#include "kernels.h"

#include "base/lock.h"
#include "driver/drivers.h"
#include "driver/nvml.h"
#include "driver/regions.h"

#define WR_CUDA_GRANULE_BYTES ((uint64_t)2 << 20) /* at least */
#define WR_CUDA_CHUNK_BYTES ((uint64_t)120 << 20) /* at most */
#define WR_CUDA_ALIGNMENT_BYTES 256               /* what cuMemAlloc promises */

typedef struct wr_cuda_stream {
    wr_cu_stream native;
    bool is_adopted; /* else destroyed at close */
    _Atomic bool is_capturing;
    struct wr_cuda_stream *next; /* guard: lock */
    struct wr_cuda_stream *previous;
} wr_cuda_stream;

/* A recycled event. A fence's value is generation << 32 | index + 1. */
typedef struct wr_cuda_fence {
    wr_cu_event event;   /* NULL until first used */
    uint32_t generation; /* grows at release; from 1 */
    uint32_t next_free;  /* index + 1 in the free list */
    bool is_recorded;    /* is somebody's fence */
} wr_cuda_fence;

typedef struct wr_cuda {
    weir_driver base;
    /* ---- constant after open ---- */
    wr_cu_api api;
    wr_nvml nvml;
    wr_cu_device device;
    int ordinal; /* the device's number in names */
    wr_cu_context context;
    char name[96];
    uint64_t capacity_bytes;
    uint64_t granule_bytes; /* 0: no virtual memory */
    uint64_t context_bytes;
    bool is_pinned; /* pages are host memory, see pinned.c */
    /* ---- memory ---- */
    wr_lock lock;
    wr_regions book;                /* guard: lock */
    wr_cuda_stream *streams;        /* all open ones, for close; guard: lock */
    _Atomic uint64_t charged_bytes; /* pages and committed granules */
    wr_cuda_kernels kernels;
    /* ---- fences; guard: fence_lock ---- */
    wr_lock fence_lock;
    wr_cuda_fence *fences;
    size_t fence_capacity;
    uint32_t fence_count;
    uint32_t fence_free; /* index + 1 of the last one released */
} wr_cuda;

static inline wr_cuda *wr_cuda_of(weir_driver *driver)
{
    return (wr_cuda *)(void *)driver;
}

/* Makes the device's context current on this thread until leave, and its calls harmless
 * to captures of the program's, on this thread or others. */
weir_result wr_cuda_enter(const wr_cuda *cuda, const char *what);
void wr_cuda_leave(const wr_cuda *cuda);

/* Opens a GPU, for its own memory or for pinned memory; what drivers of both kinds do. */
weir_result wr_cuda_open(const weir_driver_table *table, bool is_pinned,
                         const char *argument, wr_cuda **cuda);
void wr_cuda_close(weir_driver *driver);

/* wr_cu_failed for a call about so many bytes. */
weir_result wr_cuda_failed(const wr_cuda *cuda, wr_cu_result result, const char *entry,
                           uint64_t bytes, const char *call);

/* ---- memory.c and granules.c: entries of the table ---- */
weir_result wr_cuda_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address);
weir_result wr_cuda_page_free(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_cuda_memory_info(weir_driver *driver, weir_memory_info *info);
weir_result wr_cuda_range_reserve(weir_driver *driver, uint64_t bytes, uint64_t *address);
weir_result wr_cuda_range_free(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_cuda_commit(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_cuda_commit_chunks(weir_driver *driver, uint64_t address, uint64_t bytes,
                                  uint64_t chunk_bytes);
weir_result wr_cuda_decommit(weir_driver *driver, uint64_t address, uint64_t bytes);
weir_result wr_cuda_move(weir_driver *driver, uint64_t to, uint64_t from, uint64_t bytes);

/* This process's memory on the device, if it is known and can be true. */
uint64_t wr_cuda_footprint(const wr_cuda *cuda);
/* Frees all that is still there, for close, inside enter and leave. */
void wr_cuda_free_all(wr_cuda *cuda);
/* Gives back a range's memory and addresses; the region is in no book. */
void wr_cuda_range_destroy(wr_cuda *cuda, wr_region *range);

/* ---- ipc.c: entries of the table, for pages whose region has data ---- */
weir_result wr_cuda_share_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address);
weir_result wr_cuda_share_export(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 int *file);
weir_result wr_cuda_share_import(weir_driver *driver, int file, uint64_t bytes,
                                 uint64_t *address);
/* Ends such a page, inside enter and leave; the region is in no book and stays. */
wr_cu_result wr_cuda_share_free(wr_cuda *cuda, wr_region *page);

/* ---- pinned.c; the last two inside enter and leave ---- */
/* Counts bytes against the capacity. */
weir_result wr_cuda_pinned_charge(wr_cuda *cuda, uint64_t bytes);
wr_cu_result wr_cuda_pinned_alloc(const wr_cuda *cuda, uint64_t bytes,
                                  wr_cu_address *address);
wr_cu_result wr_cuda_pinned_free(const wr_cuda *cuda, wr_cu_address address);

/* ---- streams.c: entries of the table ---- */
wr_cuda_stream *wr_cuda_stream_of(weir_driver_stream stream);
weir_result wr_cuda_stream_open(weir_driver *driver, void *native,
                                weir_driver_stream *stream);
void wr_cuda_stream_close(weir_driver *driver, weir_driver_stream stream);
void *wr_cuda_stream_native(weir_driver *driver, weir_driver_stream stream);
weir_result wr_cuda_stream_test(weir_driver *driver, weir_driver_stream stream);
weir_result wr_cuda_stream_sync(weir_driver *driver, weir_driver_stream stream);
weir_result wr_cuda_stream_wait(weir_driver *driver, weir_driver_stream stream,
                                weir_driver_fence fence);
weir_result wr_cuda_fence_record(weir_driver *driver, weir_driver_stream stream,
                                 weir_driver_fence *fence);
weir_result wr_cuda_fence_test(weir_driver *driver, weir_driver_fence fence);
weir_result wr_cuda_fence_wait(weir_driver *driver, weir_driver_fence fence);
void wr_cuda_fence_release(weir_driver *driver, weir_driver_fence fence);
weir_result wr_cuda_write(weir_driver *driver, weir_driver_stream stream,
                          uint64_t address, const void *data, uint64_t bytes);
weir_result wr_cuda_read(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                         void *data, uint64_t bytes);
weir_result wr_cuda_copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                         uint64_t from, uint64_t bytes);
/* ---- capture.c: entries of the table ---- */
weir_result wr_cuda_capture_begin(weir_driver *driver, weir_driver_stream stream);
weir_result wr_cuda_capture_end(weir_driver *driver, weir_driver_stream stream,
                                uint64_t *graph);
weir_result wr_cuda_capture_abort(weir_driver *driver, weir_driver_stream stream);
weir_result wr_cuda_graph_launch(weir_driver *driver, weir_driver_stream stream,
                                 uint64_t graph);
void wr_cuda_graph_destroy(weir_driver *driver, uint64_t graph);

/* Ends the streams and events that are still there, for close, inside enter and leave. */
void wr_cuda_end_all(wr_cuda *cuda);

#endif
