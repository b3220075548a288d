/* SPDX-License-Identifier: MIT */
/* Devices, errors and contexts of the fake, and what every call goes through: it is
 * counted, and fails if it was asked to. A context is that of a device. */
#define _GNU_SOURCE
#include "state.h"

#include <stdio.h>

#define DEEPEST 8

fake_control fake_control_block;
static int devices[FAKE_DEVICES]; /* their addresses are the contexts */

static _Thread_local wr_cu_context current[DEEPEST];
static _Thread_local int depth;

fake_control *fake_cuda_control(void)
{
    return &fake_control_block;
}

static wr_cu_context context_of(int device)
{
    return (wr_cu_context)(void *)&devices[device];
}

wr_cu_result fake_count(fake_entry entry)
{
    atomic_fetch_add(&fake_control_block.calls[entry], 1);
    uint64_t nth = atomic_load(&fake_control_block.fail_nth[entry]);
    if (nth > 0) {
        atomic_store(&fake_control_block.fail_nth[entry], nth - 1);
    }
    return nth == 1 ? (wr_cu_result)atomic_load(&fake_control_block.fail_with)
                    : WR_CU_SUCCESS;
}

/* The ordinal of the current device; -1: there is none. */
int fake_device(void)
{
    for (int i = 0; depth > 0 && i < FAKE_DEVICES; i++) {
        if (current[depth - 1] == context_of(i)) {
            return i;
        }
    }
    return -1;
}

wr_cu_result fake_enter(fake_entry entry)
{
    wr_cu_result asked = fake_count(entry);
    if (asked != WR_CU_SUCCESS) {
        return asked;
    }
    return fake_device() >= 0 ? WR_CU_SUCCESS : WR_CU_INVALID_CONTEXT;
}

/* ---- errors and devices ---- */

wr_cu_result cuGetErrorName(wr_cu_result error, const char **name)
{
    *name = error == WR_CU_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == WR_CU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                             : NULL;
    return *name != NULL ? WR_CU_SUCCESS : WR_CU_INVALID_VALUE;
}

wr_cu_result cuGetErrorString(wr_cu_result error, const char **text)
{
    *text = error == WR_CU_OUT_OF_MEMORY ? "out of memory" : "some failure";
    return WR_CU_SUCCESS;
}

wr_cu_result cuDeviceGetCount(int *count)
{
    ENTER(device_count);
    *count = FAKE_DEVICES;
    return WR_CU_SUCCESS;
}

wr_cu_result cuDeviceGet(wr_cu_device *device, int ordinal)
{
    ENTER(device_get);
    *device = ordinal;
    return ordinal >= 0 && ordinal < FAKE_DEVICES ? WR_CU_SUCCESS : WR_CU_INVALID_DEVICE;
}

wr_cu_result cuDeviceGetName(char *name, int bytes, wr_cu_device device)
{
    ENTER(device_name);
    snprintf(name, (size_t)bytes, "Fake GPU %d", device);
    return WR_CU_SUCCESS;
}

wr_cu_result cuDeviceGetUuid_v2(wr_cu_uuid *uuid, wr_cu_device device)
{
    ENTER(device_uuid);
    for (int i = 0; i < 16; i++) {
        uuid->bytes[i] = (unsigned char)(0xa0 + i + device);
    }
    return WR_CU_SUCCESS;
}

wr_cu_result cuDeviceGetAttribute(int *value, int attribute, wr_cu_device device)
{
    (void)device;
    ENTER(device_attribute);
    bool has_memory = !atomic_load(&fake_control_block.lacks_virtual_memory);
    int capability = atomic_load(&fake_control_block.capability);
    capability = capability != 0 ? capability : 90;
    *value = attribute == WR_CU_ATTRIBUTE_MULTIPROCESSORS    ? FAKE_MULTIPROCESSORS
             : attribute == WR_CU_ATTRIBUTE_CAPABILITY_MAJOR ? capability / 10
             : attribute == WR_CU_ATTRIBUTE_CAPABILITY_MINOR ? capability % 10
             : attribute == WR_CU_ATTRIBUTE_VIRTUAL_MEMORY   ? has_memory
             : attribute == WR_CU_ATTRIBUTE_HANDLE_FILE
                 ? has_memory && !atomic_load(&fake_control_block.lacks_sharing)
                 : 0;
    return WR_CU_SUCCESS;
}

wr_cu_result cuDevicePrimaryCtxRetain(wr_cu_context *context, wr_cu_device device)
{
    ENTER(context_retain);
    *context = context_of(device);
    atomic_fetch_add(&fake_control_block.contexts, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuDevicePrimaryCtxRelease_v2(wr_cu_device device)
{
    (void)device;
    ENTER(context_release);
    fake_sweep_exports();
    atomic_fetch_sub(&fake_control_block.contexts, 1);
    return WR_CU_SUCCESS;
}

wr_cu_result cuCtxPushCurrent_v2(wr_cu_context context)
{
    ENTER(context_push);
    if (depth == DEEPEST) {
        return WR_CU_INVALID_VALUE;
    }
    current[depth++] = context;
    return WR_CU_SUCCESS;
}

wr_cu_result cuCtxPopCurrent_v2(wr_cu_context *context)
{
    ENTER(context_pop);
    if (depth == 0) {
        return WR_CU_INVALID_CONTEXT;
    }
    *context = current[--depth];
    return WR_CU_SUCCESS;
}

/* Not used by the driver: what tests ask about the thread that called it. */
EXPORT wr_cu_result cuCtxGetCurrent(wr_cu_context *context);
wr_cu_result cuCtxGetCurrent(wr_cu_context *context)
{
    *context = depth > 0 ? current[depth - 1] : NULL;
    return WR_CU_SUCCESS;
}
