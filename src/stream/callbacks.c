/* SPDX-License-Identifier: MIT */
#include "callbacks.h"

#include "base/fork.h"

#include <stddef.h>
#include <string.h>

void wr_callbacks_init(wr_callbacks *callbacks)
{
    pthread_mutex_init(&callbacks->mutex, NULL);
    pthread_cond_init(&callbacks->idle, NULL);
}

void wr_callbacks_finish(wr_callbacks *callbacks)
{
    pthread_cond_destroy(&callbacks->idle);
    pthread_mutex_destroy(&callbacks->mutex);
}

bool wr_callbacks_add(wr_callbacks *callbacks,
                      const wr_function functions[WR_CALLBACK_FUNCTIONS], void *context)
{
    pthread_mutex_lock(&callbacks->mutex);
    bool room = callbacks->count < WR_CALLBACK_MAX;
    if (room) {
        wr_callback *added = &callbacks->list[callbacks->count++];
        *added = (wr_callback){.context = context, .number = ++callbacks->last_number};
        memcpy(added->functions, functions, sizeof added->functions);
    }
    pthread_mutex_unlock(&callbacks->mutex);
    return room;
}

static wr_callback *find(wr_callbacks *callbacks, wr_function first, const void *context)
{
    for (uint32_t i = 0; i < callbacks->count; i++) {
        wr_callback *callback = &callbacks->list[i];
        if (callback->context == context &&
            (first == NULL || callback->functions[0] == first)) {
            return callback;
        }
    }
    return NULL;
}

static wr_callback *find_above(wr_callbacks *callbacks, uint64_t number)
{
    for (uint32_t i = 0; i < callbacks->count; i++) {
        if (callbacks->list[i].number > number) {
            return &callbacks->list[i];
        }
    }
    return NULL;
}

static bool runs_elsewhere(const wr_callback *callback)
{
    return callback->running && !pthread_equal(callback->runner, pthread_self());
}

bool wr_callbacks_remove(wr_callbacks *callbacks, wr_function first, const void *context)
{
    pthread_mutex_lock(&callbacks->mutex);
    wr_callback *found = find(callbacks, first, context);
    while (found != NULL && runs_elsewhere(found)) {
        pthread_cond_wait(&callbacks->idle, &callbacks->mutex);
        found = find(callbacks, first, context);
    }
    if (found != NULL) {
        const wr_callback *end = &callbacks->list[--callbacks->count];
        for (wr_callback *at = found; at < end; at++) {
            at[0] = at[1];
        }
    }
    pthread_mutex_unlock(&callbacks->mutex);
    return found != NULL;
}

uint64_t wr_callbacks_run_next(wr_callbacks *callbacks, uint64_t after, wr_call call,
                               void *argument)
{
    pthread_mutex_lock(&callbacks->mutex);
    wr_callback *next = find_above(callbacks, after);
    while (next != NULL && next->running) {
        pthread_cond_wait(&callbacks->idle, &callbacks->mutex);
        next = find_above(callbacks, after);
    }
    uint64_t number = 0;
    if (next != NULL) {
        number = next->number;
        next->running = true;
        next->runner = pthread_self();
        wr_callback copy = *next;
        pthread_mutex_unlock(&callbacks->mutex);
        call(argument, &copy);
        if (wr_fork_is_child()) {
            return 0; /* it has forked: this is the child, where the mutex is nobody's */
        }
        pthread_mutex_lock(&callbacks->mutex);
        next = find_above(callbacks, number - 1);
        if (next != NULL && next->number == number) { /* it has not removed itself */
            next->running = false;
        }
        pthread_cond_broadcast(&callbacks->idle);
    }
    pthread_mutex_unlock(&callbacks->mutex);
    return number;
}
