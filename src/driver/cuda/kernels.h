/* SPDX-License-Identifier: MIT */
/* Kernels that have been compiled for a device, found by id. They stay until it is
 * closed.
 *
 * Looking takes no lock: chains only grow, at their heads. `making` is held while one is
 * compiled and loaded, which may take a second; launches of others go on meanwhile. */
#ifndef WR_DRIVER_CUDA_KERNELS_H
#define WR_DRIVER_CUDA_KERNELS_H

#include "api.h"
#include "cublas.h"
#include "nvrtc.h"

#include <weir/kernel.h>

#include <pthread.h>
#include <stdatomic.h>

#define WR_CUDA_CHAINS 256

typedef struct wr_cuda_kernel {
    uint64_t id;
    wr_cu_module module;
    wr_cu_function function;
    wr_cu_function end; /* of a reduction; else NULL */
    struct wr_cuda_kernel *next;
} wr_cuda_kernel;

typedef struct wr_cuda_kernels {
    int capability; /* 90 is 9.0; constant after open */
    uint32_t multiprocessors;
    wr_cuda_kernel *_Atomic chains[WR_CUDA_CHAINS];
    pthread_mutex_t making; /* guards all below */
    uint64_t count;
    wr_cublas cublas; /* has a mutex of its own */
    wr_nvrtc nvrtc;
} wr_cuda_kernels;

struct wr_cuda;

/* Reads what the device is. */
weir_result wr_cuda_kernels_init(struct wr_cuda *cuda);
/* Unloads them all; inside enter and leave, with no work queued. */
void wr_cuda_kernels_finish(struct wr_cuda *cuda);

/* ---- entries of the table ---- */
weir_result wr_cuda_launch(weir_driver *driver, weir_driver_stream stream,
                           const weir_launch *launch);
uint64_t wr_cuda_workspace(weir_driver *driver, const weir_launch *launch);

#endif
