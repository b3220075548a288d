/* SPDX-License-Identifier: MIT */
/* Filling host memory with patterns, and telling the address sanitizer, if the program
 * runs under it, which bytes nobody may touch. No state, no lock. */
#ifndef WR_BASE_POISON_H
#define WR_BASE_POISON_H

#include <stdbool.h>
#include <stdint.h>

#define WR_POISON_FREED UINT8_C(0xdb)  /* released bytes */
#define WR_POISON_CANARY UINT8_C(0xca) /* bytes behind a buffer */

/* Closes bytes to the program, or opens them again. */
void wr_poison_close(uint64_t address, uint64_t bytes);
void wr_poison_open(uint64_t address, uint64_t bytes);

/* Fills bytes with a pattern, closed or not. */
void wr_poison_fill(uint64_t address, uint64_t bytes, uint8_t pattern);

/* The first byte that is not of the pattern; `bytes` if all are. Closed or not. */
uint64_t wr_poison_find_damage(uint64_t address, uint64_t bytes, uint8_t pattern);

#endif
