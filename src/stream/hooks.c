/* SPDX-License-Identifier: MIT */
/* Stream hooks: callbacks whose functions are before_cleanup, before_close and drain. */
#include "device.h"

#include "base/fork.h"
#include "base/result.h"

enum { BEFORE_CLEANUP = 0, BEFORE_CLOSE = 1, DRAIN = 2 };

typedef void (*wr_hook_function)(void *context, weir_stream *stream);
typedef weir_result (*wr_drain_function)(void *context, weir_stream *stream);

weir_result weir_stream_hook_add(weir_stream *stream, const weir_stream_hook *hook)
{
    WR_TRY(wr_fork_check());
    if (stream == NULL || hook == NULL ||
        (hook->size != 0 && hook->size != sizeof *hook)) {
        return wr_error(
            WEIR_INVALID,
            "weir_stream_hook_add: an argument is NULL, or a hook of another size");
    }
    const wr_function functions[WR_CALLBACK_FUNCTIONS] = {
        [BEFORE_CLEANUP] = (wr_function)hook->before_cleanup,
        [BEFORE_CLOSE] = (wr_function)hook->before_close,
        [DRAIN] = (wr_function)hook->drain,
    };
    return wr_callbacks_add(&stream->hooks, functions, hook->context)
               ? WEIR_OK
               : wr_error(WEIR_LIMIT, "a stream has at most %u hooks; remove one first",
                          WR_CALLBACK_MAX);
}

weir_result weir_stream_hook_remove(weir_stream *stream, void *context)
{
    WR_TRY(wr_fork_check());
    if (stream == NULL) {
        return wr_error(WEIR_INVALID, "weir_stream_hook_remove: the stream is NULL");
    }
    return wr_callbacks_remove(&stream->hooks, NULL, context)
               ? WEIR_OK
               : wr_error(WEIR_NOT_FOUND, "stream \"%s\" has no hook with this context",
                          stream->manager.name);
}

typedef struct hook_call {
    weir_stream *stream;
    int which;
} hook_call;

static void call_hook(void *argument, const wr_callback *callback)
{
    const hook_call *call = argument;
    wr_hook_function function = (wr_hook_function)callback->functions[call->which];
    if (function != NULL) {
        function(callback->context, call->stream);
    }
}

static void run_hooks(weir_stream *stream, int which)
{
    hook_call call = {stream, which};
    uint64_t number = 0;
    do {
        number = wr_callbacks_run_next(&stream->hooks, number, call_hook, &call);
    } while (number != 0);
}

static void run_all(weir_device *device, int which)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(&device->bank, &slot)) != NULL) {
        if (!manager->closing) {
            run_hooks(wr_stream_of(manager), which);
        }
        wr_manager_unpin(manager);
    }
}

void wr_hooks_before_cleanup(weir_device *device)
{
    run_all(device, BEFORE_CLEANUP);
}

void wr_hooks_before_close(weir_device *device)
{
    run_all(device, BEFORE_CLOSE);
}

void wr_hooks_stream_closes(weir_stream *stream)
{
    run_hooks(stream, BEFORE_CLOSE);
}

typedef struct drain_call {
    weir_stream *stream;
    weir_result result; /* the first failure */
} drain_call;

static void call_drain(void *argument, const wr_callback *callback)
{
    drain_call *call = argument;
    wr_drain_function function = (wr_drain_function)callback->functions[DRAIN];
    if (function != NULL && call->result == WEIR_OK) {
        call->result = function(callback->context, call->stream);
    }
}

weir_result wr_hooks_drain(weir_stream *stream)
{
    drain_call call = {stream, WEIR_OK};
    uint64_t number = 0;
    do {
        number = wr_callbacks_run_next(&stream->hooks, number, call_drain, &call);
    } while (number != 0 && call.result == WEIR_OK);
    WR_TRY(wr_fork_check()); /* one may have forked */
    return call.result;
}
