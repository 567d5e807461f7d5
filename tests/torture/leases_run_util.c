/* SPDX-License-Identifier: MIT */
/*
 * The tests of the torture, for each program that runs them in another fence mode.
 */
#include "leases_torture.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/base_internal.h"
#include "lifetime/lifetime_internal.h"
#include "manager/manager_internal.h"

#define SECONDS 2

/* ---- Everything at once ---- */

/* The first worker keeps the time. */
static const char *keep_time(tort_world *w) {
    const struct timespec pause = {0, 5000000};
    while (tn__mono_ns() < w->end_ns && !tn_test_workers_failed())
        nanosleep(&pause, NULL);
    atomic_store(&w->stop, true);
    return NULL;
}

static const char *work(int index, void *arg) {
    tort_world *w = arg;
    int i = index;
    if (i-- == 0)
        return keep_time(w);
    if (tort_quiet_world(w))
        return i == 0 ? tort_snapshots(w, index) : tort_reader(w, index);
    if (i-- == 0)
        return tort_letters(w, index);
    if (i-- == 0)
        return tort_exits(w, index);
    if (i-- == 0)
        return tort_reserver(w, index);
    if (i-- == 0)
        return tort_snapshots(w, index);
    if (i < w->config.removers)
        return tort_remover(w, index);
    i -= w->config.removers;
    return i < w->config.readers ? tort_reader(w, index) : tort_steps(w, index);
}

void tort_run(const tort_config *config) {
    tort_world w;
    int threads = (config->removers > 0 ? 5 : 2) + config->removers + config->readers;

    tort_world_begin(&w, config, tn_test_env_u64("TN_TORTURE_SECONDS", SECONDS));
    tort_points_on(tort_quiet_world(&w) ? 100000 : 3000);
    if (config->reaper == TN_REAPER_MANUAL)
        threads++;
    const char *text = tn_test_workers_run(threads, work, &w);
    tort_points_off();
    assert_null_text(text);
    tort_world_end(&w);
}

void tort_serial(void **state) {
    (void)state;
    tort_run(&(tort_config){TN_MODE_SERIAL, TN_REAPER_THREAD, 3, 2});
}

void tort_serial_manual(void **state) {
    (void)state;
    tort_run(&(tort_config){TN_MODE_SERIAL, TN_REAPER_MANUAL, 3, 2});
}

void tort_concurrent(void **state) {
    (void)state;
    tort_run(&(tort_config){TN_MODE_CONCURRENT, TN_REAPER_THREAD, 3, 2});
}

void tort_concurrent_manual(void **state) {
    (void)state;
    tort_run(&(tort_config){TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 3, 2});
}

void tort_quiet(void **state) {
    (void)state;
    tort_run(&(tort_config){TN_MODE_CONCURRENT, TN_REAPER_MANUAL, 1, 0});
}

/* ---- A manager with one value, in pageable memory ---- */

static uint64_t end_of_test(void) {
    return tn__mono_ns() + tn_test_env_u64("TN_TORTURE_SECONDS", SECONDS) * UINT64_C(1000000000);
}

static tn_handle begin_small(tn_manager **out) {
    tn_config config = TN_CONFIG_INIT;
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = tort_source(0);
    tn_handle value;

    tort_payloads_begin();
    config.mode = TN_MODE_CONCURRENT;
    config.trace_capacity = TN_TRACE_NONE;
    assert_ok(tn_manager_create(&config, out));
    spec.type = tort_type();
    spec.logical_bytes = spec.storage_bytes = tort_bytes_of(0);
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    assert_ok(tn_manager_register_source(*out, &spec, &source, tn_location_pageable(), &value));
    assert_ok(tn_manager_ensure(*out, value, tn_location_pageable(), NULL, NULL));
    return value;
}

static void end_small(tn_manager *m) {
    uint64_t events = 0;

    tort_check_slots(m, &events);
    assert_ok(tn_manager_close(m, 0));
    assert_ok(tn_manager_destroy(m));
    assert_int_equal(tort_payloads_live(), 0);
    tort_payloads_reset();
}

/* ---- Racing releases ---- */

#define RACES 512

/* Of the leases with an even index both racers are strangers; the others are the first racer's. */
typedef struct racing {
    tn_manager *m;
    tn_handle value;
    tn_lease leases[RACES];
    _Atomic uint64_t arrived; /* at the races: twice per race */
} racing;

static void start_race(racing *x, uint64_t arrivals) {
    uint32_t spins = 0;
    atomic_fetch_add(&x->arrived, 1);
    while (atomic_load(&x->arrived) < arrivals && !tn_test_workers_failed())
        if (++spins % 4096 == 0)
            sched_yield();
}

