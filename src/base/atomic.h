/* SPDX-License-Identifier: MIT */
/*
 * Atomics with the order in the name, so that a search finds every acquire. Only _Atomic fields,
 * only explicit orders. Each call but a relaxed one carries a tag block; see src/README.md for
 * the table of tags.
 */
#ifndef TENURE_BASE_ATOMIC_H
#define TENURE_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* 1: a build for schedule exploration only (tests/schedule): each operation is a point at which
 * another thread may be let run, and stores wait in a simulated buffer. */
#ifndef TN_SCHEDULE
#define TN_SCHEDULE 0
#endif

#if TN_SCHEDULE
#include "base/schedule.h"
#else
/* A branch of the protocol, counted by schedule exploration (names in base/schedule.h). */
#define TN__BRANCH(name) ((void)0)

#define tn__load_rlx(p) atomic_load_explicit((p), memory_order_relaxed)
#define tn__load_acq(p) atomic_load_explicit((p), memory_order_acquire)

#define tn__store_rlx(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define tn__store_rel(p, v) atomic_store_explicit((p), (v), memory_order_release)

#define tn__add_rlx(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define tn__sub_rlx(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define tn__sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)

#define tn__swap_rlx(p, v) atomic_exchange_explicit((p), (v), memory_order_relaxed)
#define tn__swap_acq(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define tn__swap_sc(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)

/* Strong compare-and-swap: *expected becomes the current value on failure. A failure orders as an
 * acquire load (acq_rel) or not at all. */
#define tn__cas_rlx(p, expected, v)                                                                \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_relaxed,            \
                                            memory_order_relaxed)
#define tn__cas_rel(p, expected, v)                                                                \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release,            \
                                            memory_order_relaxed)
#define tn__cas_acq_rel(p, expected, v)                                                            \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel,            \
                                            memory_order_acquire)

#define tn__fence_acq() atomic_thread_fence(memory_order_acquire)
#define tn__fence_rel() atomic_thread_fence(memory_order_release)
#define tn__fence_sc() atomic_thread_fence(memory_order_seq_cst)
#define tn__fence_compiler() atomic_signal_fence(memory_order_seq_cst)
#endif

/* Two adjacent 64-bit words changed by one step. x86-64: cmpxchg16b by the __sync builtin, which
 * is inlined (the C11 form calls libatomic); full barrier. Loads of one half are ordinary atomic
 * loads: a torn pair makes the next CAS fail. */
typedef union tn__pair {
    struct {
        _Atomic uint64_t low;
        _Atomic uint64_t high;
    };
    unsigned __int128 both;
} __attribute__((aligned(16))) tn__pair;

static inline unsigned __int128 tn__pair_value(uint64_t low, uint64_t high) {
    return ((unsigned __int128)high << 64) | low;
}

/* Compare-and-swap of both words. */
static inline bool tn__pair_cas(tn__pair *p, uint64_t old_low, uint64_t old_high, uint64_t new_low,
                                uint64_t new_high) {
    return __sync_bool_compare_and_swap(&p->both, tn__pair_value(old_low, old_high),
                                        tn__pair_value(new_low, new_high));
}

#if !TN_SCHEDULE
/* A full barrier on x86-64; relaxed says that nothing hangs on that. */
#define tn__pair_cas_rlx tn__pair_cas
#define tn__pair_cas_acq_rel tn__pair_cas
#else
#define TN__PAIR_CAS(p, order, failure, ...)                                                       \
    __extension__({                                                                                \
        tn__pair *tn__at = (p);                                                                    \
        tn__schedule_rmw(tn__at, sizeof *tn__at);                                                  \
        bool tn__done = tn__pair_cas(tn__at, __VA_ARGS__);                                         \
        tn__schedule_rmw_done(tn__at, sizeof *tn__at, tn__done ? (order) : (failure), tn__done);   \
        tn__done;                                                                                  \
    })
#define tn__pair_cas_rlx(p, ...) TN__PAIR_CAS(p, TN__RELAXED, TN__RELAXED, __VA_ARGS__)
#define tn__pair_cas_acq_rel(p, ...)                                                               \
    TN__PAIR_CAS(p, TN__ACQUIRE | TN__RELEASE, TN__ACQUIRE, __VA_ARGS__)
#endif

/* Plain words of liburcu's that its own threads access in the same way. */
#define tn__foreign_load_rlx(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define tn__foreign_store_rlx(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

#define TN__CACHE_LINE 64

/* A short wait loop's body. */
static inline void tn__relax(void) {
#if TN_SCHEDULE
    tn__schedule_pause();
#elif defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

#endif
