/* SPDX-License-Identifier: MIT */
/*
 * The atomics of atomic.h in a build for schedule exploration (TN_SCHEDULE=1, tests/schedule). Each
 * one calls the scheduler before it does anything: there another thread may go on. The machine is
 * x86-64's: relaxed and release stores wait in the thread's own buffer, in order, and loads look
 * into it first; read-modify-writes, seq_cst stores and fences empty it, and so does the heavy
 * fence of any thread. Or, with TN_SCHEDULE_MEMORY=weak, it is one that does what C11 allows. Never
 * part of the library.
 */
#ifndef TENURE_BASE_SCHEDULE_H
#define TENURE_BASE_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Branches of the protocol (src/README.md) that an exploration must reach. */
#define TN__BRANCHES(X)                                                                            \
    X(reader_aborts_removal)                                                                       \
    X(reader_finds_taken)                                                                          \
    X(reader_finds_gone_looks_again)                                                               \
    X(reader_finds_gone_fails)                                                                     \
    X(reader_aborts_close)                                                                         \
    X(hot_path_undone)                                                                             \
    X(leaf_acquire_undone)                                                                         \
    X(removal_decided)                                                                             \
    X(removal_waits_for_acquiring)                                                                 \
    X(removal_sees_pin)                                                                            \
    X(removal_aborted_granted)                                                                     \
    X(removal_aborted_failed)                                                                      \
    X(removal_taken)                                                                               \
    X(release_lost)                                                                                \
    X(pending_completed)                                                                           \
    X(pending_completed_by_other)                                                                  \
    X(consumer_finds_done)                                                                         \
    X(reaper_sleeps)                                                                               \
    X(reaper_is_woken)                                                                             \
    X(record_goes_home)                                                                            \
    X(slot_taken_over)                                                                             \
    X(releasing_waited_for)                                                                        \
    X(snapshot_again)                                                                              \
    X(snapshot_inexact)                                                                            \
    X(flow_waits_for_handle)                                                                       \
    X(flow_waits_behind)                                                                           \
    X(flow_waits_for_bytes)                                                                        \
    X(flow_joins_load)                                                                             \
    X(flow_moved_on)                                                                               \
    X(flow_rechecks)                                                                               \
    X(claims_refused)                                                                              \
    X(plan_meets_use)                                                                              \
    X(plan_is_stale)                                                                               \
    X(use_hits_at_once)                                                                            \
    X(use_hits)                                                                                    \
    X(use_decides_again)

enum tn__branch {
#define TN__BRANCH_NAME(name) tn__branch_##name,
    TN__BRANCHES(TN__BRANCH_NAME)
#undef TN__BRANCH_NAME
        TN__BRANCH_COUNT
};

/* Orders, for weak memory: sums of these. */
enum tn__order { TN__RELAXED = 0, TN__ACQUIRE = 1, TN__RELEASE = 2, TN__FENCE = 4 };

/* The scheduler (tests/schedule). False: this thread is not scheduled; do it directly. */
bool tn__schedule_load(const volatile void *address, void *value, size_t size, int order);
bool tn__schedule_store(volatile void *address, const void *value, size_t size, int order);
/* Around a read-modify-write: the buffer is empty when the first returns. */
void tn__schedule_rmw(volatile void *address, size_t size);
void tn__schedule_rmw_done(volatile void *address, size_t size, int order, bool wrote);
void tn__schedule_fence(void);
void tn__schedule_fence_acq(void);
void tn__schedule_fence_rel(void);
void tn__schedule_fence_compiler(void);
void tn__schedule_pause(void);
void tn__schedule_branch(enum tn__branch branch);

#define TN__BRANCH(name) tn__schedule_branch(tn__branch_##name)

/* A value that is itself a load shadows the names of the one around it. */
#pragma GCC diagnostic ignored "-Wshadow"

/* The type of a load: without _Atomic and const. */
#define TN__VALUE_OF(p) __typeof__((void)0, *(p))

