/* SPDX-License-Identifier: MIT */
#include "group.h"

#include <string.h>

/* ---- who wants what ---- */

uint32_t wr_group_uses(const wr_group *group, const wr_storage *storage)
{
    uint32_t uses = 0;
    for (uint32_t m = 0; m < group->member_count; m++) {
        const wr_node *member = group->members[m];
        for (uint32_t k = 0; k < member->operand_count; k++) {
            uses += member->operands[k].storage == storage;
        }
    }
    return uses;
}

uint32_t wr_group_wanted(const wr_group *group, const wr_node *member)
{
    uint32_t references =
        atomic_load_explicit(&member->storage->references, memory_order_acquire);
    return references - 1 - wr_group_uses(group, member->storage);
}

/* ---- steps ---- */

static uint8_t add_step(wr_group *group, weir_step step)
{
    weir_expression *expression = &group->expression;
    expression->steps[expression->step_count] = step;
    return expression->step_count++;
}

static bool views_are_equal(const wr_view *one, const wr_view *other)
{
    return one->offset == other->offset &&
           memcmp(one->strides, other->strides, sizeof one->strides) == 0;
}

/* The step that loads the operand; there may be one already. */
static uint8_t add_load(wr_group *group, const wr_operand *operand)
{
    weir_expression *expression = &group->expression;
    for (uint8_t s = 0; s < expression->step_count; s++) {
        const weir_step *step = &expression->steps[s];
        if (step->op == WEIR_OP_LOAD &&
            group->views[step->operand[0]].storage == operand->storage &&
            views_are_equal(&group->views[step->operand[0]].view, &operand->view)) {
            return s;
        }
    }
    uint8_t v = expression->view_count++;
    group->views[v] = (wr_group_view){operand->storage, operand->view};
    expression->views[v].dtype = (uint8_t)operand->storage->dtype;
    return add_step(group, (weir_step){.op = WEIR_OP_LOAD,
                                       .dtype = (uint8_t)operand->storage->dtype,
                                       .operand = {v}});
}

static uint8_t add_operand(wr_group *group, const wr_operand *operand)
{
    const wr_node *node = operand->storage->node;
    return node != NULL && node->is_member ? node->step : add_load(group, operand);
}

/* The first slot of a node's scalars. */
static uint8_t add_scalars(wr_group *group, const wr_node *node)
{
    uint8_t first = group->expression.scalar_count;
    for (uint32_t k = 0; k < node->scalar_count; k++) {
        group->scalars[group->expression.scalar_count++] = node->scalars[k];
    }
    return first;
}

/* Leaves name their scalars' slot; others have a scalar as their last operand. */
static void add_elementwise(wr_group *group, wr_node *node)
{
    weir_step step = {.op = (uint8_t)node->op, .dtype = (uint8_t)node->storage->dtype};
    for (uint32_t k = 0; k < node->operand_count; k++) {
        step.operand[k] = add_operand(group, &node->operands[k]);
    }
    if (node->operand_count == 0) {
        step.operand[0] = add_scalars(group, node);
    } else if (node->scalar_count > 0) {
        uint8_t beside = step.operand[node->operand_count - 1];
        uint8_t dtype = group->expression.steps[beside].dtype;
        step.operand[node->operand_count] =
            add_step(group, (weir_step){.op = WEIR_OP_SCALAR,
                                        .dtype = dtype,
                                        .operand = {add_scalars(group, node)}});
    }
    node->step = add_step(group, step);
}

/* ---- reductions ---- */

/* The dimensions that stay first, then those that go; both in their order. Returns how
 * many stay. */
static uint32_t order_axes(const wr_node *node, uint32_t order[WEIR_TENSOR_MAX_RANK])
{
    uint32_t used = 0;
    uint32_t kept = 0;
    for (uint32_t goes = 0; goes < 2; goes++) {
        for (uint32_t d = 0; d < node->space.rank; d++) {
            if ((node->reduced_axes >> d & 1) == goes) {
                order[used++] = d;
            }
        }
        kept = goes == 0 ? used : kept;
    }
    return kept;
}

static void add_reduction(wr_group *group, wr_node *node)
{
    uint32_t order[WEIR_TENSOR_MAX_RANK] = {0};
    node->step = add_operand(group, &node->operands[0]);
    uint32_t kept = order_axes(node, order);
    group->reduced_rank = node->space.rank - kept;
    group->expression.reduce = (uint8_t)node->reduce;
    for (uint32_t d = 0; d < node->space.rank; d++) {
        group->space.extent[d] = node->space.extent[order[d]];
    }
    for (uint32_t v = 0; v < group->expression.view_count; v++) {
        wr_view before = group->views[v].view;
        for (uint32_t d = 0; d < node->space.rank; d++) {
            group->views[v].view.strides[d] = before.strides[order[d]];
        }
    }
}

/* ---- joining ---- */

static bool has_room(const wr_group *group, const wr_node *node)
{
    const weir_expression *expression = &group->expression;
    uint32_t steps = node->operand_count + node->scalar_count + 1;
    return expression->step_count + steps <= WEIR_EXPRESSION_STEPS &&
           expression->view_count + node->operand_count <= WEIR_EXPRESSION_VIEWS &&
           expression->scalar_count + node->scalar_count <= WEIR_EXPRESSION_SCALARS;
}

/* In memory, or a member's value, element by element. */
static bool is_at_hand(const wr_operand *operand)
{
    const wr_node *node = operand->storage->node;
    if (wr_storage_state_of(operand->storage) != WR_STORAGE_STATE_PENDING) {
        return wr_storage_state_of(operand->storage) == WR_STORAGE_STATE_READY;
    }
    return node != NULL && node->is_member && wr_view_is_plain(&operand->view) &&
           wr_shape_elements(&operand->view.shape) == operand->storage->element_count;
}

/* With the reduction counted as a member. */
static bool is_anything_wanted(const wr_group *group, const wr_node *reduction)
{
    for (uint32_t m = 0; m < group->member_count; m++) {
        const wr_node *member = group->members[m];
        uint32_t own = member->storage == reduction->operands[0].storage;
        if (wr_group_wanted(group, member) > own) {
            return true;
        }
    }
    return false;
}

static bool may_join(const wr_group *group, const wr_node *node)
{
    bool joins =
        node->named == NULL && group->expression.reduce == WEIR_REDUCE_NONE &&
        has_room(group, node) &&
        (group->member_count == 0 || wr_shape_equals(&group->space, &node->space));
    for (uint32_t k = 0; joins && k < node->operand_count; k++) {
        joins = is_at_hand(&node->operands[k]);
    }
    return joins &&
           (node->reduce == WEIR_REDUCE_NONE || !is_anything_wanted(group, node));
}

void wr_group_fill(wr_group *group, wr_node *const *nodes, uint32_t count)
{
    memset(group, 0, sizeof *group);
    group->members = nodes;
    while (group->member_count < count && may_join(group, nodes[group->member_count])) {
        wr_node *node = nodes[group->member_count];
        group->space = node->space;
        if (node->reduce == WEIR_REDUCE_NONE) {
            add_elementwise(group, node);
        } else {
            add_reduction(group, node);
        }
        node->is_member = true;
        group->member_count++;
    }
    for (uint32_t m = 0; m < group->member_count; m++) {
        nodes[m]->is_member = false;
    }
}
