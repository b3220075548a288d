/* SPDX-License-Identifier: MIT */
#include "interpret.h"

#include "chain.h"
#include "dtype.h"
#include "gather.h"
#include "operation.h"
#include "random.h"
#include "reduce.h"

/* One thread's part of a launch. */
typedef struct run {
    const weir_launch *launch;
    const weir_expression *expression;
    const wr_plan *plan;
    const int64_t *words;
    wr_tile *tiles;
    uint64_t
        row; /* elements of the rows that are all strided operands; 0: they are not */
    const void *values[WEIR_EXPRESSION_STEPS]; /* of the present tile, step by step */
} run;

static char *memory_of(const run *work, uint32_t binding)
{
    return (char *)(uintptr_t)work->launch->bindings[binding].address;
}

static const int64_t *view_words(const run *work, uint32_t view)
{
    return work->words + weir_expression_view_word(work->expression, view);
}

static int32_t scalar(const run *work, uint32_t slot)
{
    return (int32_t)work->words[weir_expression_scalar_word(work->expression, slot)];
}

static float scalar_f32(const run *work, uint32_t slot)
{
    int32_t bits = scalar(work, slot);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- leaves ---- */

/* Values that are the same for all elements, as many as a tile will have; the bits count,
 * not what they mean. */
static void fill_constant(run *work, uint32_t s, uint64_t count)
{
    const weir_step *step = &work->expression->steps[s];
    wr_tile *tile = &work->tiles[work->plan->tile[s]];
    int32_t value = 0;
    if (step->op == WEIR_OP_SCALAR) {
        value = scalar(work, step->operand[0]);
    } else {
        const weir_view *view = &work->expression->views[step->operand[0]];
        int64_t element = view_words(work, step->operand[0])[0];
        wr_dtype_load(
            view->dtype, &value,
            memory_of(work, view->binding) + element * wr_dtype_bytes(view->dtype), 1, 1);
    }
    for (uint64_t i = 0; i < count; i++) {
        tile->i32[i] = value;
    }
    work->values[s] = tile;
}

static const char *linear_elements(const run *work, uint32_t v, uint64_t first)
{
    const weir_view *view = &work->expression->views[v];
    int64_t element = view_words(work, v)[0] + (int64_t)first;
    return memory_of(work, view->binding) + element * wr_dtype_bytes(view->dtype);
}

static wr_gather gather_of(const run *work, uint32_t v)
{
    const weir_view *view = &work->expression->views[v];
    return (wr_gather){
        .memory = memory_of(work, view->binding),
        .dtype = view->dtype,
        .rank = work->expression->rank,
        .extents = work->words + 2,
        .view = view_words(work, v),
    };
}

static void load(const run *work, uint32_t v, void *tile, uint64_t first, uint64_t count)
{
    const weir_view *view = &work->expression->views[v];
    if (view->layout == WEIR_VIEW_LINEAR) {
        wr_dtype_load(view->dtype, tile, linear_elements(work, v, first), 1, count);
        return;
    }
    wr_gather gather = gather_of(work, v);
    wr_gather_run(&gather, first, tile, count);
}

/* A step's values where they lie in memory, such as those of a row that is broadcast to
 * all; NULL if they must be made. */
static const void *find_values(const run *work, const weir_step *step, uint64_t first,
                               uint64_t count)
{
    if (step->op != WEIR_OP_LOAD || !wr_dtype_is_value(step->dtype) ||
        work->expression->views[step->operand[0]].layout != WEIR_VIEW_STRIDED) {
        return NULL;
    }
    wr_gather gather = gather_of(work, step->operand[0]);
    return wr_gather_find(&gather, first, count);
}

static wr_random random_of(const run *work, uint32_t slot)
{
    return (wr_random){
        .seed = (uint32_t)scalar(work, slot) | (uint64_t)(uint32_t)scalar(work, slot + 1)
                                                   << 32,
        .first = scalar_f32(work, slot + 2),
        .second = scalar_f32(work, slot + 3),
    };
}

/* ---- steps ---- */

static void make(const run *work, const weir_step *step, void *to, uint64_t first,
                 uint64_t count)
{
    const weir_step *steps = work->expression->steps;
    wr_random random;
    switch ((weir_op)step->op) {
    case WEIR_OP_LOAD:
        load(work, step->operand[0], to, first, count);
        break;
    case WEIR_OP_UNIFORM:
        random = random_of(work, step->operand[0]);
        wr_random_uniform(&random, first, to, count);
        break;
    case WEIR_OP_NORMAL:
        random = random_of(work, step->operand[0]);
        wr_random_normal(&random, first, to, count);
        break;
    case WEIR_OP_CAST:
        wr_dtype_cast(step->dtype, to, steps[step->operand[0]].dtype,
                      work->values[step->operand[0]], count);
        break;
    case WEIR_OP_SELECT:
        wr_operation_select(to, work->values[step->operand[0]],
                            work->values[step->operand[1]],
                            work->values[step->operand[2]], count);
        break;
    default:
        wr_operation_run(step->op, steps[step->operand[0]].dtype, to,
                         &(wr_operands){.values = {work->values[step->operand[0]],
                                                   work->values[step->operand[1]]},
                                        .is_same = work->plan->place[step->operand[1]] ==
                                                   WR_STEP_PLACE_CONSTANT},
                         count);
    }
}

/* ---- chains ---- */

/* Outputs that are larger leave nothing of themselves in the caches, so they go past
 * them: memory moves a third less if it need not be read before it is written. */
#define STREAMED_BYTES (UINT64_C(32) << 20)

static bool is_streamed(const run *work, uint32_t k)
{
    const weir_output *output = &work->expression->outputs[k];
    return output->step + 1 == work->expression->step_count &&
           work->plan->place[output->step] == WR_STEP_PLACE_OUTPUT &&
           work->launch->bindings[output->binding].access == WEIR_ACCESS_WRITE &&
           work->launch->element_count * wr_dtype_bytes(output->dtype) >= STREAMED_BYTES;
}

static void fill_link(const run *work, uint32_t s, wr_link *link)
{
    const weir_step *step = &work->expression->steps[s];
    uint32_t carried = work->plan->carries[s] - 1u;
    *link = (wr_link){.op = step->op};
    if (wr_operation_arity(step->op) == 2) {
        uint32_t other = step->operand[1 - carried];
        link->is_left = carried == 1;
        link->values = work->values[other];
        link->form = work->plan->place[other] == WR_STEP_PLACE_CONSTANT
                         ? WR_LINK_FORM_SAME
                     : work->row > 0 && work->plan->place[other] != WR_STEP_PLACE_MEMORY
                         ? WR_LINK_FORM_ROW
                         : WR_LINK_FORM_EACH;
    }
}

/* How many links the chain that ends at step `s` has. */
static uint32_t chain_length(const run *work, uint32_t s)
{
    uint32_t length = 1;
    for (;;) {
        s = work->expression->steps[s].operand[work->plan->carries[s] - 1u];
        if (work->plan->place[s] != WR_STEP_PLACE_CHAIN) {
            return length;
        }
        length++;
    }
}

static void make_chain(const run *work, uint32_t s, void *to, uint64_t count)
{
    const wr_plan *plan = work->plan;
    wr_chain chain; /* of the links, only those that there are */
    chain.to = to;
    chain.row = work->row;
    chain.streams =
        plan->place[s] == WR_STEP_PLACE_OUTPUT && is_streamed(work, plan->output[s]);
    chain.link_count = chain_length(work, s);
    for (uint32_t i = chain.link_count; i-- > 0;) {
        fill_link(work, s, &chain.links[i]);
        s = work->expression->steps[s].operand[plan->carries[s] - 1u];
    }
    chain.from = work->values[s];
    wr_chain_run(&chain, count);
}

/* ---- reading ahead ----
 *
 * What a tile's steps compute keeps a processor busy for about as long as the next tile's
 * elements need from memory. Asked for now, a few lines before each step, they are there
 * when it gets to them. */

#define LINE_BYTES 64

/* A tile, and the part of it that is due. */
typedef struct ahead {
    uint64_t first;
    uint64_t count; /* 0: there is no next tile */
    uint32_t part;
    uint32_t parts;
} ahead;

static void read_ahead(const char *from, uint64_t bytes, const ahead *next)
{
    uint64_t lines = bytes / LINE_BYTES;
    uint64_t last = lines * (next->part + 1) / next->parts;
    for (uint64_t at = lines * next->part / next->parts; at < last; at++) {
        __builtin_prefetch(from + at * LINE_BYTES, 0, 2);
    }
}

/* What is read and written where it lies. */
static void read_part_ahead(const run *work, const ahead *next)
{
    const weir_expression *expression = work->expression;
    for (uint32_t s = 0; s < expression->step_count; s++) {
        if (work->plan->place[s] == WR_STEP_PLACE_MEMORY) {
            uint32_t view = expression->steps[s].operand[0];
            read_ahead(linear_elements(work, view, next->first),
                       next->count * sizeof(float), next);
        }
    }
    for (uint32_t k = 0; k < expression->output_count; k++) {
        const weir_output *output = &expression->outputs[k];
        uint64_t bytes = wr_dtype_bytes(output->dtype);
        read_ahead(memory_of(work, output->binding) + next->first * bytes,
                   next->count * bytes, next);
    }
}

/* All steps' values of iteration indices [first, first + count). */
static void run_tile(run *work, uint64_t first, uint64_t count, ahead *next)
{
    const weir_expression *expression = work->expression;
    for (uint32_t s = 0; s < expression->step_count; s++) {
        const weir_step *step = &expression->steps[s];
        void *to = &work->tiles[work->plan->tile[s]];
        switch ((wr_step_place)work->plan->place[s]) {
        case WR_STEP_PLACE_CONSTANT:
        case WR_STEP_PLACE_CHAIN:
            continue;
        case WR_STEP_PLACE_MEMORY:
            work->values[s] = linear_elements(work, step->operand[0], first);
            continue;
        case WR_STEP_PLACE_OUTPUT:
            to = memory_of(work, expression->outputs[work->plan->output[s]].binding) +
                 first * sizeof(float);
            break;
        case WR_STEP_PLACE_TILE:
            break;
        }
        if (work->plan->carries[s] != 0) {
            make_chain(work, s, to, count);
            work->values[s] = to;
            continue;
        }
        if (next->count > 0 && step->op != WEIR_OP_LOAD) {
            read_part_ahead(work, next);
            next->part++;
        }
        work->values[s] = find_values(work, step, first, count);
        if (work->values[s] == NULL) {
            make(work, step, to, first, count);
            work->values[s] = to;
        }
    }
}

static void store_outputs(const run *work, uint64_t first, uint64_t count)
{
    for (uint32_t k = 0; k < work->expression->output_count; k++) {
        const weir_output *output = &work->expression->outputs[k];
        if (work->plan->place[output->step] != WR_STEP_PLACE_OUTPUT) {
            wr_dtype_store(output->dtype,
                           memory_of(work, output->binding) +
                               first * wr_dtype_bytes(output->dtype),
                           work->values[output->step], count);
        }
    }
}

static void run_tiles(run *work, uint64_t begin, uint64_t end)
{
    for (uint64_t first = begin; first < end; first += WR_TILE) {
        uint64_t count = end - first < WR_TILE ? end - first : WR_TILE;
        uint64_t left = end - first - count;
        run_tile(work, first, count,
                 &(ahead){.first = first + count,
                          .count = left < WR_TILE ? left : WR_TILE,
                          .parts = work->plan->loop_count});
        store_outputs(work, first, count);
    }
}

static bool is_row(const run *work, uint32_t v)
{
    const int64_t *strides = view_words(work, v) + 1;
    uint32_t inner = work->expression->rank - 1u;
    bool is = strides[inner] == 1;
    for (uint32_t d = 0; d < inner; d++) {
        is &= strides[d] == 0;
    }
    return is;
}

/* Whether all strided operands are rows that are the same for all, and `begin` begins
 * one; their values are found then. */
static bool find_rows(run *work, uint64_t begin)
{
    const weir_expression *expression = work->expression;
    uint64_t row = (uint64_t)work->words[2 + expression->rank - 1];
    bool found = begin % row == 0 && row % WR_CHAIN_ROW == 0;
    for (uint32_t s = 0; found && s < expression->step_count; s++) {
        const weir_step *step = &expression->steps[s];
        if (step->op == WEIR_OP_LOAD && work->plan->place[s] == WR_STEP_PLACE_TILE) {
            found = is_row(work, step->operand[0]);
            work->values[s] = linear_elements(work, step->operand[0], 0);
        }
    }
    work->row = found ? row : 0;
    return found;
}

/* The whole range at once. */
static void run_one_chain(run *work, uint64_t begin, uint64_t end)
{
    const weir_expression *expression = work->expression;
    uint32_t last = expression->step_count - 1u;
    for (uint32_t s = 0; s < last; s++) {
        if (work->plan->place[s] == WR_STEP_PLACE_MEMORY) {
            work->values[s] =
                linear_elements(work, expression->steps[s].operand[0], begin);
        }
    }
    make_chain(work, last,
               memory_of(work, expression->outputs[0].binding) + begin * sizeof(float),
               end - begin);
}

static void run_elements(run *work, uint64_t begin, uint64_t end)
{
    if (begin < end && work->plan->is_one_chain &&
        (!work->plan->has_strided || find_rows(work, begin))) {
        run_one_chain(work, begin, end);
    } else {
        run_tiles(work, begin, end);
    }
    wr_chain_settle();
}

/* ---- reductions ---- */

/* Tiles go over the inputs of all outputs in one stretch, so that short ones fill them.
 */
static void run_reduction(run *work, uint64_t begin, uint64_t end)
{
    const weir_expression *expression = work->expression;
    const weir_output *output = &expression->outputs[0];
    weir_dtype dtype = expression->steps[output->step].dtype;
    uint64_t each = (uint64_t)work->words[1];
    char *to = memory_of(work, output->binding) + begin * wr_dtype_bytes(output->dtype);
    wr_reduction reduction;
    wr_reduction_begin(&reduction, expression->reduce, dtype);
    uint64_t left = each; /* of the present output's inputs */
    for (uint64_t first = begin * each; first < end * each; first += WR_TILE) {
        uint64_t count = end * each - first < WR_TILE ? end * each - first : WR_TILE;
        run_tile(work, first, count, &(ahead){0});
        const char *values = work->values[output->step];
        for (uint64_t done = 0; done < count;) {
            uint64_t part = count - done < left ? count - done : left;
            wr_reduction_take(&reduction, values + done * sizeof(float), part);
            done += part;
            left -= part;
            if (left == 0) {
                wr_reduction_end(&reduction, output->dtype, to);
                to += wr_dtype_bytes(output->dtype);
                left = each;
            }
        }
    }
}

void wr_interpret(const weir_launch *launch, uint64_t begin, uint64_t end)
{
    const wr_expression_kernel *kernel = (const wr_expression_kernel *)launch->kernel;
    wr_tile tiles[WEIR_EXPRESSION_STEPS]; /* only those that are used cost anything */
    run work = {.launch = launch,
                .expression = &kernel->expression,
                .plan = &kernel->plan,
                .words = launch->arguments,
                .tiles = tiles};
    uint64_t count = (end - begin) * (uint64_t)work.words[1];
    for (uint32_t s = 0; s < kernel->expression.step_count; s++) {
        if (kernel->plan.place[s] == WR_STEP_PLACE_CONSTANT) {
            fill_constant(&work, s, count < WR_TILE ? count : WR_TILE);
        }
    }
    if (kernel->expression.reduce == WEIR_REDUCE_NONE) {
        run_elements(&work, begin, end);
    } else {
        run_reduction(&work, begin, end);
    }
}
