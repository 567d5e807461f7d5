/* SPDX-License-Identifier: MIT */
/* src/base/rcu.c: sections, grace periods, registration beside the host program's, fences. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <urcu.h>

#include "base/rcu.h"
#include "tn_test.h"

static void section_is_noticed(void **state) {
    (void)state;
    tn__rcu_thread_ready(tn__thread_self());
    assert_false(tn__rcu_in_section());
    tn__rcu_lock();
    assert_true(tn__rcu_in_section());
    tn__rcu_lock(); /* they nest */
    tn__rcu_unlock();
    assert_true(tn__rcu_in_section());
    tn__rcu_unlock();
    assert_false(tn__rcu_in_section());
}

static void grace_period_inside_a_section_is_refused(void **state) {
    (void)state;
    tn__rcu_thread_ready(tn__thread_self());
    assert_ok(tn__rcu_synchronize());
    tn__rcu_lock();
    assert_status(tn__rcu_synchronize(), TN_ERR_REENTRANCY);
    tn__rcu_unlock();
    assert_ok(tn__rcu_synchronize());
}

static const char *never_registered(int index, void *arg) {
    (void)index;
    (void)arg;
    TN_WORKER_CHECK(!tn__rcu_in_section());
    TN_WORKER_STATUS(tn__rcu_synchronize(), TN_OK);
    return NULL;
}

static void thread_without_registration_is_in_no_section(void **state) {
    (void)state;
    assert_null_text(tn_test_workers_run(1, never_registered, NULL));
}

/* A thread that the host program registered is left alone, also at our exit. */
static const char *registered_by_the_host(int index, void *arg) {
    tn__thread *thread = tn__thread_self();
    (void)index;
    (void)arg;
    urcu_memb_register_thread();
    tn__rcu_thread_ready(thread);
    TN_WORKER_CHECK(!thread->rcu_registered);
    tn__rcu_thread_exit(thread);
    urcu_memb_read_lock(); /* still registered */
    TN_WORKER_CHECK(tn__rcu_in_section());
    TN_WORKER_STATUS(tn__rcu_synchronize(), TN_ERR_REENTRANCY);
    urcu_memb_read_unlock();
    urcu_memb_unregister_thread();
    return NULL;
}

static void registration_of_the_host_is_left_alone(void **state) {
    (void)state;
    assert_null_text(tn_test_workers_run(1, registered_by_the_host, NULL));
}

/* The host unregisters a thread that we had registered: our exit does not do it again. */
static const char *unregistered_by_the_host(int index, void *arg) {
    tn__thread *thread = tn__thread_self();
    (void)index;
    (void)arg;
    tn__rcu_thread_ready(thread);
    TN_WORKER_CHECK(thread->rcu_registered);
    urcu_memb_unregister_thread();
    tn__rcu_thread_ready(thread); /* our next call: once more */
    tn__rcu_lock();
    TN_WORKER_CHECK(tn__rcu_in_section());
    tn__rcu_unlock();
    urcu_memb_unregister_thread();
    tn__rcu_thread_exit(thread);
    TN_WORKER_CHECK(!thread->rcu_registered);
    return NULL;
}

static void thread_that_the_host_unregistered_exits_quietly(void **state) {
    (void)state;
    assert_null_text(tn_test_workers_run(1, unregistered_by_the_host, NULL));
}

struct reading {
    atomic_bool inside, leave, waited;
};

static const char *read_or_wait(int index, void *arg) {
    struct reading *r = arg;
    tn__rcu_thread_ready(tn__thread_self());
    if (index == 0) {
        tn__rcu_lock();
        atomic_store(&r->inside, true);
        while (!atomic_load(&r->leave))
            tn__relax();
        bool early = atomic_load(&r->waited);
        tn__rcu_unlock();
        TN_WORKER_CHECK(!early);
        return NULL;
    }
    while (!atomic_load(&r->inside))
        tn__relax();
    if (index == 1) {
        TN_WORKER_STATUS(tn__rcu_synchronize(), TN_OK);
        atomic_store(&r->waited, true);
        return NULL;
    }
    for (int i = 0; i < 1000; i++) /* give it time to be wrong */
        (void)tn__mono_ns();
    atomic_store(&r->leave, true);
    return NULL;
}

static void grace_period_waits_for_sections(void **state) {
    struct reading r = {false, false, false};
    (void)state;
    assert_null_text(tn_test_workers_run(3, read_or_wait, &r));
    assert_true(atomic_load(&r.waited));
}

static void heavy_fence_fails_when_told_to(void **state) {
    (void)state;
    tn__fence_ready();
    tn__fence_ready();
    assert_ok(tn__heavy_fence());
    tn__fault_fence(2);
    for (int i = 0; i < 2; i++) {
        assert_status(tn__heavy_fence(), TN_ERR_SYSTEM);
        assert_true(tn_last_error()->native_code != 0);
    }
    assert_ok(tn__heavy_fence());
}

/* Dekker's test: of {store a; light; load b} and {store b; heavy; load a} one sees the other. */
struct dekker {
    _Atomic int a, b;
    _Atomic int round[2];
    int seen[2];
    bool failed;
};

#define ROUNDS 500

static void arrive(struct dekker *d, int index, int phase) {
    atomic_store(&d->round[index], phase);
    while (atomic_load(&d->round[!index]) < phase)
        sched_yield();
}

static const char *meet(int index, void *arg) {
    struct dekker *d = arg;
    for (int round = 1; round <= ROUNDS; round++) {
        if (index == 0) {
            tn__store_rlx(&d->a, round);
            tn__light_fence();
            d->seen[0] = tn__load_rlx(&d->b);
        } else {
            tn__store_rlx(&d->b, round);
            TN_WORKER_STATUS(tn__heavy_fence(), TN_OK);
            d->seen[1] = tn__load_rlx(&d->a);
        }
        arrive(d, index, 2 * round - 1); /* both have looked */
        if (index == 0)
            d->failed |= d->seen[0] != round && d->seen[1] != round;
        arrive(d, index, 2 * round);
    }
    return NULL;
}

static void fences_let_at_least_one_side_see_the_other(void **state) {
    (void)state;
    for (int asymmetric = 0; asymmetric < 2; asymmetric++) {
        struct dekker d = {.failed = false};
        tn__fence_ready();
        int mode = tn__load_rlx(&tn__fence_asymmetric);
        if (asymmetric > mode)
            continue; /* no membarrier here */
        tn__store_rlx(&tn__fence_asymmetric, asymmetric);
        const char *text = tn_test_workers_run(2, meet, &d);
        tn__store_rlx(&tn__fence_asymmetric, mode);
        assert_null_text(text);
        assert_false(d.failed);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(section_is_noticed),
    cmocka_unit_test(grace_period_inside_a_section_is_refused),
    cmocka_unit_test(thread_without_registration_is_in_no_section),
    cmocka_unit_test(registration_of_the_host_is_left_alone),
    cmocka_unit_test(thread_that_the_host_unregistered_exits_quietly),
    cmocka_unit_test(grace_period_waits_for_sections),
    cmocka_unit_test(heavy_fence_fails_when_told_to),
    cmocka_unit_test(fences_let_at_least_one_side_see_the_other),
};

TN_TEST_MAIN("unit.base_rcu", tests)
