/* SPDX-License-Identifier: MIT */
#ifndef WR_TENSOR_ERROR_H
#define WR_TENSOR_ERROR_H

#include <weir/driver.h>

/* Returns from the enclosing function when the call fails; only while nothing is held. */
#define WR_TRY(call)                                                                     \
    do {                                                                                 \
        weir_result wr_try_result_ = (call);                                             \
        if (wr_try_result_ != WEIR_OK) {                                                 \
            return wr_try_result_;                                                       \
        }                                                                                \
    } while (0)

/* Sets the thread's last error and returns `result`. */
#define wr_fail weir_driver_error

/* Failures for want of memory, after which trying again makes sense. */
static inline bool wr_is_shortage(weir_result result)
{
    return result == WEIR_OUT_OF_MEMORY || result == WEIR_LIMIT ||
           result == WEIR_OUT_OF_HOST_MEMORY;
}

#endif
