/* SPDX-License-Identifier: MIT */
/* Each kind is a function that records one parameter's step as a formula; the queue makes
 * it one kernel, in which the moments and the parameter take their own old buffers over:
 * they are the only ones of their tags. Nothing is locked: an optimizer is one thread's
 * at a time. */
#include "formula.h"
#include "tape.h"

#include "kernel/dtype.h"
#include "kernel/memory.h"

#include <weir/autodiff.h>
#include <weir/optimizer.h>

#include <math.h>

#define MOMENTS 2

/* What is remembered of one parameter. */
typedef struct state {
    weir_tensor *moments[MOMENTS]; /* f32, in the parameter's shape */
    uint64_t step_count;
    char tag[WR_TAG_BYTES]; /* the parameter's */
} state;

/* One parameter's step, while it is recorded. All tensors are f32; `moments` and what is
 * made of them are the formula's. */
typedef struct step {
    wr_formula formula;
    double rate;
    uint64_t number; /* the first is 1 */
    weir_tensor *parameter;
    weir_tensor *gradient;
    weir_tensor *moments[MOMENTS]; /* old, then new */
} step;

struct weir_optimizer {
    /* Fills in the new moments, and with the second function the new parameter. */
    void (*update)(const weir_optimizer *optimizer, step *now);
    weir_tensor *(*apply)(const weir_optimizer *optimizer, step *now);
    weir_sgd_desc sgd;
    weir_adamw_desc adamw;
    uint32_t moment_count;
    weir_tensor **parameters; /* the caller's */
    size_t count;
    state states[];
};

/* ---- shorthands ---- */

static weir_tensor *add(step *now, weir_tensor *left, weir_tensor *right)
{
    return wr_formula_binary(&now->formula, WEIR_OP_ADD, left, right);
}

static weir_tensor *subtract(step *now, weir_tensor *left, weir_tensor *right)
{
    return wr_formula_binary(&now->formula, WEIR_OP_SUB, left, right);
}

static weir_tensor *scale(step *now, weir_tensor *left, double right)
{
    return right == 1 ? left : wr_formula_scalar(&now->formula, WEIR_OP_MUL, left, right);
}

/* ---- SGD ---- */

static void update_sgd(const weir_optimizer *optimizer, step *now)
{
    double decay = optimizer->sgd.weight_decay;
    if (decay != 0) {
        now->gradient = add(now, now->gradient, scale(now, now->parameter, decay));
    }
    if (optimizer->moment_count > 0) {
        now->moments[0] =
            add(now, scale(now, now->moments[0], optimizer->sgd.momentum), now->gradient);
    }
}

static weir_tensor *apply_sgd(const weir_optimizer *optimizer, step *now)
{
    weir_tensor *direction =
        optimizer->moment_count == 0 ? now->gradient : now->moments[0];
    if (optimizer->sgd.nesterov) {
        direction =
            add(now, now->gradient, scale(now, now->moments[0], optimizer->sgd.momentum));
    }
    return subtract(now, now->parameter, scale(now, direction, now->rate));
}

/* ---- AdamW ---- */

/* before * beta + fresh * (1 - beta) */
static weir_tensor *average(step *now, weir_tensor *before, weir_tensor *fresh,
                            double beta)
{
    return add(now, scale(now, before, beta), scale(now, fresh, 1 - beta));
}

static void update_adamw(const weir_optimizer *optimizer, step *now)
{
    weir_tensor *square =
        wr_formula_binary(&now->formula, WEIR_OP_MUL, now->gradient, now->gradient);
    now->moments[0] =
        average(now, now->moments[0], now->gradient, optimizer->adamw.beta1);
    now->moments[1] = average(now, now->moments[1], square, optimizer->adamw.beta2);
}

/* Averages that began at 0 are too small by 1 - beta ** number. */
static weir_tensor *apply_adamw(const weir_optimizer *optimizer, step *now)
{
    const weir_adamw_desc *desc = &optimizer->adamw;
    double first = 1 - pow(desc->beta1, (double)now->number);
    double second = 1 - pow(desc->beta2, (double)now->number);
    weir_tensor *root = wr_formula_unary(&now->formula, WEIR_OP_SQRT, now->moments[1]);
    weir_tensor *divisor =
        wr_formula_scalar(&now->formula, WEIR_OP_ADD, scale(now, root, 1 / sqrt(second)),
                          desc->epsilon);
    weir_tensor *way =
        wr_formula_binary(&now->formula, WEIR_OP_DIV,
                          scale(now, now->moments[0], now->rate / first), divisor);
    return subtract(now, scale(now, now->parameter, 1 - now->rate * desc->weight_decay),
                    way);
}

/* ---- a step ---- */

