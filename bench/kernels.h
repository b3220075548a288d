/* SPDX-License-Identifier: MIT */
/* Kernels of bench_gpu as PTX, and the few entries of the CUDA driver that launch them;
 * libcuda is loaded at run time, in the device's primary context, as Weir's own is. */
#ifndef WEIR_BENCH_KERNELS_H
#define WEIR_BENCH_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* Loads all for the first device. False: `what` says what is missing. */
bool kernels_open(const char **what);

/* On the stream (CUstream): word i of `words` gets value ^ i * 2654435761. */
void kernels_fill(void *stream, uint64_t address, uint64_t words, uint32_t value);
/* The same words are compared, and differences counted in kernels_errors. */
void kernels_verify(void *stream, uint64_t address, uint64_t words, uint32_t value);
/* Waits for everything queued on the device. */
uint64_t kernels_errors(void);

/* Keeps a stream of its own at work for so long. */
void kernels_spin(uint64_t ns);
bool kernels_is_spinning(void);

#endif
