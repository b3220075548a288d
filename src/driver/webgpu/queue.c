/* SPDX-License-Identifier: MIT */
/* The queue: open commands, submissions, and waiting for them. All inside the lock. */
#define _GNU_SOURCE
#include "webgpu.h"

#include "base/result.h"

#include <sched.h>
#include <time.h>

enum {
    QUICK_ROUNDS = 32,        /* of polling before sleeping */
    FIRST_NAP_NS = 20000,     /* doubled each round */
    LONGEST_NAP_NS = 1000000, /* what a fence may be noticed too late */
};

/* ---- commands ---- */

static weir_result open_encoder(wr_webgpu *webgpu, const char *entry,
                                wr_webgpu_stream *stream)
{
    WR_TRY(wr_webgpu_check(webgpu, entry));
    if (webgpu->encoder == NULL) {
        webgpu->encoder = webgpu->api.encoder_create(webgpu->device, NULL);
    }
    if (webgpu->encoder == NULL) {
        return wr_error(WEIR_DRIVER, "webgpu: %s: the library makes no command encoder",
                        entry);
    }
    stream->last = webgpu->submitted + 1;
    return WEIR_OK;
}

static void end_pass(wr_webgpu *webgpu)
{
    if (webgpu->pass != NULL) {
        webgpu->api.pass_end(webgpu->pass);
        webgpu->api.pass_release(webgpu->pass);
        webgpu->pass = NULL;
    }
}

weir_result wr_webgpu_encode(wr_webgpu *webgpu, const char *entry,
                             wr_webgpu_stream *stream, wr_wg_encoder *encoder)
{
    WR_TRY(open_encoder(webgpu, entry, stream));
    end_pass(webgpu);
    *encoder = webgpu->encoder;
    return WEIR_OK;
}

weir_result wr_webgpu_encode_pass(wr_webgpu *webgpu, const char *entry,
                                  wr_webgpu_stream *stream, wr_wg_pass *pass)
{
    WR_TRY(open_encoder(webgpu, entry, stream));
    if (webgpu->pass == NULL) {
        webgpu->pass = webgpu->api.pass_begin(webgpu->encoder, NULL);
    }
    if (webgpu->pass == NULL) {
        return wr_error(WEIR_DRIVER, "webgpu: %s: the library begins no compute pass",
                        entry);
    }
    *pass = webgpu->pass;
    return WEIR_OK;
}

/* The count that a submission belongs to is taken before it, so that what was destroyed
 * before the submission counts as gone only if an earlier one had been seen to complete.
 */
static void submit(wr_webgpu *webgpu, size_t count, const wr_wg_commands *commands)
{
    uint64_t seen = atomic_load(&webgpu->completed);
    webgpu->api.queue_submit(webgpu->queue, count, commands);
    webgpu->submitted++;
    wr_webgpu_let_go(webgpu, seen);
    if (webgpu->leaving != NULL) {
        wr_webgpu_watch(webgpu);
    }
}

void wr_webgpu_flush(wr_webgpu *webgpu)
{
    if (webgpu->encoder == NULL) {
        return;
    }
    wr_webgpu_stages_close(webgpu);
    wr_webgpu_scope_enter(webgpu);
    end_pass(webgpu);
    webgpu->command_count = 0;
    wr_wg_commands commands = webgpu->api.encoder_finish(webgpu->encoder, NULL);
    submit(webgpu, 1, &commands);
    wr_webgpu_scope_leave_later(webgpu);
    webgpu->api.commands_release(commands);
    webgpu->api.encoder_release(webgpu->encoder);
    webgpu->encoder = NULL;
    wr_webgpu_stages_recall(webgpu);
}

void wr_webgpu_submit(wr_webgpu *webgpu)
{
    if (webgpu->encoder != NULL) {
        wr_webgpu_flush(webgpu);
    } else {
        submit(webgpu, 0, NULL);
    }
}

/* ---- completion ---- */

/* In whatever state the work ended, it does not run any more. */
static void on_done(uint32_t status, wr_wg_text text, void *context, void *more)
{
    (void)status;
    (void)text;
    wr_webgpu *webgpu = context;
    uint64_t submission = (uint64_t)(uintptr_t)more;
    if (submission > atomic_load(&webgpu->completed)) {
        atomic_store(&webgpu->completed, submission);
    }
}

void wr_webgpu_watch(wr_webgpu *webgpu)
{
    if (webgpu->watched < webgpu->submitted) {
        webgpu->watched = webgpu->submitted;
        (void)webgpu->api.queue_done(
            webgpu->queue,
            (wr_wg_done_callback){.mode = WR_WG_ON_PROCESS_EVENTS,
                                  .callback = on_done,
                                  .context = webgpu,
                                  .more = (void *)(uintptr_t)webgpu->submitted});
    }
}

/* When what freed pages wait for has completed, one more submission makes the library
 * look: it would let go of them with the next one of the program's, if there is one. */
void wr_webgpu_poll(wr_webgpu *webgpu)
{
    webgpu->api.instance_process(webgpu->instance);
    if (wr_webgpu_is_ripe(webgpu)) {
        wr_webgpu_submit(webgpu);
    }
}

bool wr_webgpu_has_passed(wr_webgpu *webgpu, uint64_t submission)
{
    if (submission <= atomic_load(&webgpu->completed)) {
        return true;
    }
    if (submission > webgpu->submitted) {
        wr_webgpu_flush(webgpu);
    }
    if (submission > webgpu->watched) {
        wr_webgpu_watch(webgpu);
    }
    wr_webgpu_poll(webgpu);
    return submission <= atomic_load(&webgpu->completed);
}

void wr_webgpu_nap(wr_webgpu *webgpu, uint32_t round)
{
    wr_lock_leave(&webgpu->lock);
    if (round < QUICK_ROUNDS) {
        sched_yield();
    } else {
        uint32_t doublings = round - QUICK_ROUNDS;
        long nap = doublings < 6 ? FIRST_NAP_NS << doublings : LONGEST_NAP_NS;
        (void)nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
    }
    wr_lock_take(&webgpu->lock);
}

weir_result wr_webgpu_await(wr_webgpu *webgpu, const char *entry, uint64_t submission)
{
    for (uint32_t round = 0; !wr_webgpu_has_passed(webgpu, submission); round++) {
        if (atomic_load(&webgpu->is_lost)) {
            break;
        }
        wr_webgpu_nap(webgpu, round);
    }
    return wr_webgpu_check(webgpu, entry);
}
