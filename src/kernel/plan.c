/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include "dtype.h"
#include "operation.h"

#include <string.h>

/* Steps that read each step last; outputs are stored when all steps are done. */
static void find_last_uses(const weir_expression *expression,
                           uint8_t last[WEIR_EXPRESSION_STEPS])
{
    for (uint8_t s = 0; s < expression->step_count; s++) {
        const weir_step *step = &expression->steps[s];
        last[s] = s;
        for (uint32_t k = 0; k < wr_operation_arity(step->op); k++) {
            last[step->operand[k]] = s;
        }
    }
    for (uint8_t k = 0; k < expression->output_count; k++) {
        last[expression->outputs[k].step] = UINT8_MAX;
    }
}

/* A last step may be made in its output: nothing reads the operands' memory after it. */
static bool is_made_in_output(const weir_expression *expression, uint8_t s)
{
    const weir_output *only = &expression->outputs[0];
    return expression->output_count == 1 && expression->reduce == WEIR_REDUCE_NONE &&
           only->step == s && s + 1 == expression->step_count &&
           wr_operation_arity(expression->steps[s].op) > 0 &&
           only->dtype == expression->steps[s].dtype && wr_dtype_is_value(only->dtype);
}

static wr_step_place place_of(const weir_expression *expression, uint8_t s)
{
    const weir_step *step = &expression->steps[s];
    if (step->op == WEIR_OP_SCALAR) {
        return WR_STEP_PLACE_CONSTANT;
    }
    if (step->op == WEIR_OP_LOAD) {
        const weir_view *view = &expression->views[step->operand[0]];
        return view->layout == WEIR_VIEW_SCALAR ? WR_STEP_PLACE_CONSTANT
               : view->layout == WEIR_VIEW_LINEAR && wr_dtype_is_value(view->dtype)
                   ? WR_STEP_PLACE_MEMORY
                   : WR_STEP_PLACE_TILE;
    }
    return is_made_in_output(expression, s) ? WR_STEP_PLACE_OUTPUT : WR_STEP_PLACE_TILE;
}

void wr_plan_make(const weir_expression *expression, wr_plan *plan)
{
    uint8_t last[WEIR_EXPRESSION_STEPS] = {0};
    uint8_t busy_until[WEIR_EXPRESSION_STEPS] = {0}; /* per tile; 0: never used */
    memset(plan, 0, sizeof *plan);
    find_last_uses(expression, last);
    for (uint8_t s = 0; s < expression->step_count; s++) {
        plan->place[s] = (uint8_t)place_of(expression, s);
        bool is_constant = plan->place[s] == WR_STEP_PLACE_CONSTANT;
        plan->made_count += plan->place[s] == WR_STEP_PLACE_TILE ||
                            plan->place[s] == WR_STEP_PLACE_OUTPUT;
        if (!is_constant && plan->place[s] != WR_STEP_PLACE_TILE) {
            continue;
        }
        /* A constant's tile must never have been another's: tiles come round again. */
        uint32_t tile = is_constant ? plan->tile_count : 0;
        while (tile < plan->tile_count && busy_until[tile] >= s) {
            tile++;
        }
        plan->tile_count = tile < plan->tile_count ? plan->tile_count : tile + 1;
        plan->tile[s] = (uint8_t)tile;
        busy_until[tile] = is_constant ? UINT8_MAX : last[s];
    }
}
