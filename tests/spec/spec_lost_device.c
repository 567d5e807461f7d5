/* SPDX-License-Identifier: MIT */
/*
 * A device that is lost (TN_ERR_DEVICE_LOST from every call that concerns it, for good; driver.h): what
 * is there cannot be used and is not freed, everything else goes on, values with a source or another
 * replica come back elsewhere, and the manager can be destroyed.
 */
#include "spec_common.h"

#define LOST_CODE 700

/* Payloads that a lost device may still read are kept for the rest of the process (M148); they are
 * no leaks. For LeakSanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:data_new\n"; }

static void lose(struct spec *f, uint32_t device) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;

    fault.device = device;
    fault.count = 0;
    fault.status = TN_ERR_DEVICE_LOST;
    fault.native_code = LOST_CODE;
    assert_ok(tn_sim_fault_arm(f->sim, &fault));
    f->lenient = true; /* nobody gets its memory back */
}

static void expect_lost(tn_status status) {
    assert_status(status, TN_ERR_DEVICE_LOST);
    assert_int_equal(tn_last_error()->native_code, LOST_CODE);
}

/* Work at every other place. */
static void others_go_on(struct spec *f, tn_manager *m, tn_handle h, tn_stream s1) {
    for (int i = 0; i < 20; i++) {
        tn_lease lease;

        ensure(m, h, N);
        ensure(m, h, C1);
        lease = acquire(m, h, C1, s1);
        release(&lease);
        spec_finish(f);
        lease = acquire(m, h, N, NULL);
        release(&lease);
        drop(m, h, C1);
        drop(m, h, N);
    }
}

static void lost_device_others_go_on(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 4096}, {N, 4096}, {C0, 4096}, {C1, 4096});
    tn_stream s1 = spec_stream(f, 1);
    tn_handle v = adopt_rep(f, m, P), u = adopt_rep(f, m, P);

    ensure(m, v, C0);
    lose(f, 0);
    expect_lost(tn_manager_ensure(m, u, C0, NULL, NULL));
    assert_replicas(m, u, P);
    others_go_on(f, m, u, s1);
    others_go_on(f, m, v, s1); /* its replica at P serves the copies */
    assert_int_equal(used(m, C0), 32);
    spec_destroy(f, m);
}

static void lost_device_values_come_back_elsewhere(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 4096}, {C1, 4096});
    tn_stream s1 = spec_stream(f, 1);
    tt_source *source = spec_source(f);
    tn_handle v = register_src(m, source);
    tn_lease lease;
    const void *data = NULL;

    source->seed = 5;
    ensure(m, v, C0);
    assert_int_equal(source->calls, 1);
    lose(f, 0);
    expect_lost(tn_manager_ensure(m, v, C1, NULL, NULL)); /* the copy: nothing is lost by it */
    assert_replicas(m, v, C0);
    drop(m, v, C0);
    assert_int_equal(used(m, C0), 0);
    ensure(m, v, C1);
    assert_int_equal(source->calls, 2);
    lease = acquire(m, v, C1, s1);
    assert_ok(tn_lease_lookup(&lease, v, &data));
    assert_true(tt_check(data, 5));
    release(&lease);
    spec_finish(f);
    spec_destroy(f, m);
}

/* M145: a lease whose release cannot be recorded stays active, and protects. */
static void lost_device_active_lease_stays(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 4096}, {C0, 4096}, {C1, 4096});
    tn_stream s0 = spec_stream(f, 0), s1 = spec_stream(f, 1);
    tn_handle v = adopt_rep(f, m, P), u = adopt_rep(f, m, P);
    tn_lease lease;

    ensure(m, v, C0);
    lease = acquire(m, v, C0, s0);
    lose(f, 0);
    assert_status(tn_lease_release(&lease, 0), TN_ERR_DEVICE_LOST);
    assert_true(tn_lease_active(&lease));
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 1, 0, 0);
    others_go_on(f, m, u, s1);
    assert_close_in_use(tn_manager_close(m, 0), 1, 0, 0, 0);
    spec_destroy(f, m); /* gives its diagnostics, and succeeds */
    assert_int_equal(spec_warnings(f, TN_DIAGNOSTIC_LEASE_ABANDONED), 1);
}

