/* SPDX-License-Identifier: MIT */
/* Replacing the layout of a device that holds nothing. */
#ifndef WR_MANAGER_REPLACE_H
#define WR_MANAGER_REPLACE_H

#include "preset.h"

/* Puts the classes of `layouts` in the place of the bank's, and gives each manager pools
 * for them. Nothing is reserved, and no other thread allocates. OUT_OF_HOST_MEMORY leaves
 * all as it was. */
weir_result wr_replace_layouts(wr_bank *bank, const wr_layouts *layouts);

#endif
