/* SPDX-License-Identifier: MIT */
/* The idle reclaimer: a thread that gives back what nobody has used for idle_ms, even if
 * the program never calls again. It starts with the first release and parks, without
 * wake-ups, when for a step there has been nothing that time could give back; the next
 * release wakes it (bank->parked).
 *
 * The code that it runs stays: the library, or the plug-in that it is a part of, is
 * marked not to be unloaded. At the end of the process the thread is joined before
 * memory and drivers go; buffers may still be released afterwards. */
#define _GNU_SOURCE
#include "device.h"

#include "base/fork.h"
#include "manager/cleanup.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS_PER_PERIOD 8u
#define STEP_MS_MIN 5u
#define EXIT_SECONDS 2

/* Devices whose thread may run. */
static struct {
    wr_lock lock;
    weir_device *first;
    pthread_once_t once;
} enabled = {.once = PTHREAD_ONCE_INIT};

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

/* Says so first, then looks again: a release that has not seen it is seen here. */
static bool park(wr_bank *bank)
{
    if (wr_idle_has_work(bank)) {
        return false;
    }
    WR_PUT(bank->parked, 1);
    if (wr_idle_has_work(bank)) {
        WR_PUT(bank->parked, 0);
        return false;
    }
    return true;
}

/* Whoever has been woken stays up for a step: a program that goes on releasing what frees
 * nothing whole would wake it with every release. */
static void *run(void *context)
{
    weir_device *device = context;
    bool parked = true;
    while (!must_stop(&device->reclaimer)) {
        weir_device_tick(device, 0);
        parked = !parked && park(&device->bank);
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
    if (started) {
        pthread_setname_np(device->reclaimer.thread, "weir-reclaim");
    }
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

/* ---- stopping ---- */

/* With `patience`, waits no longer than that many seconds: a thread that calls exit() may
 * hold what the reclaimer needs. Not at all if that thread is the reclaimer itself, in a
 * driver that exits. False: the thread still runs. */
static bool join(pthread_t thread, int patience)
{
    if (pthread_equal(thread, pthread_self())) {
        return false;
    }
    if (patience == 0) {
        return pthread_join(thread, NULL) == 0;
    }
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += patience;
    return pthread_timedjoin_np(thread, NULL, &end) == 0;
}

static void stop(weir_device *device, int patience)
{
    wr_reclaimer *reclaimer = &device->reclaimer;
    pthread_mutex_lock(&reclaimer->mutex);
    reclaimer->stop = true;
    bool started = reclaimer->started;
    pthread_cond_signal(&reclaimer->wanted);
    pthread_mutex_unlock(&reclaimer->mutex);
    if (started && join(reclaimer->thread, patience)) {
        pthread_mutex_lock(&reclaimer->mutex);
        reclaimer->started = false;
        pthread_mutex_unlock(&reclaimer->mutex);
    }
    WR_PUT(device->bank.parked, 0);
}

static void stop_all(void)
{
    if (wr_fork_is_child()) {
        return;
    }
    wr_lock_take(&enabled.lock);
    for (weir_device *device = enabled.first; device != NULL;
         device = device->reclaimer.next) {
        stop(device, EXIT_SECONDS);
    }
    wr_lock_leave(&enabled.lock);
}

/* The program itself has no name and needs no pin; nothing is loaded that is not there.
 */
static void pin_library(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(&enabled, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL &&
        map->l_name[0] != 0) {
        (void)dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

static void prepare_process(void)
{
    pin_library();
    (void)atexit(stop_all);
}

static void enlist(weir_device *device)
{
    pthread_once(&enabled.once, prepare_process);
    wr_lock_take(&enabled.lock);
    device->reclaimer.next = enabled.first;
    enabled.first = device;
    wr_lock_leave(&enabled.lock);
}

static void delist(weir_device *device)
{
    wr_lock_take(&enabled.lock);
    weir_device **link = &enabled.first;
    while (*link != NULL && *link != device) {
        link = &(*link)->reclaimer.next;
    }
    if (*link != NULL) {
        *link = device->reclaimer.next;
    }
    wr_lock_leave(&enabled.lock);
}

/* ---- coming and going ---- */

void wr_reclaimer_init(weir_device *device, bool may_start)
{
    wr_reclaimer *reclaimer = &device->reclaimer;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&reclaimer->mutex, NULL);
    pthread_cond_init(&reclaimer->wanted, &attributes);
    pthread_condattr_destroy(&attributes);
    reclaimer->enabled = may_start;
    device->bank.wake = wake;
    WR_PUT(device->bank.parked, may_start);
    if (may_start) {
        enlist(device);
    }
}

void wr_reclaimer_finish(weir_device *device)
{
    delist(device);
    stop(device, 0);
    pthread_cond_destroy(&device->reclaimer.wanted);
    pthread_mutex_destroy(&device->reclaimer.mutex);
}
