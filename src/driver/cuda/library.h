/* SPDX-License-Identifier: MIT */
/* Vendors' libraries, loaded at run time: by the absolute path in an environment
 * variable, or by the names under which the system's loader may know them. None is ever
 * unloaded: they have threads and caches of their own. */
#ifndef WR_DRIVER_CUDA_LIBRARY_H
#define WR_DRIVER_CUDA_LIBRARY_H

#include <weir/base.h>

typedef struct wr_cuda_library {
    const char *variable;
    const char *names[8]; /* in order of preference; NULL ends them */
    const char *what_to_do /* "install ..." */;
} wr_cuda_library;

/* An entry point: its symbol, and where its address goes. */
typedef struct wr_cuda_symbol {
    const char *name;
    void *place; /* of a function pointer */
} wr_cuda_symbol;

/* Loads it and finds all symbols. UNSUPPORTED, with a text that says what is missing and
 * what to do; INVALID for a relative path. */
weir_result wr_cuda_library_load(const wr_cuda_library *which,
                                 const wr_cuda_symbol *symbols, size_t count);

#endif
