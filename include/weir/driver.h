/* SPDX-License-Identifier: MIT */
/* The driver table: what a backend must offer, and what it may. The table is public, so
 * that programs can plug in their own memory: fill a weir_driver_table and hand it to
 * weir_device_open_driver().
 *
 * Addresses are device addresses, 0 is none. Every function may be called from any thread
 * at any time between open and close. Functions that fail return a result and may first
 * leave a text with weir_driver_error(). Entries marked optional may be NULL. */
#ifndef WEIR_DRIVER_H
#define WEIR_DRIVER_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_driver_table weir_driver_table;

/* An open driver. Each driver's own struct starts with this one. */
typedef struct weir_driver {
    const weir_driver_table *table;
} weir_driver;

/* A queue of device work as its driver names it (a pointer or a number). */
typedef uint64_t weir_driver_stream;

/* A point in a stream. 0 is a point that has always passed. Values belong to the driver;
 * each one recorded is given back with fence_release(), passed or not. */
typedef uint64_t weir_driver_fence;

/* What a driver says about its device, once, at open. */
typedef struct weir_driver_properties {
    char name[96];            /* for people: "NVIDIA H200", "host memory" */
    uint64_t capacity_bytes;  /* device memory in all */
    uint64_t granule_bytes;   /* unit of commit, a power of two; 0: pages whole */
    uint64_t alignment_bytes; /* of every address; a power of two, at most 4096 */
    uint64_t max_page_bytes;  /* the largest page for several buffers; one alone may ask
                                 for more; 0: no bound but the capacity */
    uint64_t context_bytes;   /* what the process has there at open; 0 if unknown */
    bool host_visible;        /* an address is also a host pointer */
    bool own_addresses;       /* another device may have the same addresses, as they are
                                 numbers of the driver's; else they are the process's */
    char pinned[32];          /* the device that has pinned host memory for this one, by
                                 the name to open it by; "": none */
    bool argument_buffers;    /* launches need their arguments in device memory too */
    bool exclusive_bindings;  /* no two bindings of a launch may be the same buffer, even
                                 if both are only read */
    uint32_t max_bindings;    /* the most of a launch, arguments not counted; 0: any */
    uint64_t chunk_bytes;     /* the most of one chunk, see commit_chunks; 0: a granule */
} weir_driver_properties;

/* What the operating system or the driver says now. Unknown numbers are UINT64_MAX. */
typedef struct weir_memory_info {
    uint64_t capacity_bytes;
    uint64_t footprint_bytes; /* this process on this device, as the system counts it */
    uint64_t others_bytes;    /* all other processes */
} weir_memory_info;

#define WEIR_UNKNOWN_BYTES UINT64_MAX

typedef enum weir_access {
    WEIR_ACCESS_READ = 1,
    WEIR_ACCESS_WRITE = 2,
    WEIR_ACCESS_READ_WRITE = 3, /* in place: bound once */
} weir_access;

/* A range of device memory that a kernel works on: all bytes of one buffer. */
typedef struct weir_binding {
    uint64_t address;
    uint64_t bytes;
    weir_access access;
} weir_binding;

/* One launch of a kernel. Everything is copied before launch() returns, the kernel too.
 */
typedef struct weir_launch {
    const struct weir_kernel *kernel; /* see kernel.h */
    const weir_binding *bindings;     /* in the kernel's order; what is written
                                         overlaps nothing else */
    size_t binding_count;
    const void *arguments; /* shapes, strides, scalars: what the kernel says */
    size_t argument_bytes;
    uint64_t argument_address;  /* the same bytes on the device, where the driver's
                                   properties ask for that; else 0 */
    uint64_t workspace_address; /* what table->workspace() wanted; weir_stream_launch() */
    uint64_t workspace_bytes;   /* sees to it */
    uint64_t element_count;
    uint64_t element_work; /* how many times the work of a simple element each is; 0: 1 */
    const struct weir_buffer *buffers; /* what it touches, for checked mode; or NULL */
    size_t buffer_count;
} weir_launch;

struct weir_driver_table {
    size_t size;      /* sizeof(weir_driver_table) of the driver's build */
    const char *name; /* "host", "cuda": what users write before the colon */

    /* ---- mandatory ---- */
    /* Opens the device that `argument` (the text after the colon, "" if none) names.
     * `config` is driver-specific or NULL. */
    weir_result (*open)(const char *argument, const void *config, weir_driver **driver);
    /* Closes it. All pages, ranges, streams and fences have been given back before,
     * unless the device was abandoned. */
    void (*close)(weir_driver *driver);
    void (*properties)(weir_driver *driver, weir_driver_properties *properties);

    /* One contiguous page, aligned to alignment_bytes. OUT_OF_MEMORY when the device is
     * full. */
    weir_result (*page_alloc)(weir_driver *driver, uint64_t bytes, uint64_t *address);
    /* Takes a page back. Weir calls it only when no queued work can use the page. */
    weir_result (*page_free)(weir_driver *driver, uint64_t address, uint64_t bytes);

    /* In stream order; `data` may be reused when the call returns. read waits for the
     * stream. */
    weir_result (*write)(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                         const void *data, uint64_t bytes);
    weir_result (*read)(weir_driver *driver, weir_driver_stream stream, uint64_t address,
                        void *data, uint64_t bytes);
    weir_result (*copy)(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                        uint64_t from, uint64_t bytes);

