/* SPDX-License-Identifier: MIT */
/* The door between Weir and a driver that may be gone: a driver that stands before
 * another one and hands every call on, until one of them returns DEVICE_LOST. From then
 * on the device is lost for good and nothing but close() is handed on. What gives back,
 * forgets, tests or waits answers DEVICE_LOST quietly, and callers take that for done;
 * what takes, runs or copies answers DEVICE_LOST with a text.
 *
 * No lock: `lost_in` changes once, from NULL. */
#ifndef WR_DRIVER_LOSS_H
#define WR_DRIVER_LOSS_H

#include <weir/driver.h>

#include <stdatomic.h>

typedef struct wr_loss {
    weir_driver base;        /* first: what callers hold */
    weir_driver_table table; /* entries that the real driver lacks are NULL here too */
    const weir_driver_table *real_table;
    weir_driver *real;
    const char *_Atomic lost_in; /* the call that found the device gone, or NULL */
    _Atomic uint64_t last_ms;    /* of the driver's clock */
    bool checked;                /* pages that go are opened to the program, see
                                    base/poison.h; constant */
} wr_loss;

/* Opens the driver behind the door. */
weir_result wr_loss_open(wr_loss *loss, const weir_driver_table *table,
                         const char *argument, const void *config);

static inline bool wr_loss_is_lost(const wr_loss *loss)
{
    return atomic_load_explicit(&loss->lost_in, memory_order_relaxed) != NULL;
}

/* DEVICE_LOST, with a text, if the device is lost. */
weir_result wr_loss_check(const wr_loss *loss);

#endif
