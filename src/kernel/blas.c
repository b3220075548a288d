/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "blas.h"

#include <weir/driver.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SONAME "libopenblas.so.0"
#define VARIABLE "WEIR_BLAS_LIBRARY"

/* Loading twice gives the same function, so there is no lock. */
static _Atomic(wr_blas_sgemm) sgemm;

static weir_result load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *text = dlerror();
        return weir_driver_error(WEIR_NOT_FOUND,
                                 "host: matrix products need OpenBLAS, and %s cannot be "
                                 "loaded (%s); install it (Debian: libopenblas0), or "
                                 "name the file in " VARIABLE,
                                 name, text != NULL ? text : "no reason given");
    }
    wr_blas_sgemm found;
    void *symbol = dlsym(library, "cblas_sgemm");
    if (symbol == NULL) {
        dlclose(library);
        return weir_driver_error(WEIR_NOT_FOUND, "host: %s has no cblas_sgemm", name);
    }
    memcpy(&found, &symbol, sizeof found);
    atomic_store_explicit(&sgemm, found, memory_order_release);
    return WEIR_OK;
}

weir_result wr_blas_load(void)
{
    if (wr_blas_get() != NULL) {
        return WEIR_OK;
    }
    const char *path = secure_getenv(VARIABLE);
    if (path == NULL || path[0] == '\0') {
        return load(SONAME);
    }
    return path[0] == '/'
               ? load(path)
               : weir_driver_error(WEIR_INVALID,
                                   "host: " VARIABLE
                                   " is \"%s\"; give an absolute path, or unset it",
                                   path);
}

wr_blas_sgemm wr_blas_get(void)
{
    return atomic_load_explicit(&sgemm, memory_order_acquire);
}
