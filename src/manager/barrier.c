/* SPDX-License-Identifier: MIT */
#include "barrier.h"

#include <stddef.h>

void wr_barrier_init(wr_barrier *barrier)
{
    pthread_mutex_init(&barrier->mutex, NULL);
    pthread_cond_init(&barrier->left, NULL);
}

void wr_barrier_finish(wr_barrier *barrier)
{
    pthread_cond_destroy(&barrier->left);
    pthread_mutex_destroy(&barrier->mutex);
}

bool wr_barrier_enter(wr_barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    bool open = barrier->raised == 0;
    barrier->inside += open;
    pthread_mutex_unlock(&barrier->mutex);
    return open;
}

void wr_barrier_leave(wr_barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    if (--barrier->inside == 0) {
        pthread_cond_broadcast(&barrier->left);
    }
    pthread_mutex_unlock(&barrier->mutex);
}

void wr_barrier_raise(wr_barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    barrier->raised++;
    while (barrier->inside > 0) {
        pthread_cond_wait(&barrier->left, &barrier->mutex);
    }
    pthread_mutex_unlock(&barrier->mutex);
}

void wr_barrier_lower(wr_barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    barrier->raised--;
    pthread_mutex_unlock(&barrier->mutex);
}

bool wr_barrier_is_up(wr_barrier *barrier)
{
    pthread_mutex_lock(&barrier->mutex);
    bool up = barrier->raised > 0;
    pthread_mutex_unlock(&barrier->mutex);
    return up;
}
