/* SPDX-License-Identifier: MIT */
/* Buffers through which the host's bytes come and go: two for writes, two for reads, made
 * when first needed and destroyed by progress.
 *
 *   writes:  NONE -> MAPPED -> OPEN -> CLOSED -> FLYING -> MAPPED ...
 *                       filled, copies encoded   submitted, mapped again when done
 *   reads:   NONE -> TAKEN -> FLYING -> MAPPED -> TAKEN -> IDLE -> TAKEN ...
 *                       copy submitted, mapped, copied out, unmapped
 *
 * Writes share an open stage, so that many small ones cost one submission. Inside the
 * lock; what waits lets go of it meanwhile. */
#include "webgpu.h"

#include "base/result.h"

#include <string.h>

enum {
    WRITE_STAGES = WR_WEBGPU_STAGES / 2,
    ROOM_UNIT = 4, /* of offsets and sizes of copies */
};

/* ---- buffers ---- */

static weir_result create(wr_webgpu *webgpu, const char *entry,
                          const wr_wg_buffer_desc *desc, wr_wg_buffer *buffer)
{
    wr_webgpu_scope_enter(webgpu);
    wr_wg_buffer made = webgpu->api.buffer_create(webgpu->device, desc);
    weir_result result = wr_webgpu_scope_leave(webgpu, entry);
    if (result != WEIR_OK && made != NULL) {
        webgpu->api.buffer_release(made);
    }
    if (result == WEIR_OK) {
        *buffer = made;
    }
    return result;
}

static void destroy(wr_webgpu *webgpu, wr_wg_buffer *buffer)
{
    if (*buffer != NULL) {
        webgpu->api.buffer_destroy(*buffer);
        webgpu->api.buffer_release(*buffer);
        *buffer = NULL;
    }
}

static void destroy_stage(wr_webgpu *webgpu, wr_webgpu_stage *stage)
{
    destroy(webgpu, &stage->buffer);
    *stage = (wr_webgpu_stage){0};
}

/* Taken while the lock is let go of. */
static weir_result create_stage(wr_webgpu *webgpu, wr_webgpu_stage *stage, bool is_write)
{
    wr_wg_buffer_desc desc = {
        .usage = is_write ? WR_WG_USE_MAP_WRITE | WR_WG_USE_COPY_SRC
                          : WR_WG_USE_MAP_READ | WR_WG_USE_COPY_DST,
        .bytes = WR_WEBGPU_STAGE_BYTES,
        .is_mapped = is_write,
    };
    stage->state = WR_WEBGPU_STAGE_STATE_TAKEN;
    weir_result result =
        create(webgpu, is_write ? "write" : "read", &desc, &stage->buffer);
    stage->state = result != WEIR_OK ? WR_WEBGPU_STAGE_STATE_NONE
                   : is_write        ? WR_WEBGPU_STAGE_STATE_MAPPED
                                     : WR_WEBGPU_STAGE_STATE_TAKEN;
    return result;
}

static void on_mapped(uint32_t status, wr_wg_text text, void *context, void *more)
{
    (void)text;
    (void)more;
    wr_webgpu_stage *stage = context;
    stage->state = status == WR_WG_SUCCESS ? WR_WEBGPU_STAGE_STATE_MAPPED
                                           : WR_WEBGPU_STAGE_STATE_FAILED;
}

static void map(wr_webgpu *webgpu, wr_webgpu_stage *stage, uint64_t mode)
{
    stage->state = WR_WEBGPU_STAGE_STATE_FLYING;
    (void)webgpu->api.buffer_map(stage->buffer, mode, 0, WR_WEBGPU_STAGE_BYTES,
                                 (wr_wg_done_callback){.mode = WR_WG_ON_PROCESS_EVENTS,
                                                       .callback = on_mapped,
                                                       .context = stage});
}

/* The first stage from `first` on that is in a state, or NULL. */
static wr_webgpu_stage *find(wr_webgpu *webgpu, int first, wr_webgpu_stage_state state)
{
    for (int i = first; i < first + WRITE_STAGES; i++) {
        if (webgpu->stages[i].state == state) {
            return &webgpu->stages[i];
        }
    }
    return NULL;
}

