/* SPDX-License-Identifier: MIT */
/*
 * RCU over liburcu (memb flavour), and the light/heavy fence pair. liburcu is included in rcu.c
 * only.
 *
 * R1: whoever reads a published pointer does so in a section, or holds a pinned version.
 * R2: an object is freed after it was unpublished and then a grace period passed.
 * R3: nothing inside a section waits, locks, or calls out.
 * R4: nobody waits for a grace period inside a section, ours or the host's (tn__rcu_synchronize()
 * refuses).
 *
 * Fences: [fence] a reader's light fence (compiler only) pairs with a writer's heavy fence
 * (membarrier on every thread of the process): of reader {store A; light; load B} and writer
 * {store B; heavy; load A}, at least one sees the other's store. Where membarrier cannot be had
 * (or in a build with TN_NO_MEMBARRIER) both are seq_cst fences; the mode is fixed once per
 * process.
 */
#ifndef TENURE_BASE_RCU_H
#define TENURE_BASE_RCU_H

#include "base/atomic.h"
#include "base/thread.h"

/* Register this thread unless it is already (by us, or by the host program). Call once per thread
 * before the first section. */
void tn__rcu_thread_ready(tn__thread *thread);
/* At thread exit: unregister if it was us. */
void tn__rcu_thread_exit(tn__thread *thread);

/* Whether this process was forked from one in which other threads were registered: no grace period
 * can end in it. */
bool tn__rcu_stranded(void);

void tn__rcu_lock(void);
void tn__rcu_unlock(void);
/*
 * The same through the addresses that the thread keeps, for hot paths: no call, no thread-local
 * look-up of liburcu's. What liburcu 0.13 to 0.15 does in urcu_memb_read_lock() and _unlock(): the
 * low half of the reader's word counts nesting, the bit above it is the phase of the outermost
 * section. False: not ready, or one of the two membarriers (liburcu's, ours) cannot be had; use the
 * slow way. So a section entered here needs no more than a compiler fence for a light fence.
 */
/* The rare end of a section: somebody waits for a grace period. */
TN__COLD void tn__rcu_wake(void);

#if TN__TSAN || TN_SCHEDULE
/* TSan, and a schedule, must see liburcu's calls; what is inside the section stays the same. */
static inline bool tn__rcu_enter(tn__thread *thread, unsigned long *out_entered) {
    *out_entered = 0;
    if (!(*thread->rcu_flag & 1))
        return false;
    tn__rcu_lock();
    return true;
}
static inline void tn__rcu_leave(tn__thread *thread, unsigned long entered) {
    (void)thread;
    (void)entered;
    tn__rcu_unlock();
}
#else
#define TN__RCU_NEST_MASK ((1ul << (sizeof(long) * 4)) - 1)
static inline bool tn__rcu_enter(tn__thread *thread, unsigned long *out_entered) {
    unsigned long *word = thread->rcu_word;
    if (tn__unlikely(!(tn__foreign_load_rlx(thread->rcu_flag) & 1)))
        return false;
    unsigned long now = tn__foreign_load_rlx(word);
    unsigned long next = now + 1;
    if (tn__likely(!(now & TN__RCU_NEST_MASK)))
        next = tn__foreign_load_rlx(thread->rcu_phase);
    tn__foreign_store_rlx(word, next);
    *out_entered = next;
    /* [rcu-enter] light. Pairs: the membarriers of synchronize_rcu(). Orders: the word -> the
     * section's loads. Without: a section that a grace period did not see. A compiler fence is
     * enough because the other side makes it a full one. */
    tn__fence_compiler();
    return true;
}
/* `entered`: what tn__rcu_enter() gave. */
static inline void tn__rcu_leave(tn__thread *thread, unsigned long entered) {
    unsigned long *word = thread->rcu_word;
    /* [rcu-enter] light: the section's loads -> the word -> the look at the waiter; enough because
     * the other side's membarriers make it a full one. */
    tn__fence_compiler();
    tn__foreign_store_rlx(word, entered - 1);
    tn__fence_compiler(); /* [rcu-enter] */
    if (tn__unlikely(tn__foreign_load_rlx(thread->rcu_futex) == -1))
        tn__rcu_wake();
}
#endif

/* Whether this thread is in a section (ours or the host's). */
bool tn__rcu_in_section(void);
/* Wait for a grace period. TN_ERR_REENTRANCY in a section. */
TN_NODISCARD tn_status tn__rcu_synchronize(void);

/* 1: heavy fences are membarriers, light ones cost nothing; 0: both are seq_cst fences. Fixed at
 * the first tn__fence_ready(). */
extern _Atomic int tn__fence_asymmetric;
void tn__fence_ready(void);

/* [fence] light. Pairs: tn__heavy_fence(). Orders: a reader's stores before it -> its loads after
 * it. Without: a reader's pin is still in its store buffer when a removal scans, and the reader
 * loads the state word from before it: use after free. Acquire/release cannot order a store
 * before a load. */
static inline void tn__light_fence(void) {
    if (tn__likely(tn__load_rlx(&tn__fence_asymmetric)))
        tn__fence_compiler(); /* [fence] the writer's membarrier makes it a full one */
    else
        tn__fence_sc(); /* [fence] seq_cst, because store -> load is not acquire/release's order */
}

/* TN_ERR_SYSTEM: no ordering was established; the caller must behave as if the fence had found a
 * reader. */
TN_NODISCARD tn_status tn__heavy_fence(void);

/* Tests: the next n heavy fences fail. */
void tn__fault_fence(uint64_t count);

#endif
