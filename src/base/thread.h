/* SPDX-License-Identifier: MIT */
/*
 * The thread's own block, made at its first call and freed at its exit: its error, its open
 * calls, its RCU registration, and the slots that the lifetime module keeps per manager (opaque
 * here).
 *
 * Invariant T1: everything but `slots` of another thread's block is private; the thread exit hook
 * runs on the exiting thread.
 */
#ifndef TENURE_BASE_THREAD_H
#define TENURE_BASE_THREAD_H

#include "base/base_internal.h"

/* One call of this thread that is inside a manager: a mutation (nested calls are refused, M197),
 * or a source callback (M189). */
typedef struct tn__frame {
    uint64_t manager;
    bool callback;
    struct tn__frame *outer;
    uint64_t
        cached_id; /* of the thread, while the frame hides it: inside, no call takes the hot path */
    void *cached_slot;
} tn__frame;

typedef struct tn__thread {
    tn_error error;
    tn__frame *frames; /* innermost first */
    void *slots;       /* lifetime: this thread's slots */
    /* lifetime: the manager used last outside any frame, 0 if none, and its slot. */
    uint64_t cached_id;
    void *cached_slot;
    const void *known_type; /* manager: the value type found valid last (types never change) */
    bool rcu_registered;    /* by us: unregister at exit */
    /* rcu.h: set once the thread is registered, by us or by the host program. */
    unsigned long *rcu_word;        /* this thread's reader word; NULL: take the slow way */
    const unsigned int *rcu_flag;   /* bit 0: registered, and the hot path may be taken */
    const unsigned long *rcu_phase; /* the process's current phase */
    const int32_t *rcu_futex;       /* -1 while somebody waits for a grace period */
    uint32_t rank_depth;            /* lock ranks held (TN_CHECKS) */
    uint32_t ranks[8];
    uint64_t locks; /* tn__lock() calls (TN_CHECKS) */
} tn__thread;

/* The library's whole thread-local storage: one pointer (loadable by dlopen at any time). Before
 * the thread's first call it points to a block that is nobody's: all zero, so that no hot path is
 * taken. */
extern __thread tn__thread *tn__thread_own __attribute__((visibility("hidden")));
extern tn__thread tn__thread_nobody __attribute__((visibility("hidden")));

/* This thread's block; NULL only if it cannot be allocated. */
TN__COLD tn__thread *tn__thread_make(void);
static inline tn__thread *tn__thread_self(void) {
    tn__thread *thread = tn__thread_own;
    return tn__likely(thread != &tn__thread_nobody) ? thread : tn__thread_make();
}

/* What lifetime does when a thread exits; set once, before the first slot is made. */
extern void (*_Atomic tn__thread_exit_slots)(tn__thread *thread);

void tn__frame_push(tn__thread *thread, tn__frame *frame, uint64_t manager, bool callback);
void tn__frame_pop(tn__thread *thread, tn__frame *frame);
/* Whether this thread is inside `manager` (0: any manager), in a mutation or callback;
 * `callbacks_only`: in a source callback. */
bool tn__frame_inside(const tn__thread *thread, uint64_t manager, bool callbacks_only);

#endif
