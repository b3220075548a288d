/* SPDX-License-Identifier: MIT */
/* One kernel per kind and dtype. Their ids are below those of expressions. */
#include "named.h"

#include "matmul.h"
#include "move.h"
#include "source.h"

#define DTYPES 5u
#define ID(kind, dtype) ((uint64_t)(kind)*16 + (dtype))

/* The last arguments: host_ready, host. */
#define KERNEL(a_kind, function, a_dtype, text, ready, form)                             \
    [a_dtype] = {.kind = WEIR_KERNEL_##a_kind,                                           \
                 .name = function "_" text,                                              \
                 .id = ID(WEIR_KERNEL_##a_kind, a_dtype),                                \
                 .dtype = (a_dtype),                                                     \
                 .host_ready = (ready),                                                  \
                 .host = (form),                                                         \
                 .source = wr_source_write}

#define MATMUL(name, number, text, bytes)                                                \
    KERNEL(MATMUL, "matmul", WEIR_DTYPE_##name, text, wr_matmul_ready, wr_matmul_run),
#define GATHER(name, number, text, bytes)                                                \
    KERNEL(GATHER, "gather", WEIR_DTYPE_##name, text, NULL, wr_move_gather),
#define SCATTER_ADD(name, number, text, bytes)                                           \
    KERNEL(SCATTER_ADD, "scatter_add", WEIR_DTYPE_##name, text, NULL,                    \
           wr_move_scatter_add),
#define PLACE(name, number, text, bytes)                                                 \
    KERNEL(PLACE, "place", WEIR_DTYPE_##name, text, NULL, wr_move_place),

static const weir_kernel matmuls[DTYPES] = {WEIR_DTYPE_LIST(MATMUL)};
static const weir_kernel gathers[DTYPES] = {WEIR_DTYPE_LIST(GATHER)};
static const weir_kernel scatter_adds[DTYPES] = {WEIR_DTYPE_LIST(SCATTER_ADD)};
static const weir_kernel places[DTYPES] = {WEIR_DTYPE_LIST(PLACE)};

const weir_kernel *wr_named_find(weir_kernel_kind kind, weir_dtype dtype)
{
    switch (kind) {
    case WEIR_KERNEL_MATMUL:
        return dtype <= WEIR_DTYPE_BF16 ? &matmuls[dtype] : NULL;
    case WEIR_KERNEL_GATHER:
        return &gathers[dtype];
    case WEIR_KERNEL_SCATTER_ADD:
        return dtype != WEIR_DTYPE_BOOL ? &scatter_adds[dtype] : NULL;
    case WEIR_KERNEL_PLACE:
        return &places[dtype];
    default:
        return NULL;
    }
}
