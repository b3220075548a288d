/* SPDX-License-Identifier: MIT */
/* The WebGPU driver: memory and work through the standard webgpu.h.
 *
 * WebGPU has no addresses. A page is a WGPUBuffer, and its address is a number of this
 * driver's own: it counts upwards and is never handed out twice.
 *
 *   address   | page A ....... |    | page B ... |     | page C ......
 *   book        -> WGPUBuffer         -> WGPUBuffer      -> WGPUBuffer
 *
 * There is one queue. Commands of all streams go into one open encoder, in the order of
 * the calls, and are submitted together when somebody needs to know that they are done.
 * Submissions are counted, so a fence is a number: the submission that its stream's last
 * command is in.
 *
 *   submissions    1   2   3   4   5   6  (7: open encoder)
 *                          |       |
 *                      completed   submitted
 *
 * What page_free destroys is only handed back. Dawn lets go of it after a submission that
 * was made later has completed, and on an idle queue never. So a freed page waits in
 * `leaving` for its turn, and counts as pending until then:
 *
 *   destroyed -> a later submission -> seen completed -> one more submission -> gone
 *
 * The last one is made here as soon as the completion is seen; the first one is the
 * program's next work, or progress's.
 *
 * Lock: `lock` guards every call into the library and all that is not constant, since
 * WebGPU implementations are not safe for threads by default. It is let go of while
 * somebody waits for the device. */
#ifndef WR_DRIVER_WEBGPU_WEBGPU_H
#define WR_DRIVER_WEBGPU_WEBGPU_H

#include "api.h"

#include "base/lock.h"
#include "driver/drivers.h"
#include "driver/nvml.h"
#include "driver/regions.h"

#include <weir/kernel.h>

#include <stdatomic.h>

#define WR_WEBGPU_ALIGNMENT_BYTES 256 /* what WebGPU guarantees for bindings */

/* Dawn cuts smaller buffers from blocks of its own, which it keeps until the device is
 * destroyed. */
#define WR_WEBGPU_BUFFER_BYTES_MIN ((uint64_t)4 << 20)

/* What Dawn's null device has in all, and really refuses to exceed. */
#define WR_WEBGPU_NULL_BYTES ((uint64_t)512 << 20)

#define WR_WEBGPU_STAGE_BYTES WR_WEBGPU_BUFFER_BYTES_MIN
#define WR_WEBGPU_STAGES 4 /* two for writes, two for reads */
#define WR_WEBGPU_TEXT_BYTES 700
#define WR_WEBGPU_BINDINGS 16 /* of a launch, at most, its arguments counted */
#define WR_WEBGPU_CHAINS 256

/* A freed page that the library has not let go of; in the place of its region's data. */
typedef struct wr_webgpu_page {
    wr_wg_buffer buffer;
    uint64_t buffer_bytes; /* of the buffer, at least the page's */
    uint64_t after;        /* once freed: goes after this submission has completed */
    wr_region *next;       /* once freed: handed back later */
    bool is_touched;       /* something was written to it, or bound */
} wr_webgpu_page;

typedef enum wr_webgpu_stage_state {
    WR_WEBGPU_STAGE_STATE_NONE = 0,   /* no buffer */
    WR_WEBGPU_STAGE_STATE_MAPPED = 1, /* for writes: at hand */
    WR_WEBGPU_STAGE_STATE_OPEN = 2,   /* for writes: copies from it are in the encoder */
    WR_WEBGPU_STAGE_STATE_CLOSED = 3, /* for writes: unmapped, about to be submitted */
    WR_WEBGPU_STAGE_STATE_FLYING = 4, /* submitted, mapping asked for */
    WR_WEBGPU_STAGE_STATE_IDLE = 5,   /* for reads: unmapped, at hand */
    WR_WEBGPU_STAGE_STATE_TAKEN = 6,  /* for reads: a thread copies through it */
    WR_WEBGPU_STAGE_STATE_FAILED = 7, /* the mapping was refused */
} wr_webgpu_stage_state;

