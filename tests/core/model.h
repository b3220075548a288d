/* SPDX-License-Identifier: MIT */
/* A naive reference model of a device: arrays of what must be live, beside the real thing
 * on the sim driver. model_step() makes one chosen call on both and compares everything
 * that can be known: sums, in_use and padding to the byte, tags, streams, peaks, the
 * driver's ledger, overlap of live buffers, that no bytes are handed out which queued
 * work may still use, which limits refuse what, and when reclaim callbacks are called.
 *
 * The model shares no code with the core and sees only public headers. Choices come from
 * a random number generator or from bytes (a fuzzer's). */
#ifndef TESTS_CORE_MODEL_H
#define TESTS_CORE_MODEL_H

#include <stdbool.h>
#include <weir/weir.h>

#define MODEL_STREAMS 5
#define MODEL_ENDED MODEL_STREAMS /* the slot that stands for all closed streams */
#define MODEL_SLOTS (MODEL_STREAMS + 1)
#define MODEL_LIVE 224
#define MODEL_TAGS 6
#define MODEL_STALE 32
#define MODEL_DROPPED 256
#define MODEL_POOLS 33
#define MODEL_CALLBACKS 2

/* Where choices come from. */
typedef struct choices {
    uint64_t state; /* of the generator, if data is NULL */
    const uint8_t *data;
    size_t size, at;
} choices;

/* A number in [0, bound). */
uint64_t choose(choices *from, uint64_t bound);
bool choices_left(const choices *from);

typedef struct model_buffer {
    weir_buffer handle;
    uint64_t address, bytes, extent;
    uint64_t
        covered; /* from address on, surely its own: an aligned one may begin inside */
    uint32_t references;
    unsigned stream, tag;
    unsigned used_on; /* a bit per stream */
    bool persistent;
} model_buffer;

/* The bytes of a released buffer, until the work that may use them has completed. */
typedef struct model_dropped {
    uint64_t address, covered;
    unsigned stream;
    uint64_t waits_for[MODEL_SLOTS]; /* number of the work there; 0: none */
} model_dropped;

typedef struct model_stream {
    weir_stream *handle;   /* NULL: not open */
    uint64_t queued, done; /* numbers of work */
    uint64_t perhaps_done; /* a host wait may have completed it */
    uint64_t
        reach[MODEL_SLOTS]; /* work of other streams that its queued work waits for */
    uint64_t in_use_bytes, live_count;
} model_stream;

typedef struct model_tag {
    uint64_t in_use_bytes, peak_bytes, live_count;
    uint64_t extent_bytes, limit_bytes; /* 0: none */
} model_tag;

struct model;

typedef struct model_callback {
    struct model *model;
    unsigned number; /* from 1 on, in order of registration */
} model_callback;

typedef struct model_desc {
    uint64_t chunk_bytes; /* the most of one chunk; 0: a granule */
    const char *preset;
    const weir_pool_desc *pools; /* a list in place of the preset, which names it then */
    size_t pool_count;
    uint64_t granule_bytes; /* 0: pages whole */
    bool no_wait, trust_uses;
    uint64_t keep_bytes;
    uint64_t walk_every; /* weir_device_check after so many steps; 0: never */
    uint64_t seed;       /* printed on failure */
    void (*failed)(const char *text);     /* does not return */
    void (*heard)(const struct model *m); /* after each step; may be NULL */
} model_desc;