#define TN__LOAD(p, order)                                                                         \
    __extension__({                                                                                \
        __typeof__(p) tn__at = (p);                                                                \
        TN__VALUE_OF(tn__at) tn__it;                                                               \
        if (!tn__schedule_load(tn__at, &tn__it, sizeof tn__it, order))                             \
            tn__it = atomic_load_explicit(tn__at, memory_order_seq_cst);                           \
        tn__it;                                                                                    \
    })
#define tn__load_rlx(p) TN__LOAD(p, TN__RELAXED)
#define tn__load_acq(p) TN__LOAD(p, TN__ACQUIRE)

#define TN__STORE(p, v, order)                                                                     \
    __extension__({                                                                                \
        __typeof__(p) tn__at = (p);                                                                \
        TN__VALUE_OF(tn__at) tn__it = (v);                                                         \
        if (!tn__schedule_store(tn__at, &tn__it, sizeof tn__it, order))                            \
            atomic_store_explicit(tn__at, tn__it, memory_order_seq_cst);                           \
    })
#define tn__store_rlx(p, v) TN__STORE(p, v, TN__RELAXED)
#define tn__store_rel(p, v) TN__STORE(p, v, TN__RELEASE)

#define TN__RMW(p, order, operation)                                                               \
    __extension__({                                                                                \
        __typeof__(p) tn__at = (p);                                                                \
        tn__schedule_rmw(tn__at, sizeof *tn__at);                                                  \
        TN__VALUE_OF(tn__at) tn__was = (operation);                                                \
        tn__schedule_rmw_done(tn__at, sizeof *tn__at, order, true);                                \
        tn__was;                                                                                   \
    })
#define TN__CAS(p, expected, v, order, failure)                                                    \
    __extension__({                                                                                \
        __typeof__(p) tn__at = (p);                                                                \
        tn__schedule_rmw(tn__at, sizeof *tn__at);                                                  \
        bool tn__done = atomic_compare_exchange_strong(tn__at, (expected), (v));                   \
        tn__schedule_rmw_done(tn__at, sizeof *tn__at, tn__done ? (order) : (failure), tn__done);   \
        tn__done;                                                                                  \
    })
#define tn__add_rlx(p, v) TN__RMW(p, TN__RELAXED, atomic_fetch_add(tn__at, (v)))
#define tn__sub_rlx(p, v) TN__RMW(p, TN__RELAXED, atomic_fetch_sub(tn__at, (v)))
#define tn__sub_acq_rel(p, v) TN__RMW(p, TN__ACQUIRE | TN__RELEASE, atomic_fetch_sub(tn__at, (v)))
#define tn__swap_rlx(p, v) TN__RMW(p, TN__RELAXED, atomic_exchange(tn__at, (v)))
#define tn__swap_acq(p, v) TN__RMW(p, TN__ACQUIRE, atomic_exchange(tn__at, (v)))
#define tn__swap_sc(p, v)                                                                          \
    TN__RMW(p, TN__ACQUIRE | TN__RELEASE | TN__FENCE, atomic_exchange(tn__at, (v)))
#define tn__cas_rlx(p, expected, v) TN__CAS(p, expected, v, TN__RELAXED, TN__RELAXED)
#define tn__cas_rel(p, expected, v) TN__CAS(p, expected, v, TN__RELEASE, TN__RELAXED)
#define tn__cas_acq_rel(p, expected, v)                                                            \
    TN__CAS(p, expected, v, TN__ACQUIRE | TN__RELEASE, TN__ACQUIRE)

/* x86-64 keeps loads and stores in order; only a store before a load needs a fence. */
#define tn__fence_acq() tn__schedule_fence_acq()
#define tn__fence_rel() tn__schedule_fence_rel()
#define tn__fence_compiler() tn__schedule_fence_compiler()
#define tn__fence_sc() tn__schedule_fence()

#endif