    /* A stream of the driver's own (`native` NULL), or the caller's, adopted. */
    weir_result (*stream_open)(weir_driver *driver, void *native,
                               weir_driver_stream *stream);
    /* Ends a stream; an adopted one is only forgotten. Queued work still completes. */
    void (*stream_close)(weir_driver *driver, weir_driver_stream stream);
    /* OK if no queued work is left, NOT_READY otherwise. Never waits. */
    weir_result (*stream_test)(weir_driver *driver, weir_driver_stream stream);
    /* Waits until all work queued so far has completed. */
    weir_result (*stream_sync)(weir_driver *driver, weir_driver_stream stream);
    /* Work queued on `stream` from now on waits, on the device, for `fence`. */
    weir_result (*stream_wait)(weir_driver *driver, weir_driver_stream stream,
                               weir_driver_fence fence);

    weir_result (*fence_record)(weir_driver *driver, weir_driver_stream stream,
                                weir_driver_fence *fence);
    /* OK if passed, NOT_READY otherwise. Never waits. */
    weir_result (*fence_test)(weir_driver *driver, weir_driver_fence fence);
    weir_result (*fence_wait)(weir_driver *driver, weir_driver_fence fence);
    void (*fence_release)(weir_driver *driver, weir_driver_fence fence);

    /* ---- optional: granules (all but move when granule_bytes > 0) ---- */
    /* A range of addresses without memory, aligned to the granule. */
    weir_result (*range_reserve)(weir_driver *driver, uint64_t bytes, uint64_t *address);
    weir_result (*range_free)(weir_driver *driver, uint64_t address, uint64_t bytes);
    /* Backs whole granules of a range with memory: all of them or none. Each of them is a
     * chunk: it can be decommitted and moved alone. */
    weir_result (*commit)(weir_driver *driver, uint64_t address, uint64_t bytes);
    /* Takes the memory of committed chunks back; their contents are gone. */
    weir_result (*decommit)(weir_driver *driver, uint64_t address, uint64_t bytes);
    /* Moves the memory of committed chunks (not their contents) to bare granules, where
     * they are chunks of the same sizes; the total stays the same. All or none. NULL:
     * decommit, then commit. */
    weir_result (*move)(weir_driver *driver, uint64_t to, uint64_t from, uint64_t bytes);
    /* For drivers whose calls cost by chunk and hardly by byte; goes with the property
     * chunk_bytes. Like commit, but in chunks of `chunk_bytes` (a multiple of the
     * granule) counted from `address`, the last one maybe shorter, each of which is
     * decommitted and moved whole. */
    weir_result (*commit_chunks)(weir_driver *driver, uint64_t address, uint64_t bytes,
                                 uint64_t chunk_bytes);

    /* ---- optional: memory that other processes can map (all three or none) ---- */
    /* A page of its own that can be exported, and goes back by page_free; `bytes` is a
     * multiple of 2 MiB and of the granule, and so is its address. UNSUPPORTED if this
     * device cannot. */
    weir_result (*share_alloc)(weir_driver *driver, uint64_t bytes, uint64_t *address);
    /* A file descriptor (close-on-exec, the caller's) that names the page's memory in
     * other processes. */
    weir_result (*share_export)(weir_driver *driver, uint64_t address, uint64_t bytes,
                                int *file);
    /* Maps the memory that a descriptor names, all `bytes` of it, as a page that goes
     * back by page_free. The descriptor stays the caller's. INVALID if it names none, or
     * less. */
    weir_result (*share_import)(weir_driver *driver, int file, uint64_t bytes,
                                uint64_t *address);

    /* ---- optional: accounting ---- */
    weir_result (*memory_info)(weir_driver *driver, weir_memory_info *info);
    /* Committed bytes of [address, address + bytes) that nothing has written yet, so that
     * the system has not backed them. NULL: the system backs memory at commit. */
    weir_result (*untouched)(weir_driver *driver, uint64_t address, uint64_t bytes,
                             uint64_t *untouched_bytes);
    /* Bytes handed back that the driver has not let go of yet. NULL: always 0. */
    uint64_t (*pending_bytes)(weir_driver *driver);
    /* Lets the driver get on with letting go; `wait`: until no further progress can be
     * made. Without it NOT_READY says that queued work comes first. */
    weir_result (*progress)(weir_driver *driver, bool wait);

    /* ---- optional: work ---- */
    /* Runs a kernel in stream order. UNSUPPORTED if the driver has no form of that
     * kernel. */
    weir_result (*launch)(weir_driver *driver, weir_driver_stream stream,
                          const weir_launch *launch);
    /* Device memory that a launch needs while it runs. NULL: none ever. */
    uint64_t (*workspace)(weir_driver *driver, const weir_launch *launch);
    /* Tells a driver that does not see the program's launches that work was queued. */
    weir_result (*queue)(weir_driver *driver, weir_driver_stream stream);
    void *(*stream_native)(weir_driver *driver, weir_driver_stream stream);

    /* ---- optional: time ---- */
    /* Milliseconds of the driver's own clock, for devices whose time is made (sim). */
    uint64_t (*now_ms)(weir_driver *driver);

    /* ---- optional: graph capture ---- */
    weir_result (*capture_begin)(weir_driver *driver, weir_driver_stream stream);
    /* Ends the recording; `graph` names it to graph_launch and graph_destroy. */
    weir_result (*capture_end)(weir_driver *driver, weir_driver_stream stream,
                               uint64_t *graph);
    weir_result (*capture_abort)(weir_driver *driver, weir_driver_stream stream);
    weir_result (*graph_launch)(weir_driver *driver, weir_driver_stream stream,
                                uint64_t graph);
    void (*graph_destroy)(weir_driver *driver, uint64_t graph);
};

/* For drivers: sets the calling thread's error text (printf form), returns `result`. */
WEIR_API weir_result weir_driver_error(weir_result result, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* The built-in drivers in the order of preference; NULL past the end. Any thread. */
WEIR_API const weir_driver_table *weir_driver_at(size_t index);

#ifdef __cplusplus
}
#endif
#endif
