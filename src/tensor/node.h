/* SPDX-License-Identifier: MIT */
/* One recorded operation. Belongs to its queue, and is guarded by its lock. */
#ifndef WR_TENSOR_NODE_H
#define WR_TENSOR_NODE_H

#include "named.h"
#include "storage.h"
#include "view.h"

#define WR_NODE_OPERANDS 3
#define WR_NODE_SCALARS 4

/* One reference on the storage; the view has the node's space as its shape. */
typedef struct wr_operand {
    wr_storage *storage;
    wr_view view;
} wr_operand;

struct wr_node {
    wr_storage *storage; /* of the result; one reference */
    wr_named *named;     /* the node's own; NULL: `op` or `reduce` says what it does */
    weir_op op;          /* unused by a reduction */
    weir_reduce reduce;
    uint32_t reduced_axes; /* a bit for each dimension of the space */
    weir_shape space;      /* the result's shape; of a reduction, its operand's; named
                              nodes need none, their words say it all */
    uint32_t operand_count;
    uint32_t scalar_count;
    wr_operand operands[WR_NODE_OPERANDS];
    int32_t scalars[WR_NODE_SCALARS]; /* bits; a last operand, or what the leaf takes */
    char tag[WR_TAG_BYTES];           /* that of the thread that recorded it */
    bool is_needed;                   /* by the drain that is under way */
    bool is_member;                   /* of the group that is being built... */
    uint8_t step;                     /* ...where its value is this step */
};

/* Gives its references back, its result's too. NULL is a no-op. */
void wr_node_destroy(wr_node *node);

#endif
