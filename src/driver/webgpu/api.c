/* SPDX-License-Identifier: MIT */
/* Loading a WebGPU library. No state, no lock. */
#define _GNU_SOURCE
#include "api.h"

#include "base/result.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "WEIR_WEBGPU_LIBRARY"

/* What the libraries are called where they are installed for all programs. */
static const char *const sonames[] = {"libwebgpu_dawn.so", "libwgpu_native.so"};

static weir_result open_named(const char *path, void **library)
{
    if (path[0] != '/') {
        return wr_error(WEIR_INVALID,
                        "webgpu: " VARIABLE " is \"%s\"; give an absolute path, or "
                        "unset it",
                        path);
    }
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*library == NULL) {
        const char *text = dlerror();
        return wr_error(WEIR_NOT_FOUND,
                        "webgpu: the library of " VARIABLE " cannot be loaded: %s",
                        text != NULL ? text : "no reason given");
    }
    return WEIR_OK;
}

static weir_result open_library(void **library)
{
    const char *path = secure_getenv(VARIABLE);
    if (path != NULL && path[0] != '\0') {
        return open_named(path, library);
    }
    for (size_t i = 0; i < sizeof sonames / sizeof *sonames; i++) {
        *library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
        if (*library != NULL) {
            return WEIR_OK;
        }
    }
    return wr_error(WEIR_NOT_FOUND,
                    "webgpu: neither %s nor %s found; name a WebGPU "
                    "library in " VARIABLE ", or use --device host",
                    sonames[0], sonames[1]);
}

/* The callbacks that are passed by value came with it; older libraries have the other
 * names, but take other parameters. */
#define ABI_MARK "wgpuSupportedFeaturesFreeMembers"

typedef struct wr_wg_entry {
    const char *symbol;
    size_t offset;
    bool is_optional;
} wr_wg_entry;

static weir_result refuse(const char *symbol)
{
    return wr_error(
        WEIR_UNSUPPORTED,
        "webgpu: the library has no %s; Weir needs one for webgpu.h 1.0: Dawn "
        "since June 2025, or wgpu-native 24 or later",
        symbol);
}

static weir_result find_entries(wr_wg_api *api, void *library)
{
    static const wr_wg_entry entries[] = {
#define ENTRY(name, symbol, result, parameters)                                          \
    {#symbol, offsetof(wr_wg_api, name), false},
#define OPTIONAL(name, symbol, result, parameters)                                       \
    {#symbol, offsetof(wr_wg_api, name), true},
        WR_WG_LIST(ENTRY) WR_WG_OPTIONAL_LIST(OPTIONAL)
#undef ENTRY
#undef OPTIONAL
    };
    if (dlsym(library, ABI_MARK) == NULL) {
        return refuse(ABI_MARK);
    }
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *found = dlsym(library, entries[i].symbol);
        if (found == NULL && !entries[i].is_optional) {
            return refuse(entries[i].symbol);
        }
        memcpy((char *)api + entries[i].offset, &found, sizeof found);
    }
    return WEIR_OK;
}

weir_result wr_wg_load(wr_wg_api *api)
{
    void *library = NULL;
    WR_TRY(open_library(&library));
    weir_result result = find_entries(api, library);
    if (result != WEIR_OK) {
        dlclose(library);
    }
    return result;
}

int wr_wg_length(wr_wg_text text)
{
    size_t length = text.data == NULL         ? 0
                    : text.length == SIZE_MAX ? strlen(text.data)
                                              : text.length;
    return length < INT_MAX ? (int)length : INT_MAX;
}
