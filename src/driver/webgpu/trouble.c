/* SPDX-License-Identifier: MIT */
/* What the library complains of, and the device's loss.
 *
 * WebGPU has no return codes. Errors arrive at callbacks: those of calls inside an error
 * scope at the scope's, all others at the device's. A page's creation waits for its
 * scope, so that out of memory is its result. Commands do not wait: what was wrong with
 * them is kept, and the next call that waits for the device reports it. */
#include "webgpu.h"

#include "base/result.h"

#include <stdio.h>

static void keep_text(char *to, wr_wg_text text)
{
    snprintf(to, WR_WEBGPU_TEXT_BYTES, "%.*s", wr_wg_length(text),
             text.data != NULL ? text.data : "");
}

static void note(wr_webgpu_trouble *trouble, uint32_t type, wr_wg_text text)
{
    if (trouble->type == 0) {
        trouble->type = type;
        keep_text(trouble->text, text);
    }
}

/* ---- callbacks ---- */

void wr_webgpu_on_lost(const wr_wg_device *device, uint32_t reason, wr_wg_text text,
                       void *context, void *more)
{
    (void)device;
    (void)reason;
    (void)more;
    wr_webgpu *webgpu = context;
    if (!webgpu->is_closing && !atomic_load(&webgpu->is_lost)) {
        keep_text(webgpu->lost_text, text);
        atomic_store(&webgpu->is_lost, true);
    }
}

void wr_webgpu_on_error(const wr_wg_device *device, uint32_t type, wr_wg_text text,
                        void *context, void *more)
{
    (void)device;
    (void)more;
    wr_webgpu *webgpu = context;
    note(&webgpu->unscoped, type, text);
}

static void on_scope(uint32_t status, uint32_t type, wr_wg_text text, void *context,
                     void *more)
{
    wr_webgpu *webgpu = context;
    webgpu->scopes_open--;
    if (status == WR_WG_SUCCESS && type != WR_WG_ERROR_NONE) {
        note(more, type, text);
    }
}

/* ---- scopes ---- */

void wr_webgpu_scope_enter(wr_webgpu *webgpu)
{
    webgpu->api.scope_push(webgpu->device, WR_WG_FILTER_VALIDATION);
    webgpu->api.scope_push(webgpu->device, WR_WG_FILTER_OUT_OF_MEMORY);
    webgpu->api.scope_push(webgpu->device, WR_WG_FILTER_INTERNAL);
}

static void pop_all(wr_webgpu *webgpu, wr_webgpu_trouble *trouble)
{
    for (int i = 0; i < 3; i++) {
        webgpu->scopes_open++;
        (void)webgpu->api.scope_pop(
            webgpu->device, (wr_wg_scope_callback){.mode = WR_WG_ON_PROCESS_EVENTS,
                                                   .callback = on_scope,
                                                   .context = webgpu,
                                                   .more = trouble});
    }
}

void wr_webgpu_scope_leave_later(wr_webgpu *webgpu)
{
    pop_all(webgpu, &webgpu->unscoped);
}

/* ---- results ---- */

static weir_result report_loss(const wr_webgpu *webgpu, const char *entry)
{
    return wr_error(WEIR_DEVICE_LOST, "webgpu: %s: the device is lost: %s", entry,
                    webgpu->lost_text[0] != '\0' ? webgpu->lost_text : "no reason given");
}

static weir_result report(wr_webgpu_trouble *trouble, const char *entry)
{
    uint32_t type = trouble->type;
    trouble->type = 0;
    if (type == 0) {
        return WEIR_OK;
    }
    const char *text = trouble->text[0] != '\0' ? trouble->text : "no text";
    if (type == WR_WG_ERROR_OUT_OF_MEMORY) {
        return wr_error(WEIR_OUT_OF_MEMORY, "webgpu: %s: out of memory: %s", entry, text);
    }
    return wr_error(WEIR_DRIVER, "webgpu: %s: the library says error %u: %s", entry, type,
                    text);
}

weir_result wr_webgpu_check(wr_webgpu *webgpu, const char *entry)
{
    if (atomic_load(&webgpu->is_lost)) {
        return report_loss(webgpu, entry);
    }
    return report(&webgpu->unscoped, entry);
}

/* Scopes end in order, so with none open this one's outcome is there too. */
weir_result wr_webgpu_scope_leave(wr_webgpu *webgpu, const char *entry)
{
    pop_all(webgpu, &webgpu->scoped);
    for (uint32_t round = 0; webgpu->scopes_open > 0 && !atomic_load(&webgpu->is_lost);
         round++) {
        wr_webgpu_poll(webgpu);
        if (webgpu->scopes_open > 0) {
            wr_webgpu_nap(webgpu, round);
        }
    }
    if (atomic_load(&webgpu->is_lost)) {
        return report_loss(webgpu, entry);
    }
    return report(&webgpu->scoped, entry);
}
