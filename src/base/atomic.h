/* SPDX-License-Identifier: MIT */
/* Counters with one writer (whoever holds the guard) and readers that hold nothing.
 * Writers store with release, readers load with acquire, so that a sequence count around
 * the writes (Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?",
 * 2012) tells a reader whether all it read belongs together. Plain moves on x86. */
#ifndef WR_BASE_ATOMIC_H
#define WR_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t wr_counter;

#if defined(__SANITIZE_THREAD__)
#define WR_COUNTER_PLAIN 0 /* it has to see what is atomic */
#elif defined(__has_feature)
#define WR_COUNTER_PLAIN !__has_feature(thread_sanitizer)
#else
#define WR_COUNTER_PLAIN 1
#endif

#define WR_OWN(counter) atomic_load_explicit(&(counter), memory_order_relaxed)
/* The same where nobody else writes: what the compiler may do as it likes. */
#if defined(__x86_64__) && WR_COUNTER_PLAIN
#define WR_OWN_PLAIN(counter) (*(const uint64_t *)&(counter))
#else
#define WR_OWN_PLAIN(counter) WR_OWN(counter)
#endif
#define WR_GET(counter) atomic_load_explicit(&(counter), memory_order_acquire)
#define WR_PUT(counter, value)                                                           \
    atomic_store_explicit(&(counter), (value), memory_order_release)
#define WR_ADD(counter, value) wr_counter_add(&(counter), (value))
#define WR_SUB(counter, value) wr_counter_sub(&(counter), (value))

/* Compilers make three instructions of an atomic load and store, and two registers; to
 * one writer, one is as good. */
static inline void wr_counter_add(wr_counter *counter, uint64_t value)
{
#if defined(__x86_64__) && WR_COUNTER_PLAIN
    __asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
#else
    WR_PUT(*counter, WR_OWN(*counter) + value);
#endif
}

/* Whether a counter is below a value: one comparison, where compilers load it first. */
static inline int wr_counter_is_below(const wr_counter *counter, uint64_t value)
{
#if defined(__x86_64__) && WR_COUNTER_PLAIN && defined(__GCC_ASM_FLAG_OUTPUTS__)
    int below;
    __asm__ volatile("cmpq %2, %1" : "=@ccb"(below) : "m"(*counter), "r"(value));
    return below;
#else
    return WR_OWN(*counter) < value;
#endif
}

static inline void wr_counter_sub(wr_counter *counter, uint64_t value)
{
#if defined(__x86_64__) && WR_COUNTER_PLAIN
    __asm__ volatile("subq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
#else
    WR_PUT(*counter, WR_OWN(*counter) - value);
#endif
}

/* Around the writes of several counters, which stay in between: odd, then even again. */
static inline void wr_sequence_step(wr_counter *sequence)
{
#if defined(__x86_64__) && WR_COUNTER_PLAIN
    __asm__ volatile("incq %0" : "+m"(*sequence) : : "cc", "memory");
#else
    WR_PUT(*sequence, WR_OWN(*sequence) + 1);
#endif
}

/* For counters that several threads write. */
#define WR_COUNT(counter) atomic_fetch_add_explicit(&(counter), 1, memory_order_relaxed)

static inline void wr_counter_raise(wr_counter *peak, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(peak, &seen, value,
                                                                  memory_order_acq_rel,
                                                                  memory_order_relaxed)) {
    }
}

#endif
