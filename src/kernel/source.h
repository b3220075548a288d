/* SPDX-License-Identifier: MIT */
/* Expressions as source text for drivers that compile; weir/kernel.h says what they
 * expect of it. No state, no lock. */
#ifndef WR_KERNEL_SOURCE_H
#define WR_KERNEL_SOURCE_H

#include <weir/kernel.h>

/* A weir_kernel.source for expressions. */
weir_result wr_source_write(const weir_kernel *kernel, weir_language language,
                            weir_write_fn write, void *context);

/* The languages. */
weir_result wr_source_write_cuda(const weir_kernel *kernel, weir_write_fn write,
                                 void *context);
weir_result wr_source_write_wgsl(const weir_kernel *kernel, weir_write_fn write,
                                 void *context);

weir_result wr_source_write_wgsl_named(const weir_kernel *kernel, weir_write_fn write,
                                       void *context);

/* ---- for them: text to a sink ---- */

typedef struct wr_writer {
    weir_write_fn write;
    void *context;
    weir_result result; /* the first failure; nothing is written after it */
} wr_writer;

/* At most 1,023 bytes at once. */
void wr_writer_print(wr_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void wr_writer_put(wr_writer *writer, const char *text);

/* The functions that every shader in WGSL has, and those for elements smaller than a
 * word.
 */
void wr_source_write_wgsl_basics(wr_writer *writer, bool is_packed);

#endif
