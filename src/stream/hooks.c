/* SPDX-License-Identifier: MIT */
/* Stream hooks. The mutex guards the list; a hook runs with no lock held, and its removal
 * waits for it, unless it removes itself. */
#include "device.h"

#include "base/result.h"

weir_result weir_stream_hook_add(weir_stream *stream, const weir_stream_hook *hook)
{
    if (stream == NULL || hook == NULL ||
        (hook->size != 0 && hook->size != sizeof *hook)) {
        return wr_error(
            WEIR_INVALID,
            "weir_stream_hook_add: an argument is NULL, or a hook of another size");
    }
    weir_result result = WEIR_OK;
    pthread_mutex_lock(&stream->hooks_mutex);
    if (stream->hook_count == WR_HOOK_MAX) {
        result = wr_error(WEIR_LIMIT, "a stream has at most %u hooks; remove one first",
                          WR_HOOK_MAX);
    } else {
        stream->hooks[stream->hook_count++] = (wr_hook){.hook = *hook};
    }
    pthread_mutex_unlock(&stream->hooks_mutex);
    return result;
}

static uint32_t find(const weir_stream *stream, const void *context)
{
    uint32_t i = 0;
    while (i < stream->hook_count && stream->hooks[i].hook.context != context) {
        i++;
    }
    return i;
}

weir_result weir_stream_hook_remove(weir_stream *stream, void *context)
{
    if (stream == NULL) {
        return wr_error(WEIR_INVALID, "weir_stream_hook_remove: the stream is NULL");
    }
    pthread_mutex_lock(&stream->hooks_mutex);
    uint32_t at = find(stream, context);
    while (at < stream->hook_count && stream->hooks[at].running &&
           !pthread_equal(stream->hooks[at].runner, pthread_self())) {
        pthread_cond_wait(&stream->hooks_idle, &stream->hooks_mutex);
        at = find(stream, context);
    }
    bool found = at < stream->hook_count;
    if (found) {
        stream->hook_count--;
        for (; at < stream->hook_count; at++) {
            stream->hooks[at] = stream->hooks[at + 1];
        }
    }
    pthread_mutex_unlock(&stream->hooks_mutex);
    return found ? WEIR_OK
                 : wr_error(WEIR_NOT_FOUND, "stream \"%s\" has no hook with this context",
                            stream->manager.name);
}

typedef void (*wr_hook_call)(const weir_stream_hook *hook, weir_stream *stream);

static void run_hooks(weir_stream *stream, wr_hook_call call)
{
    pthread_mutex_lock(&stream->hooks_mutex);
    for (uint32_t i = 0; i < stream->hook_count; i++) {
        while (i < stream->hook_count && stream->hooks[i].running) {
            pthread_cond_wait(&stream->hooks_idle, &stream->hooks_mutex);
        }
        if (i >= stream->hook_count) {
            break;
        }
        weir_stream_hook hook = stream->hooks[i].hook;
        stream->hooks[i].running = true;
        stream->hooks[i].runner = pthread_self();
        pthread_mutex_unlock(&stream->hooks_mutex);
        call(&hook, stream);
        pthread_mutex_lock(&stream->hooks_mutex);
        uint32_t now = find(stream, hook.context);
        if (now < stream->hook_count) {
            stream->hooks[now].running = false;
        } else {
            i--; /* it removed itself */
        }
        pthread_cond_broadcast(&stream->hooks_idle);
    }
    pthread_mutex_unlock(&stream->hooks_mutex);
}

static void call_before_cleanup(const weir_stream_hook *hook, weir_stream *stream)
{
    if (hook->before_cleanup != NULL) {
        hook->before_cleanup(hook->context, stream);
    }
}

static void call_before_close(const weir_stream_hook *hook, weir_stream *stream)
{
    if (hook->before_close != NULL) {
        hook->before_close(hook->context, stream);
    }
}

static void run_all(weir_device *device, wr_hook_call call)
{
    uint32_t slot = 0;
    wr_manager *manager;
    while ((manager = wr_manager_next(&device->bank, &slot)) != NULL) {
        if (!manager->closing) {
            run_hooks(wr_stream_of(manager), call);
        }
        wr_manager_unpin(manager);
    }
}

void wr_hooks_before_cleanup(weir_device *device)
{
    run_all(device, call_before_cleanup);
}

void wr_hooks_before_close(weir_device *device)
{
    run_all(device, call_before_close);
}

void wr_hooks_stream_closes(weir_stream *stream)
{
    run_hooks(stream, call_before_close);
}