/* ---- writes ---- */

static bool is_full(const wr_webgpu_stage *stage)
{
    return WR_WEBGPU_STAGE_BYTES - stage->used_bytes < ROOM_UNIT;
}

/* A stage to write into, or NULL if all are under way. */
static weir_result find_writable(wr_webgpu *webgpu, wr_webgpu_stage **stage)
{
    wr_webgpu_stage *found = find(webgpu, 0, WR_WEBGPU_STAGE_STATE_OPEN);
    if (found != NULL && is_full(found)) {
        wr_webgpu_flush(webgpu);
        found = NULL;
    }
    if (found == NULL) {
        found = find(webgpu, 0, WR_WEBGPU_STAGE_STATE_MAPPED);
    }
    wr_webgpu_stage *failed = find(webgpu, 0, WR_WEBGPU_STAGE_STATE_FAILED);
    if (failed != NULL) {
        destroy_stage(webgpu, failed);
    }
    wr_webgpu_stage *none = find(webgpu, 0, WR_WEBGPU_STAGE_STATE_NONE);
    if (found == NULL && none != NULL) {
        WR_TRY(create_stage(webgpu, none, true));
        found = none;
    }
    *stage = found;
    return WEIR_OK;
}

weir_result wr_webgpu_stage_write(wr_webgpu *webgpu, uint64_t most, wr_webgpu_room *room)
{
    wr_webgpu_stage *stage = NULL;
    for (uint32_t round = 0; stage == NULL; round++) {
        WR_TRY(wr_webgpu_check(webgpu, "write"));
        WR_TRY(find_writable(webgpu, &stage));
        if (stage == NULL) {
            wr_webgpu_nap(webgpu, round);
            wr_webgpu_poll(webgpu);
        }
    }
    if (stage->state == WR_WEBGPU_STAGE_STATE_MAPPED) {
        stage->state = WR_WEBGPU_STAGE_STATE_OPEN;
        stage->used_bytes = 0;
    }
    uint64_t left = WR_WEBGPU_STAGE_BYTES - stage->used_bytes;
    uint64_t bytes = most < left ? most : left;
    char *start = webgpu->api.buffer_mapped(stage->buffer, 0, WR_WEBGPU_STAGE_BYTES);
    if (start == NULL) {
        return wr_error(WEIR_DRIVER, "webgpu: write: a mapped buffer has no address");
    }
    *room = (wr_webgpu_room){stage->buffer, stage->used_bytes, bytes,
                             start + stage->used_bytes};
    stage->used_bytes += bytes;
    return WEIR_OK;
}

void wr_webgpu_stages_close(wr_webgpu *webgpu)
{
    for (int i = 0; i < WRITE_STAGES; i++) {
        wr_webgpu_stage *stage = &webgpu->stages[i];
        if (stage->state == WR_WEBGPU_STAGE_STATE_OPEN) {
            webgpu->api.buffer_unmap(stage->buffer);
            stage->state = WR_WEBGPU_STAGE_STATE_CLOSED;
        }
    }
}

void wr_webgpu_stages_recall(wr_webgpu *webgpu)
{
    for (int i = 0; i < WRITE_STAGES; i++) {
        if (webgpu->stages[i].state == WR_WEBGPU_STAGE_STATE_CLOSED) {
            map(webgpu, &webgpu->stages[i], WR_WG_MAP_WRITE);
        }
    }
}

/* ---- reads ---- */

weir_result wr_webgpu_stage_take(wr_webgpu *webgpu, wr_webgpu_stage **stage)
{
    for (uint32_t round = 0;; round++) {
        WR_TRY(wr_webgpu_check(webgpu, "read"));
        wr_webgpu_stage *idle = find(webgpu, WRITE_STAGES, WR_WEBGPU_STAGE_STATE_IDLE);
        if (idle != NULL) {
            idle->state = WR_WEBGPU_STAGE_STATE_TAKEN;
            *stage = idle;
            return WEIR_OK;
        }
        wr_webgpu_stage *none = find(webgpu, WRITE_STAGES, WR_WEBGPU_STAGE_STATE_NONE);
        if (none != NULL) {
            *stage = none;
            return create_stage(webgpu, none, false);
        }
        wr_webgpu_nap(webgpu, round);
    }
}

