/* SPDX-License-Identifier: MIT */
#include "array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool wr_scn_array_grow(void **array, size_t *capacity, size_t needed,
                       size_t element_bytes)
{
    if (needed <= *capacity) {
        return true;
    }
    size_t wanted = *capacity < 8 ? 16 : *capacity * 2;
    wanted = wanted < needed ? needed : wanted;
    if (wanted > SIZE_MAX / element_bytes) {
        return false;
    }
    char *grown = realloc(*array, wanted * element_bytes);
    if (!grown) {
        return false;
    }
    memset(grown + *capacity * element_bytes, 0, (wanted - *capacity) * element_bytes);
    *array = grown;
    *capacity = wanted;
    return true;
}
