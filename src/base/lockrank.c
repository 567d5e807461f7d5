/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <time.h>

#include "base/lockrank.h"
#include "base/thread.h"

#if TN_CHECKS
static void note_locked(const tn__mutex *m) {
    tn__thread *t = tn__thread_self();
    if (!t)
        return;
    TN_ASSERT(t->rank_depth == 0 || t->ranks[t->rank_depth - 1] < (uint32_t)m->rank);
    TN_ASSERT(t->rank_depth < sizeof t->ranks / sizeof t->ranks[0]);
    t->ranks[t->rank_depth++] = (uint32_t)m->rank;
    t->locks++;
}

static void note_unlocked(const tn__mutex *m) {
    tn__thread *t = tn__thread_self();
    if (!t)
        return;
    TN_ASSERT(t->rank_depth > 0 && t->ranks[t->rank_depth - 1] == (uint32_t)m->rank);
    t->rank_depth--;
}

void tn__assert_may_wait(const char *what) {
    tn__thread *t = tn__thread_self();
    if (t && t->rank_depth > 0 && t->ranks[t->rank_depth - 1] >= TN__RANK_STATE)
        tn__assert_failed(what, "called under a lock of rank STATE or above", 0);
}

void tn__assert_locked(const tn__mutex *m) {
    tn__thread *t = tn__thread_self();
    if (!t)
        return;
    for (uint32_t i = 0; i < t->rank_depth; i++)
        if (t->ranks[i] == (uint32_t)m->rank)
            return;
    tn__assert_failed("the lock is held", __FILE__, __LINE__);
}

uint64_t tn__lock_count(void) {
    tn__thread *t = tn__thread_self();
    return t ? t->locks : 0;
}
#else
static void note_locked(const tn__mutex *m) { (void)m; }

static void note_unlocked(const tn__mutex *m) { (void)m; }

uint64_t tn__lock_count(void) { return 0; }
#endif

void tn__mutex_init(tn__mutex *m, enum tn__rank rank) {
    pthread_mutex_init(&m->mutex, NULL);
    m->rank = rank;
}

void tn__mutex_fini(tn__mutex *m) { pthread_mutex_destroy(&m->mutex); }

void tn__lock(tn__mutex *m) {
    pthread_mutex_lock(&m->mutex);
    note_locked(m);
}

bool tn__try_lock(tn__mutex *m) {
    if (pthread_mutex_trylock(&m->mutex) != 0)
        return false;
    note_locked(m);
    return true;
}

void tn__unlock(tn__mutex *m) {
    note_unlocked(m);
    pthread_mutex_unlock(&m->mutex);
}

void tn__cond_init(tn__cond *c) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->cond, &attr);
    pthread_condattr_destroy(&attr);
}

void tn__cond_fini(tn__cond *c) { pthread_cond_destroy(&c->cond); }

void tn__cond_wait(tn__cond *c, tn__mutex *m) {
    note_unlocked(m);
    tn__assert_may_wait("tn__cond_wait");
    pthread_cond_wait(&c->cond, &m->mutex);
    note_locked(m);
}

bool tn__cond_wait_ns(tn__cond *c, tn__mutex *m, uint64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t sum = (uint64_t)until.tv_nsec + ns % 1000000000u;
    until.tv_sec += (time_t)(ns / 1000000000u + sum / 1000000000u);
    until.tv_nsec = (long)(sum % 1000000000u);
    note_unlocked(m);
    tn__assert_may_wait("tn__cond_wait_ns");
    int rc = pthread_cond_timedwait(&c->cond, &m->mutex, &until);
    note_locked(m);
    return rc != ETIMEDOUT;
}

void tn__cond_broadcast(tn__cond *c) { pthread_cond_broadcast(&c->cond); }
