/* SPDX-License-Identifier: MIT */
/* Elements by index and elements to places, on the host. */
#ifndef WR_KERNEL_MOVE_H
#define WR_KERNEL_MOVE_H

#include <weir/kernel.h>

/* Host forms. */
void wr_move_gather(const weir_launch *launch, uint64_t begin, uint64_t end);
void wr_move_scatter_add(const weir_launch *launch, uint64_t begin, uint64_t end);
void wr_move_place(const weir_launch *launch, uint64_t begin, uint64_t end);

#endif
