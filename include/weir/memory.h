/* SPDX-License-Identifier: MIT */
/* Buffers: reference-counted handles on slices of device memory; usage; cleanup. */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include <weir/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- buffers ---- */

/* A value. {0, 0} is no buffer. A handle that outlives its buffer is recognized as stale
 * by its generation; it never reaches another buffer's bytes. */
typedef struct weir_buffer {
    uint32_t index;
    uint32_t generation;
} weir_buffer;

#define WEIR_NO_BUFFER ((weir_buffer){0, 0})

typedef struct weir_buffer_desc {
    size_t size;
    const char *tag; /* who asks; at most 31 bytes are kept; NULL: the thread's tag */
    uint64_t alignment_bytes; /* a power of two up to 2 MiB; 0: the device's. The address
                                 may lie inside the extent, as in persistent pools */
    bool persistent;          /* a page of its own size, reused only by equal sizes */
    bool exportable; /* other processes can map it (share.h): a page of its own, in
                        multiples of 2 MiB, never reused; alignment and persistent do not
                        matter. UNSUPPORTED if the driver has no such memory */
} weir_buffer_desc;

/* Room for `bytes` bytes, usable at once in the order of `stream`, with one reference
 * that the caller owns. Contents are undefined. Errors: INVALID (0 bytes, absurd sizes,
 * bad alignment), OUT_OF_MEMORY, LIMIT, OUT_OF_HOST_MEMORY; then `*buffer` is untouched.
 * Any thread. */
WEIR_API weir_result weir_buffer_create(weir_stream *stream, uint64_t bytes,
                                        const weir_buffer_desc *desc,
                                        weir_buffer *buffer);

/* A tag of a device by number, for calls that give it often. {0} is none. */
typedef struct weir_tag {
    uint64_t value;
} weir_tag;

/* The tag of a text; holds as long as the device is open. Any thread. */
WEIR_API weir_result weir_device_tag(weir_device *device, const char *text,
                                     weir_tag *tag);
/* weir_buffer_create with a tag and no other options; {0}: the thread's tag. INVALID
 * if the tag is of another device. Any thread. */
WEIR_API weir_result weir_buffer_create_tagged(weir_stream *stream, uint64_t bytes,
                                               weir_tag tag, weir_buffer *buffer);

/* One more reference. STALE if the buffer is gone. Any thread. */
WEIR_API weir_result weir_buffer_retain(weir_buffer buffer);

/* One reference less; the last one gives the bytes back. Never blocks, never fails for
 * memory. On its own stream the room is reusable at once, for others once the queued work
 * has passed. STALE if the buffer is gone already; in checked mode INVALID, though it is
 * released, if something was written behind its bytes. Any thread. */
WEIR_API weir_result weir_buffer_release(weir_buffer buffer);

/* Call before the first launch on `stream` that touches the buffer, if that is not the
 * buffer's own stream: orders `stream` behind it on the device, and makes the buffer's
 * release wait for what `stream` has queued until then. The host does not wait. Any
 * thread. */
WEIR_API weir_result weir_buffer_use(weir_buffer buffer, weir_stream *stream);

/* The device address, 0 if stale. */
WEIR_API uint64_t weir_buffer_address(weir_buffer buffer);
/* The requested bytes, 0 if stale. */
WEIR_API uint64_t weir_buffer_bytes(weir_buffer buffer);
/* The bytes it really takes, padding included, before its address too; 0 if stale. */
WEIR_API uint64_t weir_buffer_extent(weir_buffer buffer);
/* The references held, 0 if stale. */
WEIR_API uint32_t weir_buffer_references(weir_buffer buffer);
/* The stream it was made on, NULL if stale. */
WEIR_API weir_stream *weir_buffer_stream(weir_buffer buffer);

/* Copies in the order of the buffer's own stream. read waits for the data. INVALID if the
 * range [offset, offset + bytes) leaves the buffer. */
WEIR_API weir_result weir_buffer_write(weir_buffer buffer, uint64_t offset_bytes,
                                       const void *data, uint64_t bytes);
WEIR_API weir_result weir_buffer_read(weir_buffer buffer, uint64_t offset_bytes,
                                      void *data, uint64_t bytes);

/* ---- tags: who asked ---- */

/* Buffers that this thread creates carry `tag` until the matching pop; scopes nest, to a
 * depth of 16. The text is copied. A tag in weir_buffer_desc goes before it. A device
 * tells 254 tags apart; buffers with any further one count as "other". */
WEIR_API weir_result weir_tag_push(const char *tag);
WEIR_API weir_result weir_tag_pop(void);
/* The tag of this thread's innermost scope, "" outside of any. Valid until the thread's
 * next push or pop. For whoever allocates later on its behalf. */
WEIR_API const char *weir_tag_current(void);

/* ---- usage: cheap, consistent, any thread ---- */

/* Bytes now: name, what it means. in_use + padding + deferred + releasable + pinned =
 * reserved, in every snapshot. */
