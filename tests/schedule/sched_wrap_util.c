/* SPDX-License-Identifier: MIT */
/*
 * What the library waits with, under the scheduler: the linker sends its calls here (--wrap, see
 * schedule.cmake). Threads that are not scheduled, and the scheduler itself, get the real ones.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include "sched_priv.h"

#define REAL(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

/* ---- Mutexes, conditions, semaphores ---- */

int __real_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);

static void lock(pthread_mutex_t *m) {
    while (__real_pthread_mutex_trylock(m) != 0)
        sched_wait(FIBER_BLOCKED, "lock", m);
    sched_weak_locked(m);
}

REAL(int, pthread_mutex_lock, pthread_mutex_t *m) {
    if (!sched_self)
        return __real_pthread_mutex_lock(m);
    sched_lock_point(m);
    lock(m);
    return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m) {
    if (sched_self)
        sched_lock_point(m);
    int status = __real_pthread_mutex_trylock(m);
    if (status == 0)
        sched_weak_locked(m);
    return status;
}

REAL(int, pthread_mutex_unlock, pthread_mutex_t *m) {
    if (sched_self) {
        sched_lock_point(m);
        sched_weak_unlocked(m);
        sched_wake(m);
    }
    return __real_pthread_mutex_unlock(m);
}

static int wait_on(pthread_cond_t *c, pthread_mutex_t *m, enum fiber_state state) {
    sched_lock_point(m);
    sched_weak_unlocked(m);
    sched_wake(m);
    (void)__real_pthread_mutex_unlock(m);
    sched_wait(state, "condition", c);
    bool over = sched_self->timed_out;
    lock(m);
    return over ? ETIMEDOUT : 0;
}

REAL(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *m) {
    return sched_self ? wait_on(c, m, FIBER_BLOCKED) : __real_pthread_cond_wait(c, m);
}

REAL(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m,
     const struct timespec *until) {
    return sched_self ? wait_on(c, m, FIBER_TIMED) : __real_pthread_cond_timedwait(c, m, until);
}

REAL(int, pthread_cond_broadcast, pthread_cond_t *c) {
    if (sched_self) {
        sched_point();
        sched_wake(c);
    }
    return __real_pthread_cond_broadcast(c);
}

REAL(int, sem_wait, sem_t *s) {
    if (!sched_self)
        return __real_sem_wait(s);
    sched_lock_point(s);
    TN__BRANCH(reaper_sleeps);
    while (sem_trywait(s) != 0)
        sched_wait(FIBER_BLOCKED, "semaphore", s);
    sched_weak_locked(s);
    return 0;
}

REAL(int, sem_post, sem_t *s) {
    if (sched_self) {
        sched_lock_point(s);
        sched_weak_unlocked(s);
        TN__BRANCH(reaper_is_woken);
        sched_wake(s);
    }
    return __real_sem_post(s);
}

/* ---- Threads and time ---- */

REAL(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
     void *argument) {
    if (!sched_self)
        return __real_pthread_create(thread, attr, start, argument);
    *thread = sched_spawn("reaper", start, argument)->thread;
    return 0;
}

REAL(int, pthread_join, pthread_t thread, void **value) {
    if (!sched_self)
        return __real_pthread_join(thread, value);
    for (size_t i = 0; i < sched_state.fiber_count; i++)
        if (pthread_equal(sched_state.fibers[i].thread, thread))
            sched_join(&sched_state.fibers[i]); /* the thread itself was joined by who came next */
    return 0;
}

REAL(int, sched_yield, void) {
    if (!sched_self)
        return __real_sched_yield();
    sched_pause();
    return 0;
}

REAL(int, nanosleep, const struct timespec *time, struct timespec *left) {
    if (!sched_self)
        return __real_nanosleep(time, left);
    sched_pause();
    return 0;
}

/* The schedule's own time: a microsecond for each step. */
REAL(int, clock_gettime, clockid_t clock, struct timespec *now) {
    if (!sched_self)
        return __real_clock_gettime(clock, now);
    *now = (struct timespec){.tv_sec = 1000 + (time_t)(sched_state.steps / 1000000),
                             .tv_nsec = (long)(sched_state.steps % 1000000) * 1000};
    return 0;
}