weir_result wr_webgpu_stage_read(wr_webgpu *webgpu, wr_webgpu_stage *stage, void *data,
                                 uint64_t offset, uint64_t bytes)
{
    wr_webgpu_flush(webgpu);
    map(webgpu, stage, WR_WG_MAP_READ);
    wr_webgpu_poll(webgpu);
    for (uint32_t round = 0;
         stage->state == WR_WEBGPU_STAGE_STATE_FLYING && !atomic_load(&webgpu->is_lost);
         round++) {
        wr_webgpu_nap(webgpu, round);
        wr_webgpu_poll(webgpu);
    }
    const char *mapped = NULL;
    if (stage->state == WR_WEBGPU_STAGE_STATE_MAPPED) {
        mapped = webgpu->api.buffer_mapped_const(stage->buffer, 0, WR_WEBGPU_STAGE_BYTES);
    }
    if (mapped == NULL) {
        stage->state = WR_WEBGPU_STAGE_STATE_FAILED;
        WR_TRY(wr_webgpu_check(webgpu, "read"));
        return wr_error(WEIR_DRIVER, "webgpu: read: the library does not map a buffer");
    }
    memcpy(data, mapped + offset, bytes);
    webgpu->api.buffer_unmap(stage->buffer);
    stage->state = WR_WEBGPU_STAGE_STATE_TAKEN;
    return wr_webgpu_check(webgpu, "read");
}

/* One whose mapping is still under way, on a lost device, is left to the device's end. */
void wr_webgpu_stage_put(wr_webgpu *webgpu, wr_webgpu_stage *stage)
{
    if (stage->state == WR_WEBGPU_STAGE_STATE_TAKEN) {
        stage->state = WR_WEBGPU_STAGE_STATE_IDLE;
    } else if (!atomic_load(&webgpu->is_lost)) {
        destroy_stage(webgpu, stage);
    }
}

/* ---- all ---- */

weir_result wr_webgpu_stage_scratch(wr_webgpu *webgpu, wr_wg_buffer *scratch)
{
    wr_wg_buffer made = NULL;
    if (webgpu->scratch == NULL) {
        wr_wg_buffer_desc desc = {.usage = WR_WG_USE_COPY_SRC | WR_WG_USE_COPY_DST,
                                  .bytes = WR_WEBGPU_STAGE_BYTES};
        WR_TRY(create(webgpu, "copy", &desc, &made));
    }
    if (webgpu->scratch == NULL) {
        webgpu->scratch = made;
    } else {
        destroy(webgpu, &made); /* another thread was faster */
    }
    *scratch = webgpu->scratch;
    return WEIR_OK;
}

void wr_webgpu_stages_trim(wr_webgpu *webgpu)
{
    wr_webgpu_flush(webgpu);
    wr_webgpu_poll(webgpu);
    for (int i = 0; i < WR_WEBGPU_STAGES; i++) {
        wr_webgpu_stage_state state = webgpu->stages[i].state;
        bool is_read = i >= WRITE_STAGES;
        if (state ==
            (is_read ? WR_WEBGPU_STAGE_STATE_IDLE : WR_WEBGPU_STAGE_STATE_MAPPED)) {
            destroy_stage(webgpu, &webgpu->stages[i]);
        }
    }
    destroy(webgpu, &webgpu->scratch);
}

void wr_webgpu_stages_free(wr_webgpu *webgpu)
{
    for (int i = 0; i < WR_WEBGPU_STAGES; i++) {
        destroy(webgpu, &webgpu->stages[i].buffer);
    }
    destroy(webgpu, &webgpu->scratch);
}
