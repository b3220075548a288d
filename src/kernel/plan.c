/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include "chain.h"
#include "dtype.h"
#include "operation.h"

#include <string.h>

/* What is known of each step while the plan is made. */
typedef struct facts {
    uint32_t uses; /* by steps, as outputs */
    uint8_t end;   /* the step at which it is made: its own, or its chain's last */
    uint8_t last;  /* the last step to read it; UINT8_MAX: when all are done */
} facts;

static weir_dtype operand_dtype(const weir_expression *expression, const weir_step *step)
{
    return expression->steps[step->operand[0]].dtype;
}

static bool is_constant(const weir_expression *expression, uint8_t s)
{
    const weir_step *step = &expression->steps[s];
    return step->op == WEIR_OP_SCALAR ||
           (step->op == WEIR_OP_LOAD &&
            expression->views[step->operand[0]].layout == WEIR_VIEW_SCALAR);
}

static bool is_strided(const weir_expression *expression, uint8_t s)
{
    const weir_step *step = &expression->steps[s];
    return step->op == WEIR_OP_LOAD &&
           expression->views[step->operand[0]].layout == WEIR_VIEW_STRIDED;
}

static void count_uses(const weir_expression *expression, facts *known)
{
    for (uint8_t s = 0; s < expression->step_count; s++) {
        const weir_step *step = &expression->steps[s];
        for (uint32_t k = 0; k < wr_operation_arity(step->op); k++) {
            known[step->operand[k]].uses++;
        }
    }
    for (uint8_t k = 0; k < expression->output_count; k++) {
        known[expression->outputs[k].step].uses++;
    }
}

/* ---- chains ---- */

/* Where a link's chain may come from, the higher the better: 0 is nowhere. */
static uint32_t rate_operand(const weir_expression *expression, const facts *known,
                             const wr_plan *plan, uint8_t operand)
{
    return is_constant(expression, operand)                         ? 0
           : is_strided(expression, operand)                        ? 1
           : plan->carries[operand] == 0 || known[operand].uses > 1 ? 2
                                                                    : 3;
}

/* A step that nobody else uses goes on in registers. */
static void find_chains(const weir_expression *expression, const facts *known,
                        wr_plan *plan)
{
    for (uint8_t s = 0; s < expression->step_count; s++) {
        const weir_step *step = &expression->steps[s];
        uint8_t arity = (uint8_t)wr_operation_arity(step->op);
        if (arity == 0 || !wr_chain_takes(step->op, operand_dtype(expression, step))) {
            continue;
        }
        uint32_t best = 0;
        for (uint8_t k = 0; k < arity; k++) {
            uint32_t rate = rate_operand(expression, known, plan, step->operand[k]);
            plan->carries[s] = rate > best ? k + 1 : plan->carries[s];
            best = rate > best ? rate : best;
        }
        if (best == 3) {
            plan->place[step->operand[plan->carries[s] - 1]] = WR_STEP_PLACE_CHAIN;
        }
    }
}

/* Chains are made when they are complete. */
static void find_ends(const weir_expression *expression, const wr_plan *plan,
                      facts *known)
{
    for (uint8_t s = 0; s < expression->step_count; s++) {
        known[s].end = s;
        known[s].last = s;
    }
    for (uint8_t s = expression->step_count; s-- > 0;) {
        const weir_step *step = &expression->steps[s];
        uint8_t from = plan->carries[s] != 0 ? step->operand[plan->carries[s] - 1] : s;
        if (plan->place[from] == WR_STEP_PLACE_CHAIN) {
            known[from].end = known[s].end;
        }
        for (uint32_t k = 0; k < wr_operation_arity(step->op); k++) {
            facts *operand = &known[step->operand[k]];
            operand->last = operand->last > known[s].end ? operand->last : known[s].end;
        }
    }
    for (uint8_t k = 0; k < expression->output_count; k++) {
        known[expression->outputs[k].step].last = UINT8_MAX;
    }
}

/* ---- places ---- */

/* Whether no step after `s` reads what is in the output's memory before. */
static bool is_read_no_more(const weir_expression *expression, const facts *known,
                            const weir_output *output, uint8_t s)
{
    for (uint8_t l = 0; l < expression->step_count; l++) {
        const weir_step *step = &expression->steps[l];
        if (step->op == WEIR_OP_LOAD &&
            expression->views[step->operand[0]].binding == output->binding &&
            (l > s || known[l].last > s)) {
            return false;
        }
    }
    return true;
}

