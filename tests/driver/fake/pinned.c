/* SPDX-License-Identifier: MIT */
/* Pinned host memory of the fake libcuda: not the device's, so it counts for itself. A
 * page before each piece keeps its size. */
#define _GNU_SOURCE
#include "state.h"

#include <string.h>
#include <sys/mman.h>

#define HEAD_BYTES 4096

wr_cu_result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    wr_cu_result asked = fake_enter(FAKE_host_alloc);
    if (asked != WR_CU_SUCCESS) {
        return asked;
    }
    if (bytes == 0 || flags != WR_CU_HOST_PORTABLE) {
        return WR_CU_INVALID_VALUE;
    }
    void *made = mmap(NULL, bytes + HEAD_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) {
        return WR_CU_OUT_OF_MEMORY;
    }
    memcpy(made, &bytes, sizeof bytes);
    *memory = (char *)made + HEAD_BYTES;
    atomic_fetch_add(&fake_cuda_control()->host_pages, 1);
    atomic_fetch_add(&fake_cuda_control()->host_bytes, (int64_t)bytes);
    return WR_CU_SUCCESS;
}

wr_cu_result cuMemFreeHost(void *memory)
{
    wr_cu_result asked = fake_enter(FAKE_host_free);
    if (asked != WR_CU_SUCCESS) {
        return asked;
    }
    char *made = (char *)memory - HEAD_BYTES;
    size_t bytes;
    memcpy(&bytes, made, sizeof bytes);
    atomic_fetch_sub(&fake_cuda_control()->host_pages, 1);
    atomic_fetch_sub(&fake_cuda_control()->host_bytes, (int64_t)bytes);
    return munmap(made, bytes + HEAD_BYTES) == 0 ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}
