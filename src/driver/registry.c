/* SPDX-License-Identifier: MIT */
/* The list of built-in drivers as the program sees it. Constant data, no lock. */
#include "drivers.h"

#define TABLE(name) &wr_driver_##name,
static const weir_driver_table *const tables[] = {WR_DRIVER_LIST(TABLE)};
#undef TABLE

const weir_driver_table *weir_driver_at(size_t index)
{
    return index < sizeof tables / sizeof tables[0] ? tables[index] : NULL;
}
