/* SPDX-License-Identifier: MIT */
/*
 * Loads and the others, in TN_MODE_CONCURRENT: several threads that ensure the same missing value
 * cause one load and share its result; a slow load slows nobody who does not need it (D3, L3).
 */
#include "tn_test.h"

#include <time.h>

#include "spec_common.h"

#define CROWD 92

struct flight {
    tn_manager *m;
    tn_handle cold;
    tn_handle warm;
    atomic_int started;
    atomic_int no_ops;
    atomic_int failures;
    atomic_bool loading;
    atomic_bool let_go;
};

static void nap(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Returns when the whole crowd has started, and then some: all of them have joined. */
static tn_status slow(void *context, const tn_load_request *request) {
    struct flight *f = context;
    (void)request;
    while (atomic_load(&f->started) < CROWD)
        nap(1);
    nap(300);
    return TN_OK;
}

static const char *ensure_cold(int index, void *arg) {
    struct flight *f = arg;
    tn_report report = TN_REPORT_INIT;
    (void)index;
    atomic_fetch_add(&f->started, 1);
    TN_WORKER_STATUS(tn_manager_ensure(f->m, f->cold, P, NULL, &report), TN_OK);
    atomic_fetch_add(&f->no_ops, (int)report.no_op);
    return NULL;
}

static const char *fail_cold(int index, void *arg) {
    struct flight *f = arg;
    (void)index;
    atomic_fetch_add(&f->started, 1);
    TN_WORKER_STATUS(tn_manager_ensure(f->m, f->cold, P, NULL, NULL), TN_ERR_SOURCE);
    TN_WORKER_CHECK(tn_last_error()->native_code == 77);
    TN_WORKER_CHECK(tn_last_error()->manager == tn_manager_id(f->m));
    atomic_fetch_add(&f->failures, 1);
    return NULL;
}

static void single_flight_loads_once_for_all(void **state) {
    struct spec *s = *state;
    struct flight f = {.m = MANAGER(s, {P, 32})};
    tt_source *source = spec_source(s);

    source->hook = slow;
    source->hook_context = &f;
    f.cold = spec_register(f.m, source, P, TN_REPLICABLE);
    assert_null_text(tn_test_workers_run(CROWD, ensure_cold, &f));
    assert_int_equal(source->calls, 1);
    assert_int_equal(f.no_ops, CROWD - 1);
    assert_peaks(f.m, P, 32, 32);
}

static void single_flight_shares_a_failure_and_can_be_tried_again(void **state) {
    struct spec *s = *state;
    struct flight f = {.m = MANAGER(s, {P, 32})};
    tt_source *source = spec_source(s);

    source->hook = slow;
    source->hook_context = &f;
    source->fail_from = 1;
    source->fail_code = 77;
    f.cold = spec_register(f.m, source, P, TN_REPLICABLE);
    assert_null_text(tn_test_workers_run(CROWD, fail_cold, &f));
    assert_int_equal(source->calls, 1);
    assert_int_equal(f.failures, CROWD);
    assert_int_equal(used(f.m, P), 0);
    assert_null_text(tn_test_workers_run(CROWD, ensure_cold, &f));
    assert_int_equal(source->calls, 2);
    assert_int_equal(f.no_ops, CROWD - 1);
}

/* ---- A slow load ------------------------------------------------------------------------- */

static tn_status held_up(void *context, const tn_load_request *request) {
    struct flight *f = context;
    (void)request;
    atomic_store(&f->loading, true);
    while (!atomic_load(&f->let_go))
        nap(1);
    return TN_OK;
}

/* The least CPU time of a batch of lease pairs: what others do on the machine only adds to it. */
static const char *least(struct flight *f, int batches, uint64_t *out) {
    *out = UINT64_MAX;
    for (int b = 0; b < batches; b++) {
        uint64_t begun = tn_test_cpu_ns();
        for (int i = 0; i < 2000; i++) {
            tn_lease lease;
            TN_WORKER_STATUS(tn_manager_acquire(f->m, &f->warm, 1, P, NULL, &lease), TN_OK);
            TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        }
        uint64_t spent = tn_test_cpu_ns() - begun;
        *out = spent < *out ? spent : *out;
    }
    return NULL;
}

static const char *load_or_lease(int index, void *arg) {
    struct flight *f = arg;
    if (index == 0) {
        TN_WORKER_STATUS(tn_manager_ensure(f->m, f->cold, P, NULL, NULL), TN_OK);
        return NULL;
    }
    uint64_t alone, beside;
    while (!atomic_load(&f->loading))
        nap(1);
    const char *text = least(f, 200, &beside);
    atomic_store(&f->let_go, true);
    if (!text)
        text = least(f, 200, &alone);
    if (text)
        return text;
    print_message("2000 lease pairs: %llu ns beside a load, %llu ns without\n",
                  (unsigned long long)beside, (unsigned long long)alone);
    TN_WORKER_CHECK(beside <= alone + alone / 10 + 20000);
    return NULL;
}

static void slow_load_does_not_slow_leases(void **state) {
    struct spec *s = *state;
    struct flight f = {.m = MANAGER(s)};
    tt_source *source = spec_source(s);

    source->hook = held_up;
    source->hook_context = &f;
    f.cold = spec_register(f.m, source, P, TN_REPLICABLE);
    f.warm = adopt_rep(s, f.m, P);
    assert_null_text(tn_test_workers_run(2, load_or_lease, &f));
    assert_int_equal(source->calls, 1);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(single_flight_loads_once_for_all),
    SPEC_CONCURRENT(single_flight_shares_a_failure_and_can_be_tried_again),
    SPEC_CONCURRENT(slow_load_does_not_slow_leases),
};

TN_TEST_MAIN("spec.single_flight", tests)
