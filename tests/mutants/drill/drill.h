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

#if !TN_SCHEDULE
#define tn__swap_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define tn__pair_cas_rlx(p, old_low, old_high, new_low, new_high)                                  \
    __extension__({                                                                                \
        unsigned __int128 tn__old = tn__pair_value((old_low), (old_high));                         \
        tn__drill_pair_cas(&(p)->both, &tn__old, tn__pair_value((new_low), (new_high)));           \
    })
#if defined(__SANITIZE_THREAD__)
/* The builtin is a full barrier to ThreadSanitizer; this call is none. */
_Bool __tsan_atomic128_compare_exchange_strong(volatile void *at, void *old,
                                               unsigned __int128 value, int order, int failure);
#define tn__drill_pair_cas(at, old, value)                                                         \
    __tsan_atomic128_compare_exchange_strong((at), (old), (value), 0, 0)
#else
#define tn__drill_pair_cas(at, old, value) __sync_bool_compare_and_swap((at), *(old), (value))
#endif
#else
#define tn__swap_acq_rel(p, v) TN__RMW(p, TN__ACQUIRE | TN__RELEASE, atomic_exchange(tn__at, (v)))
static inline bool tn__pair_cas_rlx(tn__pair *p, uint64_t old_low, uint64_t old_high,
                                    uint64_t new_low, uint64_t new_high) {
    tn__schedule_rmw(p, sizeof *p);
    bool done = __sync_bool_compare_and_swap(&p->both, tn__pair_value(old_low, old_high),
                                             tn__pair_value(new_low, new_high));
    tn__schedule_rmw_done(p, sizeof *p, TN__RELAXED, done);
    return done;
}
#endif

#endif
