/* SPDX-License-Identifier: MIT */
/*
 * The only file that includes liburcu. Its read side is compiled in (_LGPL_SOURCE: functions of a
 * few lines, which the licence allows), the rest is linked dynamically.
 *
 * TSan does not see the library's own synchronisation, so grace periods are annotated: the end of
 * each section releases, the end of a grace period acquires. Publishing and reading pointers uses
 * our own C11 atomics and needs no help.
 */
#include "base/atomic.h"
#include "base/base_internal.h"

/* TSan takes the plain futex word of the compiled-in read side for a race, and a schedule must see
 * the calls: call the library instead */
#if !TN__TSAN && !TN_SCHEDULE
#define _LGPL_SOURCE
#endif
#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <pthread.h>

#define RCU_MEMB
#include <urcu.h>
#if TN__TSAN || TN_SCHEDULE
#include <urcu/static/urcu-memb.h>
#endif

#include "base/lockrank.h"
#include "base/rcu.h"

#if TN__TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
static char grace_edge;
#define EDGE_RELEASE() __tsan_release(&grace_edge)
#define EDGE_ACQUIRE() __tsan_acquire(&grace_edge)
#else
#define EDGE_RELEASE() ((void)0)
#define EDGE_ACQUIRE() ((void)0)
#endif

/* A bit-field has no address: it follows the thread's id in liburcu's struct. */
static const unsigned int *registered_flag(void) {
    return (const unsigned int *)((const char *)&URCU_TLS(rcu_reader).tid + sizeof(pthread_t));
}

static const unsigned int never;

/* ---- Threads -------------------------------------------------------------------------------- */

/* Threads that we have registered, and the process of the last one: a fork copies liburcu's list of
 * threads to a process that has one of them. The others' entries lie in stacks that will be used
 * again, so a grace period there follows them into anything. */
static _Atomic uint64_t registered;
static _Atomic uint64_t home;

bool tn__rcu_stranded(void) {
    uint64_t own = tn__thread_own->rcu_registered;
    return tn__load_rlx(&registered) > own && tn__load_rlx(&home) != (uint64_t)getpid();
}

/* The count is never too small, also while one comes or goes. */
static void register_own(tn__thread *thread) {
    tn__store_rlx(&home, (uint64_t)getpid());
    tn__add_rlx(&registered, 1);
    rcu_register_thread();
    thread->rcu_registered = true;
}

static void unregister_own(tn__thread *thread) {
    if (!tn__rcu_stranded()) {
        if (URCU_TLS(rcu_reader).registered)
            rcu_unregister_thread();
        tn__sub_rlx(&registered, 1);
    }
    thread->rcu_registered = false;
}

TN__COLD static void make_ready(tn__thread *thread) {
    tn__fence_ready();
    thread->rcu_flag = &never;
    if (!URCU_TLS(rcu_reader).registered && !tn__rcu_stranded()) /* there nobody waits for it */
        register_own(thread);
    /* The inlined read side needs liburcu's membarrier mode, and the struct that we know. */
    if (urcu_memb_has_sys_membarrier && (*registered_flag() & 1) &&
        tn__load_rlx(&tn__fence_asymmetric))
        thread->rcu_flag = registered_flag();
    thread->rcu_phase = &rcu_gp.ctr;
    thread->rcu_futex = &rcu_gp.futex;
    thread->rcu_word = &URCU_TLS(rcu_reader).ctr;
}

/* Again after a host program has unregistered its thread. */
void tn__rcu_thread_ready(tn__thread *thread) {
    if (tn__unlikely(!URCU_TLS(rcu_reader).registered || !thread->rcu_word))
        make_ready(thread);
}

void tn__rcu_thread_exit(tn__thread *thread) {
    if (thread->rcu_registered)
        unregister_own(thread);
    thread->rcu_flag = &never;
    thread->rcu_word = NULL;
}

/* ---- Sections ------------------------------------------------------------------------------- */

void tn__rcu_wake(void) { urcu_common_wake_up_gp(&rcu_gp); }

void tn__rcu_lock(void) { rcu_read_lock(); }

void tn__rcu_unlock(void) {
    EDGE_RELEASE();
    rcu_read_unlock();
}

bool tn__rcu_in_section(void) { return URCU_TLS(rcu_reader).registered && rcu_read_ongoing(); }

tn_status tn__rcu_synchronize(void) {
    if (tn__rcu_in_section())
        return tn__fail(TN_ERR_REENTRANCY, "called inside an RCU read section");
    tn__assert_may_wait("grace period");
    TN__AT(TN__POINT_GRACE, NULL);
    synchronize_rcu();
    EDGE_ACQUIRE();
    return TN_OK;
}

/* ---- Fences ----------------------------------------------------------------------------- */

/* Written once, before the first reader can exist (creation of the first manager); relaxed. */
_Atomic int tn__fence_asymmetric;
static pthread_once_t fence_once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t fence_faults;

static void fence_choose(void) {
#ifndef TN_NO_MEMBARRIER
    long query = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (query < 0 || !(query & MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0)
        tn__store_rlx(&tn__fence_asymmetric, 1);
#endif
}

void tn__fence_ready(void) { pthread_once(&fence_once, fence_choose); }

void tn__fault_fence(uint64_t count) { tn__store_rlx(&fence_faults, count); }

tn_status tn__heavy_fence(void) {
    if (tn__unlikely(tn__load_rlx(&fence_faults) != 0)) {
        tn__sub_rlx(&fence_faults, 1);
        tn_error *e = tn__error(TN_ERR_SYSTEM, "membarrier failed (by a test)");
        e->native_code = EPERM;
        return TN_ERR_SYSTEM;
    }
    if (!tn__load_rlx(&tn__fence_asymmetric)) {
        /* [fence] heavy. seq_cst, because store -> load cannot be ordered by acquire and release. */
        tn__fence_sc();
        return TN_OK;
    }
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return TN_OK;
    tn_error *e = tn__error(TN_ERR_SYSTEM, "membarrier failed");
    e->native_code = errno;
    return TN_ERR_SYSTEM;
}
