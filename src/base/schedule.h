/* SPDX-License-Identifier: MIT */
/*
 * The atomics of atomic.h in a build for schedule exploration (TN_SCHEDULE=1, tests/schedule). Each
 * one calls the scheduler before it does anything: there another thread may go on. The machine is
 * x86-64's: relaxed and release stores wait in the thread's own buffer, in order, and loads look
 * into it first; read-modify-writes, seq_cst stores and fences empty it, and so does the heavy
 * fence of any thread. Never part of the library.
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

/* The scheduler (tests/schedule). False: this thread is not scheduled; do it directly. */
bool tn__schedule_load(const volatile void *address, void *value, size_t size);
bool tn__schedule_store(volatile void *address, const void *value, size_t size);
void tn__schedule_rmw(volatile void *address); /* the buffer is empty when it returns */
void tn__schedule_fence(void);
void tn__schedule_pause(void);
void tn__schedule_branch(enum tn__branch branch);

#define TN__BRANCH(name) tn__schedule_branch(tn__branch_##name)

/* A value that is itself a load shadows the names of the one around it. */
#pragma GCC diagnostic ignored "-Wshadow"

/* The type of a load: without _Atomic and const. */
#define TN__VALUE_OF(p) __typeof__((void)0, *(p))

#define tn__load_rlx(p)                                                                            \
    __extension__({                                                                                \
        __typeof__(p) tn__at = (p);                                                                \
        TN__VALUE_OF(tn__at) tn__it;                                                               \
        if (!tn__schedule_load(tn__at, &tn__it, sizeof tn__it))                                    \
            tn__it = atomic_load_explicit(tn__at, memory_order_seq_cst);                           \
        tn__it;                                                                                    \
    })
#define tn__load_acq(p) tn__load_rlx(p)

#define tn__store_rlx(p, v)                                                                        \
    __extension__({                                                                                \
        __typeof__(p) tn__at = (p);                                                                \
        TN__VALUE_OF(tn__at) tn__it = (v);                                                         \
        if (!tn__schedule_store(tn__at, &tn__it, sizeof tn__it))                                   \
            atomic_store_explicit(tn__at, tn__it, memory_order_seq_cst);                           \
    })
#define tn__store_rel(p, v) tn__store_rlx(p, v)

#define TN__RMW(p, operation)                                                                      \
    __extension__({                                                                                \
        __typeof__(p) tn__at = (p);                                                                \
        tn__schedule_rmw(tn__at);                                                                  \
        operation;                                                                                 \
    })
#define tn__store_sc(p, v) TN__RMW(p, atomic_store(tn__at, (v)))
#define tn__add_rlx(p, v) TN__RMW(p, atomic_fetch_add(tn__at, (v)))
#define tn__sub_rlx(p, v) TN__RMW(p, atomic_fetch_sub(tn__at, (v)))
#define tn__sub_acq_rel(p, v) tn__sub_rlx(p, v)
#define tn__swap_acq(p, v) TN__RMW(p, atomic_exchange(tn__at, (v)))
#define tn__swap_acq_rel(p, v) tn__swap_acq(p, v)
#define tn__swap_sc(p, v) tn__swap_acq(p, v)
#define tn__cas_rlx(p, expected, v)                                                                \
    TN__RMW(p, atomic_compare_exchange_strong(tn__at, (expected), (v)))
#define tn__cas_rel(p, expected, v) tn__cas_rlx(p, expected, v)
#define tn__cas_acq_rel(p, expected, v) tn__cas_rlx(p, expected, v)

/* x86-64 keeps loads in order; only a store before a load needs a fence. */
#define tn__fence_acq() atomic_signal_fence(memory_order_seq_cst)
#define tn__fence_compiler() atomic_signal_fence(memory_order_seq_cst)
#define tn__fence_sc() tn__schedule_fence()

#endif
