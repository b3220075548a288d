/* SPDX-License-Identifier: MIT */
/* What the files of the tensor layer share. Failing functions set the thread's last
 * error. */
#ifndef WR_TENSOR_TENSOR_H
#define WR_TENSOR_TENSOR_H

#include <weir/kernel.h>
#include <weir/tensor.h>

#include <stdatomic.h>

struct weir_tensor {
    _Atomic uint64_t
        references;     /* clones are the same object; 1: its only owner may change it */
    weir_buffer buffer; /* holds one reference of it */
    weir_shape shape;   /* extents past the rank are zero */
    uint64_t element_count;
};

/* How many elements a shape has. INVALID if it has none, too many dimensions, or more
 * bytes than a number can say. `who` is the public function that was called, for the
 * error's text. */
weir_result wr_shape_count(const char *who, const weir_shape *shape,
                           uint64_t *element_count);

bool wr_shape_equals(const weir_shape *one, const weir_shape *other);

/* "[4096, 4096]" for error texts, cut if it does not fit; returns `text`. */
#define WR_SHAPE_TEXT_BYTES 200
char *wr_shape_format(const weir_shape *shape, char text[WR_SHAPE_TEXT_BYTES]);

/* A tensor with one reference, whose contents are still undefined. NULL arguments are
 * caught. */
weir_result wr_tensor_create(const char *who, weir_stream *stream,
                             const weir_shape *shape, weir_tensor **tensor);

/* The device address of a tensor that is about to be an operand on `stream`, which is
 * told so if the tensor lives on another one. */
weir_result wr_tensor_operand(const char *who, const weir_tensor *tensor,
                              weir_stream *stream, uint64_t *address);

/* A tensor to be filled by one launch of a kernel. */
typedef struct wr_compute {
    const char *who; /* the public function, for the error's text */
    weir_stream *stream;
    const weir_shape *shape;
    const weir_kernel *kernel;
    void *arguments; /* the kernel's struct; its first member, the output address, is set
                        here */
    size_t argument_bytes;
    weir_buffer operands[2]; /* what it reads; WEIR_NO_BUFFER where there is none */
} wr_compute;

/* Makes the tensor, launches, and hands it out; on failure nothing is left. */
weir_result wr_tensor_compute(const wr_compute *compute, weir_tensor **tensor);

#endif
