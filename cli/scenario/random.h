/* SPDX-License-Identifier: MIT */
/* Reproducible sizes for the statement `random`. */
#ifndef WEIR_CLI_SCENARIO_RANDOM_H
#define WEIR_CLI_SCENARIO_RANDOM_H

#include <stdint.h>

/* The size number `execution` (0 is the first) of a seed, in [low, high], 1 <= low <=
 * high. Uniform in its logarithm: as many between 1 and 2 MiB as between 1 and 2 GiB. */
uint64_t wr_scn_random_size(uint64_t seed, uint64_t execution, uint64_t low,
                            uint64_t high);

#endif
