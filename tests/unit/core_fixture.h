/* SPDX-License-Identifier: MIT */
/*
 * What the unit tests of lifetime, transition, snapshot and manager share: the fixture of the
 * specification's cases, a look inside a manager, and threads that stop at test points.
 *
 *     static tn_status drop_it(void *arg) { ... }
 *     struct op op;
 *     op_start(&op, drop_it, &args, TN__POINT_TAKEN);
 *     op_reach(&op);          the operation stands at the point
 *     ...                     what others may see or do meanwhile
 *     assert_status(op_end(&op), TN_OK);
 *
 * Test points exist in builds with TN_CHECKS only; a test that needs them begins with NEED_POINTS.
 */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "spec_common.h"

#include "base/rcu.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"
#include "transition/transition_priv.h"

static inline void at_points(void (*hook)(enum tn__point point, void *object)) {
#if TN_CHECKS
    tn__store_rlx(&tn__point_hook, hook);
#else
    (void)hook;
#endif
}

#define NEED_POINTS()                                                                              \
    do {                                                                                           \
        if (!TN_CHECKS)                                                                            \
            TN_SKIP("test points exist in builds with TN_CHECKS=ON only");                         \
    } while (0)

/* ---- Inside a manager ---- */

static inline tn__life *life_of(tn_manager *m) { return m->life; }

/* The calling thread's slot. */
static inline tn__slot *own_slot(tn_manager *m) {
    tn__thread *thread = NULL;
    assert_ok(tn__life_thread(m->life, &thread));
    return tn__life_own_slot(m->life, thread);
}

/* The current materialization of a value: valid while nobody removes it. */
static inline tn__mat *mat_of(tn_manager *m, tn_handle h, tn_location at) {
    tn__mat *found;
    (void)own_slot(m);
    tn__rcu_lock();
    found = tn__value_mat(tn__version_value(tn__store_current(m->store), h.index), at);
    tn__rcu_unlock();
    assert_non_null(found);
    return found;
}

static inline enum tn__record_state state_of(const void *record) {
    return tn__word_state(tn__record_word((tn__record *)record));
}

static inline tn__protection protection_of(tn_manager *m, tn__mat *mat) {
    tn__protection p;
    tn__life_protections(m->life, &mat, 1, &p);
    return p;
}

/* How many plans wait, and how many are in flight. */
static inline size_t flow_count(tn_manager *m, bool in_flight) {
    size_t count = 0;
    tn__lock(&m->store->lock);
    for (tn__ticket *t = in_flight ? m->trans->flow.in_flight : m->trans->flow.waiting; t;
         t = t->next)
        count++;
    tn__unlock(&m->store->lock);
    return count;
}

static inline void pause_shortly(void) {
    struct timespec pause = {0, 200000};
    nanosleep(&pause, NULL);
}

/* Wait until a condition holds; 20 s at most. */
#define wait_until(condition)                                                                      \
    do {                                                                                           \
        uint64_t wait_end_ = tn__mono_ns() + UINT64_C(20000000000);                                \
        while (!(condition)) {                                                                     \
            if (tn__mono_ns() > wait_end_)                                                         \
                fail_msg("waited in vain: %s", #condition);                                        \
            pause_shortly();                                                                       \
        }                                                                                          \
    } while (0)

/* ---- Operations on threads of their own, stopped at test points ---- */

#define OP_STOPS_MAX 8

struct op {
    tn_status (*run)(void *arg);
    void *arg;
    enum tn__point stops[OP_STOPS_MAX]; /* where it stops, in this order; 0 ends the list */
    size_t next;
    sem_t reached, go;
    pthread_t thread;
    atomic_bool ended;
    tn_status status; /* after op_end() */
    tn_error error;
    bool running;
};

static _Thread_local struct op *op_self;

static inline void op_point(enum tn__point point, void *object) {
    struct op *op = op_self;
    (void)object;
    if (!op || op->next == OP_STOPS_MAX || op->stops[op->next] != point)
        return;
    op->next++;
    sem_post(&op->reached);
    while (sem_wait(&op->go) != 0)
        continue;
}

static inline void *op_main(void *arg) {
    struct op *op = arg;
    op_self = op;
    op->status = op->run(op->arg);
    op->error = *tn_last_error();
    op_self = NULL;
    atomic_store(&op->ended, true);
    sem_post(&op->reached);
    return NULL;
}

/* OP_START(&op, run, arg, points...): start it; it stops at each of the points in turn. */
#define OP_START(op_, run_, arg_, ...)                                                             \
    op_start((op_), (run_), (arg_), (const enum tn__point[]){__VA_ARGS__, 0})

static inline void op_start(struct op *op, tn_status (*run)(void *), void *arg,
                            const enum tn__point *stops) {
    *op = (struct op){.run = run, .arg = arg, .running = true};
    for (size_t i = 0; stops[i] != 0; i++)
        op->stops[i] = stops[i];
    sem_init(&op->reached, 0, 0);
    sem_init(&op->go, 0, 0);
    at_points(op_point);
    assert_int_equal(pthread_create(&op->thread, NULL, op_main, op), 0);
    tn_test_under_way(1);
}

/* It stands at its next point, and has not ended. */
static inline void op_reach(struct op *op) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    while (sem_timedwait(&op->reached, &until) != 0)
        if (errno != EINTR)
            fail_msg("the operation reaches neither its point nor its end");
    if (atomic_load(&op->ended))
        fail_msg("the operation ended before its point: %s", tn_status_name(op->status));
}

