/* SPDX-License-Identifier: MIT */
#include "check.h"

#if WEIR_CHECK >= 1
#include <stdio.h>
#include <stdlib.h>

void wr_check_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
    abort();
}
#else
typedef int wr_check_is_off;
#endif
