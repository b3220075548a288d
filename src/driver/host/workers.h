/* SPDX-License-Identifier: MIT */
/* A few threads that share the elements of one kernel launch with the thread that asks.
 */
#ifndef WR_DRIVER_HOST_WORKERS_H
#define WR_DRIVER_HOST_WORKERS_H

#include "base/lock.h"

#include <weir/driver.h>
#include <weir/kernel.h>

#include <pthread.h>

#define WR_WORKERS_MOST 8 /* threads in all, the caller's included */
/* Ranges start at multiples of this, where an element is little work. */
#define WR_WORKERS_GRAIN 4096
/* Launches of less work, in simple elements, are not worth waking anyone. */
#define WR_WORKERS_WORTH (16 * WR_WORKERS_GRAIN)

/* One launch under way. Lives on the caller's stack. */
typedef struct wr_job {
    const weir_launch *launch;
    uint64_t chunk_elements; /* a multiple of the grain */
    _Atomic uint64_t next;   /* the first element that nobody has taken */
} wr_job;

typedef struct wr_workers {
    wr_lock turn;           /* held by the launch that has the threads */
    unsigned helpers;       /* threads wanted beside the caller's; set at init */
    unsigned started;       /* threads that exist; guard: turn */
    pthread_mutex_t mutex;  /* guards all below */
    pthread_cond_t arrived; /* a job is there, or it is time to stop */
    pthread_cond_t left;    /* the last helper has left the job */
    wr_job *job;            /* NULL: none */
    uint64_t posted;        /* jobs so far, so that a helper joins each once */
    unsigned inside;        /* helpers at work on the job */
    bool stop;
    pthread_t threads[WR_WORKERS_MOST - 1];
} wr_workers;

/* Starts no thread. */
weir_result wr_workers_init(wr_workers *workers);
/* Joins the threads. No launch is under way. */
void wr_workers_finish(wr_workers *workers);

/* Runs the kernel's host form over [0, element_count), each element once, and returns
 * when all are done. Any thread; a launch that finds the threads taken runs on its
 * caller's alone. */
void wr_workers_run(wr_workers *workers, const weir_launch *launch);

#endif
