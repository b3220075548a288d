/* SPDX-License-Identifier: MIT */
/* The idle reclaimer: a thread that gives back what nobody has used for idle_ms, even if
 * the program never calls again. It starts with the first release and parks, without
 * wake-ups, when there is nothing that time could give back; the next release wakes it
 * (bank->parked). */
#define _GNU_SOURCE
#include "device.h"

#include "manager/cleanup.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define STEPS_PER_PERIOD 8u
#define STEP_MS_MIN 5u

static bool must_stop(wr_reclaimer *reclaimer)
{
    pthread_mutex_lock(&reclaimer->mutex);
    bool stop = reclaimer->stop;
    pthread_mutex_unlock(&reclaimer->mutex);
    return stop;
}

static struct timespec step_end(const wr_bank *bank)
{
    uint64_t step_ms = bank->options.idle_ms / STEPS_PER_PERIOD;
    step_ms = step_ms < STEP_MS_MIN ? STEP_MS_MIN : step_ms;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t ns = (uint64_t)end.tv_nsec + step_ms % 1000 * 1000000;
    end.tv_sec += (time_t)(step_ms / 1000 + ns / 1000000000);
    end.tv_nsec = (long)(ns % 1000000000);
    return end;
}

/* Sleeps one step, or until woken when parked. */
static void rest(weir_device *device, bool parked)
{
    wr_reclaimer *reclaimer = &device->reclaimer;
    struct timespec end = step_end(&device->bank);
    pthread_mutex_lock(&reclaimer->mutex);
    int timed_out = 0;
    while (!reclaimer->stop && timed_out == 0 &&
           (!parked || WR_GET(device->bank.parked) != 0)) {
        timed_out =
            parked ? pthread_cond_wait(&reclaimer->wanted, &reclaimer->mutex)
                   : pthread_cond_timedwait(&reclaimer->wanted, &reclaimer->mutex, &end);
    }
    pthread_mutex_unlock(&reclaimer->mutex);
}

static void *run(void *context)
{
    weir_device *device = context;
    wr_bank *bank = &device->bank;
    while (!must_stop(&device->reclaimer)) {
        weir_device_tick(device, 0);
        bool parked = !wr_idle_has_work(bank);
        if (parked) {
            /* Say so first, then look again: a release that has not seen it is seen here.
             */
            WR_PUT(bank->parked, 1);
            parked = !wr_idle_has_work(bank);
            if (!parked) {
                WR_PUT(bank->parked, 0);
            }
        }
        rest(device, parked);
    }
    return NULL;
}

/* All signals are the program's own threads' business. */
static bool start(weir_device *device)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&device->reclaimer.thread, NULL, run, device) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void wake(wr_bank *bank)
{
    weir_device *device = (weir_device *)(void *)bank;
    wr_reclaimer *reclaimer = &device->reclaimer;
    wr_idle_set_tick(bank, wr_idle_now_ms(bank));
    pthread_mutex_lock(&reclaimer->mutex);
    WR_PUT(bank->parked, 0);
    if (!reclaimer->started && !reclaimer->stop) {
        reclaimer->started = start(device);
    }
    pthread_cond_signal(&reclaimer->wanted);
    pthread_mutex_unlock(&reclaimer->mutex);
}

void wr_reclaimer_init(weir_device *device, bool enabled)
{
    wr_reclaimer *reclaimer = &device->reclaimer;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&reclaimer->mutex, NULL);
    pthread_cond_init(&reclaimer->wanted, &attributes);
    pthread_condattr_destroy(&attributes);
    reclaimer->enabled = enabled;
    device->bank.wake = wake;
    WR_PUT(device->bank.parked, enabled);
}

void wr_reclaimer_finish(weir_device *device)
{
    wr_reclaimer *reclaimer = &device->reclaimer;
    WR_PUT(device->bank.parked, 0);
    pthread_mutex_lock(&reclaimer->mutex);
    reclaimer->stop = true;
    bool started = reclaimer->started;
    pthread_cond_signal(&reclaimer->wanted);
    pthread_mutex_unlock(&reclaimer->mutex);
    if (started) {
        pthread_join(reclaimer->thread, NULL);
    }
    pthread_cond_destroy(&reclaimer->wanted);
    pthread_mutex_destroy(&reclaimer->mutex);
}
