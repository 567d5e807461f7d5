/* SPDX-License-Identifier: MIT */
/*
 * Switches of the drill (drill.py). Appended to src/base/atomic.h of a copy of the tree, in which
 * every place that the drill can break is TN__DRILL(number, broken, as it is). TN_DRILL=<number> breaks
 * one; 0 or nothing breaks none. Orders that only the drill needs stand here as well.
 */
#ifndef TENURE_BASE_DRILL_H
#define TENURE_BASE_DRILL_H

extern int tn__drill;
void tn__drill_note(void); /* the place was met: for the report of a survivor */

static inline int tn__drilled(int number) {
    if (__builtin_expect(tn__drill != number, 1))
        return 0;
    tn__drill_note();
    return 1;
}

#define TN__DRILL(number, broken, whole) (tn__drilled(number) ? (broken) : (whole))

#if TN_SCHEDULE
#define tn__swap_acq_rel(p, v) TN__RMW(p, TN__ACQUIRE | TN__RELEASE, atomic_exchange(tn__at, (v)))
#else
#define tn__swap_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#if defined(__SANITIZE_THREAD__)
/* The builtin is a full barrier to ThreadSanitizer; this call is none. */
_Bool __tsan_atomic128_compare_exchange_strong(volatile void *at, void *old,
                                               unsigned __int128 value, int order, int failure);
#undef tn__pair_cas_rlx
#define tn__pair_cas_rlx(p, old_low, old_high, new_low, new_high)                                  \
    __extension__({                                                                                \
        unsigned __int128 tn__old = tn__pair_value((old_low), (old_high));                         \
        __tsan_atomic128_compare_exchange_strong(&(p)->both, &tn__old,                             \
                                                 tn__pair_value((new_low), (new_high)), 0, 0);     \
    })
#endif
#endif

#endif
