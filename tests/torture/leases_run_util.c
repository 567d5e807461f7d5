/* SPDX-License-Identifier: MIT */
/*
 * The tests of the torture, for each program that runs them in another fence mode.
 */
#include "leases_torture.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/base_internal.h"

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
    int threads = 5 + config->removers + config->readers;

    tort_world_begin(&w, config, tn_test_env_u64("TN_TORTURE_SECONDS", SECONDS));
    tort_points_on(true);
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
    tn_config config = TN_CONFIG_INIT;
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = tort_source(0);
    hot h = {.m = NULL};

    (void)state;
    config.mode = TN_MODE_CONCURRENT;
    config.trace_capacity = TN_TRACE_NONE;
    assert_ok(tn_manager_create(&config, &h.m));
    spec.type = tort_type();
    spec.logical_bytes = spec.storage_bytes = tort_bytes_of(0);
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    assert_ok(tn_manager_register_source(h.m, &spec, &source, tn_location_pageable(), &h.value));
    assert_ok(tn_manager_ensure(h.m, h.value, tn_location_pageable(), NULL, NULL));
    tort_points_on(false);
    h.end_ns =
        tn__mono_ns() + tn_test_env_u64("TN_TORTURE_SECONDS", SECONDS) * UINT64_C(1000000000);
    const char *text = tn_test_workers_run(2, hot_work, &h);
    tort_points_off();
    print_message("  granted %llu absent %llu, dropped %llu in use %llu\n",
                  (unsigned long long)h.granted, (unsigned long long)h.absent,
                  (unsigned long long)h.dropped, (unsigned long long)h.in_use);
    assert_null_text(text);
    assert_ok(tn_manager_close(h.m, 0));
    assert_ok(tn_manager_destroy(h.m));
    assert_int_equal(tort_payloads_live(), 0);
    tort_payloads_reset();
}