/* A buffer through which the host's bytes come and go. */
typedef struct wr_webgpu_stage {
    wr_wg_buffer buffer;
    wr_webgpu_stage_state state;
    uint64_t used_bytes; /* open: filled so far */
} wr_webgpu_stage;

typedef struct wr_webgpu_stream {
    uint64_t last; /* the submission that its last command is in; 0: none */
    struct wr_webgpu_stream *next;
    struct wr_webgpu_stream *previous;
} wr_webgpu_stream;

/* A kernel, compiled for windows that begin at one element. */
typedef struct wr_webgpu_kernel {
    uint64_t id;
    uint32_t first; /* element */
    wr_wg_pipeline pipeline;
    struct wr_webgpu_kernel *next; /* in its chain */
} wr_webgpu_kernel;

/* For so many storage bindings; made when first needed. */
typedef struct wr_webgpu_layout {
    wr_wg_group_layout group;
    wr_wg_pipeline_layout pipeline;
} wr_webgpu_layout;

/* What the library complained of first, until it is reported. */
typedef struct wr_webgpu_trouble {
    uint32_t type; /* WR_WG_ERROR_...; 0: nothing */
    char text[WR_WEBGPU_TEXT_BYTES];
} wr_webgpu_trouble;

typedef struct wr_webgpu {
    weir_driver base;
    /* ---- constant after open ---- */
    wr_wg_api api;
    wr_wg_instance instance;
    wr_wg_device device;
    wr_wg_queue queue;
    wr_wg_limits limits;
    char name[96];
    wr_nvml nvml; /* what NVML knows of the device, if it is an NVIDIA GPU */
    uint64_t capacity_bytes;
    uint64_t context_bytes;
    bool is_cpu;  /* device memory is this process's */
    bool is_null; /* Dawn's device for tests: it counts memory and does nothing */
    /* ---- everything below: guard lock ---- */
    wr_lock lock;
    wr_wg_encoder encoder;  /* open commands, or NULL */
    wr_wg_pass pass;        /* open launches, in the encoder, or NULL */
    uint32_t command_count; /* launches in the encoder */
    uint64_t submitted;     /* submissions so far */
    uint64_t watched;       /* the last one whose completion is asked for */
    _Atomic uint64_t completed;
    wr_webgpu_stream *streams; /* all open ones, for close */
    /* ---- pages ---- */
    wr_regions book;
    uint64_t next_address;
    uint64_t live_bytes; /* of buffers in the book */
    wr_region *leaving;  /* freed pages, oldest first */
    wr_region *leaving_last;
    uint64_t leaving_buffer_bytes;
    _Atomic uint64_t pending_bytes; /* of pages in `leaving` */
    /* ---- staging ---- */
    wr_webgpu_stage stages[WR_WEBGPU_STAGES];
    wr_wg_buffer scratch; /* for copies inside one page, or NULL */
    /* ---- kernels ---- */
    wr_webgpu_layout layouts[WR_WEBGPU_BINDINGS + 1]; /* by bindings */
    wr_webgpu_kernel *kernels[WR_WEBGPU_CHAINS];      /* by id */
    /* ---- trouble ---- */
    wr_webgpu_trouble scoped;   /* between scope_enter and scope_leave */
    wr_webgpu_trouble unscoped; /* of commands that were submitted meanwhile */
    uint32_t scopes_open;       /* whose outcome is still to come */
    bool is_closing;            /* losing the device is no trouble */
    _Atomic bool is_lost;
    char lost_text[WR_WEBGPU_TEXT_BYTES]; /* set before is_lost */
} wr_webgpu;

static inline wr_webgpu *wr_webgpu_of(weir_driver *driver)
{
    return (wr_webgpu *)(void *)driver;
}

static inline wr_webgpu_page *wr_webgpu_page_of(const wr_region *region)
{
    return region->data;
}

/* Storage bindings that a launch may have. */
static inline uint32_t wr_webgpu_most_bindings(const wr_webgpu *webgpu)
{
    uint32_t most = webgpu->limits.storage_buffers;
    return most < WR_WEBGPU_BINDINGS ? most : WR_WEBGPU_BINDINGS;
}

