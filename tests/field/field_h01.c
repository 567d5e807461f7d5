/* SPDX-License-Identifier: MIT */
/* F-H01: a thread's first call. Threads register themselves; what they leave is used again, and
 * nobody's first call waits for a grace period. Covers L3's exception. */
#include <pthread.h>
#include <stdatomic.h>

#include "spec_common.h"

#include "base/rcu.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

enum { THREADS = 1000, ALIVE = 16, SLOTS_MAX = 24, NEWCOMERS = 20, FIRST_CALL_MAX_NS = 1000000 };

struct first {
    tn_manager *manager;
    tn_handle handle;
    uint64_t acquire_ns;
    const char *failure;
};

static const char *borrow(struct first *t) {
    tn_lease lease;
    const void *payload;
    uint64_t before = tn__mono_ns();
    TN_WORKER_STATUS(tn_manager_acquire(t->manager, &t->handle, 1, P, NULL, &lease), TN_OK);
    t->acquire_ns = tn__mono_ns() - before;
    TN_WORKER_STATUS(tn_lease_lookup(&lease, t->handle, &payload), TN_OK);
    TN_WORKER_CHECK(tt_check(payload, 1));
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    return NULL;
}

static void *first_call(void *arg) {
    struct first *t = arg;
    t->failure = borrow(t);
    return NULL;
}

static size_t slots(tn_manager *m) {
    size_t count = 0;
    for (tn__slot *s = atomic_load(&m->life->slots); s; s = s->next)
        count++;
    return count;
}

static void f_h01_contexts_of_exited_threads_are_used_again(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    struct first calls[ALIVE];
    pthread_t threads[ALIVE];
    tn_handle h = adopt_rep(f, m, P);
    uint64_t before = version(m);

    for (int i = 0; i < THREADS + ALIVE; i++) {
        struct first *t = &calls[i % ALIVE];
        if (i >= ALIVE) {
            assert_int_equal(pthread_join(threads[i % ALIVE], NULL), 0);
            assert_null_text(t->failure);
        }
        *t = (struct first){m, h, 0, NULL};
        if (i < THREADS)
            assert_int_equal(pthread_create(&threads[i % ALIVE], NULL, first_call, t), 0);
    }
    assert_true(slots(m) <= SLOTS_MAX);
    assert_int_equal(version(m) - before, 2 * THREADS);
    assert_int_equal(mat(m, h, P).use_count, 0);
}

struct grace {
    tn_manager *manager;
    tn_handle handle;
    atomic_bool inside, leave;
    atomic_bool passed; /* the grace period */
    const char *reader_failure, *waiter_failure;
};

static const char *stay_inside(struct grace *g) {
    tn__thread *thread = tn__thread_self();
    TN_WORKER_CHECK(thread);
    tn__rcu_thread_ready(thread);
    tn__rcu_lock();
    atomic_store(&g->inside, true);
    while (!atomic_load(&g->leave))
        sched_yield();
    bool early = atomic_load(&g->passed);
    tn__rcu_unlock();
    TN_WORKER_CHECK(!early);
    return NULL;
}

static void *reader(void *arg) {
    struct grace *g = arg;
    g->reader_failure = stay_inside(g);
    return NULL;
}

static const char *wait_for_grace(struct grace *g) {
    TN_WORKER_STATUS(tn__rcu_synchronize(), TN_OK);
    atomic_store(&g->passed, true);
    return NULL;
}

static void *waiter(void *arg) {
    struct grace *g = arg;
    g->waiter_failure = wait_for_grace(g);
    return NULL;
}

/* Whoever waits for the grace period has given up spinning: liburcu says so. */
static void reach_the_wait(void) {
    tn__thread *own = tn__thread_self();
    assert_non_null(own);
    tn__rcu_thread_ready(own);
    while (__atomic_load_n(own->rcu_futex, __ATOMIC_RELAXED) != -1)
        sched_yield();
}

static void f_h01_first_call_waits_for_no_grace_period(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    struct grace g = {.reader_failure = NULL};
    pthread_t inside, outside, newcomer;
    uint64_t fastest = UINT64_MAX;

    config.reaper = TN_REAPER_THREAD;
    g.manager = spec_manager_with(f, &config);
    g.handle = adopt_rep(f, g.manager, P);
    assert_int_equal(pthread_create(&inside, NULL, reader, &g), 0);
    while (!atomic_load(&g.inside))
        sched_yield();
    (void)ensure(g.manager, g.handle, N); /* the reaper has versions to collect, and waits too */
    assert_int_equal(pthread_create(&outside, NULL, waiter, &g), 0);
    reach_the_wait();
    for (int i = 0; i < NEWCOMERS; i++) {
        struct first t = {g.manager, g.handle, 0, NULL};
        assert_int_equal(pthread_create(&newcomer, NULL, first_call, &t), 0);
        assert_int_equal(pthread_join(newcomer, NULL), 0);
        assert_null_text(t.failure);
        if (t.acquire_ns < fastest)
            fastest = t.acquire_ns;
    }
    assert_false(atomic_load(&g.passed)); /* it still lasts */
    atomic_store(&g.leave, true);
    assert_int_equal(pthread_join(inside, NULL), 0);
    assert_int_equal(pthread_join(outside, NULL), 0);
    assert_null_text(g.reader_failure);
    assert_null_text(g.waiter_failure);
    assert_true(atomic_load(&g.passed));
    assert_true(fastest <= FIRST_CALL_MAX_NS);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(f_h01_contexts_of_exited_threads_are_used_again),
    SPEC_CONCURRENT(f_h01_first_call_waits_for_no_grace_period),
};

TN_TEST_MAIN("field.h01", tests)