/* Records under a tag; `*result` is that of the push. */
static bool begin_tag(const char *tag, weir_result *result)
{
    *result = weir_tag_push(tag);
    return *result == WEIR_OK;
}

static void record_moments(const weir_optimizer *optimizer, step *now)
{
    if (begin_tag("optimizer", &now->formula.result)) {
        optimizer->update(optimizer, now);
        weir_tag_pop();
    }
}

/* The new parameter, in its old dtype and under its old tag. */
static weir_tensor *record_parameter(const weir_optimizer *optimizer, step *now,
                                     const char *tag, weir_dtype dtype)
{
    weir_tensor *fresh = NULL;
    if (now->formula.result == WEIR_OK && begin_tag(tag, &now->formula.result)) {
        fresh = wr_formula_cast(&now->formula, optimizer->apply(optimizer, now), dtype);
        weir_tag_pop();
    }
    return fresh;
}

static void replace(weir_tensor **place, weir_tensor *fresh)
{
    weir_tensor_drop(*place);
    *place = fresh;
}

/* All of the step is recorded: the new tensors take the old ones' places. */
static weir_result commit(weir_optimizer *optimizer, size_t i, step *now,
                          weir_tensor *fresh)
{
    state *own = &optimizer->states[i];
    weir_tensor *leaf;
    WR_TRY(weir_tensor_track(fresh, &leaf));
    replace(&optimizer->parameters[i], leaf);
    for (uint32_t m = 0; m < optimizer->moment_count; m++) {
        replace(&own->moments[m], weir_tensor_clone(now->moments[m]));
    }
    own->step_count++;
    return WEIR_OK;
}

static weir_result step_one(weir_optimizer *optimizer, size_t i, weir_tensor *gradient,
                            double rate)
{
    state *own = &optimizer->states[i];
    weir_dtype dtype = optimizer->parameters[i]->storage->dtype;
    step now = {.rate = rate, .number = own->step_count + 1};
    now.parameter =
        wr_formula_cast(&now.formula, optimizer->parameters[i], WEIR_DTYPE_F32);
    now.gradient = wr_formula_cast(&now.formula, gradient, WEIR_DTYPE_F32);
    for (uint32_t m = 0; m < optimizer->moment_count; m++) {
        now.moments[m] = own->moments[m];
    }
    if (now.formula.result == WEIR_OK) {
        record_moments(optimizer, &now);
    }
    weir_tensor *fresh = record_parameter(optimizer, &now, own->tag, dtype);
    if (now.formula.result == WEIR_OK) {
        now.formula.result = commit(optimizer, i, &now, fresh);
    }
    wr_formula_drop(&now.formula);
    return now.formula.result;
}

static weir_result check_parameter(const char *who, const weir_optimizer *optimizer,
                                   size_t i)
{
    const weir_tensor *parameter = optimizer->parameters[i];
    const weir_tensor *moment = optimizer->states[i].moments[0];
    if (parameter == NULL || parameter->entry == NULL || parameter->entry->rule != NULL) {
        return wr_fail(WEIR_INVALID,
                       "%s: parameter %zu is %s; weir_tensor_track makes leaves", who, i,
                       parameter == NULL ? "NULL" : "no leaf");
    }
    if (moment != NULL && !wr_shape_equals(&parameter->view.shape, &moment->view.shape)) {
        return wr_fail(WEIR_INVALID, "%s: parameter %zu has another shape than before",
                       who, i);
    }
    return WEIR_OK;
}

/* Those with a gradient; their number. */
static weir_result step_all(weir_optimizer *optimizer, double rate, size_t *done)
{
    for (size_t i = 0; i < optimizer->count; i++) {
        weir_tensor *gradient = NULL;
        WR_TRY(check_parameter("weir_optimizer_step", optimizer, i));
        if (weir_tensor_gradient(optimizer->parameters[i], &gradient) == WEIR_OK) {
            weir_result result = step_one(optimizer, i, gradient, rate);
            weir_tensor_drop(gradient);
            WR_TRY(result);
            ++*done;
        }
    }
    return WEIR_OK;
}

weir_result weir_optimizer_step(weir_optimizer *optimizer, double rate)
{
    const char *who = "weir_optimizer_step";
    size_t done = 0;
    if (optimizer == NULL || !isfinite(rate)) {
        return wr_fail(WEIR_INVALID, "%s: the %s", who,
                       optimizer == NULL ? "optimizer is NULL" : "rate is not finite");
    }
    wr_tape_pause();
    weir_result result = step_all(optimizer, rate, &done);
    wr_tape_resume();
    return result == WEIR_OK && done == 0
               ? wr_fail(WEIR_INVALID,
                         "%s: none of the %zu parameters has a gradient; call "
                         "weir_tensor_backward first",
                         who, optimizer->count)
               : result;
}

/* ---- life ---- */