/* ---- Heavy fence ---- */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
    if (!sched_self || number != SYS_membarrier)
        return __real_syscall(number, a, b, c, d, e, f);
    if (a == MEMBARRIER_CMD_QUERY)
        return sched_state.plan.membarrier
                   ? MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
                   : 0;
    sched_point();
    sched_drain_all();
    sched_weak_fence_all();
    return 0;
}

/* ---- Sections and grace periods ---- */

/* Fences for the compiler; real ones where there is no membarrier. */
static void section_edge(void) {
    sched_weak_compiler();
    if (!sched_state.plan.membarrier)
        sched_weak_fence(sched_self);
}

REAL(void, urcu_memb_read_lock, void) {
    if (!sched_self) {
        __real_urcu_memb_read_lock();
        return;
    }
    sched_point();
    section_edge();
    if (sched_self->nest++ == 0)
        sched_self->sections++;
}

REAL(void, urcu_memb_read_unlock, void) {
    if (!sched_self) {
        __real_urcu_memb_read_unlock();
        return;
    }
    sched_point();
    section_edge();
    if (--sched_self->nest == 0)
        sched_wake(&sched_self->nest);
    sched_point();
}

REAL(int, urcu_memb_read_ongoing, void) {
    return sched_self ? sched_self->nest != 0 : __real_urcu_memb_read_ongoing();
}

/* The sections that it meets are over when it returns; those that begin meanwhile need not be. The
 * library's membarriers make every thread's stores visible at both ends. */
REAL(void, urcu_memb_synchronize_rcu, void) {
    uint64_t sections[SCHED_THREADS];
    if (!sched_self) {
        __real_urcu_memb_synchronize_rcu();
        return;
    }
    sched_point();
    sched_drain_all();
    sched_weak_fence_all();
    size_t count = sched_state.fiber_count;
    for (size_t i = 0; i < count; i++)
        sections[i] = sched_state.fibers[i].sections;
    for (size_t i = 0; i < count; i++) {
        fiber *f = &sched_state.fibers[i];
        while (f->nest && f->sections == sections[i])
            sched_wait(FIBER_BLOCKED, "grace period", &f->nest);
    }
    sched_point();
    sched_drain_all();
    sched_weak_fence_all();
}

/* ---- The queue: liburcu's wfcqueue, step by step ---- */

typedef struct node {
    struct node *_Atomic next;
} node;
typedef struct tail {
    node *_Atomic p;
} tail;

REAL(bool, cds_wfcq_enqueue, void *head, void *end, void *what) {
    if (!sched_self)
        return __real_cds_wfcq_enqueue(head, end, what);
    node *old = tn__swap_sc(&((tail *)end)->p, (node *)what);
    tn__store_rlx(&old->next, (node *)what); /* between the two, the push is half done */
    return old != head;
}

REAL(bool, cds_wfcq_empty, void *head, void *end) {
    if (!sched_self)
        return __real_cds_wfcq_empty(head, end);
    return tn__load_rlx(&((node *)head)->next) == NULL &&
           tn__load_rlx(&((tail *)end)->p) == (node *)head;
}

/* NULL: empty, or a push is half done. */
REAL(void *, __cds_wfcq_dequeue_nonblocking, void *head, void *end) {
    if (!sched_self)
        return __real___cds_wfcq_dequeue_nonblocking(head, end);
    node *first = tn__load_acq(&((node *)head)->next);
    if (!first)
        return NULL;
    node *next = tn__load_acq(&first->next);
    if (!next) {
        node *last = first;
        tn__store_rlx(&((node *)head)->next, NULL);
        if (tn__cas_acq_rel(&((tail *)end)->p, &last, (node *)head))
            return first;
        next = tn__load_acq(&first->next);
        if (!next) {
            tn__store_rlx(&((node *)head)->next, first);
            return NULL;
        }
    }
    tn__store_rlx(&((node *)head)->next, next);
    return first;
}
