/* SPDX-License-Identifier: MIT */
#ifndef WR_BASE_TIME_H
#define WR_BASE_TIME_H

#include <stdint.h>

/* Milliseconds of a clock that never goes back. */
uint64_t wr_now_ms(void);

#endif