static tn_status take_one(racing *x, tn_lease *out) {
    return tn_manager_acquire(x->m, &x->value, 1, tn_location_pageable(), NULL, out);
}

static const char *race(int index, void *arg) {
    racing *x = arg;
    for (uint64_t i = 0; i < RACES && !tn_test_workers_failed(); i++) {
        if (i % 2 != 0 && index == 0)
            TN_WORKER_STATUS(take_one(x, &x->leases[i]), TN_OK);
        start_race(x, 2 * (i + 1));
        TN_WORKER_STATUS(tn_lease_release(&x->leases[i], 0), TN_OK);
        TN_WORKER_CHECK(!tn_lease_active(&x->leases[i]));
    }
    return NULL;
}

void tort_racing_releases(void **state) {
    static racing x;
    uint64_t end, races = 0;
    bool stable = false;

    (void)state;
    x.value = begin_small(&x.m);
    end = end_of_test();
    while (tn__mono_ns() < end) {
        for (size_t i = 0; i < RACES; i += 2)
            assert_ok(take_one(&x, &x.leases[i]));
        x.arrived = 0;
        assert_null_text(tn_test_workers_run(2, race, &x));
        races += RACES;
        assert_int_equal(tn__life_count(x.m->life, &stable), 2 * races);
    }
    print_message("  races %llu\n", (unsigned long long)races);
    end_small(x.m);
}

/* ---- One hot value ---- */

typedef struct hot {
    tn_manager *m;
    tn_handle value;
    uint64_t end_ns;
    _Atomic uint64_t granted, absent, dropped, in_use;
} hot;

/* The n-th processor that this process may use; without it the thread stays where it is. */
static void pin_thread(int n) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && n-- == 0) {
            CPU_SET(cpu, &one);
            (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
}

static bool hot_over(const hot *h) {
    return tn__mono_ns() >= h->end_ns || tn_test_workers_failed();
}

/* Borrow for 0.1 to 2 us, watching the payload all the while. */
static const char *hot_read(hot *h, tort_random *r) {
    tn_lease lease;
    tort_seen seen;
    const void *data = NULL;
    tn_status status = tn_manager_acquire(h->m, &h->value, 1, tn_location_pageable(), NULL, &lease);
    if (status == TN_ERR_UNAVAILABLE) {
        atomic_fetch_add_explicit(&h->absent, 1, memory_order_relaxed);
        return NULL;
    }
    TN_WORKER_STATUS(status, TN_OK);
    atomic_fetch_add_explicit(&h->granted, 1, memory_order_relaxed);
    TN_WORKER_STATUS(tn_lease_lookup(&lease, h->value, &data), TN_OK);
    const char *text = tort_payload_see(data, 0, &seen);
    uint64_t end = tn__mono_ns() + 100 + tort_below(r, 1900);
    do
        text = text ? text : tort_payload_check(&seen);
    while (!text && tn__mono_ns() < end);
    TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    return text;
}

static const char *hot_remove(hot *h) {
    tn_status status = tn_manager_drop(h->m, h->value, tn_location_pageable(), NULL);
    if (status == TN_ERR_IN_USE) {
        atomic_fetch_add_explicit(&h->in_use, 1, memory_order_relaxed);
        return NULL;
    }
    TN_WORKER_STATUS(status, TN_OK);
    atomic_fetch_add_explicit(&h->dropped, 1, memory_order_relaxed);
    TN_WORKER_STATUS(tn_manager_ensure(h->m, h->value, tn_location_pageable(), NULL, NULL), TN_OK);
    return NULL;
}

static const char *hot_work(int index, void *arg) {
    hot *h = arg;
    tort_random r = tort_random_of((uint64_t)index + 100);
    const char *text = NULL;
    pin_thread(index);
    tort_poison_at_taken(true);
    while (!text && !hot_over(h)) {
        text = index == 0 ? hot_read(h, &r) : hot_remove(h);
        tort_spin(tort_below(&r, index == 0 ? 1500 : 500));
    }
    tort_poison_at_taken(false);
    return text;
}

void tort_hot_value(void **state) {
    hot h = {.m = NULL};

    (void)state;
    h.value = begin_small(&h.m);
    tort_points_on(0);
    h.end_ns = end_of_test();
    const char *text = tn_test_workers_run(2, hot_work, &h);
    tort_points_off();
    print_message("  granted %llu absent %llu, dropped %llu in use %llu\n",
                  (unsigned long long)h.granted, (unsigned long long)h.absent,
                  (unsigned long long)h.dropped, (unsigned long long)h.in_use);
    assert_null_text(text);
    end_small(h.m);
}
