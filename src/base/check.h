/* SPDX-License-Identifier: MIT */
/* Assertions in levels: WEIR_CHECK 0 none, 1 cheap, 2 across structures, 3 whole walks at
 * entry and exit of every mutator. A failed one ends the process: they exist in test
 * builds only. */
#ifndef WR_BASE_CHECK_H
#define WR_BASE_CHECK_H

#ifndef WEIR_CHECK
#define WEIR_CHECK 0
#endif

#if WEIR_CHECK >= 1
void wr_check_failed(const char *condition, const char *file, int line)
    __attribute__((noreturn, cold));
#define WR_ASSERT(condition)                                                             \
    ((condition) ? (void)0 : wr_check_failed(#condition, __FILE__, __LINE__))
#else
#define WR_ASSERT(condition) ((void)sizeof(condition))
#endif

#if WEIR_CHECK >= 2
#define WR_ASSERT2(condition) WR_ASSERT(condition)
#else
#define WR_ASSERT2(condition) ((void)sizeof(condition))
#endif

#endif