/* The output in whose memory a step may be made, or as many as there are. */
static uint8_t find_output(const weir_expression *expression, const facts *known,
                           uint8_t s)
{
    uint8_t found = expression->output_count;
    weir_op op = expression->steps[s].op;
    if (expression->reduce != WEIR_REDUCE_NONE || op == WEIR_OP_LOAD ||
        op == WEIR_OP_SCALAR) {
        return found;
    }
    for (uint8_t k = 0; k < expression->output_count; k++) {
        const weir_output *output = &expression->outputs[k];
        if (output->step == s) {
            bool fits = found == expression->output_count &&
                        output->dtype == expression->steps[s].dtype &&
                        wr_dtype_is_value(output->dtype) &&
                        is_read_no_more(expression, known, output, s);
            if (!fits) {
                return expression->output_count;
            }
            found = k;
        }
    }
    return found;
}

static wr_step_place place_of(const weir_expression *expression, const facts *known,
                              uint8_t s, wr_plan *plan)
{
    const weir_step *step = &expression->steps[s];
    if (is_constant(expression, s)) {
        return WR_STEP_PLACE_CONSTANT;
    }
    if (step->op == WEIR_OP_LOAD) {
        const weir_view *view = &expression->views[step->operand[0]];
        return view->layout == WEIR_VIEW_LINEAR && wr_dtype_is_value(view->dtype)
                   ? WR_STEP_PLACE_MEMORY
                   : WR_STEP_PLACE_TILE;
    }
    plan->output[s] = find_output(expression, known, s);
    return plan->output[s] < expression->output_count ? WR_STEP_PLACE_OUTPUT
                                                      : WR_STEP_PLACE_TILE;
}

/* Where the values come from of the chain that ends at step `s`. */
static uint8_t first_operand(const weir_expression *expression, const wr_plan *plan,
                             uint8_t s)
{
    do {
        s = expression->steps[s].operand[plan->carries[s] - 1];
    } while (plan->place[s] == WR_STEP_PLACE_CHAIN);
    return s;
}

void wr_plan_make(const weir_expression *expression, wr_plan *plan)
{
    facts known[WEIR_EXPRESSION_STEPS] = {{0}};
    uint8_t busy_until[WEIR_EXPRESSION_STEPS] = {0}; /* per tile; 0: never used */
    memset(plan, 0, sizeof *plan);
    uint32_t made_count = 0;
    count_uses(expression, known);
    find_chains(expression, known, plan);
    find_ends(expression, plan, known);
    for (uint8_t s = 0; s < expression->step_count; s++) {
        if (plan->place[s] == WR_STEP_PLACE_CHAIN) {
            continue;
        }
        plan->place[s] = (uint8_t)place_of(expression, known, s, plan);
        bool stays = plan->place[s] == WR_STEP_PLACE_CONSTANT;
        bool is_made = !stays && plan->place[s] != WR_STEP_PLACE_MEMORY;
        plan->loop_count +=
            is_made && plan->carries[s] == 0 && expression->steps[s].op != WEIR_OP_LOAD;
        plan->has_strided |= is_strided(expression, s);
        made_count += is_made && !(is_strided(expression, s) &&
                                   wr_dtype_is_value(expression->steps[s].dtype));
        if (!stays && plan->place[s] != WR_STEP_PLACE_TILE) {
            continue;
        }
        /* A constant's tile must never have been another's: tiles come round again. */
        uint32_t tile = stays ? plan->tile_count : 0;
        while (tile < plan->tile_count && busy_until[tile] >= s) {
            tile++;
        }
        plan->tile_count = tile < plan->tile_count ? plan->tile_count : tile + 1;
        plan->tile[s] = (uint8_t)tile;
        busy_until[tile] = stays ? UINT8_MAX : known[s].last;
    }
    uint8_t last = (uint8_t)(expression->step_count - 1);
    plan->is_one_chain =
        made_count == 1 && plan->carries[last] != 0 &&
        plan->place[last] == WR_STEP_PLACE_OUTPUT &&
        plan->place[first_operand(expression, plan, last)] == WR_STEP_PLACE_MEMORY;
}