static inline void op_go(struct op *op) { sem_post(&op->go); }

/* Wait until a condition holds that must come true before the operation ends. */
#define op_wait_until(op_, condition)                                                              \
    do {                                                                                           \
        wait_until((condition) || atomic_load(&(op_)->ended));                                     \
        if (atomic_load(&(op_)->ended))                                                            \
            fail_msg("the operation ended with %s before: %s", tn_status_name((op_)->status),      \
                     #condition);                                                                  \
    } while (0)

/* Let it go past all points, and wait for its end: 20 s at most. */
static inline tn_status op_end(struct op *op) {
    for (int i = 0; i < OP_STOPS_MAX; i++)
        sem_post(&op->go);
    wait_until(atomic_load(&op->ended));
    assert_int_equal(pthread_join(op->thread, NULL), 0);
    tn_test_under_way(-1);
    sem_destroy(&op->reached);
    sem_destroy(&op->go);
    op->running = false;
    return op->status;
}

/* ---- Operations with their arguments ---- */

struct args {
    tn_manager *m;
    tn_handle h[4];
    size_t count; /* of handles; 0: 1 */
    tn_location at, from;
    tn_stream stream;
    tn_payload payload;
    tn_lease lease;
    tn_hold hold;
    tn_reservation reservation;
    uint32_t flags;
    uint64_t bytes;
    tn_report report;
};

static inline tn_status run_acquire(void *arg) {
    struct args *a = arg;
    return tn_manager_acquire(a->m, a->h, a->count ? a->count : 1, a->at, a->stream, &a->lease);
}

static inline tn_status run_hold(void *arg) {
    struct args *a = arg;
    return tn_manager_hold(a->m, a->h, a->count ? a->count : 1, a->at, &a->hold);
}

static inline tn_status run_reserve(void *arg) {
    struct args *a = arg;
    return tn_manager_reserve(a->m, a->at, a->bytes, "unit", &a->reservation);
}

static inline tn_status run_release(void *arg) {
    struct args *a = arg;
    return tn_lease_release(&a->lease, a->flags);
}

static inline tn_status run_ensure(void *arg) {
    struct args *a = arg;
    a->report = (tn_report){.size = sizeof a->report};
    return tn_manager_ensure(a->m, a->h[0], a->at, NULL, &a->report);
}

static inline tn_status run_move(void *arg) {
    struct args *a = arg;
    a->report = (tn_report){.size = sizeof a->report};
    return tn_manager_move(a->m, a->h[0], a->at, a->from, NULL, &a->report);
}

static inline tn_status run_drop(void *arg) {
    struct args *a = arg;
    return tn_manager_drop(a->m, a->h[0], a->at, NULL);
}

static inline tn_status run_discard(void *arg) {
    struct args *a = arg;
    return tn_manager_discard(a->m, a->h[0], NULL);
}

static inline tn_status run_close(void *arg) {
    struct args *a = arg;
    return tn_manager_close(a->m, a->flags);
}

static inline tn_status run_adopt_reserved(void *arg) {
    struct args *a = arg;
    return tn_manager_adopt_reserved(a->m, a->payload, a->at, TN_REPLICABLE, &a->reservation,
                                     &a->h[0]);
}

static inline tn_status run_add_stream(void *arg) {
    struct args *a = arg;
    return tn_lease_add_stream(&a->lease, a->stream);
}

/* Fields of the last error for a removal: (uses, holds, pending). */
#define assert_error_counts(error_, uses_, holds_, pending_)                                       \
    do {                                                                                           \
        assert_int_equal((error_).use_count, (uses_));                                             \
        assert_int_equal((error_).hold_count, (holds_));                                           \
        assert_int_equal((error_).pending_count, (pending_));                                      \
    } while (0)

#endif
