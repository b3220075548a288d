/* SPDX-License-Identifier: MIT */
/* Nodes that become one kernel: elementwise ones over the same space, in the order in
 * which they were recorded, and at most one reduction of theirs behind them.
 *
 *     a node joins if each operand is     a member's result, element by element, or
 *                                         in memory, in any view
 *     a reduction joins if nobody outside wants any of the members before it
 *
 * Building a group changes nothing but the nodes' marks; all under the queue's lock. */
#ifndef WR_TENSOR_GROUP_H
#define WR_TENSOR_GROUP_H

#include "node.h"

/* A load: what it reads, seen from the group's space. */
typedef struct wr_group_view {
    wr_storage *storage;
    wr_view view;
} wr_group_view;

typedef struct wr_group {
    weir_expression expression; /* without rank, layouts, bindings and outputs so far */
    weir_shape space;           /* a reduction's: what it keeps first, then the rest */
    uint32_t reduced_rank;
    wr_node *const *members;
    uint32_t member_count;
    wr_group_view views[WEIR_EXPRESSION_VIEWS];
    int32_t scalars[WEIR_EXPRESSION_SCALARS];
} wr_group;

/* Makes a group of as many of the nodes as fit, in order: at least one if its operands
 * are all there. `nodes` must stay while the group is used. */
void wr_group_fill(wr_group *group, wr_node *const *nodes, uint32_t count);

/* References on a member's result that are neither the queue's nor the members'. */
uint32_t wr_group_wanted(const wr_group *group, const wr_node *member);
/* References that the members hold on a storage as an operand. */
uint32_t wr_group_uses(const wr_group *group, const wr_storage *storage);

#endif
