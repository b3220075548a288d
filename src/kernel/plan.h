/* SPDX-License-Identifier: MIT */
/* Where which step's values are on the host. Worked out once per kernel: operations that
 * follow each other become one chain, whose values in between are in no memory at all,
 * and a tile is free again after the last step that reads it, so that the rest stays in
 * the first cache. */
#ifndef WR_KERNEL_PLAN_H
#define WR_KERNEL_PLAN_H

#include <weir/kernel.h>

typedef enum wr_step_place {
    WR_STEP_PLACE_TILE = 0,     /* made anew in tile `tile` */
    WR_STEP_PLACE_CONSTANT = 1, /* the same for all elements: filled once, in its tile */
    WR_STEP_PLACE_MEMORY = 2,   /* the elements in memory are the values */
    WR_STEP_PLACE_OUTPUT = 3,   /* made in the memory of output `output` */
    WR_STEP_PLACE_CHAIN = 4, /* inside a chain: goes on in the only step that uses it */
} wr_step_place;

typedef struct wr_plan {
    uint32_t tile_count;
    uint32_t loop_count; /* steps that are loops over operands */
    bool is_one_chain;   /* from memory to an output; nothing else but strided loads */
    bool has_strided;
    uint8_t place[WEIR_EXPRESSION_STEPS];  /* wr_step_place */
    uint8_t tile[WEIR_EXPRESSION_STEPS];   /* TILE and CONSTANT only */
    uint8_t output[WEIR_EXPRESSION_STEPS]; /* OUTPUT only */
    /* Of links (chain.h): 1 + the number of the operand that the chain comes from; 0: no
     * link. */
    uint8_t carries[WEIR_EXPRESSION_STEPS];
} wr_plan;

void wr_plan_make(const weir_expression *expression, wr_plan *plan);

#endif