typedef struct model {
    model_desc desc;
    choices *from;
    weir_device *device;
    weir_driver *sim;
    uint64_t room_bytes;    /* capacity less context */
    uint64_t granule_bytes; /* as the preset uses it */
    uint64_t alignment_bytes;

    model_stream streams[MODEL_SLOTS]; /* 0 is the default one */
    model_buffer live[MODEL_LIVE];
    unsigned live_count;
    model_dropped dropped[MODEL_DROPPED];
    unsigned dropped_count;
    weir_buffer stale[MODEL_STALE];
    uint64_t stale_count;

    model_tag tags[MODEL_TAGS];
    unsigned tag_stack[4], tag_depth;
    uint64_t in_use_bytes, padding_bytes, peak_in_use_bytes;
    uint64_t allocations, releases, ooms, limits;
    uint64_t limit_bytes;
    size_t pool_count;
    uint64_t pool_limits[MODEL_POOLS]; /* 0: none */
    uint64_t pool_reserved[MODEL_POOLS];
    model_callback reclaims[MODEL_CALLBACKS];
    uint64_t callbacks;
    const model_buffer *asked; /* the request under way; NULL: none... */
    uint64_t asked_alignment;  /* ...what it asks for too... */
    unsigned called;           /* ...the last callback called for it... */
    bool asked_released;       /* ...whether one has released something... */
    bool asked_denied;         /* ...and the last one has said that none did */
    uint64_t host_waits;       /* of the ledger, when last looked at */
    bool armed;                /* a driver failure may be waiting... */
    bool armed_return;         /* ...of a call that gives memory back */

    weir_usage usage; /* after the last step */
    uint64_t steps;
    char doing[160]; /* the current step in words */
} model;

/* The model is a caller's static object; it is cleared first. */
void model_open(model *m, const model_desc *desc, choices *from);
/* One call, chosen, and all checks. */
void model_step(model *m);
/* Releases everything, finishes all work, expects `reserved` to fall to 0, and closes. */
void model_close(model *m);

/* ---- between model.c (books), steps.c (calls) and model_limits.c ---- */

void model_fail(const model *m, const char *condition, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
#define MODEL_CHECK(m, condition, ...)                                                   \
    ((condition) ? (void)0 : model_fail(m, #condition, __VA_ARGS__))

const char *model_tag_name(unsigned tag);
/* Takes a new buffer into the books; its bytes must be nobody else's. */
void model_add(model *m, const model_buffer *added);
/* Its last reference went. */
void model_remove(model *m, unsigned index);
/* Granules (or whole sizes of persistent buffers) that live buffers touch, or those that
 * `counts` picks (NULL: all). 0 without granules. */
uint64_t model_held_bytes(const model *m,
                          bool (*counts)(const model *m, const model_buffer *buffer,
                                         const void *context),
                          const void *context);
bool model_has_persistent(const model *m);
/* `stream` waits on the device for all that is queued on `awaited`. */
void model_stream_waits(model *m, unsigned stream, unsigned awaited);
/* All its queued work is complete, and so is what that waited for. */
void model_stream_finished(model *m, unsigned stream);
/* The stream is gone; its queued work is not. */
void model_stream_gone(model *m, unsigned stream);
/* What a call inside waited for is complete: so is what dropped bytes were guarded for.
 */
void model_notice_waits(model *m);
/* One reference less. */
void model_release_one(model *m, unsigned index);
/* Whether the model knows exactly when there is no room: with granules and nothing that
 * could be in the way of moving and waiting. */
bool model_knows_room(const model *m);

/* Registers the callbacks, reads the limits of pools. */
void model_open_limits(model *m);
void model_step_limit(model *m);
void model_compare_limits(model *m);
/* Of `bytes`, rounded up. */
uint64_t model_extent(const model *m, uint64_t bytes);
/* The tag's limit refuses the request. */
bool model_tag_is_full(const model *m, const model_buffer *wanted);
/* If the model knows: whether device, its limit and the pool's have room. */
bool model_has_room(const model *m, const model_buffer *wanted, uint64_t alignment);
/* Whether any limit can have refused it. */
bool model_may_be_limited(const model *m, const model_buffer *wanted);
/* What the failed request has left to ask about. */
void model_check_shortage(const model *m, const model_buffer *wanted);
/* Reads the usage and compares everything. */
void model_compare(model *m);

#endif
