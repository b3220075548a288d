/* SPDX-License-Identifier: MIT */
/* Which queue belongs to which stream, from the stream's first tensor to its close. Lock:
 * `registry` guards the list; it is taken before a queue's lock and never the other way
 * round. */
#define _GNU_SOURCE
#include "queue.h"

#include "error.h"

#include "kernel/cache.h"
#include "kernel/memory.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static wr_queue *queues;

static wr_queue *find(const weir_stream *stream)
{
    wr_queue *queue = queues;
    while (queue != NULL && queue->stream != stream) {
        queue = queue->next;
    }
    return queue;
}

/* ---- hooks ---- */

static weir_result drain(void *context, weir_stream *stream)
{
    (void)stream;
    return wr_queue_drain(context, NULL);
}

/* What cannot run for want of memory stays; the cleanup is about to make some. */
static void before_cleanup(void *context, weir_stream *stream)
{
    wr_queue *queue = context;
    (void)stream;
    if (wr_queue_drain(queue, NULL) != WEIR_BUSY) {
        pthread_mutex_lock(&queue->mutex);
        wr_arguments_clear(&queue->arguments);
        pthread_mutex_unlock(&queue->mutex);
    }
}

static void unlist(wr_queue *queue)
{
    pthread_mutex_lock(&registry);
    wr_queue **link = &queues;
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    if (queues == NULL) {
        wr_cache_clear(); /* no stream is left that could launch a kernel */
    }
    pthread_mutex_unlock(&registry);
}

static void destroy(wr_queue *queue)
{
    wr_arguments_clear(&queue->arguments);
    for (uint32_t i = queue->count; i-- > 0;) {
        wr_fail(WEIR_STALE, "weir_tensor: its stream was closed before it was computed");
        wr_storage_become_failed(queue->nodes[i]->storage, WEIR_STALE);
        wr_node_destroy(queue->nodes[i]);
    }
    pthread_mutex_destroy(&queue->mutex);
    wr_memory_free(queue);
}

/* If the stream stays open after all, for it has live buffers, its next tensor makes a
 * new queue. */
static void before_close(void *context, weir_stream *stream)
{
    wr_queue *queue = context;
    wr_queue_drain(queue, NULL);
    weir_stream_hook_remove(stream, queue);
    unlist(queue);
    destroy(queue);
}

/* ---- making one ---- */

static weir_result no_memory(const char *who)
{
    return wr_fail(WEIR_OUT_OF_HOST_MEMORY, "%s: no host memory for the stream's queue",
                   who);
}

static bool init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0) {
        return false;
    }
    bool made = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK) == 0 &&
                pthread_mutex_init(mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return made;
}

static weir_result create(const char *who, weir_stream *stream, wr_queue **queue)
{
    weir_driver_properties properties;
    WR_TRY(weir_device_properties(weir_stream_device(stream), &properties));
    wr_queue *made = wr_memory_alloc(sizeof *made);
    if (made == NULL) {
        return no_memory(who);
    }
    made->stream = stream;
    made->max_bindings = properties.max_bindings;
    made->argument_buffers = properties.argument_buffers;
    made->exclusive_bindings = properties.exclusive_bindings;
    if (!init_mutex(&made->mutex)) {
        wr_memory_free(made);
        return no_memory(who);
    }
    const weir_stream_hook hook = {.context = made,
                                   .before_cleanup = before_cleanup,
                                   .before_close = before_close,
                                   .drain = drain};
    weir_result result = weir_stream_hook_add(stream, &hook);
    if (result != WEIR_OK) {
        pthread_mutex_destroy(&made->mutex);
        wr_memory_free(made);
        return result;
    }
    made->next = queues;
    queues = made;
    *queue = made;
    return WEIR_OK;
}

weir_result wr_queue_find(const char *who, weir_stream *stream, wr_queue **queue)
{
    if (stream == NULL) {
        return wr_fail(WEIR_INVALID, "%s: the stream is NULL", who);
    }
    if (weir_stream_device(stream) == NULL) {
        return wr_fail(WEIR_FORKED, "%s: the device was opened by the parent process",
                       who);
    }
    pthread_mutex_lock(&registry);
    wr_queue *found = find(stream);
    weir_result result = found != NULL ? WEIR_OK : create(who, stream, &found);
    pthread_mutex_unlock(&registry);
    if (result == WEIR_OK) {
        *queue = found;
    }
    return result;
}

/* ---- counters ---- */

weir_result weir_stream_tensor_counters(weir_stream *stream,
                                        weir_tensor_counters *counters)
{
    const char *who = "weir_stream_tensor_counters";
    wr_queue *queue;
    if (counters == NULL || (counters->size != 0 && counters->size != sizeof *counters)) {
        return wr_fail(WEIR_INVALID, "%s: the counters are NULL or of another size", who);
    }
    WR_TRY(wr_queue_find(who, stream, &queue));
    size_t size = counters->size;
    pthread_mutex_lock(&queue->mutex);
    *counters = queue->counters;
    counters->queued = queue->count;
    pthread_mutex_unlock(&queue->mutex);
    counters->size = size;
    return WEIR_OK;
}
