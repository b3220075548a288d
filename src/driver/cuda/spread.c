/* SPDX-License-Identifier: MIT */
#include "spread.h"

/* Elements of a thread in one round: 16 bytes of f32. */
#define AT_ONCE 4
/* Blocks of 256 threads for each multiprocessor: all that run at once (8), and so many
 * more that the last round is small. */
#define BLOCKS_RUNNING 8
#define BLOCKS_MOST 64
/* Vectors of inputs that a lane should have, if there are threads enough. */
#define LANE_VECTORS 8
/* Threads of a multiprocessor. */
#define THREADS_RUNNING 2048
/* Bytes of a part: a value, and perhaps where it is. */
#define PART_BYTES 8
/* Inputs of a lane for which a part of its own pays. */
#define PART_INPUTS 16
#define MOST_PARTS 1024
/* Outputs side by side when lanes are apart: 128 bytes of f32. */
#define ACROSS_OUTPUTS 32

static uint64_t smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t divide_up(uint64_t count, uint64_t by)
{
    return count / by + (count % by != 0);
}

/* The smallest power of two that is at least `count`, but at most `most`, which is one.
 */
static uint32_t power_of_two(uint64_t count, uint32_t most)
{
    uint32_t power = 1;
    while (power < count && power < most) {
        power *= 2;
    }
    return power;
}

bool wr_spread_is_reduction(const weir_launch *launch)
{
    return launch->kernel->kind == WEIR_KERNEL_EXPRESSION &&
           launch->kernel->expression->reduce != WEIR_REDUCE_NONE;
}

static uint32_t blocks_of(uint64_t needed, uint32_t multiprocessors)
{
    uint64_t most = (uint64_t)multiprocessors * BLOCKS_MOST;
    return (uint32_t)smaller(needed > 0 ? needed : 1, most);
}

/* ---- reductions ---- */

static uint64_t size_of(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Whether neighbouring outputs come from neighbours in memory, more than an output's own
 * inputs do: threads side by side then work on outputs side by side. */
static bool is_across(const weir_launch *launch)
{
    const weir_expression *expression = launch->kernel->expression;
    const int64_t *words = launch->arguments;
    uint32_t kept = (uint32_t)expression->rank - expression->reduced_rank;
    bool any = false;
    if (kept == 0 || expression->reduced_rank == 0) {
        return false;
    }
    for (uint32_t v = 0; v < expression->view_count; v++) {
        const int64_t *strides = words + weir_expression_view_word(expression, v) + 1;
        uint64_t of_outputs = size_of(strides[kept - 1]);
        if (expression->views[v].layout == WEIR_VIEW_LINEAR) {
            return false;
        }
        any |= expression->views[v].layout == WEIR_VIEW_STRIDED && of_outputs > 0 &&
               of_outputs < size_of(strides[expression->rank - 1]);
    }
    return any;
}

/* Few lanes have more to do each and less to combine, but the device wants threads. */
static uint32_t lanes_along(uint64_t outputs, uint64_t each, uint32_t multiprocessors)
{
    uint64_t vectors = divide_up(each, AT_ONCE);
    uint32_t most = power_of_two(vectors, WEIR_CUDA_THREADS);
    uint32_t lanes = power_of_two(divide_up(vectors, LANE_VECTORS), WEIR_CUDA_THREADS);
    uint64_t wanted = (uint64_t)multiprocessors * THREADS_RUNNING;
    while (lanes < most && outputs < divide_up(wanted, lanes)) {
        lanes *= 2;
    }
    return lanes;
}

static wr_spread spread_reduction(const weir_launch *launch, uint32_t multiprocessors)
{
    uint64_t outputs = launch->element_count;
    uint64_t each = (uint64_t)((const int64_t *)launch->arguments)[1];
    bool across = is_across(launch);
    uint32_t lanes = across ? WEIR_CUDA_THREADS / power_of_two(outputs, ACROSS_OUTPUTS)
                            : lanes_along(outputs, each, multiprocessors);
    uint64_t blocks = divide_up(outputs, WEIR_CUDA_THREADS / lanes);
    uint64_t wanted = (uint64_t)multiprocessors * BLOCKS_RUNNING / blocks;
    uint64_t worth = each / ((uint64_t)lanes * PART_INPUTS);
    uint64_t parts = smaller(smaller(wanted, worth), MOST_PARTS);
    return (wr_spread){
        .blocks = blocks_of(blocks, multiprocessors),
        .split = {.lanes = lanes, .is_across = across, .parts = parts > 1 ? parts : 1},
    };
}

/* ---- all ---- */

wr_spread wr_spread_of(const weir_launch *launch, uint32_t multiprocessors)
{
    if (wr_spread_is_reduction(launch)) {
        return spread_reduction(launch, multiprocessors);
    }
    uint64_t work = launch->element_work > 0 ? launch->element_work : 1;
    uint64_t round = launch->kernel->kind == WEIR_KERNEL_EXPRESSION
                         ? WEIR_CUDA_THREADS * AT_ONCE
                         : WEIR_CUDA_THREADS;
    /* Enough is enough: the product may be beyond 64 bits. */
    uint64_t simple =
        smaller(launch->element_count, UINT32_MAX) * smaller(work, UINT32_MAX);
    return (wr_spread){.blocks = blocks_of(divide_up(simple, round), multiprocessors),
                       .split = {.parts = 1}};
}

wr_spread wr_spread_of_end(const weir_launch *launch, const wr_spread *spread,
                           uint32_t multiprocessors)
{
    uint32_t lanes = power_of_two(spread->split.parts, WEIR_CUDA_THREADS);
    uint64_t blocks = divide_up(launch->element_count, WEIR_CUDA_THREADS / lanes);
    return (wr_spread){.blocks = blocks_of(blocks, multiprocessors),
                       .split = {.lanes = lanes,
                                 .parts = spread->split.parts,
                                 .memory = spread->split.memory}};
}

uint64_t wr_spread_workspace(const weir_launch *launch, const wr_spread *spread)
{
    bool has_parts = wr_spread_is_reduction(launch) && spread->split.parts > 1;
    return has_parts ? launch->element_count * spread->split.parts * PART_BYTES : 0;
}
