/* SPDX-License-Identifier: MIT */
/*
 * The last release of a manager against its close and destruction on another thread, which learns
 * from the close that the lease is over, not from the release. What a late release touches has
 * been freed: AddressSanitizer sees it, other builds may.
 */
#include "leases_torture.h"

#include <sched.h>

#include "base/base_internal.h"
#include "lifetime/lifetime_internal.h"
#include "manager/manager_internal.h"

#define SECONDS 2

typedef struct last {
    tn_sim *sim;
    tn_stream stream;
    uint64_t end_ns;
    tn_lease lease;
    uint32_t flags;
    _Atomic uint64_t begun, released; /* rounds */
    atomic_bool stop;
} last;

static void wait_for(const _Atomic uint64_t *rounds, uint64_t round, const atomic_bool *stop) {
    uint32_t spins = 0;
    while (atomic_load(rounds) < round && !atomic_load(stop) && !tn_test_workers_failed())
        if (++spins % 1024 == 0)
            sched_yield();
}

/* Host or CUDA; on CUDA with or without waiting; every other close is forced. */
static bool forced(uint64_t round) { return round % 2 != 0; }

static const char *begin(last *x, uint64_t round, tn_manager **out) {
    tn_location at = round % 3 == 0 ? tn_location_pageable() : tn_location_cuda(0);
    tn_config config = TN_CONFIG_INIT;
    tn_payload payload;
    tn_handle value;

    config.driver = tn_sim_driver(x->sim);
    config.reaper = round % 4 < 2 ? TN_REAPER_THREAD : TN_REAPER_MANUAL;
    TN_WORKER_STATUS(tn_manager_create(&config, out), TN_OK);
    TN_WORKER_STATUS(tort_payload_make(config.driver, at, 0, &payload), TN_OK);
    TN_WORKER_STATUS(tn_manager_adopt(*out, payload, at, TN_REPLICABLE, &value), TN_OK);
    TN_WORKER_STATUS(tn_manager_acquire(*out, &value, 1, at,
                                        at.kind == TN_LOCATION_CUDA ? x->stream : NULL, &x->lease),
                     TN_OK);
    x->flags = round % 3 == 1 ? TN_RELEASE_WAIT : 0;
    return NULL;
}

/* M240: nothing is left, also of a release that began while the devices were synchronised. */
static const char *end_by_force(tn_manager *m) {
    tn__totals t;
    TN_WORKER_STATUS(tn_manager_close(m, TN_CLOSE_FORCE), TN_OK);
    tn__life_totals(m->life, &t);
    TN_WORKER_CHECK(t.active_leases + t.pending_leases == 0);
    return NULL;
}

static const char *end(tn_manager *m, uint64_t round) {
    const char *text = forced(round) ? end_by_force(m) : NULL;
    tn_status status;
    if (text)
        return text;
    while ((status = tn_manager_close(m, 0)) == TN_ERR_IN_USE && !tn_test_workers_failed())
        sched_yield();
    TN_WORKER_STATUS(status, TN_OK);
    TN_WORKER_STATUS(tn_manager_destroy(m), TN_OK);
    return NULL;
}

static const char *close_all(last *x) {
    const char *text = NULL;
    for (uint64_t round = 1; !text && tn__mono_ns() < x->end_ns && !tn_test_workers_failed();
         round++) {
        tn_manager *m = NULL;
        text = begin(x, round, &m);
        if (text)
            break;
        atomic_store(&x->begun, round);
        text = end(m, round);
        wait_for(&x->released, round, &x->stop);
    }
    atomic_store(&x->stop, true);
    return text;
}

static const char *release_all(last *x) {
    tort_random r = tort_random_of(1);
    for (uint64_t round = 1;; round++) {
        wait_for(&x->begun, round, &x->stop);
        if (atomic_load(&x->begun) < round)
            return NULL;
        tort_spin(tort_below(&r, forced(round) ? 1000000 : 4000));
        TN_WORKER_STATUS(tn_lease_release(&x->lease, x->flags), TN_OK);
        atomic_store(&x->released, round);
    }
}

static const char *work(int index, void *arg) {
    return index == 0 ? close_all(arg) : release_all(arg);
}

void tort_last_release(void **state) {
    last x = {.sim = NULL};
    tn_sim_fault stall = TN_SIM_FAULT_INIT;

    (void)state;
    tort_payloads_begin();
    assert_ok(tn_sim_create("dev:1 mem=1MiB clock=threads", &x.sim));
    assert_ok(tn_sim_stream_create(x.sim, 0, 0, &x.stream));
    x.end_ns =
        tn__mono_ns() + tn_test_env_u64("TN_TORTURE_SECONDS", SECONDS) * UINT64_C(1000000000);
    stall.entry = TN_SIM_DEVICE_SYNCHRONIZE;
    stall.count = 0;
    stall.stall_ns = 500000;
    assert_ok(tn_sim_fault_arm(x.sim, &stall));
    tort_points_on(3000000);
    const char *text = tn_test_workers_run(2, work, &x);
    tort_points_off();
    print_message("  managers %llu\n", (unsigned long long)x.released);
    assert_null_text(text);
    assert_int_equal(tort_payloads_live(), 0);
    assert_string_equal(tn_sim_violation_text(x.sim), "");
    assert_int_equal(tn_sim_live_events(x.sim), 0);
    assert_ok(tn_sim_stream_destroy(x.sim, x.stream));
    tn_sim_destroy(x.sim);
    tort_payloads_reset();
}
