/* SPDX-License-Identifier: MIT */
/* Arrays that grow. */
#ifndef WEIR_CLI_SCENARIO_ARRAY_H
#define WEIR_CLI_SCENARIO_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `needed` elements, zeroing new ones; false and unchanged without memory.
 */
bool wr_scn_array_grow(void **array, size_t *capacity, size_t needed,
                       size_t element_bytes);

#endif
