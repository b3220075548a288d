/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "library.h"

#include "base/result.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The name that says most in an error: the last one tried leaves the loader's text. */
static void *open_any(const wr_cuda_library *which, const char *path, const char **name)
{
    void *library = NULL;
    if (path != NULL) {
        *name = path;
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; library == NULL && which->names[i] != NULL; i++) {
        library = dlopen(which->names[i], RTLD_NOW | RTLD_LOCAL);
        *name = which->names[0];
    }
    return library;
}

static weir_result not_loaded(const wr_cuda_library *which, const char *name)
{
    const char *text = dlerror();
    return wr_error(WEIR_UNSUPPORTED,
                    "cuda: %s cannot be loaded (%s); %s, or set %s to its path", name,
                    text != NULL ? text : "no reason given", which->what_to_do,
                    which->variable);
}

weir_result wr_cuda_library_load(const wr_cuda_library *which,
                                 const wr_cuda_symbol *symbols, size_t count)
{
    const char *path = secure_getenv(which->variable);
    const char *name = NULL;
    path = path != NULL && path[0] != '\0' ? path : NULL;
    if (path != NULL && path[0] != '/') {
        return wr_error(WEIR_INVALID,
                        "cuda: %s is \"%s\"; give an absolute path, or unset it",
                        which->variable, path);
    }
    void *library = open_any(which, path, &name);
    if (library == NULL) {
        return not_loaded(which, name);
    }
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            dlclose(library);
            return wr_error(WEIR_UNSUPPORTED, "cuda: %s has no %s; %s", name,
                            symbols[i].name, which->what_to_do);
        }
        memcpy(symbols[i].place, &found, sizeof found);
    }
    return WEIR_OK;
}