/* ---- adapter.c ---- */
/* Instance, device, queue, limits, name and capacity of the device that `argument` names.
 */
weir_result wr_webgpu_acquire(wr_webgpu *webgpu, const char *argument);
void wr_webgpu_dispose(wr_webgpu *webgpu);

/* ---- trouble.c ---- */
/* Callbacks that the device is made with. */
void wr_webgpu_on_lost(const wr_wg_device *device, uint32_t reason, wr_wg_text text,
                       void *context, void *more);
void wr_webgpu_on_error(const wr_wg_device *device, uint32_t type, wr_wg_text text,
                        void *context, void *more);
/* OK, DEVICE_LOST, or what the library complained of since last asked. */
weir_result wr_webgpu_check(wr_webgpu *webgpu, const char *entry);
/* What is called in between is watched: leave fails with what the library complains of.
 */
void wr_webgpu_scope_enter(wr_webgpu *webgpu);
weir_result wr_webgpu_scope_leave(wr_webgpu *webgpu, const char *entry);
/* The same for commands, whose complaints are reported by a later check. */
void wr_webgpu_scope_leave_later(wr_webgpu *webgpu);

/* ---- queue.c; inside the lock ---- */
/* The open encoder, NULL with the device lost, and the submission it will be. */
weir_result wr_webgpu_encode(wr_webgpu *webgpu, const char *entry,
                             wr_webgpu_stream *stream, wr_wg_encoder *encoder);
/* The same, inside a compute pass. */
weir_result wr_webgpu_encode_pass(wr_webgpu *webgpu, const char *entry,
                                  wr_webgpu_stream *stream, wr_wg_pass *pass);
/* Submits the open commands, if any. */
void wr_webgpu_flush(wr_webgpu *webgpu);
/* Submits, be it nothing: time passes for the library. */
void wr_webgpu_submit(wr_webgpu *webgpu);
/* Has the completion of all that is submitted told. */
void wr_webgpu_watch(wr_webgpu *webgpu);
/* Lets the library tell what has happened. */
void wr_webgpu_poll(wr_webgpu *webgpu);
/* Whether a submission has completed; asks for it first, without waiting. */
bool wr_webgpu_has_passed(wr_webgpu *webgpu, uint64_t submission);
/* Waits for it; the lock is let go of meanwhile. */
weir_result wr_webgpu_await(wr_webgpu *webgpu, const char *entry, uint64_t submission);
/* One round of waiting: polls, or sleeps the longer the more rounds there were. */
void wr_webgpu_nap(wr_webgpu *webgpu, uint32_t round);

/* ---- pages.c: entries of the table ---- */
weir_result wr_webgpu_page_alloc(weir_driver *driver, uint64_t bytes, uint64_t *address);
weir_result wr_webgpu_page_free(weir_driver *driver, uint64_t address, uint64_t bytes);
uint64_t wr_webgpu_pending_bytes(weir_driver *driver);
weir_result wr_webgpu_progress(weir_driver *driver, bool wait);
weir_result wr_webgpu_memory_info(weir_driver *driver, weir_memory_info *info);
weir_result wr_webgpu_untouched(weir_driver *driver, uint64_t address, uint64_t bytes,
                                uint64_t *untouched_bytes);
/* A submission is made, and `seen` had completed before: frees of then are real now. */
void wr_webgpu_let_go(wr_webgpu *webgpu, uint64_t seen);
/* Whether one more submission is all that the first of them wait for. */
bool wr_webgpu_is_ripe(const wr_webgpu *webgpu);
/* For close. */
void wr_webgpu_free_all(wr_webgpu *webgpu);

/* ---- footprint.c ---- */
/* This process's memory on the device; WEIR_UNKNOWN_BYTES if nobody says. */
uint64_t wr_webgpu_footprint(const wr_webgpu *webgpu);

