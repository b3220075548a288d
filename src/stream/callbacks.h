/* SPDX-License-Identifier: MIT */
/* A list of callbacks of the program's: added and removed while it is being run. The
 * mutex guards the list; a callback runs with no lock held and on one thread at a time.
 * Whoever removes one waits until it runs on no other thread. */
#ifndef WR_STREAM_CALLBACKS_H
#define WR_STREAM_CALLBACKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WR_CALLBACK_MAX 8u
#define WR_CALLBACK_FUNCTIONS 3u

/* Any function: converted back to its own type before it is called. */
typedef void (*wr_function)(void);

typedef struct wr_callback {
    wr_function functions[WR_CALLBACK_FUNCTIONS];
    void *context;
    uint64_t number; /* rises in order of registration; 0: none */
    bool running;    /* on thread `runner` */
    pthread_t runner;
} wr_callback;

typedef struct wr_callbacks {
    pthread_mutex_t mutex;
    pthread_cond_t idle; /* one has ended */
    wr_callback list[WR_CALLBACK_MAX];
    uint32_t count;
    uint64_t last_number;
} wr_callbacks;

void wr_callbacks_init(wr_callbacks *callbacks);
void wr_callbacks_finish(wr_callbacks *callbacks);

/* Adds one with these functions, which may be NULL. False: there are WR_CALLBACK_MAX
 * already. */
bool wr_callbacks_add(wr_callbacks *callbacks,
                      const wr_function functions[WR_CALLBACK_FUNCTIONS], void *context);

/* Removes the first one with this context and, unless NULL, this first function, when it
 * runs on no other thread; a callback may remove itself. False: there is none. */
bool wr_callbacks_remove(wr_callbacks *callbacks, wr_function first, const void *context);

/* Calls `call` with a copy of the first callback whose number is above `after`, and marks
 * it running meanwhile. Returns its number; 0: there is none. */
typedef void (*wr_call)(void *argument, const wr_callback *callback);
uint64_t wr_callbacks_run_next(wr_callbacks *callbacks, uint64_t after, wr_call call,
                               void *argument);

#endif
