/* SPDX-License-Identifier: MIT */
/* Which tile holds which step's values on the host. Worked out once per kernel: a tile is
 * free again after the last step that reads it, so that a long chain stays in the first
 * cache. */
#ifndef WR_KERNEL_PLAN_H
#define WR_KERNEL_PLAN_H

#include <weir/kernel.h>

typedef enum wr_step_place {
    WR_STEP_PLACE_TILE = 0,     /* made anew in tile `tile` */
    WR_STEP_PLACE_CONSTANT = 1, /* the same for all elements: filled once, in its tile */
    WR_STEP_PLACE_MEMORY = 2,   /* the elements in memory are the values */
    WR_STEP_PLACE_OUTPUT = 3,   /* made in the output's memory */
} wr_step_place;

typedef struct wr_plan {
    uint32_t tile_count;
    uint32_t made_count;                  /* steps that are made for each tile */
    uint8_t place[WEIR_EXPRESSION_STEPS]; /* wr_step_place */
    uint8_t tile[WEIR_EXPRESSION_STEPS];  /* TILE and CONSTANT only */
} wr_plan;

void wr_plan_make(const weir_expression *expression, wr_plan *plan);

#endif
