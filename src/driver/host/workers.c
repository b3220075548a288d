/* SPDX-License-Identifier: MIT */
/* Threads start at the first launch that is worth them. A helper joins the job that is
 * posted when it wakes; the caller withdraws the job once no element is left to take and
 * waits only for helpers that have joined, so a helper that wakes late costs nothing.
 *
 * Locks: `turn`, then `mutex`; neither is held while elements are worked on, but turn. */
#define _GNU_SOURCE
#include "workers.h"

#include "base/result.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Chunks per thread, so that a thread that is held up does not hold up the launch. */
#define CHUNKS_EACH 4

static unsigned count_cores(void)
{
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
        return (unsigned)CPU_COUNT(&cores);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

weir_result wr_workers_init(wr_workers *workers)
{
    unsigned cores = count_cores();
    memset(workers, 0, sizeof *workers);
    workers->helpers = (cores < WR_WORKERS_MOST ? cores : WR_WORKERS_MOST) - 1;
    if (pthread_mutex_init(&workers->mutex, NULL) != 0) {
        goto fail;
    }
    if (pthread_cond_init(&workers->arrived, NULL) != 0) {
        goto undo_mutex;
    }
    if (pthread_cond_init(&workers->left, NULL) != 0) {
        goto undo_arrived;
    }
    return WEIR_OK;

undo_arrived:
    pthread_cond_destroy(&workers->arrived);
undo_mutex:
    pthread_mutex_destroy(&workers->mutex);
fail:
    return wr_error(WEIR_OUT_OF_HOST_MEMORY, "host: the system has no room for a mutex");
}

void wr_workers_finish(wr_workers *workers)
{
    pthread_mutex_lock(&workers->mutex);
    workers->stop = true;
    pthread_cond_broadcast(&workers->arrived);
    pthread_mutex_unlock(&workers->mutex);
    for (unsigned i = 0; i < workers->started; i++) {
        pthread_join(workers->threads[i], NULL);
    }
    pthread_cond_destroy(&workers->left);
    pthread_cond_destroy(&workers->arrived);
    pthread_mutex_destroy(&workers->mutex);
}

/* Takes chunks until none is left. */
static void work(wr_job *job)
{
    const weir_launch *launch = job->launch;
    for (;;) {
        uint64_t begin = atomic_fetch_add(&job->next, job->chunk_elements);
        if (begin >= launch->element_count) {
            return;
        }
        uint64_t left = launch->element_count - begin;
        uint64_t count = left < job->chunk_elements ? left : job->chunk_elements;
        launch->kernel->host(launch, begin, begin + count);
    }
}

static void *help(void *argument)
{
    wr_workers *workers = argument;
    uint64_t seen = 0;
    pthread_mutex_lock(&workers->mutex);
    while (!workers->stop) {
        wr_job *job = workers->job;
        if (job == NULL || seen == workers->posted) {
            pthread_cond_wait(&workers->arrived, &workers->mutex);
            continue;
        }
        seen = workers->posted;
        workers->inside++;
        pthread_mutex_unlock(&workers->mutex);
        work(job);
        pthread_mutex_lock(&workers->mutex);
        if (--workers->inside == 0) {
            pthread_cond_signal(&workers->left);
        }
    }
    pthread_mutex_unlock(&workers->mutex);
    return NULL;
}

/* Signals are for the program's own threads. Fewer threads than wanted will do. */
static void start(wr_workers *workers)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (workers->started < workers->helpers) {
        pthread_t *thread = &workers->threads[workers->started];
        if (pthread_create(thread, NULL, help, workers) != 0) {
            break;
        }
        pthread_setname_np(*thread, "weir-host");
        workers->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void post(wr_workers *workers, wr_job *job)
{
    pthread_mutex_lock(&workers->mutex);
    workers->job = job;
    workers->posted++;
    pthread_cond_broadcast(&workers->arrived);
    pthread_mutex_unlock(&workers->mutex);
}

static void withdraw(wr_workers *workers)
{
    pthread_mutex_lock(&workers->mutex);
    workers->job = NULL;
    while (workers->inside > 0) {
        pthread_cond_wait(&workers->left, &workers->mutex);
    }
    pthread_mutex_unlock(&workers->mutex);
}

/* Elements in a grain: a power of two, fewer where each is more work. */
static uint64_t grain_of(const weir_launch *launch)
{
    uint64_t grain = WR_WORKERS_GRAIN;
    while (grain > 1 && grain * launch->element_work > WR_WORKERS_GRAIN) {
        grain /= 2;
    }
    return grain;
}

/* By grains, since elements times their work may overflow. */
static bool is_worth(const weir_launch *launch, uint64_t grain)
{
    uint64_t work = launch->element_work > 0 ? launch->element_work : 1;
    uint64_t most = grain > 1 ? WR_WORKERS_WORTH : WR_WORKERS_WORTH / WR_WORKERS_GRAIN;
    return launch->element_count > grain &&
           (launch->element_count >= most || work >= WR_WORKERS_WORTH ||
            launch->element_count * work >= WR_WORKERS_WORTH);
}

void wr_workers_run(wr_workers *workers, const weir_launch *launch)
{
    uint64_t count = launch->element_count;
    uint64_t grain = grain_of(launch);
    if (workers->helpers == 0 || !is_worth(launch, grain) ||
        !wr_lock_try(&workers->turn)) {
        if (count > 0) {
            launch->kernel->host(launch, 0, count);
        }
        return;
    }
    if (workers->started < workers->helpers) {
        start(workers);
    }
    uint64_t chunk = count / ((workers->started + 1) * CHUNKS_EACH) + 1;
    wr_job job = {
        .launch = launch,
        .chunk_elements = (chunk + grain - 1) / grain * grain,
    };
    post(workers, &job);
    work(&job);
    withdraw(workers);
    wr_lock_leave(&workers->turn);
}