/* A lease that was released before is never seen complete: it protects, a close waits in vain and
 * says so (M238), and other operations are not refused for it. */
static void pending_lease_stays(struct spec *f, uint32_t reaper) {
    const tn_budget budgets[] = {{P, 4096}, {N, 4096}, {C0, 4096}, {C1, 4096}};
    tn_config config = spec_config(f);
    config.budgets = budgets;
    config.budget_count = 4;
    config.reaper = reaper;
    tn_manager *m = spec_manager_with(f, &config);
    tn_stream s0 = spec_stream(f, 0), s1 = spec_stream(f, 1);
    tn_handle v = adopt_rep(f, m, P), u = adopt_rep(f, m, P);
    tn_lease lease;

    ensure(m, v, C0);
    lease = acquire(m, v, C0, s0);
    spec_busy(f, s0);
    release(&lease);
    lose(f, 0);
    others_go_on(f, m, u, s1);
    assert_int_equal(mat(m, v, C0).pending_count, 1);
    assert_in_use(tn_manager_drop(m, v, C0, NULL), 0, 0, 1);
    expect_lost(tn_manager_close(m, 0));
    others_go_on(f, m, u, s1);
    expect_lost(tn_manager_close(m, TN_CLOSE_FORCE));
    others_go_on(f, m, u, s1);
    spec_destroy(f, m);
}

static void lost_device_pending_lease_stays(void **state) {
    pending_lease_stays(*state, TN_REAPER_MANUAL);
    spec_repair(*state);
    pending_lease_stays(*state, TN_REAPER_THREAD);
}

/* A controller makes room elsewhere, and uses of other places go on. */
static void lost_device_uses_elsewhere_go_on(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {C0, 64}, {C1, 32});
    tn_controller *controller = NULL;
    tn_handle h[2] = {register_src(m, spec_source(f)), register_src(m, spec_source(f))};

    assert_ok(tn_controller_create(m, NULL, &controller));
    ensure(m, h[0], C0);
    lose(f, 0);
    drop(m, h[0], C0);
    for (int i = 0; i < 6; i++) { /* each evicts the other from cuda:1 */
        tn_requirement need = {h[i % 2], C1};
        tn_transfer_stream consumer = {C1, spec_stream(f, 1)};
        tn_request_spec spec = TN_REQUEST_SPEC_INIT;
        tn_use_options options = TN_USE_OPTIONS_INIT;
        tn_request *request = NULL;
        tn_use *use = NULL;

        spec.name = "elsewhere";
        spec.requirements = &need;
        spec.requirement_count = 1;
        options.consumers = &consumer;
        options.consumer_count = 1;
        assert_ok(tn_request_create(&spec, &request));
        assert_ok(tn_use_create(controller, request, &options, &use));
        tn_request_destroy(request);
        assert_ok(tn_use_enter(use));
        assert_ok(tn_use_exit(use));
        tn_use_destroy(use);
        spec_finish(f);
        assert_replicas(m, h[i % 2], C1);
        assert_replicas(m, h[(i + 1) % 2]);
    }
    tn_controller_destroy(controller);
    assert_ok(tn_manager_close(m, 0));
    spec_destroy(f, m);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(lost_device_others_go_on),         SPEC_BOTH(lost_device_values_come_back_elsewhere),
    SPEC_BOTH(lost_device_active_lease_stays),   SPEC_BOTH(lost_device_pending_lease_stays),
    SPEC_BOTH(lost_device_uses_elsewhere_go_on),
};

TN_TEST_MAIN("spec.lost_device", tests)
