/* SPDX-License-Identifier: MIT */
/* Assertions in levels: WEIR_CHECK 0 none, 1 cheap ones, 3 walks of everything a manager
 * has at every WR_WALK_STEP-th time its lock is taken. A failed one ends the process:
 * they exist in test builds only. */
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

#define WR_WALK_STEP 1024u

#endif
