/* SPDX-License-Identifier: MIT */
/* Philox4x32-10, the counter-based random generator of Salmon, Moraes, Dror and Shaw,
 * "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011): ten rounds of multiply and mix
 * turn a counter of four words and a key of two into four random words. There is no
 * state, so any part of a sequence can be made by any thread. */
#ifndef WR_KERNEL_PHILOX_H
#define WR_KERNEL_PHILOX_H

#include <stdint.h>

/* Counters worked on side by side; a fixed number, so that compilers use vector
 * registers. */
#define WR_PHILOX_LANES 16

/* words[w][lane] is word w of that lane's counter on entry, and its random word on
 * return. */
void wr_philox_mix(uint32_t words[4][WR_PHILOX_LANES], uint64_t key);

/* The random words of the counters first, first + 1, ... (their high words are zero). */
void wr_philox_fill(uint32_t words[4][WR_PHILOX_LANES], uint64_t first, uint64_t key);

#endif
