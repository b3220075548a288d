/* SPDX-License-Identifier: MIT */
/* Results with reasons. The code says what, the per-thread last error says why. */
#ifndef WR_BASE_RESULT_H
#define WR_BASE_RESULT_H

#include <weir/base.h>

/* Returns from the enclosing function when the call fails; only while nothing is held. */
#define WR_TRY(call)                                                                     \
    do {                                                                                 \
        weir_result wr_try_result_ = (call);                                             \
        if (wr_try_result_ != WEIR_OK) {                                                 \
            return wr_try_result_;                                                       \
        }                                                                                \
    } while (0)

/* Sets the thread's last error and returns `result`. */
weir_result wr_error(weir_result result, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Appends to the thread's last error, for a layer that knows more. */
void wr_error_append(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* The last error's text as it stands, to be kept across calls that may overwrite it. */
#define WR_ERROR_BYTES 1024
void wr_error_save(char text[WR_ERROR_BYTES]);
void wr_error_restore(const char text[WR_ERROR_BYTES]);

#endif