/* ---- staging.c; inside the lock, which is let go of while they wait ---- */
/* Room for writes: at most `most` bytes, at least 4, in a mapped buffer. */
typedef struct wr_webgpu_room {
    wr_wg_buffer buffer;
    uint64_t offset;
    uint64_t bytes; /* a multiple of 4 */
    char *at;
} wr_webgpu_room;
weir_result wr_webgpu_stage_write(wr_webgpu *webgpu, uint64_t most, wr_webgpu_room *room);
/* A buffer for reads, until it is put back. */
weir_result wr_webgpu_stage_take(wr_webgpu *webgpu, wr_webgpu_stage **stage);
/* Waits for the copy into it that is in the encoder and copies its first bytes out. */
weir_result wr_webgpu_stage_read(wr_webgpu *webgpu, wr_webgpu_stage *stage, void *data,
                                 uint64_t offset, uint64_t bytes);
void wr_webgpu_stage_put(wr_webgpu *webgpu, wr_webgpu_stage *stage);
/* For copies within one buffer: a buffer of the size of a stage. */
weir_result wr_webgpu_stage_scratch(wr_webgpu *webgpu, wr_wg_buffer *scratch);
/* Closes the stages that the commands to be submitted use; asks for them back after. */
void wr_webgpu_stages_close(wr_webgpu *webgpu);
void wr_webgpu_stages_recall(wr_webgpu *webgpu);
/* Destroys those that nobody uses; all of them, for close. */
void wr_webgpu_stages_trim(wr_webgpu *webgpu);
void wr_webgpu_stages_free(wr_webgpu *webgpu);

/* ---- copies.c: entries of the table ---- */
weir_result wr_webgpu_write(weir_driver *driver, weir_driver_stream stream,
                            uint64_t address, const void *data, uint64_t bytes);
weir_result wr_webgpu_read(weir_driver *driver, weir_driver_stream stream,
                           uint64_t address, void *data, uint64_t bytes);
weir_result wr_webgpu_copy(weir_driver *driver, weir_driver_stream stream, uint64_t to,
                           uint64_t from, uint64_t bytes);

/* ---- kernels.c; inside the lock ---- */
/* The pipeline of a kernel for windows from `first` on, compiled if need be. The caller
 * releases it if the kernel has no id. */
weir_result wr_webgpu_kernel_find(wr_webgpu *webgpu, const weir_kernel *kernel,
                                  uint32_t first, const wr_webgpu_layout *layout,
                                  wr_wg_pipeline *pipeline);
weir_result wr_webgpu_layout_get(wr_webgpu *webgpu, uint32_t bindings,
                                 const wr_webgpu_layout **layout);
void wr_webgpu_kernels_free(wr_webgpu *webgpu);

/* ---- launch.c: entry of the table ---- */
weir_result wr_webgpu_launch(weir_driver *driver, weir_driver_stream stream,
                             const weir_launch *launch);

/* ---- streams.c: entries of the table ---- */
weir_result wr_webgpu_stream_open(weir_driver *driver, void *native,
                                  weir_driver_stream *stream);
void wr_webgpu_stream_close(weir_driver *driver, weir_driver_stream stream);
weir_result wr_webgpu_stream_test(weir_driver *driver, weir_driver_stream stream);
weir_result wr_webgpu_stream_sync(weir_driver *driver, weir_driver_stream stream);
weir_result wr_webgpu_stream_wait(weir_driver *driver, weir_driver_stream stream,
                                  weir_driver_fence fence);
weir_result wr_webgpu_fence_record(weir_driver *driver, weir_driver_stream stream,
                                   weir_driver_fence *fence);
weir_result wr_webgpu_fence_test(weir_driver *driver, weir_driver_fence fence);
weir_result wr_webgpu_fence_wait(weir_driver *driver, weir_driver_fence fence);
void wr_webgpu_fence_release(weir_driver *driver, weir_driver_fence fence);
weir_result wr_webgpu_queue(weir_driver *driver, weir_driver_stream stream);
void wr_webgpu_streams_free(wr_webgpu *webgpu);

static inline wr_webgpu_stream *wr_webgpu_stream_of(weir_driver_stream stream)
{
    return (wr_webgpu_stream *)(uintptr_t)stream;
}

#endif
