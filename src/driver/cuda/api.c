/* SPDX-License-Identifier: MIT */
/* Loading libcuda, and what its results mean. No state, no lock. */
#define _GNU_SOURCE
#include "api.h"

#include "base/result.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- loading ---- */

/* Absent, rather than there and broken: the loader names it first in its text. */
static bool is_absent(const char *name, const char *text)
{
    size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == ':' &&
           strstr(text, "No such file") != NULL;
}

void *wr_cu_open_library(const char *variable, const char *soname, weir_result *result)
{
    const char *path = secure_getenv(variable);
    const char *name = path != NULL && path[0] != '\0' ? path : soname;
    if (name == path && path[0] != '/') {
        *result = wr_error(WEIR_INVALID,
                           "cuda: %s is \"%s\"; give an absolute path, or unset it",
                           variable, path);
        return NULL;
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *text = dlerror();
        text = text != NULL ? text : "no reason given";
        *result =
            is_absent(name, text)
                ? wr_error(WEIR_NOT_FOUND,
                           "cuda: %s not found; install the NVIDIA driver, or use "
                           "--device host",
                           name)
                : wr_error(WEIR_NOT_FOUND, "cuda: %s cannot be loaded: %s", name, text);
    }
    return library;
}

static weir_result find_entries(wr_cu_api *api, void *library)
{
    static const struct {
        const char *symbol;
        int since; /* CUDA_VERSION */
        size_t offset;
    } entries[] = {
#define ENTRY(name, symbol, since, parameters)                                           \
    {#symbol, since, offsetof(wr_cu_api, name)},
        WR_CU_LIST(ENTRY)
#undef ENTRY
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *found = dlsym(library, entries[i].symbol);
        if (found == NULL) {
            return wr_error(WEIR_UNSUPPORTED,
                            "cuda: the NVIDIA driver has no %s, which came with CUDA "
                            "%d.%d; install one for CUDA 11.4 or later",
                            entries[i].symbol, entries[i].since / 1000,
                            entries[i].since % 1000 / 10);
        }
        memcpy((char *)api + entries[i].offset, &found, sizeof found);
    }
    return WEIR_OK;
}

weir_result wr_cu_load(wr_cu_api *api)
{
    weir_result result = WEIR_NOT_FOUND;
    void *library = wr_cu_open_library("WEIR_CUDA_LIBRARY", "libcuda.so.1", &result);
    if (library == NULL) {
        return result;
    }
    result = find_entries(api, library);
    if (result != WEIR_OK) {
        dlclose(library);
        return result;
    }
    wr_cu_result status = api->init(0);
    if (status == WR_CU_NO_DEVICE) {
        return wr_error(WEIR_NOT_FOUND,
                        "cuda: the NVIDIA driver finds no GPU; see nvidia-smi and "
                        "CUDA_VISIBLE_DEVICES, or use --device host");
    }
    return wr_cu_failed(api, status, "open", "cuInit");
}

/* ---- results ---- */

/* Sticky errors, after which every call on the context fails, and the driver's end. */
static bool is_loss(wr_cu_result result)
{
    switch (result) {
    case WR_CU_DEINITIALIZED:
    case WR_CU_ECC_UNCORRECTABLE:
    case WR_CU_NVLINK_UNCORRECTABLE:
    case WR_CU_CONTAINED:
    case WR_CU_ILLEGAL_ADDRESS:
    case WR_CU_LAUNCH_TIMEOUT:
    case WR_CU_CONTEXT_IS_DESTROYED:
    case WR_CU_ASSERT:
    case WR_CU_HARDWARE_STACK_ERROR:
    case WR_CU_ILLEGAL_INSTRUCTION:
    case WR_CU_MISALIGNED_ADDRESS:
    case WR_CU_INVALID_ADDRESS_SPACE:
    case WR_CU_INVALID_PC:
    case WR_CU_LAUNCH_FAILED:
    case WR_CU_TENSOR_MEMORY_LEAK:
    case WR_CU_MPS_CLIENT_TERMINATED:
    case WR_CU_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

static weir_result meaning(wr_cu_result result)
{
    if (is_loss(result)) {
        return WEIR_DEVICE_LOST;
    }
    switch (result) {
    case WR_CU_SUCCESS:
        return WEIR_OK;
    case WR_CU_NOT_READY:
        return WEIR_NOT_READY;
    case WR_CU_OUT_OF_MEMORY:
        return WEIR_OUT_OF_MEMORY;
    case WR_CU_NO_DEVICE:
    case WR_CU_INVALID_DEVICE:
        return WEIR_NOT_FOUND;
    case WR_CU_NOT_SUPPORTED:
        return WEIR_UNSUPPORTED;
    default:
        return WEIR_DRIVER;
    }
}

weir_result wr_cu_failed(const wr_cu_api *api, wr_cu_result result, const char *what,
                         const char *call)
{
    weir_result mine = meaning(result);
    if (mine == WEIR_OK || mine == WEIR_NOT_READY) {
        return mine;
    }
    const char *name = NULL;
    const char *text = NULL;
    (void)api->error_name(result, &name);
    (void)api->error_text(result, &text);
    return wr_error(mine, "cuda: %s: %s says %s (%d): %s", what, call,
                    name != NULL ? name : "an error without a name", (int)result,
                    text != NULL ? text : "no text");
}
