/* SPDX-License-Identifier: MIT */
/* Forked children for tests. A child reports by its exit status: 0, or the line of the
 * expectation that did not hold, modulo 251 and never 0. */
#ifndef TESTS_CORE_CHILD_H
#define TESTS_CORE_CHILD_H

#include <stdlib.h>
#include <unistd.h>

#define CHILD_SECONDS 30

#define child_expect(condition)                                                          \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            _exit(__LINE__ % 251 + 1);                                                   \
        }                                                                                \
    } while (0)

/* Runs `body` in a forked child, which then ends by exit(); asserts that it ended with 0.
 * One that hangs is ended by a signal. */
void run_child(void (*body)(void *context), void *context);

#endif
