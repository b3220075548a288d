/* SPDX-License-Identifier: MIT */
/* Reports: costly, complete, for people and machines. Usage (memory.h) is cheap. */
#ifndef WEIR_REPORT_H
#define WEIR_REPORT_H

#include <weir/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One pool of the preset, summed over all streams and the bank. */
typedef struct weir_pool_report {
    weir_pool_kind kind;
    char name[32];            /* "arena small" */
    uint64_t min_slice_bytes; /* serves requests from here... */
    uint64_t max_slice_bytes; /* ...to here; UINT64_MAX: any */
    uint64_t page_bytes;      /* size of its pages; 0: to demand */
    uint64_t granule_bytes;   /* 0: pages whole */
    uint64_t pages;           /* pages, or committed granules */
    uint64_t pages_peak;
    uint64_t limit_bytes;         /* most reserved_bytes allowed; 0: no limit */
    uint64_t spills;              /* requests that another pool served because of it */
    uint64_t largest_alloc_bytes; /* the largest request served */
    uint64_t live_count;
    uint64_t in_use_bytes;
    uint64_t padding_bytes;
    uint64_t deferred_bytes;
    uint64_t releasable_bytes;
    uint64_t pinned_bytes;
    uint64_t reserved_bytes;
} weir_pool_report;

/* Bytes that wait for one stream (or graph, or process) to let go. */
typedef struct weir_waiting {
    char name[48]; /* "stream sidework", "graph decode" */
    uint64_t bytes;
} weir_waiting;

/* A live buffer, and the free bytes that cannot go back because of it. */
typedef struct weir_pinning {
    weir_buffer buffer;
    char tag[32];          /* "" if untagged */
    uint64_t buffer_bytes; /* its requested size */
    uint64_t pinned_bytes;
} weir_pinning;

/* A stream whose work is being recorded into a graph. */
typedef struct weir_capturing {
    char stream[32]; /* "" if none is */
    uint64_t for_ms; /* since it began */
} weir_capturing;

/* Everything about a device at one moment. */
typedef struct weir_device_report {
    size_t size;
    weir_usage usage;
    uint64_t footprint_bytes;   /* this process there, as the system counts; or UNKNOWN */
    uint64_t untouched_bytes;   /* committed, never written, so not backed yet (host) */
    uint64_t overhead_bytes;    /* context + unattributed; or UNKNOWN */
    uint64_t context_bytes;     /* what the process had there at open */
    int64_t unattributed_bytes; /* what is left now; may be negative */
    uint64_t others_bytes;      /* other processes; or UNKNOWN */
    uint64_t capacity_bytes;
    uint64_t largest_hole_bytes; /* the largest free run that needs no driver call */
    size_t pool_count;
    weir_pool_report pools[33]; /* a list's 32 at most, and "shared" */
    /* The largest of each, largest first; unused entries are zero. */
    weir_tag_usage holders[8]; /* live buffers by tag; "" is untagged */
    weir_waiting waiting[8];   /* whom deferred bytes wait for */
    weir_pinning pinning[8];   /* who pins what */
    weir_capturing capturing;  /* who captures longest; until its end nothing goes back */
} weir_device_report;

/* Walks and asks the system: milliseconds, not nanoseconds. Any thread. */
WEIR_API weir_result weir_device_memory_report(weir_device *device,
                                               weir_device_report *report);

/* The same, written: tables for people, or one JSON object. */
WEIR_API weir_result weir_device_write_report(weir_device *device, weir_format format,
                                              weir_write_fn write, void *context);

/* ---- allocations that failed for memory ---- */

/* What decided that an allocation failed. */
typedef enum weir_limit_kind {
    WEIR_LIMIT_KIND_NONE = 0, /* no limit: the device is full */
    WEIR_LIMIT_KIND_DEVICE = 1,
    WEIR_LIMIT_KIND_POOL = 2,
    WEIR_LIMIT_KIND_TAG = 3,
} weir_limit_kind;