#define WEIR_USAGE_LIST(X)                                                               \
    X(in_use, "requested bytes of live buffers")                                         \
    X(padding, "the rest of their slices")                                               \
    X(deferred, "dropped; queued device work may still use them")                        \
    X(releasable, "held by nobody: cleanup, idle time or pressure gives them back")      \
    X(pinned, "free, in a page or granule that a live neighbour shares")                 \
    X(reserved, "taken from the driver")                                                 \
    X(driver_deferred, "handed back; the driver has not let go yet")                     \
    X(peak_in_use, "the most in_use was")                                                \
    X(peak_reserved, "the most reserved was")

/* Events so far: name, what it counts. */
#define WEIR_EVENT_LIST(X)                                                               \
    X(allocations, "buffers created")                                                    \
    X(releases, "buffers whose last reference went")                                     \
    X(page_allocs, "pages taken from the driver")                                        \
    X(page_frees, "pages handed back to the driver")                                     \
    X(commits, "commit calls")                                                           \
    X(decommits, "decommit calls")                                                       \
    X(moves, "granules' memory moved to other addresses")                                \
    X(lends, "unheld spans or pages that went from one stream to another")               \
    X(fences, "fences recorded")                                                         \
    X(fence_waits, "host waits for a fence")                                             \
    X(stalls, "allocations that waited for the device")                                  \
    X(retries, "allocations that went round again after something was given back")       \
    X(callbacks, "reclaim callbacks called")                                             \
    X(ooms, "allocations that failed for memory")                                        \
    X(limits, "allocations that failed for a limit")                                     \
    X(periodic_bytes, "given back on the allocation path")                               \
    X(idle_bytes, "given back by time")                                                  \
    X(explicit_bytes, "given back by cleanup")                                           \
    X(pressure_bytes, "given back to make room")

typedef struct weir_usage {
    size_t size;
#define WEIR_USAGE_FIELD(name, text) uint64_t name##_bytes;
    WEIR_USAGE_LIST(WEIR_USAGE_FIELD)
#undef WEIR_USAGE_FIELD
#define WEIR_EVENT_FIELD(name, text) uint64_t name;
    WEIR_EVENT_LIST(WEIR_EVENT_FIELD)
#undef WEIR_EVENT_FIELD
    uint64_t live_count; /* live buffers */
} weir_usage;

/* A consistent snapshot, without a walk. `usage->size` is 0 or sizeof(weir_usage). */
WEIR_API weir_result weir_device_memory_usage(weir_device *device, weir_usage *usage);
WEIR_API weir_result weir_stream_memory_usage(weir_stream *stream, weir_usage *usage);

/* Bytes now and at most of one tag, summed over the device's streams; zeros for an
 * unknown one. */
typedef struct weir_tag_usage {
    char tag[32];
    uint64_t in_use_bytes;
    uint64_t peak_in_use_bytes;
    uint64_t live_count;
    uint64_t padding_bytes; /* the rest of its slices; 0 for the untagged */
    uint64_t limit_bytes;   /* 0: none */
} weir_tag_usage;
WEIR_API weir_result weir_device_tag_usage(weir_device *device, const char *tag,
                                           weir_tag_usage *usage);
/* The holders, largest first. Writes at most `capacity`; `*count` is how many exist. */
WEIR_API weir_result weir_device_tags(weir_device *device, weir_tag_usage *tags,
                                      size_t capacity, size_t *count);

/* ---- cleanup ---- */

typedef struct weir_cleanup_desc {
    size_t size;
    uint64_t keep_bytes;    /* the floor of `reserved`; 0: the device's keep_bytes */
    uint64_t at_most_bytes; /* longest idle first, never more than this; 0: all */
    bool wait;              /* for fences, then for the driver's real release */
    bool no_drain;          /* do not run the streams' before-cleanup hooks */
    bool keep_none;         /* go below the device's keep_bytes */
} weir_cleanup_desc;

typedef struct weir_cleanup_outcome {
    size_t size;
    uint64_t returned_bytes;        /* handed back by this call */
    uint64_t deferred_bytes;        /* left: queued work may still use them... */
    char deferred_stream[32];       /* ...on this stream, which has most of them */
    uint64_t pinned_bytes;          /* left: beside live buffers... */
    weir_buffer pinned_by;          /* ...such as this one, which pins most */
    uint64_t pinned_by_bytes;       /* its size */
    char pinned_by_tag[32];         /* its tag */
    uint64_t kept_bytes;            /* left because a floor or at_most said so */
    uint64_t driver_deferred_bytes; /* handed back; the driver has not let go yet */
} weir_cleanup_outcome;

/* Gives unheld memory of all streams back to the driver. `desc` and `outcome` may be
 * NULL. BUSY while a stream is capturing. Any thread. */
WEIR_API weir_result weir_device_memory_cleanup(weir_device *device,
                                                const weir_cleanup_desc *desc,
                                                weir_cleanup_outcome *outcome);
/* The same for every open device of the process, one after the other; `desc` counts for
 * each of them. The outcome is the sum; deferred_stream and pinned_by are those of the
 * device that has most. One that fails keeps none of the others: the first failure is the
 * result. A device may be closed meanwhile on another thread, which then waits; inside a
 * hook closing it is BUSY, and abandoning it is not allowed. Any thread. */
WEIR_API weir_result weir_devices_memory_cleanup(const weir_cleanup_desc *desc,
                                                 weir_cleanup_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