void weir_optimizer_destroy(weir_optimizer *optimizer)
{
    if (optimizer == NULL) {
        return;
    }
    for (size_t i = 0; i < optimizer->count; i++) {
        for (uint32_t m = 0; m < MOMENTS; m++) {
            weir_tensor_drop(optimizer->states[i].moments[m]);
        }
    }
    wr_memory_free(optimizer);
}

static weir_result fill_state(const weir_optimizer *optimizer, size_t i, state *fresh)
{
    const weir_tensor *parameter = optimizer->parameters[i];
    wr_storage_copy_tag(parameter->storage, fresh->tag);
    WR_TRY(weir_tag_push("optimizer"));
    weir_result result = WEIR_OK;
    for (uint32_t m = 0; result == WEIR_OK && m < optimizer->moment_count; m++) {
        result = weir_tensor_zeros(weir_tensor_stream(parameter), parameter->view.shape,
                                   &fresh->moments[m]);
    }
    weir_tag_pop();
    return result;
}

static weir_result fill_states(const char *who, weir_optimizer *optimizer)
{
    for (size_t i = 0; i < optimizer->count; i++) {
        WR_TRY(check_parameter(who, optimizer, i));
    }
    for (size_t i = 0; i < optimizer->count; i++) {
        WR_TRY(fill_state(optimizer, i, &optimizer->states[i]));
    }
    return WEIR_OK;
}

/* `like` has all but the states, which are made. */
static weir_result create(const char *who, const weir_optimizer *like,
                          weir_optimizer **optimizer)
{
    if (like->parameters == NULL || like->count == 0 || optimizer == NULL) {
        return wr_fail(WEIR_INVALID, "%s: no parameters, or no place for the result",
                       who);
    }
    weir_optimizer *fresh =
        like->count <= SIZE_MAX / sizeof(state) - 1
            ? wr_memory_alloc(sizeof *fresh + like->count * sizeof(state))
            : NULL;
    if (fresh == NULL) {
        return wr_fail(WEIR_OUT_OF_HOST_MEMORY, "%s: no host memory for %zu parameters",
                       who, like->count);
    }
    *fresh = *like;
    weir_result result = fill_states(who, fresh);
    if (result != WEIR_OK) {
        weir_optimizer_destroy(fresh);
        return result;
    }
    *optimizer = fresh;
    return WEIR_OK;
}

weir_result weir_optimizer_create_sgd(weir_tensor **parameters, size_t count,
                                      const weir_sgd_desc *desc,
                                      weir_optimizer **optimizer)
{
    const char *who = "weir_optimizer_create_sgd";
    weir_optimizer like = {.update = update_sgd,
                           .apply = apply_sgd,
                           .parameters = parameters,
                           .count = count};
    like.sgd = desc != NULL ? *desc : like.sgd;
    like.moment_count = like.sgd.momentum != 0;
    if (!(like.sgd.momentum >= 0 && like.sgd.momentum < 1) ||
        !(like.sgd.weight_decay >= 0)) {
        return wr_fail(
            WEIR_INVALID,
            "%s: momentum %g and weight_decay %g; the first must be in [0, 1), "
            "the second not negative",
            who, like.sgd.momentum, like.sgd.weight_decay);
    }
    if (like.sgd.nesterov && like.moment_count == 0) {
        return wr_fail(WEIR_INVALID, "%s: nesterov needs a momentum", who);
    }
    return create(who, &like, optimizer);
}

weir_result weir_optimizer_create_adamw(weir_tensor **parameters, size_t count,
                                        const weir_adamw_desc *desc,
                                        weir_optimizer **optimizer)
{
    const char *who = "weir_optimizer_create_adamw";
    weir_optimizer like = {.update = update_adamw,
                           .apply = apply_adamw,
                           .moment_count = 2,
                           .parameters = parameters,
                           .count = count};
    like.adamw = desc != NULL ? *desc : like.adamw;
    weir_adamw_desc *asked = &like.adamw;
    asked->beta1 = asked->beta1 == 0 ? 0.9 : asked->beta1;
    asked->beta2 = asked->beta2 == 0 ? 0.999 : asked->beta2;
    asked->epsilon = asked->epsilon == 0 ? 1e-8 : asked->epsilon;
    if (!(asked->beta1 > 0 && asked->beta1 < 1) ||
        !(asked->beta2 > 0 && asked->beta2 < 1) || !(asked->epsilon > 0) ||
        !(asked->weight_decay >= 0)) {
        return wr_fail(WEIR_INVALID,
                       "%s: betas %g and %g must be in (0, 1), epsilon %g positive, "
                       "weight_decay %g not negative",
                       who, asked->beta1, asked->beta2, asked->epsilon,
                       asked->weight_decay);
    }
    return create(who, &like, optimizer);
}