/* What one stream had. */
typedef struct weir_stream_total {
    char name[32]; /* of the stream; "" in unused entries */
    uint64_t in_use_bytes;
    uint64_t padding_bytes;
    uint64_t deferred_bytes;
    uint64_t releasable_bytes;
    uint64_t pinned_bytes;
    uint64_t reserved_bytes;
} weir_stream_total;

/* An allocation that failed with OUT_OF_MEMORY or LIMIT, and the device at that moment,
 * after all there was had been tried. */
typedef struct weir_shortage {
    size_t size;
    weir_result result; /* OUT_OF_MEMORY or LIMIT */
    uint64_t request_bytes;
    uint64_t alignment_bytes; /* asked for; 0: the device's */
    char tag[32];             /* of the request, "" if it had none */
    char stream[32];
    char capturing[32]; /* a stream that was capturing, so that little could be done... */
    uint64_t capturing_ms; /* ...for so long */
    weir_limit_kind limit_kind;
    char limit_name[32];    /* the limited pool or tag */
    uint64_t limit_bytes;   /* 0: none decided */
    uint64_t limited_bytes; /* what counted against it */
    uint64_t missing_bytes; /* at least so much would have to go for the request to fit;
                               0: by all counts it fits, and the driver refused */
    uint64_t capacity_bytes;
    uint64_t in_use_bytes;
    uint64_t padding_bytes;
    uint64_t deferred_bytes;
    uint64_t releasable_bytes;
    uint64_t pinned_bytes;
    uint64_t reserved_bytes;
    uint64_t largest_hole_bytes; /* the largest free run that needs no driver call */
    /* The largest of each, largest first; unused entries are zero. */
    weir_stream_total streams[8]; /* by reserved */
    weir_tag_usage tags[8];       /* live buffers by tag; "" is untagged */
} weir_shortage;

/* The last allocation of the calling thread that failed so. `shortage->size` is 0 or
 * sizeof(weir_shortage). NOT_FOUND if none has. */
WEIR_API weir_result weir_last_shortage(weir_shortage *shortage);

/* A shortage in a sentence, which is the error text of the allocation too, or as one JSON
 * object whose keys are the fields. */
WEIR_API weir_result weir_shortage_write(const weir_shortage *shortage,
                                         weir_format format, weir_write_fn write,
                                         void *context);

/* The seven places where bytes can be. */
#define WEIR_EXPLAIN_LINES 7
typedef struct weir_explain_line {
    /* in_use deferred releasable pinned driver_deferred overhead others */
    const char *name;
    uint64_t bytes;    /* or WEIR_UNKNOWN_BYTES */
    char reason[256];  /* why they are there, naming holders, streams, neighbours */
    char way_out[128]; /* what gives them back */
} weir_explain_line;

/* The seven lines as data, in the order of the names above. Any thread. */
WEIR_API weir_result weir_device_explain_lines(
    weir_device *device, weir_explain_line lines[WEIR_EXPLAIN_LINES]);

/* The seven lines in words. */
WEIR_API weir_result weir_device_explain(weir_device *device, weir_write_fn write,
                                         void *context);

/* The seven lines as a JSON array of {name, bytes, reason, way_out}. */
WEIR_API weir_result weir_device_explain_json(weir_device *device, weir_write_fn write,
                                              void *context);

/* Walks every page, pool and manager and checks each invariant and sum. DRIVER... never;
 * an INVALID result with a text says what is wrong. For tests and doubters; takes all
 * locks. */
WEIR_API weir_result weir_device_check(weir_device *device);

/* "1.5 GiB", "64.0 MiB", "100 B" into `text` (at least 24 bytes); returns `text`. */
WEIR_API char *weir_format_bytes(uint64_t bytes, char text[24]);

#ifdef __cplusplus
}
#endif
#endif
