/* SPDX-License-Identifier: MIT */
/* Hints for the two paths that every allocation and release takes. */
#ifndef WR_BASE_HOT_H
#define WR_BASE_HOT_H

#define WR_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define WR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Small parts of those paths; compilers count their other callers and decide otherwise.
 */
#define WR_INLINE static inline __attribute__((always_inline))

/* Everything that it calls is inlined into it, but what is marked WR_COLD or
 * WR_APART. */
#define WR_FLAT __attribute__((flatten, hot))
#define WR_COLD __attribute__((noinline, cold))
/* The same for what is not always rare. */
#define WR_APART __attribute__((noinline))

#endif
